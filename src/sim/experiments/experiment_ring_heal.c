/*
 * ring-heal, ring-refill: how soon every capture is with its holders again, after a cut in halves and after
 * the loss of a disk. Beside it the keeper as it would be if it handed nothing on and did not know when a
 * comparison ended before all was found ("patient").
 */
#include "sim/experiments/copies_model.h"
#include "sim/experiments/experiment.h"

enum { COPIES = 3, REFILL_NODES = 8, REFILL_CAPTURES = 180000 };
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

static void heal_take(const struct copies_model *world, uint32_t runs, struct outcome *outcome) {
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

static enum err heal_run(struct copies_model_config config, const struct experiment_args *args,
                         struct report *report, struct outcome *ret_outcome, struct err_detail *detail) {
    *ret_outcome = (struct outcome){0};
    for (uint32_t i = 0; i < args->runs; i++) {
        struct copies_model world;
        config.seed = args->seed + i;
        enum err err = copies_model_init(&world, &config);
        err = err != ERR_OK ? err : copies_model_run(&world);
        if (err == ERR_OK) {
            heal_take(&world, args->runs, ret_outcome);
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
    REPORT_NUMBERS(report, outcome->most_s, outcome->all_s, outcome->longest_s, (double)outcome->open_count);
}

enum err experiment_ring_heal(const struct experiment_args *args, struct report *report,
                              struct err_detail *detail) {
    report_init(report, "After a cut in halves, until every capture is with its holders", "seconds");
    REPORT_COLUMNS(report, {"nodes", 0, REPORT_X_LOGARITHMIC}, {"patient: 99 % (s)", 1, REPORT_SHOWN},
                   {"patient: all (s)", 1, REPORT_Y}, {"longest", 1, REPORT_SHOWN},
                   {"not in 3 hours", 0, REPORT_SHOWN}, {"99 % (s)", 1, REPORT_SHOWN},
                   {"all (s)", 1, REPORT_Y}, {"longest", 1, REPORT_SHOWN},
                   {"not in 3 hours", 0, REPORT_SHOWN}, {"handed on", 1, REPORT_SHOWN});
    for (uint32_t nodes = 6; nodes <= 48; nodes *= 2) {
        struct copies_model_config config = COMMON;
        struct outcome patient;
        struct outcome outcome;
        config.nodes_count = nodes;
        config.captures_count = 500 * nodes;
        config.late_count = 25 * nodes;
        config.cut_us = 600 * SECOND_US;
        config.is_patient = true;
        enum err err = heal_run(config, args, report, &patient, detail);
        config.is_patient = false;
        err = err != ERR_OK ? err : heal_run(config, args, report, &outcome, detail);
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
    report_init(report, "After the loss of a disk, until its captures are back", "seconds");
    REPORT_COLUMNS(report, {"fetches a second", 0, REPORT_X_LOGARITHMIC}, {"captures", 0, REPORT_SHOWN},
                   {"at full pace (s)", 0, REPORT_Y_EXPECTED}, {"patient (s)", 0, REPORT_Y},
                   {"comparisons", 0, REPORT_SHOWN}, {"as it is (s)", 0, REPORT_Y},
                   {"comparisons", 0, REPORT_SHOWN});
    for (size_t i = 0; i < sizeof paces / sizeof paces[0]; i++) {
        struct copies_model_config config = COMMON;
        struct outcome patient;
        struct outcome outcome;
        config.nodes_count = REFILL_NODES;
        config.captures_count = REFILL_CAPTURES;
        config.fetches_per_s = paces[i];
        config.loses_disk = true;
        config.is_patient = true;
        enum err err = heal_run(config, args, report, &patient, detail);
        config.is_patient = false;
        err = err != ERR_OK ? err : heal_run(config, args, report, &outcome, detail);
        if (err != ERR_OK) {
            return err;
        }
        REPORT_NUMBERS(report, paces[i], outcome.lacking_count, outcome.lacking_count / paces[i],
                       patient.all_s, patient.compared_count, outcome.all_s, outcome.compared_count);
    }
    return report->err;
}
