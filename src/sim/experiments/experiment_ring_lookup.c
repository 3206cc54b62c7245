/*
 * ring-lookup: hops of lookups in ideal rings of many sizes. ring-hops: how they are distributed.
 *
 * The rings are put up as they would be after all had joined and looked for their fingers; then nothing
 * happens but lookups. Beside our lookups, which ask three candidates at a time, stands what the paper's one
 * at a time would take in the very same ring: the difference is that of the rule, not of the ring.
 */
#include "sim/experiments/experiment.h"
#include "sim/experiments/ring_lookups.h"

enum {
    FINGERS_COUNT = 24,
    EXPERTS_COUNT = 16, /* nodes that know everybody, and ask */
    FIND_RATE = 500,
    KINDS_COUNT = 3,
};
static const uint64_t NEVER_US = UINT64_C(1) << 50;

struct lookup_kind {
    const char *name;
    uint8_t list_size;
    bool with_table; /* the askers know everybody */
};

static const struct lookup_kind lookup_kinds[KINDS_COUNT] = {
    {"fingers", 1, false},
    {"successors", RING_LIST_MAX, false},
    {"table", 8, true},
};

struct lookup_expectation {
    uint32_t nodes;
    double fingers;
    double successors; /* NAN: none stated */
};

/* protocols.md of the design; measured with throw-away simulators. */
static const struct lookup_expectation lookup_sizes[] = {
    {1024, 5.84, 3.58}, {4096, 6.85, NAN},   {10000, 7.49, 5.23},
    {16384, 7.85, NAN}, {20000, 8.01, 5.73}, {65536, 8.86, NAN},
};
enum { SIZES_COUNT = sizeof lookup_sizes / sizeof lookup_sizes[0] };

struct lookup_result {
    struct ring_lookups lookups; /* of which the counts are left */
    double greedy_hops;          /* mean of one candidate at a time, with the kind's list … */
    double greedy_hops_of_29;    /* … and with 29 successors, as the design had it */
};

/* ---- one candidate at a time ---- */

/*
 * The paper's walk: the list names the owner if it reaches beyond the key, otherwise the nearest before
 * the key of list and fingers is next. The last hop, to the owner itself, counts.
 */
static unsigned lookup_walk(const struct ring_world *world, uint32_t node, struct ring_id key,
                            uint32_t list_size) {
    uint32_t count = world->members_count;
    uint32_t owner = ring_world_position(world, key);
    uint32_t position = ring_world_position(world, world->vnodes[node].id);
    unsigned hops = 0;
    while (position != owner) {
        uint32_t reach = list_size < count ? list_size : count - 1;
        uint32_t ahead = (owner + count - position) % count;
        hops++;
        if (ahead <= reach) {
            break;
        }
        uint32_t best = reach;
        struct ring_id self = world->vnodes[world->members[position]].id;
        for (unsigned finger = 0; finger < FINGERS_COUNT; finger++) {
            uint32_t at = ring_world_position(world, ring_id_add_power(self, 127 - finger));
            uint32_t steps = (at + count - position) % count;
            best = steps < ahead && steps > best ? steps : best;
        }
        position = (position + best) % count;
    }
    return hops;
}

static double walk_all(const struct ring_lookups *lookups, uint32_t list_size) {
    uint64_t hops = 0;
    for (uint32_t i = 0; i < lookups->asked_count; i++) {
        hops += lookup_walk(lookups->world, lookups->asked[i].node, lookups->asked[i].key, list_size);
    }
    return (double)hops / lookups->asked_count;
}

/* ---- a ring ---- */

static enum err ask_all(struct ring_lookups *lookups, uint32_t askers_count) {
    struct sim *sim = lookups->world->sim;
    struct prng prng;
    prng_init_stream(&prng, sim_seed(sim), 11);
    enum err err = ERR_OK;
    while (lookups->asked_count < lookups->asked_max && err == ERR_OK) {
        uint64_t at_us = sim_now_us(sim) + SIM_SECOND_US / FIND_RATE;
        uint32_t node = lookups->asked_count % askers_count;
        err = ring_lookups_ask(lookups, node, &prng, at_us);
        err = err != ERR_OK ? err : sim_run_until(sim, at_us);
    }
    return err != ERR_OK ? err : sim_run_until(sim, sim_now_us(sim) + 30 * SIM_SECOND_US);
}

/* Little room per node: 65,536 of them take 5 GB. */
static enum err run_static(const struct experiment_args *args, uint32_t nodes_count,
                           const struct lookup_kind *kind, struct report *report,
                           struct lookup_result *result) {
    struct sim_config sim = {.seed = args->seed, .nodes_max = nodes_count, .network = {.latency_us = 20000}};
    struct ring_config config = {
        .list_size = kind->list_size,
        .table_capacity = FINGERS_COUNT + kind->list_size + 2u,
        .lookups_max = kind->with_table ? 64 : 1,
        .stabilize_us = NEVER_US,
        .heal_us = NEVER_US,
    };
    struct ring_world world;
    struct ring_lookups *lookups = &result->lookups;
    uint32_t lookups_count = args->runs;
    if (!kind->with_table && lookups_count > nodes_count) {
        lookups_count = nodes_count; /* one each: a node that has asked has learnt more than its fingers */
    }
    enum err err = ring_world_init(&world, &sim, &config);
    err = err != ERR_OK ? err : ring_lookups_init(lookups, &world, lookups_count);
    if (err == ERR_OK) {
        world.fingers_count = FINGERS_COUNT;
        world.experts_count = kind->with_table ? EXPERTS_COUNT : 0;
        ring_world_install(&world, nodes_count);
        err = sim_run_until(world.sim, 0);
        ring_world_list_members(&world);
    }
    uint32_t askers_count = kind->with_table && nodes_count > EXPERTS_COUNT ? EXPERTS_COUNT : nodes_count;
    err = err != ERR_OK ? err : ask_all(lookups, askers_count);
    if (err == ERR_OK) {
        result->greedy_hops = walk_all(lookups, kind->list_size);
        result->greedy_hops_of_29 = walk_all(lookups, 29);
    }
    sim_digest_into(world.sim, &report->digest);
    ring_lookups_done(lookups);
    ring_world_done(&world);
    return err;
}

/* The same, and every answer must be right. */
static enum err run_kind(const struct experiment_args *args, uint32_t nodes_count,
                         const struct lookup_kind *kind, struct report *report, struct lookup_result *result,
                         struct err_detail *detail) {
    *result = (struct lookup_result){0};
    enum err err = run_static(args, nodes_count, kind, report, result);
    if (err != ERR_OK) {
        return err_set(detail, err, "%s, %u nodes: %s", kind->name, nodes_count, err_text(err));
    }
    const struct ring_lookups *lookups = &result->lookups;
    if (lookups->wrong_count > 0 || lookups->found_count < lookups->asked_count) {
        return err_set(detail, ERR_MISMATCH, "%s, %u nodes: %llu wrong, %llu lost", kind->name, nodes_count,
                       (unsigned long long)lookups->wrong_count,
                       (unsigned long long)(lookups->asked_count - lookups->found_count));
    }
    return ERR_OK;
}

/* ---- ring-lookup ---- */

static enum err lookup_row(const struct experiment_args *args, const struct lookup_expectation *expected,
                           struct report *report, struct err_detail *detail) {
    struct lookup_result results[KINDS_COUNT];
    for (unsigned i = 0; i < KINDS_COUNT; i++) {
        enum err err = run_kind(args, expected->nodes, &lookup_kinds[i], report, &results[i], detail);
        if (err != ERR_OK) {
            return err;
        }
    }
    REPORT_NUMBERS(
        report, expected->nodes, ring_lookups_mean_hops(&results[0].lookups),
        ring_lookups_percentile(&results[0].lookups, 99), results[0].greedy_hops, expected->fingers,
        ring_lookups_mean_hops(&results[1].lookups), ring_lookups_percentile(&results[1].lookups, 99),
        results[1].greedy_hops, results[1].greedy_hops_of_29, expected->successors,
        ring_lookups_mean_hops(&results[2].lookups), ring_lookups_percentile(&results[2].lookups, 99));
    return report->err;
}

enum err experiment_ring_lookup(const struct experiment_args *args, struct report *report,
                                struct err_detail *detail) {
    report_init(report, "Hops of a lookup in an ideal ring", "hops, mean");
    REPORT_COLUMNS(report, {"nodes", 0, REPORT_X_LOGARITHMIC}, {"fingers only", 2, REPORT_Y},
                   {"99 % (fingers)", 0, REPORT_SHOWN}, {"fingers, one at a time", 2, REPORT_SHOWN},
                   {"fingers, expected", 2, REPORT_Y_EXPECTED}, {"20 successors", 2, REPORT_Y},
                   {"99 % (successors)", 0, REPORT_SHOWN}, {"20, one at a time", 2, REPORT_SHOWN},
                   {"29, one at a time", 2, REPORT_SHOWN}, {"29, expected", 2, REPORT_Y_EXPECTED},
                   {"location table", 2, REPORT_Y}, {"99 % (table)", 0, REPORT_SHOWN});
    if (args->nodes > 0) {
        return lookup_row(args, &(struct lookup_expectation){args->nodes, NAN, NAN}, report, detail);
    }
    enum err err = ERR_OK;
    for (unsigned i = 0; i < SIZES_COUNT && err == ERR_OK; i++) {
        err = lookup_row(args, &lookup_sizes[i], report, detail);
    }
    return err;
}

/* ---- ring-hops ---- */

enum err experiment_ring_hops(const struct experiment_args *args, struct report *report,
                              struct err_detail *detail) {
    static const char *const names[SIZES_COUNT] = {"1,024 nodes",  "4,096 nodes",  "10,000 nodes",
                                                   "16,384 nodes", "20,000 nodes", "65,536 nodes"};
    uint32_t sizes_count = args->nodes > 0 ? 1 : SIZES_COUNT;
    struct lookup_result results[SIZES_COUNT];
    report_init(report, "Hops of a lookup with fingers only", "lookups (%)");
    report_column(report, "hops", 0, REPORT_X);
    unsigned hops_last = 0;
    for (unsigned i = 0; i < sizes_count; i++) {
        report_column(report, args->nodes > 0 ? "lookups (%)" : names[i], 2, REPORT_Y);
        uint32_t nodes_count = args->nodes > 0 ? args->nodes : lookup_sizes[i].nodes;
        enum err err = run_kind(args, nodes_count, &lookup_kinds[0], report, &results[i], detail);
        if (err != ERR_OK) {
            return err;
        }
        unsigned greatest = ring_lookups_percentile(&results[i].lookups, 100);
        hops_last = greatest > hops_last ? greatest : hops_last;
    }
    for (unsigned hops = 0; hops <= hops_last; hops++) {
        report_number(report, hops);
        for (unsigned i = 0; i < sizes_count; i++) {
            const struct ring_lookups *lookups = &results[i].lookups;
            report_number(report, 100 * (double)lookups->hops[hops] / (double)lookups->found_count);
        }
    }
    return report->err;
}
