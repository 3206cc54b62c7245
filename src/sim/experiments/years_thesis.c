#include "sim/experiments/years_thesis.h"

#include "protocol/copies/capacity.h"

enum {
    NODES_DEFAULT = 20,
    YEARS_DEFAULT = 1,
    NODES_MIN = 20,
    OBJECTS_PER_NODE = 20,
    THESIS_FILL_DAYS = 60,
    STRUCK_DAYS = 30,
};

struct years_config years_thesis_config(const struct experiment_args *args, uint32_t copies) {
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
        .object_us = THESIS_FILL_DAYS * YEARS_DAY_US / (OBJECTS_PER_NODE * YEARS_THESIS_COPIES),
        .compare_us = 16 * YEARS_DAY_US / 24,
        .grace_us = 24 * YEARS_DAY_US / 24,
        .keeps_surplus = true,
        .is_idle = args->breakage != NULL,
    };
}

static struct years_outcome outcome_of(const struct years_world *years) {
    const struct years_config *config = &years->config;
    const struct years_counts *counts = &years->counts;
    double days = (double)(config->duration_us / YEARS_DAY_US);
    double object_gb = YEARS_THESIS_DISK_GB * 1.0 / (OBJECTS_PER_NODE * YEARS_THESIS_COPIES);
    double time_us = (double)config->duration_us * (double)years->born_count;
    double node_days = days * config->nodes_count;
    return (struct years_outcome){
        .lost_count = years->lost_count,
        .struck_count = counts->struck_count,
        .struck_percent = 100 * (double)counts->struck_count / config->objects_count,
        .struck_dark_percent = 100 * (double)counts->dark_sum / STRUCK_DAYS / config->objects_count,
        .full_percent = 100 * (double)counts->full_sum / (double)counts->days_count / config->nodes_count,
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

enum err years_thesis_run(const struct years_config *config, struct report *report,
                          struct years_outcome *ret_outcome) {
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

enum err years_thesis_run_seeds(const struct years_config *config, uint32_t seeds_count,
                                struct report *report, struct years_outcome *ret_outcome) {
    struct years_outcome sum = {0};
    enum err err = ERR_OK;
    for (uint32_t i = 0; i < seeds_count && err == ERR_OK; i++) {
        struct years_config seeded = *config;
        struct years_outcome one = {0};
        seeded.seed += i;
        err = years_thesis_run(&seeded, report, &one);
        sum.lost_count += one.lost_count;
        sum.struck_count += one.struck_count;
        sum.lost_percent += one.lost_percent / seeds_count;
        sum.struck_percent += one.struck_percent / seeds_count;
        sum.dark_percent += one.dark_percent / seeds_count;
        sum.struck_dark_percent += one.struck_dark_percent / seeds_count;
        sum.copies += one.copies / seeds_count;
        sum.full_percent += one.full_percent / seeds_count;
        sum.held_gb += one.held_gb / seeds_count;
        sum.repair_gb += one.repair_gb / seeds_count;
        sum.stored_gb += one.stored_gb / seeds_count;
        sum.comparisons += one.comparisons / seeds_count;
    }
    *ret_outcome = sum;
    return err;
}
