/*
 * experiment - a named measurement in simulation: `mnemon sim NAME --seed S --nodes N --runs R`.
 *
 * Equal arguments give equal reports, with an equal digest. Each subject has a file experiment_*.c without a
 * header of its own: all that others need of it are the entries below, and the table in experiment.c names
 * them.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_EXPERIMENT_H
#define MNEMON_SIM_EXPERIMENTS_EXPERIMENT_H

#include "base/err.h"
#include "sim/report/report.h"

struct experiment_args {
    uint64_t seed;
    uint32_t nodes; /* 0: as the experiment's row says, which may be several sizes, one after the other */
    uint32_t runs;  /* 0: as its row says */
    const char *breakage; /* one of the experiment's; NULL: none is asked for */
    unsigned variant;     /* of its row */
};

/*
 * Fills a report, which it initialises; the caller calls report_done() on it, after a failure too.
 * ERR_MISMATCH if the world did not do what it must.
 */
typedef enum err experiment_run(const struct experiment_args *args, struct report *report,
                                struct err_detail *detail);

struct experiment {
    const char *name;
    const char *summary; /* one line for `mnemon sim list` */
    experiment_run *run;
    uint32_t nodes; /* that are taken if nobody asks for others; 0: the experiment decides */
    uint32_t runs;
    unsigned variant;             /* of several that share a function: its own enum */
    const char *const *breakages; /* what --break may leave out, ended by NULL; NULL: nothing */
};

extern const struct experiment experiments[];
extern const size_t experiments_count;

/* NULL if there is none of this name. */
const struct experiment *experiment_find(struct bytes name);

/* For detail: the seed, and the text of the error, which it returns. */
enum err experiment_fail(const struct experiment_args *args, enum err err, struct err_detail *detail);

/* With the row's figures if args has none. A failure that the experiment gives no reason for names the seed.
 */
enum err experiment_start(const struct experiment *experiment, struct experiment_args args,
                          struct report *report, struct err_detail *detail);

/* experiment_kernel.c: the simulator measures itself. */
experiment_run experiment_kernel_network, experiment_kernel_disk;

/* experiment_revisit.c: when a crawl visits a page again. */
experiment_run experiment_revisit, experiment_revisit_rates;

/* experiment_ring_invariants.c: Zave's invariants after every step. */
extern const char *const experiment_ring_breakages[];
experiment_run experiment_ring_invariants;

/* experiment_ring_lookup.c: hops of lookups, their mean and their distribution. */
experiment_run experiment_ring_lookup, experiment_ring_hops;

/* experiment_ring_failure.c: lookups after up to half of all nodes failed. */
experiment_run experiment_ring_failure;

/* experiment_ring_churn.c: nodes that come and go. */
experiment_run experiment_ring_churn;

/* experiment_ring_replicas.c: what is lost in years. */
extern const char *const experiment_replica_breakages[];
experiment_run experiment_ring_replicas;

/* experiment_ring_sites.c: sites that fail as a whole, and unequal disks. */
experiment_run experiment_ring_sites, experiment_ring_disks;

/* experiment_ring_recruits.c: which volunteers can be nodes. */
experiment_run experiment_ring_uptime, experiment_ring_recruits, experiment_ring_recruits_kept;

/* experiment_ring_heal.c: how soon everything is where it belongs. */
experiment_run experiment_ring_heal, experiment_ring_refill;

/* experiment_ring_rest.c: what a ring at rest costs. */
experiment_run experiment_ring_rest;

/* experiment_ring_links.c: links between nodes. */
experiment_run experiment_ring_links;

/* experiment_ring_partition.c: trouble that ends. */
experiment_run experiment_ring_partition;

/* experiment_crowd_reach.c: what nodes of a crowd reach while others come and go. */
experiment_run experiment_crowd_reach, experiment_crowd_reach_views, experiment_crowd_reach_causes;

/* experiment_crowd_degrees.c: how many know a node. */
experiment_run experiment_crowd_degrees;

/* experiment_crowd_search.c: searches among nodes that limit their participation. */
enum experiment_crowd_sweep {
    EXPERIMENT_SEARCH_FOUND,
    EXPERIMENT_SEARCH_MESSAGES,
    EXPERIMENT_SEARCH_HOPS,
    EXPERIMENT_VIEWS_FOUND,
    EXPERIMENT_VIEWS_MESSAGES,
    EXPERIMENT_VIEWS_HOPS,
    EXPERIMENT_JOINED_MESSAGES,
    EXPERIMENT_JOINED_HOPS,
    EXPERIMENT_DROPPING_FOUND,
};
experiment_run experiment_crowd_search;

/* experiment_crowd_timing.c: all search at once, over a wide-area network. */
enum experiment_timing { EXPERIMENT_TIMING_QUERIES, EXPERIMENT_TIMING_MS };
experiment_run experiment_crowd_timing;

/* experiment_crowd_flood.c: objects that nobody has; a node that floods. */
experiment_run experiment_crowd_absent, experiment_crowd_flood;

/* experiment_crowd_theorems.c: no shuffle takes a crowd apart. */
extern const char *const experiment_crowd_breakages[];
experiment_run experiment_crowd_theorem_1;

/* experiment_group_topology.c: generators of update topologies side by side, by enum group_costs_world. */
experiment_run experiment_group_topology;

/* experiment_crowd_heal.c: what cannot be reached in one direction will be. */
experiment_run experiment_crowd_theorem_2;

/* experiment_group_traffic.c: what a group costs at rest. */
enum experiment_traffic {
    EXPERIMENT_TRAFFIC_QUIET,
    EXPERIMENT_TRAFFIC_REJOIN,
    EXPERIMENT_TRAFFIC_SUMS,
};
experiment_run experiment_group_traffic;

/* experiment_group_failure.c: members, links and masters that fail; partitions. */
experiment_run experiment_group_failure;

/* experiment_group_probe.c: what bandwidth probes see. */
experiment_run experiment_group_probe, experiment_group_damping;

/* experiment_group_scale.c: an update to thousands of replicas in groups that share members. */
experiment_run experiment_group_scale, experiment_group_scale_ways, experiment_group_scale_cut;

#endif
