#include "sim/experiments/group_costs.h"

#include "protocol/group/estimate.h"
#include "sim/world/network.h"

enum {
    MEMBERS_PER_SITE = 5,
    CONTINENTS_COUNT = 3,
    MODEM_PPM = 100000,
    MODEM_DELAY_US = 120000,
    MODEM_BANDWIDTH = 3600, /* bytes a second */
    PLANE_SIZE = 1000000,   /* of the square's side, in microseconds of cost */
};

struct place {
    uint32_t site;
    uint32_t continent;
    bool has_modem;
    uint64_t x;
    uint64_t y;
};

/* Within a tenth of the value. */
static uint64_t vary(struct prng *prng, uint64_t value) {
    return prng_between(prng, value - value / 10, value + value / 10);
}

/* ---- sites ---- */

/* The path between two sites: the same whichever members ask, so it is drawn from their numbers. */
static struct estimate path_between(const struct place *a, const struct place *b, uint64_t seed) {
    struct prng prng;
    uint32_t first = a->site < b->site ? a->site : b->site;
    uint32_t second = a->site < b->site ? b->site : a->site;
    prng_init_stream(&prng, seed, (uint64_t)first << 32 | second);
    if (first == second) {
        return (struct estimate){.round_trip_us = (uint32_t)prng_between(&prng, 200, 1000),
                                 .bandwidth = prng_between(&prng, 5000000, 10000000)};
    }
    if (a->continent == b->continent) {
        return (struct estimate){.round_trip_us = (uint32_t)prng_between(&prng, 10000, 60000),
                                 .bandwidth = prng_between(&prng, 200000, 1000000)};
    }
    return (struct estimate){.round_trip_us = (uint32_t)prng_between(&prng, 80000, 250000),
                             .bandwidth = prng_between(&prng, 50000, 200000)};
}

static uint32_t cost_of_sites(const struct place *a, const struct place *b, uint64_t seed,
                              struct prng *prng) {
    struct estimate path = path_between(a, b, seed);
    path.round_trip_us += (uint32_t)(a->has_modem + b->has_modem) * MODEM_DELAY_US;
    if (a->has_modem || b->has_modem) {
        path.bandwidth = MODEM_BANDWIDTH;
    }
    path.round_trip_us = (uint32_t)vary(prng, path.round_trip_us);
    path.bandwidth = vary(prng, path.bandwidth);
    return estimate_cost_us(&path, ESTIMATE_SIZE_REFERENCE);
}

/* ---- the plane ---- */

static uint32_t cost_of_plane(const struct place *a, const struct place *b) {
    uint64_t x = a->x > b->x ? a->x - b->x : b->x - a->x;
    uint64_t y = a->y > b->y ? a->y - b->y : b->y - a->y;
    return (uint32_t)network_square_root(x * x + y * y) + 1;
}

static uint32_t cost_between(enum group_costs_world world, const struct place *a, const struct place *b,
                             uint64_t seed, struct prng *prng) {
    switch (world) {
    case GROUP_COSTS_SITES:
        return cost_of_sites(a, b, seed, prng);
    case GROUP_COSTS_PLANE:
        return cost_of_plane(a, b);
    case GROUP_COSTS_RANDOM:
        break;
    }
    return (uint32_t)prng_between(prng, 1, PLANE_SIZE);
}

void group_costs_make(enum group_costs_world world, struct prng *prng, uint32_t members_count,
                      struct costs *ret_costs) {
    struct place places[GROUP_MEMBERS_MAX];
    uint64_t seed = prng_u64(prng);
    uint32_t sites_count = (members_count + MEMBERS_PER_SITE - 1) / MEMBERS_PER_SITE;
    for (uint32_t i = 0; i < members_count; i++) {
        places[i].site = (uint32_t)prng_below(prng, sites_count);
        places[i].continent = places[i].site % CONTINENTS_COUNT;
        places[i].has_modem = prng_chance_ppm(prng, MODEM_PPM);
        places[i].x = prng_below(prng, PLANE_SIZE);
        places[i].y = prng_below(prng, PLANE_SIZE);
    }
    costs_init(ret_costs, members_count);
    for (uint32_t a = 0; a < members_count; a++) {
        for (uint32_t b = a + 1; b < members_count; b++) {
            uint32_t cost_us = cost_between(world, &places[a], &places[b], seed, prng);
            costs_set(ret_costs, a, b, cost_us);
            costs_set(ret_costs, b, a, cost_us);
        }
    }
}
