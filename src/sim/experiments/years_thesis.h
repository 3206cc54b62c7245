/*
 * years_thesis - years of a ring (years_world.h) under the assumptions of the thesis (6.1), and what came of
 * them in its units.
 *
 * Nodes stay for 360 days on average and are up for 80 % of the time; a disk of 100 GB, full at level 6, is
 * copied in 60 days; so a line carries 154 kbit/s for repair, at every level. What it does not say: outages
 * are of 8 hours on average, and one in fifty of 17 days. Surplus is kept while half of the disk is free.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_YEARS_THESIS_H
#define MNEMON_SIM_EXPERIMENTS_YEARS_THESIS_H

#include "sim/experiments/experiment.h"
#include "sim/experiments/years_world.h"

enum { YEARS_THESIS_COPIES = 6, YEARS_THESIS_DISK_GB = 100 };

/* args: nodes (at least 20), runs: years. */
struct years_config years_thesis_config(const struct experiment_args *args, uint32_t copies);

struct years_outcome {
    uint64_t lost_count;
    uint64_t struck_count;      /* of them, in the moment of the blow */
    double lost_percent;        /* of the objects, in a year */
    double struck_percent;      /* of the objects that there were */
    double dark_percent;        /* of the time of all objects */
    double struck_dark_percent; /* likewise, in the 30 days after the blow */
    double copies;              /* of an object that is kept */
    double full_percent;        /* of the nodes */
    double held_gb;             /* of a node */
    double repair_gb;           /* that a node receives in a day */
    double stored_gb;           /* new, in a day, on each node */
    double comparisons;         /* of a node and day */
};

enum err years_thesis_run(const struct years_config *config, struct report *report,
                          struct years_outcome *ret_outcome) MUST_CHECK;

/* Means of that many seeds, from the configuration's on; counts are sums. Losses come in clusters, so one
 * year says little. */
enum err years_thesis_run_seeds(const struct years_config *config, uint32_t seeds_count,
                                struct report *report, struct years_outcome *ret_outcome) MUST_CHECK;

#endif
