/*
 * ring-rest: what a ring costs while nothing happens, in traffic. How long the simulator takes for it is the
 * measure of its speed, too: 20,000 nodes, an hour.
 */
#include "sim/experiments/experiment.h"
#include "sim/experiments/ring_world.h"

enum {
    FINGERS_COUNT = 20,
    OVERHEAD_SIZE = 88, /* of IPv4, UDP and encryption, per message */
};

static enum err rest(struct ring_world *world, uint32_t minutes, struct report *report,
                     struct err_detail *detail) {
    uint32_t nodes_count = world->nodes_count;
    uint64_t for_us = minutes * 60 * SIM_SECOND_US;
    world->fingers_count = FINGERS_COUNT;
    ring_world_install(world, nodes_count);
    enum err err = sim_run_until(world->sim, 10 * SIM_SECOND_US);
    const struct network_traffic *traffic = &sim_network(world->sim)->counters.traffic;
    struct network_traffic before = *traffic;
    err = err != ERR_OK ? err : sim_run_until(world->sim, sim_now_us(world->sim) + for_us);
    if (err != ERR_OK) {
        return err;
    }
    uint32_t node;
    const char *reason = ring_world_check_ideal(world, &node);
    if (reason != NULL) {
        return err_set(detail, ERR_MISMATCH, "%u nodes: node %u: %s", nodes_count, node, reason);
    }
    double count = (double)(traffic->sent_count - before.sent_count) / nodes_count;
    double size = (double)(traffic->sent_size - before.sent_size) / nodes_count;
    double seconds = 60.0 * minutes;
    REPORT_NUMBERS(report, nodes_count, minutes, count / minutes, size * 8 / seconds / 1000,
                   (size + count * OVERHEAD_SIZE) * 8 / seconds / 1000, 1);
    return ERR_OK;
}

enum err experiment_ring_rest(const struct experiment_args *args, struct report *report,
                              struct err_detail *detail) {
    static const uint32_t sizes[] = {256, 1024, 4096, 20000};
    report_init(report, "A ring at rest", "kbit/s per node");
    REPORT_COLUMNS(report, {"nodes", 0, REPORT_X_LOGARITHMIC}, {"minutes", 0, REPORT_SHOWN},
                   {"messages per node and minute", 1, REPORT_SHOWN}, {"messages alone", 3, REPORT_Y},
                   {"with IP, UDP, encryption", 3, REPORT_Y}, {"target", 1, REPORT_Y_EXPECTED});
    unsigned sizes_count = args->nodes > 0 ? 1 : sizeof sizes / sizeof sizes[0];
    for (unsigned i = 0; i < sizes_count; i++) {
        struct sim_config sim = {
            .seed = args->seed,
            .nodes_max = args->nodes > 0 ? args->nodes : sizes[i],
            .network = {.latency_us = 30000, .jitter_us = 40000},
        };
        struct ring_config config = {.list_size = 8, .table_capacity = 64, .lookups_max = 2};
        struct ring_world world;
        enum err err = ring_world_init(&world, &sim, &config);
        err = err != ERR_OK ? err : rest(&world, args->runs, report, detail);
        sim_digest_into(world.sim, &report->digest);
        ring_world_done(&world);
        if (err != ERR_OK) {
            return err;
        }
    }
    return report->err;
}
