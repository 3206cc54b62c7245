#include "sim/experiment.h"

const struct experiment experiments[] = {
    {.name = "kernel-network",
     .summary = "latency, loss and duplication of the virtual network, asked and measured",
     .run = experiment_kernel_network},
    {.name = "kernel-disk",
     .summary = "what crashes take from a log on the virtual disk, synced and not",
     .run = experiment_kernel_disk},
    {.name = "revisit",
     .summary = "adaptive visits against daily ones: fetches saved, changes missed",
     .run = experiment_revisit},
    {.name = "revisit-rates",
     .summary = "the same by how often pages change",
     .run = experiment_revisit_rates},
    {.name = "ring-invariants",
     .summary = "Zave's invariants after every step of small rings that nodes join and leave",
     .run = experiment_ring_invariants,
     .breakages = experiment_ring_breakages},
    {.name = "ring-lookup",
     .summary = "hops of lookups for rings of up to 65,536 nodes",
     .run = experiment_ring_lookup},
    {.name = "ring-hops",
     .summary = "how the hops of lookups with fingers only are distributed",
     .run = experiment_ring_hops},
    {.name = "ring-failure",
     .summary = "lookups after up to half of all nodes failed at once",
     .run = experiment_ring_failure},
    {.name = "ring-churn",
     .summary = "lookups and traffic while nodes come and go",
     .run = experiment_ring_churn},
    {.name = "ring-partition",
     .summary = "cuts that heal, one-way and clogged links, slow nodes, liars",
     .run = experiment_ring_partition},
    {.name = "ring-links",
     .summary = "bytes it takes to tell the holders of a link: lookup, the thesis's walk, ours",
     .run = experiment_ring_links},
    {.name = "ring-replicas",
     .summary = "objects lost in years of joins, leaves and outages, by level and bandwidth",
     .run = experiment_ring_replicas,
     .breakages = experiment_replica_breakages},
    {.name = "ring-rest", .summary = "traffic of a ring at rest", .run = experiment_ring_rest},
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
