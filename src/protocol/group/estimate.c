#include "protocol/group/estimate.h"

enum { WEIGHT_OLD = 9, WEIGHTS = 10 };
static const uint64_t SIZE_MAX_BYTES = UINT64_C(1) << 40; /* so that microseconds by bytes fit into 64 bits */

static uint64_t damp(uint64_t old, uint64_t sample) {
    return old == 0 ? sample : (WEIGHT_OLD * old + sample + WEIGHTS / 2) / WEIGHTS;
}

static void count_up(uint32_t *count) {
    *count += *count < UINT32_MAX;
}

bool estimate_learn_round_trip(struct estimate *estimate, uint64_t sample_us, uint64_t now_us) {
    if (sample_us > ESTIMATE_ROUND_TRIP_US_MAX) {
        return false;
    }
    sample_us = sample_us == 0 ? 1 : sample_us; /* 0 stands for unknown */
    estimate->round_trip_us = (uint32_t)damp(estimate->round_trip_us, sample_us);
    estimate->round_trip_at_us = now_us;
    count_up(&estimate->round_trips_count);
    return true;
}

bool estimate_learn_transfer(struct estimate *estimate, uint64_t size, uint64_t duration_us,
                             uint64_t now_us) {
    if (size < ESTIMATE_TRANSFER_SIZE_MIN || size > SIZE_MAX_BYTES) {
        return false;
    }
    uint64_t bandwidth = size * 1000000 / (duration_us == 0 ? 1 : duration_us);
    bandwidth = bandwidth == 0 ? 1 : bandwidth;
    bandwidth = bandwidth < ESTIMATE_BANDWIDTH_MAX ? bandwidth : ESTIMATE_BANDWIDTH_MAX;
    estimate->bandwidth = damp(estimate->bandwidth, bandwidth);
    estimate->bandwidth_at_us = now_us;
    count_up(&estimate->transfers_count);
    return true;
}

uint32_t estimate_cost_us(const struct estimate *estimate, uint64_t size) {
    if (!estimate_is_known(estimate)) {
        return COSTS_UNKNOWN_US;
    }
    uint64_t delay_us =
        estimate->round_trip_us != 0 ? estimate->round_trip_us : ESTIMATE_ROUND_TRIP_US_ASSUMED;
    uint64_t bandwidth = estimate->bandwidth != 0 ? estimate->bandwidth : ESTIMATE_BANDWIDTH_ASSUMED;
    size = size < SIZE_MAX_BYTES ? size : SIZE_MAX_BYTES;
    uint64_t cost_us = delay_us + size * 1000000 / bandwidth;
    return cost_us < COSTS_US_MAX ? (uint32_t)cost_us : COSTS_US_MAX;
}
