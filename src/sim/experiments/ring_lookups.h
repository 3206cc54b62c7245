/*
 * ring_lookups - many lookups in a simulated ring, each compared with what the checker knows. For ring-*.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_RING_LOOKUPS_H
#define MNEMON_SIM_EXPERIMENTS_RING_LOOKUPS_H

#include "sim/experiments/ring_world.h"

enum { RING_LOOKUPS_HOPS_MAX = 64 };

struct ring_lookup {
    struct ring_id key;
    uint32_t node; /* the node that asked, and in which of its lives */
    uint32_t life;
    uint64_t at_us;
    bool is_over; /* found or lost */
};

struct ring_lookups {
    struct ring_world *world;
    struct ring_lookup *asked; /* by number */
    uint32_t asked_count;
    uint32_t asked_max;
    uint64_t found_count;
    uint64_t wrong_count; /* another than the responsible member at the time of the answer */
    uint64_t stale_count; /* answered from the table with a node that has died since it spoke */
    uint64_t took_us_sum;
    uint64_t took_us_max;
    uint64_t hops_sum;
    uint64_t hops[RING_LOOKUPS_HOPS_MAX]; /* how many took so many */
    bool is_ring_changing;                /* members are listed anew for each answer */
};

/* Observes the world from now on. */
enum err ring_lookups_init(struct ring_lookups *lookups, struct ring_world *world,
                           uint32_t asked_max) MUST_CHECK;
void ring_lookups_done(struct ring_lookups *lookups);

/* A lookup of a random key at this node and time. */
enum err ring_lookups_ask(struct ring_lookups *lookups, uint32_t node, struct prng *prng,
                          uint64_t at_us) MUST_CHECK;

/* Forget all that were asked; none may be under way. */
void ring_lookups_restart(struct ring_lookups *lookups);

/* Lookups without an end because the node that asked has gone away. */
uint64_t ring_lookups_count_orphans(const struct ring_lookups *lookups);

/* The hops that a share of all lookups did not exceed. */
unsigned ring_lookups_percentile(const struct ring_lookups *lookups, unsigned percent);

double ring_lookups_mean_hops(const struct ring_lookups *lookups);

#endif
