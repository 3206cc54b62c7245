/*
 * ring-failure: lookups after a share of all nodes, up to half, failed in the same moment: the thesis's
 * theorems 1 and 2. The lookups come within the next twenty seconds, while lists are being repaired.
 */
#include "sim/experiments/experiment.h"
#include "sim/experiments/ring_lookups.h"

enum { FINGERS_COUNT = 24, NODES_EXPECTED = 20000 };

static enum err ask_living(struct ring_lookups *lookups) {
    struct ring_world *world = lookups->world;
    struct prng prng;
    prng_init_stream(&prng, sim_seed(world->sim), 13);
    uint64_t start_us = sim_now_us(world->sim);
    enum err err = ERR_OK;
    for (uint32_t i = 0; i < lookups->asked_max && err == ERR_OK; i++) {
        uint32_t node = world->members[prng_below(&prng, world->members_count)];
        uint64_t at_us = start_us + i * 20 * SIM_SECOND_US / lookups->asked_max;
        err = ring_lookups_ask(lookups, node, &prng, at_us);
        if (i % 64 == 0) {
            err = err != ERR_OK ? err : sim_run_until(world->sim, at_us);
        }
    }
    return err != ERR_OK ? err : sim_run_until(world->sim, start_us + 120 * SIM_SECOND_US);
}

static void kill(struct ring_world *world, uint32_t count) {
    struct prng prng;
    prng_init_stream(&prng, sim_seed(world->sim), 12);
    for (uint32_t dead = 0; dead < count;) {
        uint32_t node = (uint32_t)prng_below(&prng, world->nodes_count);
        dead += sim_status(world->sim, node) == SIM_UP;
        sim_leave(world->sim, node);
    }
    ring_world_list_members(world);
}

static enum err run_failure(const struct experiment_args *args, unsigned percent,
                            struct ring_lookups *lookups, struct report *report) {
    struct sim_config sim = {
        .seed = args->seed,
        .nodes_max = args->nodes,
        .network = {.latency_us = 20000, .jitter_us = 20000},
    };
    struct ring_config config = {.list_size = RING_LIST_MAX, .table_capacity = 64, .lookups_max = 16};
    struct ring_world world;
    enum err err = ring_world_init(&world, &sim, &config);
    err = err != ERR_OK ? err : ring_lookups_init(lookups, &world, args->runs);
    if (err == ERR_OK) {
        world.fingers_count = FINGERS_COUNT;
        ring_world_install(&world, args->nodes);
        err = sim_run_until(world.sim, 5 * SIM_SECOND_US);
        kill(&world, (uint32_t)((uint64_t)args->nodes * percent / 100));
        err = err != ERR_OK ? err : ask_living(lookups);
    }
    sim_digest_into(world.sim, &report->digest);
    ring_lookups_done(lookups);
    ring_world_done(&world);
    return err;
}

enum err experiment_ring_failure(const struct experiment_args *args, struct report *report,
                                 struct err_detail *detail) {
    static const unsigned percents[] = {0, 25, 50};
    report_init(report, "Lookups after many nodes failed at once", "hops");
    REPORT_COLUMNS(report, {"failed (%)", 0, REPORT_X}, {"nodes", 0, REPORT_SHOWN},
                   {"lookups", 0, REPORT_SHOWN}, {"wrong", 0, REPORT_SHOWN}, {"lost", 0, REPORT_SHOWN},
                   {"stale", 0, REPORT_SHOWN}, {"expected", 0, REPORT_SHOWN}, {"mean", 2, REPORT_Y},
                   {"expected mean", 1, REPORT_Y_EXPECTED}, {"99 %", 0, REPORT_Y},
                   {"seconds", 2, REPORT_SHOWN}, {"slowest (s)", 1, REPORT_SHOWN});
    (void)detail;
    for (unsigned i = 0; i < sizeof percents / sizeof percents[0]; i++) {
        struct ring_lookups lookups = {0};
        enum err err = run_failure(args, percents[i], &lookups, report);
        if (err != ERR_OK) {
            return err;
        }
        REPORT_NUMBERS(report, percents[i], args->nodes, lookups.asked_count, (double)lookups.wrong_count,
                       (double)(lookups.asked_count - lookups.found_count), (double)lookups.stale_count, 0,
                       ring_lookups_mean_hops(&lookups),
                       percents[i] == 50 && args->nodes == NODES_EXPECTED ? 8.3 : NAN,
                       ring_lookups_percentile(&lookups, 99),
                       (double)lookups.took_us_sum / 1e6 / (double)lookups.found_count,
                       (double)lookups.took_us_max / 1e6);
    }
    return report->err;
}
