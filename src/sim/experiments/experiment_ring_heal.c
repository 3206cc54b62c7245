/*
 * ring-heal, ring-refill: how soon every capture is with its holders again, after a cut in halves and after
 * the loss of a disk. Beside it the keeper as it would be if it handed nothing on and did not know when a
 * comparison ended before all was found ("patient").
 */
#include "sim/experiments/copies_model.h"
#include "sim/experiments/experiment.h"

enum { RUNS_DEFAULT = 10, COPIES = 3, REFILL_NODES = 8, REFILL_CAPTURES = 180000 };
static const uint64_t SECOND_US = 1000000;

static const struct copies_model_config COMMON = {
    .copies = COPIES,
    .learn_us = UINT64_C(30) * 1000000, /* as ring-partition has it */
    .ask_us = UINT64_C(100) * 1000,
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

static void take(const struct copies_model *world, uint32_t runs, struct outcome *outcome) {
    const struct copies_model_config *config = &world->config;
    bool is_open = world->lacking_count > 0;
    double all_s = (double)(is_open ? config->duration_us_max : world->all_us) / (double)SECOND_US;
    double most_s = (double)(world->has_most ? world->most_us : config->duration_us_max) / (double)SECOND_US;
    outcome->most_s += most_s / runs;
    outcome->all_s += all_s / runs;
    outcome->longest_s = all_s > outcome->longest_s ? all_s : outcome->longest_s;
    outcome->open_count += is_open;
    outcome->lacking_count += (double)world->lacking_first / runs;
    outcome->compared_count += (double)world->counts.compared_count / runs;
    outcome->handed_count += (double)world->counts.handed_count / runs;
}

static enum err run(struct copies_model_config config, uint64_t seed, uint32_t runs, struct report *report,
                    struct outcome *ret_outcome, struct err_detail *detail) {
    *ret_outcome = (struct outcome){0};
    for (uint32_t i = 0; i < runs; i++) {
        struct copies_model world;
        config.seed = seed + i;
        enum err err = copies_model_init(&world, &config);
        err = err != ERR_OK ? err : copies_model_run(&world);
        if (err == ERR_OK) {
            take(&world, runs, ret_outcome);
            copies_model_digest(&world, &report->digest);
        }
        copies_model_done(&world);
        if (err != ERR_OK) {
            return err_set(detail, err, "seed %llu: %s", (unsigned long long)config.seed, err_text(err));
        }
    }
    return ERR_OK;
}

static void write_times(struct report *report, const struct outcome *outcome) {
    report_number(report, outcome->most_s);
    report_number(report, outcome->all_s);
    report_number(report, outcome->longest_s);
    report_number(report, (double)outcome->open_count);
}

enum err experiment_ring_heal(const struct experiment_args *args, struct report *report,
                              struct err_detail *detail) {
    uint32_t runs = args->runs > 0 ? args->runs : RUNS_DEFAULT;
    report_init(report, "After a cut in halves, until every capture is with its holders", "seconds");
    report_column(report, "nodes", 0, REPORT_X_LOGARITHMIC);
    report_column(report, "patient: 99 % (s)", 1, REPORT_SHOWN);
    report_column(report, "patient: all (s)", 1, REPORT_Y);
    report_column(report, "longest", 1, REPORT_SHOWN);
    report_column(report, "not in 3 hours", 0, REPORT_SHOWN);
    report_column(report, "99 % (s)", 1, REPORT_SHOWN);
    report_column(report, "all (s)", 1, REPORT_Y);
    report_column(report, "longest", 1, REPORT_SHOWN);
    report_column(report, "not in 3 hours", 0, REPORT_SHOWN);
    report_column(report, "handed on", 1, REPORT_SHOWN);
    for (uint32_t nodes = 6; nodes <= 48; nodes *= 2) {
        struct copies_model_config config = COMMON;
        struct outcome patient;
        struct outcome outcome;
        config.nodes_count = nodes;
        config.captures_count = 500 * nodes;
        config.late_count = 25 * nodes;
        config.cut_us = 600 * SECOND_US;
        config.is_patient = true;
        enum err err = run(config, args->seed, runs, report, &patient, detail);
        config.is_patient = false;
        err = err != ERR_OK ? err : run(config, args->seed, runs, report, &outcome, detail);
        if (err != ERR_OK) {
            return err;
        }
        report_number(report, nodes);
        write_times(report, &patient);
        write_times(report, &outcome);
        report_number(report, outcome.handed_count);
    }
    return report->err;
}

/* The lost disk has its share of 180,000 captures, 100,000 or so. */
enum err experiment_ring_refill(const struct experiment_args *args, struct report *report,
                                struct err_detail *detail) {
    static const uint32_t paces[] = {200, 500, 1000, 2000, 5000};
    uint32_t runs = args->runs > 0 ? args->runs : RUNS_DEFAULT;
    report_init(report, "After the loss of a disk, until its captures are back", "seconds");
    report_column(report, "fetches a second", 0, REPORT_X_LOGARITHMIC);
    report_column(report, "captures", 0, REPORT_SHOWN);
    report_column(report, "at full pace (s)", 0, REPORT_Y_EXPECTED);
    report_column(report, "patient (s)", 0, REPORT_Y);
    report_column(report, "comparisons", 0, REPORT_SHOWN);
    report_column(report, "as it is (s)", 0, REPORT_Y);
    report_column(report, "comparisons", 0, REPORT_SHOWN);
    for (size_t i = 0; i < sizeof paces / sizeof paces[0]; i++) {
        struct copies_model_config config = COMMON;
        struct outcome patient;
        struct outcome outcome;
        config.nodes_count = REFILL_NODES;
        config.captures_count = REFILL_CAPTURES;
        config.fetches_per_s = paces[i];
        config.loses_disk = true;
        config.is_patient = true;
        enum err err = run(config, args->seed, runs, report, &patient, detail);
        config.is_patient = false;
        err = err != ERR_OK ? err : run(config, args->seed, runs, report, &outcome, detail);
        if (err != ERR_OK) {
            return err;
        }
        report_number(report, paces[i]);
        report_number(report, outcome.lacking_count);
        report_number(report, outcome.lacking_count / paces[i]);
        report_number(report, patient.all_s);
        report_number(report, patient.compared_count);
        report_number(report, outcome.all_s);
        report_number(report, outcome.compared_count);
    }
    return report->err;
}
