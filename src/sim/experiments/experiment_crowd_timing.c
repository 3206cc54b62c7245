/*
 * crowd-timing, crowd-timing-ms: figures 11 and 12 of the PROOFS paper. One of 180 or 87 clients has the
 * object, all others begin to search for it in the same moment; by T, the time that a try is waited for per
 * hop of its TTL.
 *
 * The paper's clients were at 16 institutions, several on one machine. So are these: 16 places on a plane,
 * with delays that give the response times that the paper saw, 100 to 350 ms. The object then takes
 * TRANSFER_US more, and is given to others only after that. --nodes: so many clients, and half as many.
 */
#include "sim/experiments/crowd_searches.h"
#include "sim/experiments/experiment.h"

enum {
    SITES_COUNT = 16,
    VIEW_SIZE = 15,
    FANOUT = 2,
    TRIES_AT_LAST = 30, /* nobody gives up */
    TRANSFER_US = 100000,
    SHUFFLE_US = 120000000,
    SETTLE_US = 1800000000, /* "half an hour" */
    STEP_US = 100000,
    STEPS_MAX = 36000,
    WAIT_MS_STEP = 50,
    WAIT_MS_LAST = 600,
    CASES_COUNT = 4,
    CLIENTS_MAX = 180,
    CLIENTS_MIN = 2,
    TIMINGS_COUNT = EXPERIMENT_TIMING_MS + 1,
};

struct timing_case {
    uint32_t nodes_count;
    enum crowd_rules rules;
};

static const struct timing_case paper_cases[CASES_COUNT] = {{CLIENTS_MAX, CROWD_RULES_PAPER},
                                                            {87, CROWD_RULES_PAPER},
                                                            {CLIENTS_MAX, CROWD_RULES_OURS},
                                                            {87, CROWD_RULES_OURS}};

/* By enum experiment_timing. */
struct timing_result {
    double mean[TIMINGS_COUNT];  /* of a client and run */
    double worst[TIMINGS_COUNT]; /* of the clients; mean of the runs */
    double response_ms;          /* from the last try's beginning to its finding, mean */
};

struct timing {
    struct crowd_world world;
    struct prng prng;
    uint64_t wait_us; /* T */
    uint64_t *queries_before;
    uint64_t *tries_before;
    struct timing_result *result;
};

/* ---- the world ---- */

static void place_at_sites(struct timing *timing) {
    uint16_t x[SITES_COUNT];
    uint16_t y[SITES_COUNT];
    for (unsigned i = 0; i < SITES_COUNT; i++) {
        x[i] = (uint16_t)prng_below(&timing->prng, 65536);
        y[i] = (uint16_t)prng_below(&timing->prng, 65536);
    }
    struct network *network = sim_network(timing->world.sim);
    for (uint32_t node = 0; node < timing->world.nodes_count; node++) {
        network->nodes[node].x = x[node % SITES_COUNT];
        network->nodes[node].y = y[node % SITES_COUNT];
    }
}

static enum err timing_make_world(struct timing *timing, const struct timing_case *of, uint64_t seed) {
    struct sim_config sim = {
        .seed = seed,
        .nodes_max = of->nodes_count,
        .messages_max = 1 << 20,
        .network = {.latency_us = 15000, .distance_us = 70000, .jitter_us = 20000},
    };
    struct crowd_config config = {
        .view_size = VIEW_SIZE,
        .fanout = FANOUT,
        .ttl_last = crowd_searches_ttl_last(FANOUT),
        .tries_at_last = TRIES_AT_LAST,
        .ttl_cap = CROWD_TTL_CAP,
        .shuffle_us = SHUFFLE_US,
        .hop_us = timing->wait_us,
        .searches_max = 2,
        .seen_max = 2048,
    };
    crowd_searches_set_rules(&config, of->rules);
    enum err err = crowd_world_init(&timing->world, &sim, &config);
    if (err == ERR_OK) {
        timing->world.keeps_found = true;
        timing->world.transfer_us = TRANSFER_US;
        place_at_sites(timing);
        crowd_world_install(&timing->world, of->nodes_count);
    }
    return err;
}

/* ---- a run ---- */

static const struct crowd_counters *counters_of(const struct timing *timing, uint32_t node) {
    return crowd_counters(crowd_world_crowd(&timing->world, node));
}

static bool timing_is_over(const struct timing *timing, uint32_t holder) {
    for (uint32_t node = 0; node < timing->world.nodes_count; node++) {
        if (node != holder && timing->world.searches[node].found == CROWD_WORLD_OPEN) {
            return false;
        }
    }
    return true;
}

static enum err search_all(struct timing *timing, uint32_t holder, uint64_t run) {
    struct crowd_world *world = &timing->world;
    uint64_t now_us = sim_now_us(world->sim);
    enum err err = ERR_OK;
    memset(world->has_object, 0, world->nodes_count * sizeof *world->has_object);
    world->has_object[holder] = true;
    world->searches[holder] = (struct crowd_world_search){0};
    for (uint32_t node = 0; node < world->nodes_count && err == ERR_OK; node++) {
        timing->queries_before[node] = counters_of(timing, node)->queries_count;
        timing->tries_before[node] = counters_of(timing, node)->tries_count;
        err = node == holder ? ERR_OK : crowd_world_find(world, node, CROWD_WORLD_OBJECT, run + 1, now_us);
    }
    for (unsigned i = 0; i < STEPS_MAX && err == ERR_OK; i++) {
        err = sim_run_until(world->sim, sim_now_us(world->sim) + STEP_US);
        if (timing_is_over(timing, holder)) {
            break;
        }
    }
    return err != ERR_OK ? err : sim_run_until(world->sim, sim_now_us(world->sim) + SETTLE_US);
}

/* ERR_MISMATCH if somebody did not find it. */
static enum err count_run(struct timing *timing, uint32_t holder, uint32_t runs_count) {
    uint32_t nodes_count = timing->world.nodes_count;
    double queries_max = 0;
    double ms_max = 0;
    struct timing_result *result = timing->result;
    for (uint32_t node = 0; node < nodes_count; node++) {
        const struct crowd_counters *counters = counters_of(timing, node);
        const struct crowd_world_search *search = &timing->world.searches[node];
        double queries = (double)(counters->queries_count - timing->queries_before[node]);
        result->mean[EXPERIMENT_TIMING_QUERIES] += queries / nodes_count / runs_count;
        queries_max = queries > queries_max ? queries : queries_max;
        if (node == holder) {
            continue;
        }
        if (search->found != CROWD_WORLD_FOUND) {
            return ERR_MISMATCH;
        }
        uint64_t found_us = search->ended_at_us - search->asked_at_us;
        uint64_t failed_tries = counters->tries_count - timing->tries_before[node] - 1;
        double ms = (double)(found_us + TRANSFER_US) / 1000;
        double waited_ms = (double)(failed_tries * (failed_tries + 1) / 2 * timing->wait_us) / 1000;
        result->mean[EXPERIMENT_TIMING_MS] += ms / (nodes_count - 1) / runs_count;
        result->response_ms += ((double)found_us / 1000 - waited_ms) / (nodes_count - 1) / runs_count;
        ms_max = ms > ms_max ? ms : ms_max;
    }
    result->worst[EXPERIMENT_TIMING_QUERIES] += queries_max / runs_count;
    result->worst[EXPERIMENT_TIMING_MS] += ms_max / runs_count;
    return ERR_OK;
}

static enum err timing_run_all(struct timing *timing, uint32_t runs_count) {
    enum err err = sim_run_until(timing->world.sim, SETTLE_US);
    for (uint32_t run = 0; run < runs_count && err == ERR_OK; run++) {
        uint32_t holder = (uint32_t)prng_below(&timing->prng, timing->world.nodes_count);
        err = search_all(timing, holder, run);
        err = err != ERR_OK ? err : count_run(timing, holder, runs_count);
    }
    return err;
}

static enum err run_case(const struct experiment_args *args, const struct timing_case *of, unsigned wait_ms,
                         struct report *report, struct timing_result *result) {
    uint64_t queries_before[CLIENTS_MAX];
    uint64_t tries_before[CLIENTS_MAX];
    struct timing timing = {
        .wait_us = wait_ms * UINT64_C(1000),
        .queries_before = queries_before,
        .tries_before = tries_before,
        .result = result,
    };
    *result = (struct timing_result){0};
    prng_init_stream(&timing.prng, args->seed, 22);
    enum err err = timing_make_world(&timing, of, args->seed);
    err = err != ERR_OK ? err : timing_run_all(&timing, args->runs);
    sim_digest_into(timing.world.sim, &report->digest);
    crowd_world_done(&timing.world);
    return err;
}

/* ---- the experiments ---- */

static struct timing_case case_of(const struct experiment_args *args, unsigned index) {
    struct timing_case of = paper_cases[index];
    if (args->nodes > 0) {
        uint32_t nodes_max = args->nodes < CLIENTS_MAX ? args->nodes : CLIENTS_MAX;
        uint32_t nodes_count = of.nodes_count == CLIENTS_MAX ? nodes_max : nodes_max / 2;
        of.nodes_count = nodes_count < CLIENTS_MIN ? CLIENTS_MIN : nodes_count;
    }
    return of;
}

static void put_columns(const struct experiment_args *args, struct report *report) {
    static const char *const clients[2][CASES_COUNT] = {
        {"180 clients", "87 clients", "180 (ours)", "87 (ours)"},
        {"N clients", "N/2 clients", "N (ours)", "N/2 (ours)"}};
    static const char *const worst[TIMINGS_COUNT][2][CASES_COUNT] = {
        [EXPERIMENT_TIMING_QUERIES] = {{"most, 180", "most, 87", "most, 180 (ours)", "most, 87 (ours)"},
                                       {"most, N", "most, N/2", "most, N (ours)", "most, N/2 (ours)"}},
        [EXPERIMENT_TIMING_MS] = {{"last, 180", "last, 87", "last, 180 (ours)", "last, 87 (ours)"},
                                  {"last, N", "last, N/2", "last, N (ours)", "last, N/2 (ours)"}}};
    bool is_other = args->nodes != 0;
    unsigned decimals = args->variant == EXPERIMENT_TIMING_MS ? 0 : 1;
    report_column(report, "T (ms)", 0, REPORT_X);
    for (unsigned i = 0; i < CASES_COUNT; i++) {
        report_column(report, clients[is_other][i], decimals, REPORT_Y);
    }
    for (unsigned i = 0; i < CASES_COUNT; i++) {
        report_column(report, worst[args->variant][is_other][i], decimals, REPORT_SHOWN);
    }
    if (args->variant == EXPERIMENT_TIMING_MS) {
        report_column(report, is_other ? "response, N" : "response, 180", 0, REPORT_SHOWN);
    } else {
        report_column(report, "stated: fewer than", 0, REPORT_Y_EXPECTED);
    }
}

static void put_row(const struct experiment_args *args, unsigned wait_ms,
                    const struct timing_result results[CASES_COUNT], struct report *report) {
    report_number(report, wait_ms);
    for (unsigned i = 0; i < CASES_COUNT; i++) {
        report_number(report, results[i].mean[args->variant]);
    }
    for (unsigned i = 0; i < CASES_COUNT; i++) {
        report_number(report, results[i].worst[args->variant]);
    }
    /* shorter waits overlap: which try was answered is not known */
    double last = args->variant == EXPERIMENT_TIMING_MS ? results[0].response_ms : 25;
    report_number(report, wait_ms > 300 ? last : NAN);
}

enum err experiment_crowd_timing(const struct experiment_args *args, struct report *report,
                                 struct err_detail *detail) {
    if (args->variant == EXPERIMENT_TIMING_MS) {
        report_init(report, "Time until a client has the object when all search at once", "ms, mean");
    } else {
        report_init(report, "Queries that a client receives when all search at once", "queries, mean");
    }
    put_columns(args, report);
    for (unsigned wait_ms = WAIT_MS_STEP; wait_ms <= WAIT_MS_LAST; wait_ms += WAIT_MS_STEP) {
        struct timing_result results[CASES_COUNT];
        for (unsigned i = 0; i < CASES_COUNT; i++) {
            struct timing_case of = case_of(args, i);
            enum err err = run_case(args, &of, wait_ms, report, &results[i]);
            if (err != ERR_OK) {
                return err_set(detail, err, "%u clients, T = %u ms: %s", of.nodes_count, wait_ms,
                               err_text(err));
            }
        }
        put_row(args, wait_ms, results, report);
    }
    return report->err;
}
