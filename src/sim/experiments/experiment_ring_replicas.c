/*
 * ring-replicas: what a ring loses over the years, by the number of copies.
 *
 * The thesis (6.1): nodes stay for 360 days on average and are up for 80 % of the time; a disk of 100 GB,
 * full at level 6, is copied in 60 days; so a line carries 154 kbit/s for repair, at every level. What it
 * does not say: outages are of 8 hours on average, and one in fifty of 17 days. Surplus is kept while half of
 * the disk is free.
 *
 * Beyond the thesis, each beside it: nodes that go on also lose their disks, every 1,000 days; the same with
 * a line that is faster; a third of all nodes is gone for good in one moment.
 */
#include "protocol/copies/capacity.h"
#include "sim/experiments/experiment.h"
#include "sim/experiments/years_world.h"

enum {
    NODES_DEFAULT = 20,
    YEARS_DEFAULT = 1,
    NODES_MIN = 20,
    OBJECTS_PER_NODE = 20,
    THESIS_COPIES = 6,
    THESIS_FILL_DAYS = 60,
    FASTER = 8,
};
static const double DISK_GB = 100;

const char *const experiment_replica_breakages[] = {"repair", NULL};

/* What is looked at beside the thesis's assumptions. */
enum variant { WITH_DISKS, WITH_DISKS_FASTER, WITH_BLOW, VARIANTS_COUNT };

static struct years_config thesis_config(const struct experiment_args *args, uint32_t copies) {
    uint32_t nodes_count = args->nodes > 0 ? args->nodes : NODES_DEFAULT;
    nodes_count = nodes_count > NODES_MIN ? nodes_count : NODES_MIN;
    return (struct years_config){
        .seed = args->seed,
        .nodes_count = nodes_count,
        .objects_count = nodes_count * OBJECTS_PER_NODE,
        .copies = copies,
        .duration_us = (args->runs > 0 ? args->runs : YEARS_DEFAULT) * 365 * YEARS_DAY_US,
        .lifetime_us = 360 * YEARS_DAY_US,
        .up_us = 64 * YEARS_DAY_US / 24,
        .outage_us = 8 * YEARS_DAY_US / 24,
        .long_us = 400 * YEARS_DAY_US / 24,
        .long_ppm = 20000,
        .born_percent = 10,
        .object_us = THESIS_FILL_DAYS * YEARS_DAY_US / (OBJECTS_PER_NODE * THESIS_COPIES),
        .compare_us = 16 * YEARS_DAY_US / 24,
        .grace_us = 24 * YEARS_DAY_US / 24,
        .keeps_surplus = true,
        .is_idle = args->breakage != NULL,
    };
}

static struct years_config vary(struct years_config config, enum variant variant) {
    config.disk_us = variant == WITH_BLOW ? 0 : 1000 * YEARS_DAY_US;
    config.object_us /= variant == WITH_DISKS_FASTER ? FASTER : 1;
    config.blow = variant == WITH_BLOW ? YEARS_GONE : YEARS_NO_BLOW;
    return config;
}

/* ---- what came of it ---- */

struct outcome {
    uint64_t lost_count;
    double lost_percent; /* of the objects, in a year */
    double dark_percent; /* of the time of all objects */
    double copies;       /* of an object that is kept */
    double held_gb;      /* of a node */
    double repair_gb;    /* that a node receives in a day */
    double stored_gb;    /* new, in a day, on each node */
    double comparisons;  /* of a node and day */
};

static struct outcome outcome_of(const struct years_world *years) {
    const struct years_config *config = &years->config;
    const struct years_counts *counts = &years->counts;
    double days = (double)(config->duration_us / YEARS_DAY_US);
    double object_gb = DISK_GB / (OBJECTS_PER_NODE * THESIS_COPIES);
    double time_us = (double)config->duration_us * (double)years->born_count;
    double node_days = days * config->nodes_count;
    return (struct outcome){
        .lost_count = years->lost_count,
        .lost_percent = 100 * capacity_chance(365 * (double)years->lost_count / (double)counts->kept_sum),
        .dark_percent = 100 * (double)years_world_dark_us(years) / time_us,
        .copies = (double)counts->copies_sum / (double)counts->kept_sum,
        .held_gb = object_gb * (double)counts->copies_sum / (double)counts->days_count / config->nodes_count,
        .repair_gb = object_gb * (double)counts->received_count / node_days,
        .stored_gb =
            object_gb * config->copies * config->objects_count * config->born_percent / 100 / node_days,
        .comparisons = (double)counts->compared_count / node_days,
    };
}

static enum err replicas_run(const struct years_config *config, struct report *report,
                             struct outcome *ret_outcome) {
    struct years_world world;
    enum err err = years_world_init(&world, config);
    err = err != ERR_OK ? err : years_world_run(&world);
    if (err == ERR_OK) {
        *ret_outcome = outcome_of(&world);
        years_world_digest(&world, &report->digest);
    }
    years_world_done(&world);
    return err;
}

/* ---- by level ---- */

static void write_level(const struct years_config *config, const struct outcome *outcome,
                        struct report *report) {
    struct capacity_inputs inputs;
    struct capacity_repair repair;
    capacity_preset(CAPACITY_THESIS, &inputs);
    inputs.copies = config->copies;
    double full_gb = DISK_GB * config->copies / THESIS_COPIES;
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
        struct years_config config = thesis_config(args, levels[i]);
        struct outcome outcome;
        enum err err = replicas_run(&config, report, &outcome);
        if (err == ERR_OK) {
            write_level(&config, &outcome, report);
        }
        for (int variant = 0; variant < VARIANTS_COUNT && err == ERR_OK; variant++) {
            struct years_config varied = vary(config, (enum variant)variant);
            err = replicas_run(&varied, report, &outcome);
            REPORT_NUMBERS(report, (double)outcome.lost_count, outcome.lost_percent);
        }
        if (err != ERR_OK) {
            return experiment_fail(args, err, detail);
        }
    }
    return report->err;
}
