/*
 * ring-heal, ring-refill: how soon every capture is with its holders again, after a cut in halves and after
 * the loss of a disk. Every node runs the machine that the daemon runs.
 */
#include "sim/experiments/experiment.h"
#include "sim/experiments/heal_world.h"

enum {
    COPIES = 3,
    REFILL_NODES = 8,
    REFILL_CAPTURES = 60000,
    /* What the thesis has: neighbours compare once a day (4.6), and a line has 150 kbit/s for it (6.1.2). */
    THESIS_COMPARE_S = 86400,
    THESIS_LINE_BITS = 150000,
};
static const uint64_t SECOND_US = 1000000;

static const struct heal_config COMMON = {
    .copies = COPIES,
    .learn_us = UINT64_C(30) * 1000000, /* as ring-partition has it */
    .fetches_per_s = 500,
    .duration_us_max = UINT64_C(10800) * 1000000,
};

struct outcome {
    double most_s; /* means */
    double all_s;
    double longest_s;
    uint64_t open_count;   /* runs in which time was up before */
    double compared_count; /* comparisons, before it too */
    double handed_count;
    double lacking_count; /* at the beginning */
};

static void heal_take(const struct heal_world *heal, uint32_t runs, struct outcome *outcome) {
    const struct heal_config *config = &heal->config;
    struct replicator_counts counts = heal_world_counts(heal);
    bool is_open = heal->lacking_count > 0;
    double all_s = (double)(is_open ? config->duration_us_max : heal->all_us) / (double)SECOND_US;
    double most_s = (double)(heal->has_most ? heal->most_us : config->duration_us_max) / (double)SECOND_US;
    outcome->most_s += most_s / runs;
    outcome->all_s += all_s / runs;
    outcome->longest_s = all_s > outcome->longest_s ? all_s : outcome->longest_s;
    outcome->open_count += is_open;
    outcome->lacking_count += (double)heal->lacking_first / runs;
    outcome->compared_count += (double)counts.compared_count / runs;
    outcome->handed_count += (double)counts.handed_on_count / runs;
}

static enum err heal_run(struct heal_config config, const struct experiment_args *args, struct report *report,
                         struct outcome *ret_outcome, struct err_detail *detail) {
    *ret_outcome = (struct outcome){0};
    for (uint32_t i = 0; i < args->runs; i++) {
        struct heal_world heal;
        config.seed = args->seed + i;
        enum err err = heal_world_init(&heal, &config);
        err = err != ERR_OK ? err : heal_world_run(&heal);
        if (err == ERR_OK) {
            heal_take(&heal, args->runs, ret_outcome);
            heal_world_digest(&heal, &report->digest);
        }
        heal_world_done(&heal);
        if (err != ERR_OK) {
            return err_set(detail, err, "seed %llu: %s", (unsigned long long)config.seed, err_text(err));
        }
    }
    return ERR_OK;
}

enum err experiment_ring_heal(const struct experiment_args *args, struct report *report,
                              struct err_detail *detail) {
    report_init(report, "After a cut in halves, until every capture is with its holders", "seconds");
    REPORT_COLUMNS(report, {"nodes", 0, REPORT_X_LOGARITHMIC}, {"captures", 0, REPORT_SHOWN},
                   {"lacking", 1, REPORT_SHOWN}, {"99 % (s)", 1, REPORT_Y}, {"all (s)", 1, REPORT_Y},
                   {"longest", 1, REPORT_SHOWN}, {"thesis, at most", 0, REPORT_SHOWN},
                   {"not in 3 hours", 0, REPORT_SHOWN}, {"handed on", 1, REPORT_SHOWN},
                   {"comparisons", 1, REPORT_SHOWN});
    for (uint32_t nodes = 6; nodes <= 48; nodes *= 2) {
        struct heal_config config = COMMON;
        struct outcome outcome;
        config.nodes_count = nodes;
        config.captures_count = 500 * nodes;
        config.late_count = 25 * nodes;
        config.cut_us = 600 * SECOND_US;
        enum err err = heal_run(config, args, report, &outcome, detail);
        if (err != ERR_OK) {
            return err;
        }
        REPORT_NUMBERS(report, nodes, config.captures_count + 2.0 * config.late_count, outcome.lacking_count,
                       outcome.most_s, outcome.all_s, outcome.longest_s, THESIS_COMPARE_S,
                       (double)outcome.open_count, outcome.handed_count, outcome.compared_count);
    }
    return report->err;
}

/* The lost disk has its share of 60,000 captures, 30,000 or so. */
enum err experiment_ring_refill(const struct experiment_args *args, struct report *report,
                                struct err_detail *detail) {
    static const uint32_t paces[] = {200, 500, 1000, 2000, 5000};
    report_init(report, "After the loss of a disk, until its captures are back", "seconds");
    REPORT_COLUMNS(report, {"fetches a second", 0, REPORT_X_LOGARITHMIC}, {"captures", 0, REPORT_SHOWN},
                   {"at full pace (s)", 1, REPORT_Y_EXPECTED}, {"99 % (s)", 1, REPORT_SHOWN},
                   {"all (s)", 1, REPORT_Y}, {"longest", 1, REPORT_SHOWN},
                   {"thesis's line (s)", 0, REPORT_SHOWN}, {"comparisons", 0, REPORT_SHOWN});
    for (size_t i = 0; i < sizeof paces / sizeof paces[0]; i++) {
        struct heal_config config = COMMON;
        struct outcome outcome;
        config.nodes_count = REFILL_NODES;
        config.captures_count = REFILL_CAPTURES;
        config.fetches_per_s = paces[i];
        config.loses_disk = true;
        enum err err = heal_run(config, args, report, &outcome, detail);
        if (err != ERR_OK) {
            return err;
        }
        REPORT_NUMBERS(report, paces[i], outcome.lacking_count, outcome.lacking_count / paces[i],
                       outcome.most_s, outcome.all_s, outcome.longest_s,
                       8 * HEAL_CAPTURE_SIZE * outcome.lacking_count / THESIS_LINE_BITS,
                       outcome.compared_count);
    }
    return report->err;
}
