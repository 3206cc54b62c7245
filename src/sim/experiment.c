#include "sim/experiment.h"

const struct experiment experiments[] = {
    {"kernel-network", "latency, loss and duplication of the virtual network, asked and measured",
     experiment_kernel_network},
    {"kernel-disk", "what crashes take from a log on the virtual disk, synced and not",
     experiment_kernel_disk},
    {"revisit", "adaptive visits against daily ones: fetches saved, changes missed", experiment_revisit},
    {"revisit-rates", "the same by how often pages change", experiment_revisit_rates},
    {"ring-invariants", "Zave's invariants after every step of small rings that nodes join and leave",
     experiment_ring_invariants},
    {"ring-lookup", "hops of lookups for rings of up to 65,536 nodes", experiment_ring_lookup},
    {"ring-failure", "lookups after half of all nodes failed at once", experiment_ring_failure},
    {"ring-churn", "lookups while nodes come and go", experiment_ring_churn},
    {"ring-partition", "cuts that heal, one-way links, slow nodes and damaged messages",
     experiment_ring_partition},
    {"ring-rest", "traffic of a ring at rest", experiment_ring_rest},
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
