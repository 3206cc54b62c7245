/*
 * ring-lookup: hops of lookups in ideal rings of many sizes. ring-failure: lookups after half of all nodes
 * failed at once, the thesis's theorems 1 and 2.
 */
#include "sim/experiment.h"
#include "sim/ring_lookups.h"

enum { FINGERS_COUNT = 24, EXPERTS_COUNT = 16, FIND_RATE = 500 };
static const uint64_t NEVER_US = UINT64_C(1) << 50;

/* ---- ring-lookup ---- */

struct lookup_kind {
    const char *name;
    uint8_t list_size;
    bool with_table; /* the askers know everybody */
};

struct lookup_expectation {
    uint32_t nodes;
    double fingers;
    double successors; /* below 0: none stated */
};

static enum err ask_all(struct ring_lookups *lookups, uint32_t count, uint32_t askers_count) {
    struct sim *sim = lookups->world->sim;
    struct prng prng;
    prng_init_stream(&prng, sim_seed(sim), 11);
    enum err err = ERR_OK;
    for (uint32_t i = 0; i < count && err == ERR_OK; i++) {
        uint64_t at_us = sim_now_us(sim) + SIM_SECOND_US / FIND_RATE;
        uint32_t node = (uint32_t)prng_below(&prng, askers_count);
        err = ring_lookups_ask(lookups, node, &prng, at_us);
        err = err != ERR_OK ? err : sim_run_until(sim, at_us);
    }
    return err != ERR_OK ? err : sim_run_until(sim, sim_now_us(sim) + 30 * SIM_SECOND_US);
}

static enum err run_static(uint64_t seed, uint32_t nodes_count, const struct lookup_kind *kind,
                           uint32_t lookups_count, struct report *report, struct ring_lookups *lookups) {
    struct sim_config sim = {.seed = seed, .nodes_max = nodes_count, .network = {.latency_us = 20000}};
    struct ring_config config = {
        .list_size = kind->list_size,
        .table_capacity = FINGERS_COUNT + kind->list_size + 2u,
        .stabilize_us = NEVER_US,
        .heal_us = NEVER_US,
    };
    config.lookups_max = kind->with_table ? 64 : 3;
    struct ring_world world;
    enum err err = ring_world_init(&world, &sim, &config);
    err = err != ERR_OK ? err : ring_lookups_init(lookups, &world, lookups_count);
    if (err == ERR_OK) {
        world.fingers_count = FINGERS_COUNT;
        world.experts_count = kind->with_table ? EXPERTS_COUNT : 0;
        ring_world_install(&world, nodes_count);
        for (uint32_t i = 0; i < nodes_count; i++) {
            sim_start_at(world.sim, i, 0);
        }
        err = sim_run_until(world.sim, 0);
        ring_world_list_members(&world);
    }
    err =
        err != ERR_OK ? err : ask_all(lookups, lookups_count, kind->with_table ? EXPERTS_COUNT : nodes_count);
    if (world.sim != NULL) {
        struct digest digest = sim_digest(world.sim);
        digest_u64(&report->digest, digest.lanes[0]);
        digest_u64(&report->digest, digest.lanes[1]);
    }
    ring_lookups_done(lookups);
    ring_world_done(&world);
    return err;
}

static void put_expected(struct report *report, double value) {
    if (value < 0) {
        report_missing(report);
    } else {
        report_number(report, value);
    }
}

static enum err lookup_row(const struct experiment_args *args, const struct lookup_expectation *expected,
                           struct report *report, struct err_detail *detail) {
    static const struct lookup_kind kinds[] = {
        {"fingers", 1, false}, {"successors", 20, false}, {"table", 8, true}};
    uint32_t lookups_count = args->runs == 0 ? 4000 : args->runs;
    struct ring_lookups lookups[3];
    for (unsigned i = 0; i < 3; i++) {
        enum err err = run_static(args->seed, expected->nodes, &kinds[i], lookups_count, report, &lookups[i]);
        if (err != ERR_OK) {
            return err_set(detail, err, "%s, %u nodes: %s", kinds[i].name, expected->nodes, err_text(err));
        }
        if (lookups[i].wrong_count + lookups[i].lost_count > 0) {
            return err_set(detail, ERR_MISMATCH, "%s, %u nodes: %llu wrong, %llu lost", kinds[i].name,
                           expected->nodes, (unsigned long long)lookups[i].wrong_count,
                           (unsigned long long)lookups[i].lost_count);
        }
    }
    report_number(report, expected->nodes);
    report_number(report, ring_lookups_mean_hops(&lookups[0]));
    put_expected(report, expected->fingers);
    report_number(report, ring_lookups_percentile(&lookups[0], 1));
    report_number(report, ring_lookups_percentile(&lookups[0], 50));
    report_number(report, ring_lookups_percentile(&lookups[0], 99));
    report_number(report, ring_lookups_mean_hops(&lookups[1]));
    put_expected(report, expected->successors);
    report_number(report, ring_lookups_mean_hops(&lookups[2]));
    return report->err;
}

enum err experiment_ring_lookup(const struct experiment_args *args, struct report *report,
                                struct err_detail *detail) {
    static const struct lookup_expectation expected[] = {
        {1024, 5.84, 3.58}, {4096, 6.85, -1}, {10000, 7.49, 5.23}, {20000, 8.01, 5.73}, {65536, 8.86, -1},
    };
    report_init(report, "Hops of a lookup in an ideal ring", "hops");
    report_column(report, "nodes", 0, REPORT_X);
    report_column(report, "fingers only", 2, REPORT_Y);
    report_column(report, "expected", 2, REPORT_SHOWN);
    report_column(report, "1 %", 0, REPORT_SHOWN);
    report_column(report, "50 %", 0, REPORT_SHOWN);
    report_column(report, "99 %", 0, REPORT_SHOWN);
    report_column(report, "with 20 successors", 2, REPORT_Y);
    report_column(report, "expected with 29", 2, REPORT_SHOWN);
    report_column(report, "with location table", 2, REPORT_Y);
    if (args->nodes > 0) {
        return lookup_row(args, &(struct lookup_expectation){args->nodes, -1, -1}, report, detail);
    }
    enum err err = ERR_OK;
    for (unsigned i = 0; i < sizeof expected / sizeof expected[0] && err == ERR_OK; i++) {
        err = lookup_row(args, &expected[i], report, detail);
    }
    return err;
}

/* ---- ring-failure ---- */

static enum err ask_living(struct ring_lookups *lookups, uint32_t count) {
    struct ring_world *world = lookups->world;
    struct prng prng;
    prng_init_stream(&prng, sim_seed(world->sim), 13);
    uint64_t start_us = sim_now_us(world->sim);
    enum err err = ERR_OK;
    for (uint32_t i = 0; i < count && err == ERR_OK; i++) {
        uint32_t node = world->members[prng_below(&prng, world->members_count)];
        uint64_t at_us = start_us + i * 20 * SIM_SECOND_US / count; /* within twenty seconds */
        err = ring_lookups_ask(lookups, node, &prng, at_us);
        if (i % 64 == 0) {
            err = err != ERR_OK ? err : sim_run_until(world->sim, at_us);
        }
    }
    return err != ERR_OK ? err : sim_run_until(world->sim, start_us + 120 * SIM_SECOND_US);
}

static enum err run_failure(const struct experiment_args *args, struct ring_lookups *lookups,
                            uint32_t nodes_count, struct report *report) {
    struct sim_config sim = {
        .seed = args->seed,
        .nodes_max = nodes_count,
        .network = {.latency_us = 20000, .jitter_us = 20000},
    };
    struct ring_config config = {.list_size = RING_LIST_MAX, .table_capacity = 64, .lookups_max = 16};
    uint32_t lookups_count = args->runs == 0 ? 100000 : args->runs;
    struct ring_world world;
    enum err err = ring_world_init(&world, &sim, &config);
    err = err != ERR_OK ? err : ring_lookups_init(lookups, &world, lookups_count);
    if (err == ERR_OK) {
        world.fingers_count = FINGERS_COUNT;
        ring_world_install(&world, nodes_count);
        for (uint32_t i = 0; i < nodes_count; i++) {
            sim_start_at(world.sim, i, 0);
        }
        err = sim_run_until(world.sim, 5 * SIM_SECOND_US);
        struct prng prng;
        prng_init_stream(&prng, args->seed, 12);
        for (uint32_t dead = 0; dead < nodes_count / 2;) {
            uint32_t node = (uint32_t)prng_below(&prng, nodes_count);
            dead += sim_status(world.sim, node) == SIM_UP;
            sim_leave(world.sim, node);
        }
        ring_world_list_members(&world);
        err = err != ERR_OK ? err : ask_living(lookups, lookups_count);
    }
    if (world.sim != NULL) {
        struct digest digest = sim_digest(world.sim);
        digest_u64(&report->digest, digest.lanes[0]);
        digest_u64(&report->digest, digest.lanes[1]);
    }
    ring_lookups_done(lookups);
    ring_world_done(&world);
    return err;
}

enum err experiment_ring_failure(const struct experiment_args *args, struct report *report,
                                 struct err_detail *detail) {
    report_init(report, "Lookups after half of all nodes failed at once", "hops");
    report_column(report, "nodes", 0, REPORT_SHOWN);
    report_column(report, "lookups", 0, REPORT_SHOWN);
    report_column(report, "wrong", 0, REPORT_SHOWN);
    report_column(report, "lost", 0, REPORT_SHOWN);
    report_column(report, "stale", 0, REPORT_SHOWN);
    report_column(report, "expected", 0, REPORT_SHOWN);
    report_column(report, "hops", 2, REPORT_SHOWN);
    report_column(report, "expected hops", 1, REPORT_SHOWN);
    report_column(report, "99 % hops", 0, REPORT_SHOWN);
    uint32_t nodes_count = args->nodes == 0 ? 20000 : args->nodes;
    struct ring_lookups lookups;
    enum err err = run_failure(args, &lookups, nodes_count, report);
    if (err != ERR_OK) {
        return err_set(detail, err, "seed %llu: %s", (unsigned long long)args->seed, err_text(err));
    }
    report_number(report, nodes_count);
    report_number(report, lookups.asked_count);
    report_number(report, (double)lookups.wrong_count);
    report_number(report, (double)(lookups.asked_count - lookups.found_count));
    report_number(report, (double)lookups.stale_count);
    report_number(report, 0);
    report_number(report, ring_lookups_mean_hops(&lookups));
    report_number(report, 8.3);
    report_number(report, ring_lookups_percentile(&lookups, 99));
    return report->err;
}
