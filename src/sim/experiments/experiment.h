/*
 * experiment - a named measurement in simulation: `mnemon sim NAME --seed S --nodes N --runs R`.
 *
 * Equal arguments give equal reports, with an equal digest. One file experiment_*.c per subject; the table
 * in experiment.c names them all.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_EXPERIMENT_H
#define MNEMON_SIM_EXPERIMENTS_EXPERIMENT_H

#include "base/err.h"
#include "sim/report/report.h"

/* 0 stands for the experiment's own default. */
struct experiment_args {
    uint64_t seed;
    uint32_t nodes;
    uint32_t runs;
    const char *breakage; /* one of the experiment's; NULL: none is asked for */
};

struct experiment {
    const char *name;
    const char *summary; /* one line for `mnemon sim list` */

    /*
     * Fill a report that this initialises; the caller calls report_done() on it, after a failure too.
     * ERR_MISMATCH where the world did not do what it must, with the seed in the detail.
     */
    enum err (*run)(const struct experiment_args *args, struct report *report, struct err_detail *detail);

    const char *const *breakages; /* what --break may leave out, ended by NULL; NULL: nothing */
};

extern const struct experiment experiments[];
extern const size_t experiments_count;

/* NULL where there is none of this name. */
const struct experiment *experiment_find(struct bytes name);

/* experiment_kernel.c: the simulator measures itself. */
enum err experiment_kernel_network(const struct experiment_args *args, struct report *report,
                                   struct err_detail *detail);
enum err experiment_kernel_disk(const struct experiment_args *args, struct report *report,
                                struct err_detail *detail);

/* experiment_revisit.c: when a crawl visits a page again. */
enum err experiment_revisit(const struct experiment_args *args, struct report *report,
                            struct err_detail *detail);
enum err experiment_revisit_rates(const struct experiment_args *args, struct report *report,
                                  struct err_detail *detail);

/* experiment_ring_invariants.c: Zave's invariants after every step. */
extern const char *const experiment_ring_breakages[];
enum err experiment_ring_invariants(const struct experiment_args *args, struct report *report,
                                    struct err_detail *detail);

/* experiment_ring_lookup.c: hops of lookups, their mean and their distribution. */
enum err experiment_ring_lookup(const struct experiment_args *args, struct report *report,
                                struct err_detail *detail);
enum err experiment_ring_hops(const struct experiment_args *args, struct report *report,
                              struct err_detail *detail);

/* experiment_ring_failure.c: lookups after up to half of all nodes failed. */
enum err experiment_ring_failure(const struct experiment_args *args, struct report *report,
                                 struct err_detail *detail);

/* experiment_ring_churn.c: nodes that come and go. */
enum err experiment_ring_churn(const struct experiment_args *args, struct report *report,
                               struct err_detail *detail);

/* experiment_ring_replicas.c: what is lost in years. */
extern const char *const experiment_replica_breakages[];
enum err experiment_ring_replicas(const struct experiment_args *args, struct report *report,
                                  struct err_detail *detail);

/* experiment_ring_heal.c: how soon everything is where it belongs. */
enum err experiment_ring_heal(const struct experiment_args *args, struct report *report,
                              struct err_detail *detail);
enum err experiment_ring_refill(const struct experiment_args *args, struct report *report,
                                struct err_detail *detail);

/* experiment_ring_rest.c: what a ring at rest costs. */
enum err experiment_ring_rest(const struct experiment_args *args, struct report *report,
                              struct err_detail *detail);

/* experiment_ring_links.c: links between nodes. */
enum err experiment_ring_links(const struct experiment_args *args, struct report *report,
                               struct err_detail *detail);

/* experiment_ring_partition.c: trouble that ends. */
enum err experiment_ring_partition(const struct experiment_args *args, struct report *report,
                                   struct err_detail *detail);

/* experiment_crowd_reach.c: what nodes of a crowd reach while others come and go. */
enum err experiment_crowd_reach(const struct experiment_args *args, struct report *report,
                                struct err_detail *detail);
enum err experiment_crowd_reach_views(const struct experiment_args *args, struct report *report,
                                      struct err_detail *detail);
enum err experiment_crowd_reach_causes(const struct experiment_args *args, struct report *report,
                                       struct err_detail *detail);

/* experiment_crowd_degrees.c: how many know a node. */
enum err experiment_crowd_degrees(const struct experiment_args *args, struct report *report,
                                  struct err_detail *detail);

/* experiment_crowd_search.c: searches among nodes that limit their participation. */
enum err experiment_crowd_search(const struct experiment_args *args, struct report *report,
                                 struct err_detail *detail);
enum err experiment_crowd_search_messages(const struct experiment_args *args, struct report *report,
                                          struct err_detail *detail);
enum err experiment_crowd_search_hops(const struct experiment_args *args, struct report *report,
                                      struct err_detail *detail);
enum err experiment_crowd_views(const struct experiment_args *args, struct report *report,
                                struct err_detail *detail);
enum err experiment_crowd_views_messages(const struct experiment_args *args, struct report *report,
                                         struct err_detail *detail);
enum err experiment_crowd_views_hops(const struct experiment_args *args, struct report *report,
                                     struct err_detail *detail);
enum err experiment_crowd_joined(const struct experiment_args *args, struct report *report,
                                 struct err_detail *detail);
enum err experiment_crowd_joined_hops(const struct experiment_args *args, struct report *report,
                                      struct err_detail *detail);
enum err experiment_crowd_dropping(const struct experiment_args *args, struct report *report,
                                   struct err_detail *detail);

/* experiment_crowd_timing.c: all search at once, over a wide-area network. */
enum err experiment_crowd_timing(const struct experiment_args *args, struct report *report,
                                 struct err_detail *detail);
enum err experiment_crowd_timing_ms(const struct experiment_args *args, struct report *report,
                                    struct err_detail *detail);

/* experiment_crowd_flood.c: objects that nobody has; a node that floods. */
enum err experiment_crowd_absent(const struct experiment_args *args, struct report *report,
                                 struct err_detail *detail);
enum err experiment_crowd_flood(const struct experiment_args *args, struct report *report,
                                struct err_detail *detail);

/* experiment_crowd_theorems.c: no shuffle takes a crowd apart. */
extern const char *const experiment_crowd_breakages[];
enum err experiment_crowd_theorem_1(const struct experiment_args *args, struct report *report,
                                    struct err_detail *detail);

/* experiment_group_topology.c: generators of update topologies side by side. */
enum err experiment_group_topology(const struct experiment_args *args, struct report *report,
                                   struct err_detail *detail);
enum err experiment_group_topology_plane(const struct experiment_args *args, struct report *report,
                                         struct err_detail *detail);
enum err experiment_group_topology_random(const struct experiment_args *args, struct report *report,
                                          struct err_detail *detail);

/* experiment_crowd_heal.c: what cannot be reached in one direction will be. */
enum err experiment_crowd_theorem_2(const struct experiment_args *args, struct report *report,
                                    struct err_detail *detail);

/* experiment_group_traffic.c: what a group costs at rest. */
enum err experiment_group_traffic(const struct experiment_args *args, struct report *report,
                                  struct err_detail *detail);
enum err experiment_group_traffic_rejoin(const struct experiment_args *args, struct report *report,
                                         struct err_detail *detail);
enum err experiment_group_traffic_sums(const struct experiment_args *args, struct report *report,
                                       struct err_detail *detail);

/* experiment_group_failure.c: members, links and masters that fail; partitions. */
enum err experiment_group_failure(const struct experiment_args *args, struct report *report,
                                  struct err_detail *detail);

/* experiment_group_probe.c: what bandwidth probes see. */
enum err experiment_group_probe(const struct experiment_args *args, struct report *report,
                                struct err_detail *detail);
enum err experiment_group_damping(const struct experiment_args *args, struct report *report,
                                  struct err_detail *detail);

/* experiment_group_scale.c: an update to thousands of replicas in groups that share members. */
enum err experiment_group_scale(const struct experiment_args *args, struct report *report,
                                struct err_detail *detail);
enum err experiment_group_scale_ways(const struct experiment_args *args, struct report *report,
                                     struct err_detail *detail);
enum err experiment_group_scale_cut(const struct experiment_args *args, struct report *report,
                                    struct err_detail *detail);

#endif
