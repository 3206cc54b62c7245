/*
 * crowd-absent: what it costs to search for what nobody has, which the PROOFS paper leaves open.
 * crowd-flood: one node searches for as many absent objects as it can; do others still find what they want?
 *
 * Three sets of rules: the paper's; repeats dropped and nothing else; ours, with rates and with a memory of
 * what is absent.
 */
#include "sim/experiments/crowd_searches.h"
#include "sim/experiments/experiment.h"

enum { RULES_COUNT = 3, HOP_US = 50000 };

static const char *const rules_names[RULES_COUNT] = {"the paper", "repeats dropped", "ours"};

static void flood_set_rules(struct crowd_config *config, unsigned rules) {
    crowd_searches_set_rules(config, rules == 0 ? CROWD_RULES_PAPER : CROWD_RULES_OURS);
    config->is_unlimited = rules < 2;
}

static uint64_t count_queries(const struct crowd_world *world) {
    uint64_t count = 0;
    for (uint32_t node = 0; node < world->nodes_count; node++) {
        count += crowd_counters(crowd_world_crowd(world, node))->queries_count;
    }
    return count;
}

/* ---- what nobody has ---- */

enum {
    ABSENT_ASKERS = 10,
    ABSENT_EVERY_US = 1000000,
    ABSENT_OBJECT = 1000, /* the first number of those that nobody has */
};

/* Each search is for the same, or each for something else; by so many nodes in turn. */
static enum err search_absent(struct crowd_world *world, bool is_same, uint32_t searches_count,
                              struct prng *prng) {
    uint32_t askers[ABSENT_ASKERS];
    enum err err = ERR_OK;
    for (uint32_t i = 0; i < ABSENT_ASKERS; i++) {
        askers[i] = (uint32_t)prng_below(prng, world->nodes_count);
    }
    for (uint32_t i = 0; i < searches_count && err == ERR_OK; i++) {
        uint64_t object = ABSENT_OBJECT + (is_same ? 0 : i);
        uint64_t now_us = sim_now_us(world->sim);
        err = crowd_world_find(world, askers[i % ABSENT_ASKERS], object, i + 1, now_us);
        err = err != ERR_OK ? err : sim_run_until(world->sim, now_us + ABSENT_EVERY_US);
    }
    return err != ERR_OK ? err : sim_run_until(world->sim, sim_now_us(world->sim) + 20 * SIM_SECOND_US);
}

static enum err run_absent(const struct experiment_args *args, unsigned rules, bool is_same,
                           struct report *report, double *ret_queries) {
    struct sim_config sim = {
        .seed = args->seed,
        .nodes_max = args->nodes,
        .messages_max = 1 << 20,
        .network = {.latency_us = HOP_US},
    };
    struct crowd_config config = {.searches_max = 8, .seen_max = 1024, .waiting_max = 128};
    struct crowd_world world;
    struct prng prng;
    flood_set_rules(&config, rules);
    prng_init_stream(&prng, args->seed, 23);
    enum err err = crowd_world_init(&world, &sim, &config);
    if (err == ERR_OK) {
        crowd_world_install(&world, sim.nodes_max);
        err = sim_run_until(world.sim, 60 * SIM_SECOND_US);
    }
    err = err != ERR_OK ? err : search_absent(&world, is_same, args->runs, &prng);
    *ret_queries = err == ERR_OK ? (double)count_queries(&world) / args->runs : 0;
    sim_digest_into(world.sim, &report->digest);
    crowd_world_done(&world);
    return err;
}

enum err experiment_crowd_absent(const struct experiment_args *args, struct report *report,
                                 struct err_detail *detail) {
    report_init(report, "Queries of a search for what nobody has", "queries");
    REPORT_COLUMNS(report, {"rules", 0, REPORT_TEXT}, {"the same object", 0, REPORT_Y},
                   {"each another one", 0, REPORT_Y});
    for (unsigned rules = 0; rules < RULES_COUNT; rules++) {
        report_text(report, rules_names[rules]);
        for (unsigned is_same = 2; is_same-- > 0;) {
            double queries = 0;
            enum err err = run_absent(args, rules, is_same, report, &queries);
            if (err != ERR_OK) {
                return err_set(detail, err, "%s: %s", rules_names[rules], err_text(err));
            }
            report_number(report, queries);
        }
    }
    return report->err;
}

/* ---- a node that floods ---- */

/* Uplinks and rates are a fifth of what a node has by default, so that it takes a fifth of the time. */
enum {
    FLOOD_UPLINK = 25000, /* bytes a second: 200 kbit/s */
    FLOOD_BACKLOG_US = 500000,
    FLOOD_PEER_RATE = 10,
    FLOOD_TOTAL_RATE = 100,
    FLOOD_EAGER_MAX = 1024,
    FLOOD_ALONE_S = 5, /* before others search: what is full is full by then */
    FLOOD_ASKED_S = 5, /* in which each of the others begins a search */
    FLOOD_S = 17,      /* in all; a search with TTL 1 to 6 takes 6.3 s */
    FLOOD_HOLDERS = 3,
    FLOODER = 0,
    FLOOD_TICK_US = 10000,
};

static const unsigned flood_rates[] = {0, 1, 3, 10, 30, 100};

struct flood_result {
    double found;   /* percent of the searches of others */
    double queries; /* that a node receives in a second */
};

static enum err make_flood_world(struct crowd_world *world, const struct experiment_args *args,
                                 unsigned rules) {
    struct sim_config sim = {
        .seed = args->seed,
        .nodes_max = args->nodes,
        .messages_max = 1 << 20,
        .network = {.latency_us = HOP_US,
                    .uplink_bytes_per_s = FLOOD_UPLINK,
                    .backlog_us_max = FLOOD_BACKLOG_US},
    };
    struct crowd_config config = {
        .searches_max = 2, .seen_max = 2048, .peer_rate = FLOOD_PEER_RATE, .total_rate = FLOOD_TOTAL_RATE};
    flood_set_rules(&config, rules);
    enum err err = crowd_world_init(world, &sim, &config);
    if (err != ERR_OK) {
        return err;
    }
    world->eager_searches_max = FLOOD_EAGER_MAX;
    sim_network(world->sim)->nodes[FLOODER].uplink_bytes_per_s = UINT64_C(100) * FLOOD_UPLINK;
    for (uint32_t i = 1; i <= FLOOD_HOLDERS; i++) {
        world->has_object[i] = true; /* views are random, so any three will do */
    }
    crowd_world_install(world, sim.nodes_max);
    return sim_run_until(world->sim, 60 * SIM_SECOND_US);
}

/* The flooder begins `rate` searches a second, from now on to the end; each of the others one. */
static enum err flood(struct crowd_world *world, unsigned rate, struct prng *prng) {
    uint64_t begin_us = sim_now_us(world->sim);
    uint32_t count = world->nodes_count;
    enum err err = ERR_OK;
    for (uint32_t node = 1 + FLOOD_HOLDERS; node < count && err == ERR_OK; node++) {
        uint64_t after_us = FLOOD_ALONE_S * SIM_SECOND_US + prng_below(prng, FLOOD_ASKED_S * SIM_SECOND_US);
        err = crowd_world_find(world, node, CROWD_WORLD_OBJECT, 1, begin_us + after_us);
    }
    uint64_t end_us = begin_us + FLOOD_S * SIM_SECOND_US;
    uint64_t number = 0;
    for (uint64_t now_us = begin_us; now_us < end_us && err == ERR_OK; now_us += FLOOD_TICK_US) {
        uint64_t due = (now_us - begin_us) * rate / SIM_SECOND_US;
        for (; number < due && err == ERR_OK; number++) {
            err = crowd_world_find(world, FLOODER, ABSENT_OBJECT + number, number + 1, now_us);
        }
        err = err != ERR_OK ? err : sim_run_until(world->sim, now_us + FLOOD_TICK_US);
    }
    return err;
}

static enum err run_flood(const struct experiment_args *args, unsigned rules, unsigned rate,
                          struct report *report, struct flood_result *result) {
    struct crowd_world world;
    struct prng prng;
    prng_init_stream(&prng, args->seed, 24);
    enum err err = make_flood_world(&world, args, rules);
    err = err != ERR_OK ? err : flood(&world, rate, &prng);
    if (err == ERR_OK) {
        uint32_t asked_count = world.nodes_count - 1 - FLOOD_HOLDERS;
        uint32_t found_count = 0;
        for (uint32_t node = 1 + FLOOD_HOLDERS; node < world.nodes_count; node++) {
            found_count += world.searches[node].found == CROWD_WORLD_FOUND;
        }
        result->found = 100.0 * found_count / asked_count;
        result->queries = (double)count_queries(&world) / world.nodes_count / FLOOD_S;
    }
    sim_digest_into(world.sim, &report->digest);
    crowd_world_done(&world);
    return err;
}

enum err experiment_crowd_flood(const struct experiment_args *args, struct report *report,
                                struct err_detail *detail) {
    report_init(report, "Searches of others that find the object while one node floods", "found (%)");
    report_column(report, "searches of the flooder a second", 0, REPORT_X);
    for (unsigned rules = 0; rules < RULES_COUNT; rules++) {
        report_column(report, rules_names[rules], 1, REPORT_Y);
    }
    REPORT_COLUMNS(report, {"queries/s, the paper", 0, REPORT_SHOWN},
                   {"queries/s, repeats dropped", 0, REPORT_SHOWN}, {"queries/s, ours", 0, REPORT_SHOWN});
    for (size_t i = 0; i < sizeof flood_rates / sizeof flood_rates[0]; i++) {
        struct flood_result results[RULES_COUNT] = {{0}};
        report_number(report, flood_rates[i]);
        for (unsigned rules = 0; rules < RULES_COUNT; rules++) {
            enum err err = run_flood(args, rules, flood_rates[i], report, &results[rules]);
            if (err != ERR_OK) {
                return err_set(detail, err, "%s, %u a second: %s", rules_names[rules], flood_rates[i],
                               err_text(err));
            }
            report_number(report, results[rules].found);
        }
        for (unsigned rules = 0; rules < RULES_COUNT; rules++) {
            report_number(report, results[rules].queries);
        }
    }
    return report->err;
}
