#include "sim/world/network.h"

#include <stdlib.h>

static const uint64_t SECOND_US = 1000000;

/* What the map of links holds. */
struct link {
    struct network_link settings;
    bool has_settings; /* otherwise the dials hold */
    uint64_t clogged_until_us;
};

struct link_key {
    uint32_t from;
    uint32_t to;
};

enum err network_init(struct network *network, uint32_t nodes_count, uint64_t seed) {
    *network = (struct network){.nodes_count = nodes_count};
    network->nodes = calloc(nodes_count, sizeof *network->nodes);
    if (network->nodes == NULL) {
        return ERR_MEMORY;
    }
    map_init(&network->links, sizeof(struct link_key), sizeof(struct link), NETWORK_LINKS_MAX, seed);
    prng_init(&network->prng, seed);
    return ERR_OK;
}

void network_done(struct network *network) {
    map_done(&network->links);
    free(network->nodes);
    network->nodes = NULL;
}

static struct link *find_link(const struct network *network, uint32_t from, uint32_t to) {
    if (network->links.count == 0) {
        return NULL;
    }
    struct link_key key = {from, to};
    return map_get(&network->links, bytes_of(&key, sizeof key));
}

static enum err network_put_link(struct network *network, uint32_t from, uint32_t to,
                                 struct link **ret_link) {
    ASSERT(from < network->nodes_count && to < network->nodes_count);
    enum err err = map_reserve(&network->links, network->links.count + 1);
    if (err != ERR_OK) {
        return err;
    }
    struct link_key key = {from, to};
    *ret_link = map_put(&network->links, bytes_of(&key, sizeof key));
    ASSERT(*ret_link != NULL);
    return ERR_OK;
}

uint64_t network_square_root(uint64_t number) {
    if (number == 0) {
        return 0;
    }
    /* Newton from above: each round at least halves the error and never falls below the root. */
    uint64_t root = UINT64_C(1) << (64 - (unsigned)__builtin_clzll(number) + 1) / 2;
    for (;;) {
        uint64_t next = (root + number / root) / 2;
        if (next >= root) {
            return root;
        }
        root = next;
    }
}

static uint64_t distance_us(const struct network *network, uint32_t from, uint32_t to) {
    if (network->dials.distance_us == 0) {
        return 0;
    }
    int64_t dx = (int64_t)network->nodes[from].x - network->nodes[to].x;
    int64_t dy = (int64_t)network->nodes[from].y - network->nodes[to].y;
    return network_square_root((uint64_t)(dx * dx + dy * dy)) * network->dials.distance_us >> 16;
}

static uint64_t fixed_us(const struct network *network, uint32_t from, uint32_t to, const struct link *link) {
    if (link != NULL && link->has_settings) {
        return link->settings.latency_us;
    }
    return network->dials.latency_us + distance_us(network, from, to) + network->nodes[from].access_us +
           network->nodes[to].access_us;
}

uint64_t network_latency_us(const struct network *network, uint32_t from, uint32_t to) {
    return fixed_us(network, from, to, find_link(network, from, to));
}

/*
 * Put the message on the sender's uplink, behind what that is busy with, and move *at_us to when its last
 * byte has left. False if it would wait longer than the dial allows.
 */
static bool depart(struct network *network, uint32_t from, size_t size, uint64_t *at_us) {
    const struct network_dials *dials = &network->dials;
    struct network_node *sender = &network->nodes[from];
    uint64_t uplink =
        sender->uplink_bytes_per_s != 0 ? sender->uplink_bytes_per_s : dials->uplink_bytes_per_s;
    if (uplink == 0) {
        return true;
    }
    uint64_t start_us = sender->uplink_free_at_us > *at_us ? sender->uplink_free_at_us : *at_us;
    if (dials->backlog_us_max > 0 && start_us - *at_us > dials->backlog_us_max) {
        return false;
    }
    sender->uplink_free_at_us = start_us + size * SECOND_US / uplink;
    *at_us = sender->uplink_free_at_us;
    return true;
}

static uint64_t held_until_us(const struct network *network, uint32_t from, uint32_t to,
                              const struct link *link) {
    uint64_t until_us = network->nodes[from].clogged_until_us;
    if (network->nodes[to].clogged_until_us > until_us) {
        until_us = network->nodes[to].clogged_until_us;
    }
    if (link != NULL && link->clogged_until_us > until_us) {
        until_us = link->clogged_until_us;
    }
    return until_us;
}

/* The part of the way that chance decides. */
static uint64_t random_us(struct network *network, const struct link *link) {
    const struct network_dials *dials = &network->dials;
    uint32_t jitter_us = link != NULL && link->has_settings ? link->settings.jitter_us : dials->jitter_us;
    uint64_t at_us = jitter_us == 0 ? 0 : prng_between(&network->prng, 0, jitter_us);
    if (prng_chance_ppm(&network->prng, dials->reorder_ppm)) {
        at_us += prng_between(&network->prng, 0, dials->reorder_us);
    }
    return at_us;
}

unsigned network_route(struct network *network, uint64_t now_us, uint32_t from, uint32_t to, size_t size,
                       uint64_t ret_at_us[NETWORK_COPIES_MAX]) {
    ASSERT(from < network->nodes_count && to < network->nodes_count);
    struct network_counters *counters = &network->counters;
    struct network_node *sender = &network->nodes[from];
    sender->traffic.sent_count++;
    sender->traffic.sent_size += size;
    counters->traffic.sent_count++;
    counters->traffic.sent_size += size;
    if (network->is_partitioned && network->blocked[sender->group] >> network->nodes[to].group & 1) {
        counters->blocked_count++;
        return 0;
    }
    struct link *link = find_link(network, from, to);
    uint64_t at_us = now_us;
    if (!depart(network, from, size, &at_us)) {
        counters->backlog_count++;
        return 0;
    }
    bool has_settings = link != NULL && link->has_settings;
    if (prng_chance_ppm(&network->prng, has_settings ? link->settings.loss_ppm : network->dials.loss_ppm)) {
        counters->lost_count++;
        return 0;
    }
    uint64_t held_us = held_until_us(network, from, to, link);
    at_us = (at_us > held_us ? at_us : held_us) + fixed_us(network, from, to, link);
    ret_at_us[0] = at_us + random_us(network, link);
    if (!prng_chance_ppm(&network->prng, network->dials.duplicate_ppm)) {
        return 1;
    }
    counters->duplicate_count++;
    ret_at_us[1] = at_us + random_us(network, link);
    return 2;
}

bool network_corrupt(struct network *network, uint8_t *data, size_t size) {
    if (size == 0 || !prng_chance_ppm(&network->prng, network->dials.corrupt_ppm)) {
        return false;
    }
    uint64_t flips_count = prng_between(&network->prng, 1, 8);
    for (uint64_t i = 0; i < flips_count; i++) {
        uint64_t bit = prng_below(&network->prng, size * 8);
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    network->counters.corrupt_count++;
    return true;
}

void network_received(struct network *network, uint32_t to, size_t size) {
    struct network_traffic *traffic = &network->nodes[to].traffic;
    traffic->received_count++;
    traffic->received_size += size;
    network->counters.traffic.received_count++;
    network->counters.traffic.received_size += size;
}

enum err network_set_link(struct network *network, uint32_t from, uint32_t to,
                          const struct network_link *settings) {
    struct link *link;
    enum err err = network_put_link(network, from, to, &link);
    if (err != ERR_OK) {
        return err;
    }
    link->settings = *settings;
    link->has_settings = true;
    return ERR_OK;
}

enum err network_clog_link(struct network *network, uint32_t from, uint32_t to, uint64_t until_us) {
    struct link *link;
    enum err err = network_put_link(network, from, to, &link);
    if (err != ERR_OK) {
        return err;
    }
    link->clogged_until_us = until_us;
    return ERR_OK;
}

void network_block(struct network *network, uint32_t from, uint32_t to) {
    ASSERT(from < NETWORK_GROUPS_MAX && to < NETWORK_GROUPS_MAX);
    network->blocked[from] |= UINT32_C(1) << to;
    network->is_partitioned = true;
}

void network_heal(struct network *network) {
    memset(network->blocked, 0, sizeof network->blocked);
    network->is_partitioned = false;
    for (uint32_t i = 0; i < network->nodes_count; i++) {
        network->nodes[i].clogged_until_us = 0;
    }
    size_t cursor = 0;
    struct bytes key;
    void *value;
    while (map_next(&network->links, &cursor, &key, &value)) {
        ((struct link *)value)->clogged_until_us = 0;
    }
}

void network_scatter(struct network *network) {
    for (uint32_t i = 0; i < network->nodes_count; i++) {
        network->nodes[i].x = (uint16_t)prng_u64(&network->prng);
        network->nodes[i].y = (uint16_t)prng_u64(&network->prng);
    }
}
