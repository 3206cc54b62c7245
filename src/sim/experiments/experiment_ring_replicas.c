/*
 * ring-replicas: what a ring loses over the years, by the number of copies, under the assumptions of the
 * thesis (years_thesis.h).
 *
 * Beyond the thesis, each beside it: nodes that go on also lose their disks, every 1,000 days; the same with
 * a line that is faster; a third of all nodes is gone for good in one moment.
 */
#include "protocol/copies/capacity.h"
#include "sim/experiments/years_thesis.h"

enum { FASTER = 8 };

const char *const experiment_replica_breakages[] = {"repair", NULL};

/* What is looked at beside the thesis's assumptions. */
enum variant { WITH_DISKS, WITH_DISKS_FASTER, WITH_BLOW, VARIANTS_COUNT };

static struct years_config vary(struct years_config config, enum variant variant) {
    config.disk_us = variant == WITH_BLOW ? 0 : 1000 * YEARS_DAY_US;
    config.object_us /= variant == WITH_DISKS_FASTER ? FASTER : 1;
    config.blow = variant == WITH_BLOW ? YEARS_GONE : YEARS_NO_BLOW;
    return config;
}

/* ---- by level ---- */

static void write_level(const struct years_config *config, const struct years_outcome *outcome,
                        struct report *report) {
    struct capacity_inputs inputs;
    struct capacity_repair repair;
    capacity_preset(CAPACITY_THESIS, &inputs);
    inputs.copies = config->copies;
    double full_gb = (double)YEARS_THESIS_DISK_GB * config->copies / YEARS_THESIS_COPIES;
    double loss_days = capacity_time_to_loss_days(inputs.copies, inputs.lifetime_days, inputs.repair_days);
    capacity_repair(&inputs, full_gb, outcome->held_gb, outcome->stored_gb, &repair);
    REPORT_NUMBERS(report, config->copies, (double)outcome->lost_count, outcome->lost_percent,
                   100 * capacity_chance(365 / loss_days), outcome->dark_percent,
                   100 * capacity_all_among(inputs.copies, 1 - inputs.uptime), outcome->copies,
                   outcome->repair_gb, repair.thesis_size, repair.moves_size + repair.catch_up_size,
                   outcome->comparisons);
}

enum err experiment_ring_replicas(const struct experiment_args *args, struct report *report,
                                  struct err_detail *detail) {
    static const uint32_t levels[] = {1, 2, 3, 4, 6, 8};
    report_init(report, "Objects lost, by the number of copies", "% of the objects in a year");
    REPORT_COLUMNS(report, {"copies", 0, REPORT_X}, {"lost", 0, REPORT_SHOWN},
                   {"lost in a year (%)", 3, REPORT_Y}, {"expected (%)", 3, REPORT_Y_EXPECTED},
                   {"not to be had (%)", 4, REPORT_SHOWN}, {"all down (%)", 4, REPORT_SHOWN},
                   {"copies there are", 2, REPORT_SHOWN}, {"repair (GB/day)", 3, REPORT_SHOWN},
                   {"thesis", 3, REPORT_SHOWN}, {"expected", 3, REPORT_SHOWN},
                   {"comparisons", 1, REPORT_SHOWN}, {"lost, disks too", 0, REPORT_SHOWN},
                   {"in a year (%)", 3, REPORT_Y}, {"lost, disks, line x 8", 0, REPORT_SHOWN},
                   {"in a year (%)", 3, REPORT_Y}, {"lost, a third gone", 0, REPORT_SHOWN},
                   {"in a year (%)", 3, REPORT_Y});
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        struct years_config config = years_thesis_config(args, levels[i]);
        struct years_outcome outcome;
        enum err err = years_thesis_run(&config, report, &outcome);
        if (err == ERR_OK) {
            write_level(&config, &outcome, report);
        }
        for (int variant = 0; variant < VARIANTS_COUNT && err == ERR_OK; variant++) {
            struct years_config varied = vary(config, (enum variant)variant);
            err = years_thesis_run(&varied, report, &outcome);
            REPORT_NUMBERS(report, (double)outcome.lost_count, outcome.lost_percent);
        }
        if (err != ERR_OK) {
            return experiment_fail(args, err, detail);
        }
    }
    return report->err;
}
