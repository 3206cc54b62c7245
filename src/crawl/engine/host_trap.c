#include "crawl/engine/host_trap.h"

void host_trap_keep(struct host *host, struct frontier_lane *lane, uint32_t unkept_count_min) {
    struct buf state;
    if (host->trap == NULL || host->trap_unkept_count < unkept_count_min) {
        return;
    }
    buf_init(&state, FRONTIER_KEPT_SIZE_MAX);
    if (trap_host_put(host->trap, &state) == ERR_OK) {
        frontier_lane_keep(lane, buf_bytes(&state));
        host->trap_unkept_count = 0;
    }
    buf_done(&state);
}

void host_trap_recall(struct host *host, const struct frontier_lane *lane) {
    struct bytes state = frontier_lane_kept(lane);
    if (state.size == 0 || host->trap != NULL || host_trap(host) == NULL) {
        return; /* nothing is kept, or more is known already */
    }
    if (trap_host_read(host->trap, state) != ERR_OK) {
        trap_host_init(host->trap); /* damaged: counted anew */
    }
}
