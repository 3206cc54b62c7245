#include "sim/experiments/experiment.h"

#include "sim/experiments/group_costs.h"

const struct experiment experiments[] = {
    {"kernel-network", "latency, loss and duplication of the virtual network, asked and measured",
     experiment_kernel_network, 200, 4, 0, NULL},
    {"kernel-disk", "what crashes take from a log on the virtual disk, synced and not",
     experiment_kernel_disk, 50, 20, 0, NULL},
    {"revisit", "adaptive visits against daily ones: fetches saved, changes missed", experiment_revisit, 1000,
     4, 0, NULL},
    {"revisit-rates", "the same by how often pages change", experiment_revisit_rates, 1000, 4, 0, NULL},
    {"ring-invariants", "Zave's invariants after every step of small rings that nodes join and leave",
     experiment_ring_invariants, 0, 2000, 0, experiment_ring_breakages},
    {"ring-lookup", "hops of lookups for rings of up to 65,536 nodes", experiment_ring_lookup, 0, 4000, 0,
     NULL},
    {"ring-hops", "how the hops of lookups with fingers only are distributed", experiment_ring_hops, 0, 4000,
     0, NULL},
    {"ring-failure", "lookups after up to half of all nodes failed at once", experiment_ring_failure, 20000,
     100000, 0, NULL},
    {"ring-churn", "lookups and traffic while nodes come and go", experiment_ring_churn, 1000, 240, 0, NULL},
    {"ring-partition", "cuts that heal, one-way and clogged links, slow nodes, liars",
     experiment_ring_partition, 64, 5, 0, NULL},
    {"ring-links", "bytes it takes to tell the holders of a link: lookup, the thesis's walk, ours",
     experiment_ring_links, 20000, 3, 0, NULL},
    {"ring-replicas", "objects lost in years of joins, leaves and outages, by level and bandwidth",
     experiment_ring_replicas, 0, 0, 0, experiment_replica_breakages},
    {"ring-sites", "objects lost if a site with half of the nodes fails as a whole, by level",
     experiment_ring_sites, 0, 0, 0, NULL},
    {"ring-disks", "copies in a ring where some nodes have too small a disk", experiment_ring_disks, 0, 0, 0,
     NULL},
    {"ring-uptime", "how much of ten days volunteers are up (thesis, figure 6-1)", experiment_ring_uptime,
     13122, 0, 0, NULL},
    {"ring-recruits", "volunteers that pass 80 %, by how long they are watched (figure 6-2)",
     experiment_ring_recruits, 13122, 0, 0, NULL},
    {"ring-recruits-kept", "the same: six copies in a ring of those that pass", experiment_ring_recruits_kept,
     13122, 0, 0, NULL},
    {"ring-heal", "until every capture is where it belongs, after a cut in halves", experiment_ring_heal, 0,
     10, 0, NULL},
    {"ring-refill", "the same after a node has lost its disk, by how much was on it", experiment_ring_refill,
     0, 10, 0, NULL},
    {"ring-rest", "traffic of a ring at rest", experiment_ring_rest, 0, 10, 0, NULL},
    {"crowd-reach", "what nodes of a crowd reach while others come and go: the paper's shuffle and ours",
     experiment_crowd_reach, 2000, 120, 0, NULL},
    {"crowd-reach-views", "the same for views of 5 to 50 neighbours, with almost all nodes away",
     experiment_crowd_reach_views, 2000, 600, 0, NULL},
    {"crowd-reach-causes", "what that depends on: shuffles in a life, and how far joins walk",
     experiment_crowd_reach_causes, 2000, 120, 0, NULL},
    {"crowd-degrees", "how evenly nodes are known after some shuffles", experiment_crowd_degrees, 2000, 100,
     0, NULL},
    {"crowd-theorem-1", "all shuffles in all graphs of up to 6 nodes: none is taken apart",
     experiment_crowd_theorem_1, 6, 0, 0, experiment_crowd_breakages},
    {"crowd-theorem-2", "crowds that are connected in one direction only, until they are in both",
     experiment_crowd_theorem_2, 24, 50, 0, NULL},
    {"crowd-search", "searches that found the object, by how nodes limit their participation (Figure 7)",
     experiment_crowd_search, 1000, 6, EXPERIMENT_SEARCH_FOUND, NULL},
    {"crowd-search-messages", "the same: queries that a node receives (Figure 8a)", experiment_crowd_search,
     1000, 6, EXPERIMENT_SEARCH_MESSAGES, NULL},
    {"crowd-search-hops", "the same: hops until the object is found (Figure 8b)", experiment_crowd_search,
     1000, 6, EXPERIMENT_SEARCH_HOPS, NULL},
    {"crowd-views", "searches that found the object, by view and fan-out (Figure 9)", experiment_crowd_search,
     1000, 6, EXPERIMENT_VIEWS_FOUND, NULL},
    {"crowd-views-messages", "the same: queries that a node receives (Figure 10a)", experiment_crowd_search,
     1000, 6, EXPERIMENT_VIEWS_MESSAGES, NULL},
    {"crowd-views-hops", "the same: hops until the object is found (Figure 10b)", experiment_crowd_search,
     1000, 6, EXPERIMENT_VIEWS_HOPS, NULL},
    {"crowd-joined", "queries that a node receives, searches one after the other and all together",
     experiment_crowd_search, 1000, 6, EXPERIMENT_JOINED_MESSAGES, NULL},
    {"crowd-joined-hops", "the same: hops until the object is found", experiment_crowd_search, 1000, 6,
     EXPERIMENT_JOINED_HOPS, NULL},
    {"crowd-dropping", "some nodes drop all queries, or all nodes drop some", experiment_crowd_search, 1000,
     6, EXPERIMENT_DROPPING_FOUND, NULL},
    {"crowd-timing", "all search at once: queries, by the time that a try is waited for (Figures 11, 12)",
     experiment_crowd_timing, 0, 8, EXPERIMENT_TIMING_QUERIES, NULL},
    {"crowd-timing-ms", "the same: how long it takes", experiment_crowd_timing, 0, 8, EXPERIMENT_TIMING_MS,
     NULL},
    {"crowd-absent", "what a search costs that nobody can answer, with and without memory of it",
     experiment_crowd_absent, 500, 40, 0, NULL},
    {"crowd-flood", "searches of others while one node floods, with and without limits",
     experiment_crowd_flood, 100, 0, 0, NULL},
    {"group-traffic", "traffic of groups of 5, 10 and 20, by 15 minutes (Figure 2)", experiment_group_traffic,
     0, 0, EXPERIMENT_TRAFFIC_QUIET, NULL},
    {"group-traffic-rejoin", "the same while one leaves and re-joins every hour (Figure 3)",
     experiment_group_traffic, 0, 0, EXPERIMENT_TRAFFIC_REJOIN, NULL},
    {"group-traffic-sums", "both, as sums over 90 minutes beside the paper's", experiment_group_traffic, 0, 0,
     EXPERIMENT_TRAFFIC_SUMS, NULL},
    {"group-failure", "members, links and masters of a group fail, and partitions heal",
     experiment_group_failure, 20, 10, 0, NULL},
    {"group-probe", "bandwidth that probes of 16 to 64 KB see through slow start (Table 1)",
     experiment_group_probe, 0, 0, 0, NULL},
    {"group-damping", "an estimate after its path becomes ten times slower", experiment_group_damping, 0, 0,
     0, NULL},
    {"group-topology", "update topologies of groups at sites: the paper's, ours, a random ring, annealing",
     experiment_group_topology, 0, 50, GROUP_COSTS_SITES, NULL},
    {"group-topology-plane", "the same for groups in a plane", experiment_group_topology, 0, 50,
     GROUP_COSTS_PLANE, NULL},
    {"group-topology-random", "the same with random costs", experiment_group_topology, 0, 50,
     GROUP_COSTS_RANDOM, NULL},
    {"group-scale", "an update to up to 20,000 replicas in groups that share two corners",
     experiment_group_scale, 0, 0, 0, NULL},
    {"group-scale-ways", "the same for other topologies, with dead replicas and corners, and in one group",
     experiment_group_scale_ways, 20000, 0, 0, NULL},
    {"group-scale-cut", "how often dead corners cut such groups apart, in a tree and in a mesh",
     experiment_group_scale_cut, 20000, 20, 0, NULL},
};
const size_t experiments_count = sizeof experiments / sizeof experiments[0];

const struct experiment *experiment_find(struct bytes name) {
    for (size_t i = 0; i < experiments_count; i++) {
        if (bytes_equal(name, bytes_of_string(experiments[i].name))) {
            return &experiments[i];
        }
    }
    return NULL;
}

enum err experiment_fail(const struct experiment_args *args, enum err err, struct err_detail *detail) {
    return err_set(detail, err, "seed %llu: %s", (unsigned long long)args->seed, err_text(err));
}

enum err experiment_start(const struct experiment *experiment, struct experiment_args args,
                          struct report *report, struct err_detail *detail) {
    struct err_detail why = {0};
    *report = (struct report){0}; /* an experiment may refuse its arguments before it initialises it */
    args.nodes = args.nodes != 0 ? args.nodes : experiment->nodes;
    args.runs = args.runs != 0 ? args.runs : experiment->runs;
    args.variant = experiment->variant;
    enum err err = experiment->run(&args, report, &why);
    if (err != ERR_OK && why.text[0] == '\0') {
        return experiment_fail(&args, err, detail);
    }
    if (detail != NULL) {
        *detail = why;
    }
    return err;
}
