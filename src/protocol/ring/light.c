/*
 * light - a node that uses the ring and is no part of it: it asks, and nobody asks it.
 *
 * It sits behind a router that lets nothing in unasked, or wants to hold nothing. So it has no place, names
 * itself to nobody (its ASK_NODES has an empty table, which any member answers and none remembers), and sends
 * nothing but questions: ASK_NODES, to know who is there, and FIND.
 *
 *      RING_JOIN ─> contacts asked every second ─ one of them answers ─> reached: one node at random is asked
 *                        ^                                                 every five seconds or so
 *                        +--------- SILENT_MAX in a row were silent, or all -----+
 *
 * Guaranteed: no message of it puts it into anybody's table or list. Its own table holds what answers named;
 * a node that is silent leaves it with all of its places. A small ring is known whole after one answer, of a
 * large one what answers and lookups happened to name.
 */
#include "protocol/ring/ring_state.h"

enum { SILENT_MAX = 4, QUICK_ROUNDS = 3 };
static const uint64_t CONTACTS_US = 1000000;
static const uint64_t QUICK_US = 500000;

void light_join(struct ring *ring, const struct vnode *contacts, uint32_t contacts_count) {
    struct light *light = &ring->light;
    ring->mode = MODE_LIGHT;
    light->contacts_count = 0;
    for (uint32_t i = 0; i < contacts_count && i < SMALL_CANDIDATES_MAX; i++) {
        light->contacts[light->contacts_count++] = contacts[i];
    }
    light->ask_at_us = ring->now_us;
}

static void light_ask(struct ring *ring, const struct vnode *to) {
    struct query query = {
        .purpose = QUERY_LIGHT,
        .kind = MESSAGE_ASK_NODES,
        .to = *to,
        .tries_max = QUERY_TRIES_DEAD,
    };
    if (!query_is_open(ring, QUERY_LIGHT, to)) {
        (void)query_open(ring, &query); /* else with the next round */
    }
}

void light_tick(struct ring *ring) {
    struct light *light = &ring->light;
    if (ring->mode != MODE_LIGHT) {
        return;
    }
    if (ring->now_us >= light->ask_at_us) {
        uint64_t usual_us = light->rounds_count < QUICK_ROUNDS ? QUICK_US : ring->config.stabilize_us / 2;
        for (uint32_t i = 0; i < light->contacts_count && !light->is_reached; i++) {
            light_ask(ring, &light->contacts[i]);
        }
        if (ring->table.count > 0) {
            uint32_t position = (uint32_t)prng_below(&ring->prng, ring->table.count);
            light_ask(ring, &table_at(&ring->table, position)->vnode);
        }
        if (light->is_reached && light->rounds_count < QUICK_ROUNDS) {
            light->rounds_count++;
        }
        light->ask_at_us = ring->now_us + (light->is_reached ? ring_jitter(ring, usual_us) : CONTACTS_US);
    }
    outbox_wake_at(ring->out, light->ask_at_us);
}

/* Of a node that is gone all places are, whichever was asked. */
static void forget_node(struct ring *ring, const struct vnode *vnode) {
    for (unsigned i = 0; i < RING_VIRTUAL_MAX; i++) {
        struct ring_id id = ring_id_of_node(&ring->sha256, &vnode->peer.address, (uint8_t)i);
        const struct table_entry *entry = table_find(&ring->table, id);
        if (entry != NULL && address_equal(&entry->vnode.peer.address, &vnode->peer.address)) {
            table_remove(&ring->table, id);
        }
    }
}

static void light_silence(struct ring *ring, const struct vnode *vnode) {
    struct light *light = &ring->light;
    forget_node(ring, vnode);
    bool is_alone = ring->table.count == 0;
    if (light->is_reached && (++light->silent_count >= SILENT_MAX || is_alone)) {
        light->is_reached = false;
        light->silent_count = light->rounds_count = 0;
        light->ask_at_us = ring->now_us;
    }
}

/* All places of each. A contact was asked at an index that it need not have. */
static void hear_nodes(struct ring *ring, const struct query *query, const struct message *answer) {
    const struct vnode *own = &answer->vnodes[0];
    unsigned end = (unsigned)own->index + answer->nodes_vnodes_count[0];
    if (query->to.index < own->index || query->to.index >= end) {
        table_remove(&ring->table, query->to.id);
    }
    for (unsigned i = 0; i < answer->vnodes_count; i++) {
        for (unsigned j = 0; j < answer->nodes_vnodes_count[i]; j++) {
            struct vnode vnode = answer->vnodes[i];
            vnode.index = (uint8_t)(vnode.index + j); /* message.c has seen that there are so many */
            vnode.id = ring_id_of_node(&ring->sha256, &vnode.peer.address, vnode.index);
            ring_heard_of(ring, &vnode);
        }
    }
}

void light_answered(struct ring *ring, const struct query *query, const struct message *answer) {
    struct light *light = &ring->light;
    if (answer == NULL) {
        light_silence(ring, &query->to);
        return;
    }
    if (answer->status != MODE_SMALL && answer->status != MODE_CHORD) {
        return; /* it is there, and not in the ring yet */
    }
    if (answer->vnodes_count == 0 ||
        !address_equal(&answer->vnodes[0].peer.address, &query->to.peer.address)) {
        ring_blame(ring, &query->to, "a table of nodes that does not begin with its own");
        return;
    }
    if (!light->is_reached) {
        light->is_reached = true;
        light->ask_at_us = ring->now_us + QUICK_US;
    }
    light->silent_count = 0;
    hear_nodes(ring, query, answer);
}
