/* The read-only side of ring.h, and what experiments need. */
#include "protocol/ring/ring.h"
#include "protocol/ring/state.h"

_Static_assert((int)RING_CHORD == (int)MODE_CHORD && (int)RING_SMALL == (int)MODE_SMALL, "one order");

enum ring_mode ring_mode(const struct ring *ring) {
    return (enum ring_mode)ring->mode;
}

const struct ring_counters *ring_counters(const struct ring *ring) {
    return &ring->counters;
}

const struct ring_blame *ring_blames(const struct ring *ring, uint32_t *ret_count) {
    *ret_count = ring->blames_count;
    return ring->blames;
}

uint8_t ring_vnodes_count(const struct ring *ring) {
    return ring->config.vnodes_count;
}

uint8_t ring_list_size(const struct ring *ring) {
    return ring->config.list_size;
}

static const struct chord *at(const struct ring *ring, uint8_t vnode) {
    ASSERT(vnode < ring->config.vnodes_count);
    return &ring->vnodes[vnode];
}

const struct vnode *ring_vnode_at(const struct ring *ring, uint8_t vnode) {
    return &at(ring, vnode)->self;
}

bool ring_is_member(const struct ring *ring, uint8_t vnode) {
    return at(ring, vnode)->is_member;
}

const struct vnode *ring_predecessor(const struct ring *ring, uint8_t vnode) {
    return &at(ring, vnode)->predecessor;
}

const struct vnode *ring_successor(const struct ring *ring, uint8_t vnode, uint8_t position) {
    ASSERT(position < ring->config.list_size);
    return &at(ring, vnode)->list[position];
}

static struct ring_known known_of(const struct table_entry *entry) {
    return (struct ring_known){entry->vnode, entry->heard_at_us, entry->rtt.smoothed_us, entry->misses_count};
}

bool ring_know(const struct ring *ring, struct ring_id id, struct ring_known *ret_known) {
    const struct table_entry *entry = table_find(&ring->table, id);
    if (entry != NULL) {
        *ret_known = known_of(entry);
    }
    return entry != NULL;
}

bool ring_next_finger(const struct ring *ring, uint8_t vnode, uint32_t *cursor,
                      struct ring_known *ret_known) {
    const struct chord *chord = at(ring, vnode);
    while (*cursor < CHORD_FINGERS_MAX) {
        if (ring_know(ring, chord->fingers[(*cursor)++], ret_known)) {
            return true;
        }
    }
    return false;
}

uint32_t ring_known_count(const struct ring *ring) {
    return ring->table.count;
}

struct ring_known ring_known_at(const struct ring *ring, uint32_t position) {
    ASSERT(position < ring->table.count);
    return known_of(table_at(&ring->table, position));
}

void ring_install_for_experiment(struct ring *ring, const struct vnode *list, const struct vnode *predecessor,
                                 const struct vnode *known, size_t known_count, uint64_t now_us) {
    struct chord *chord = &ring->vnodes[0];
    ring->mode = MODE_CHORD;
    ring->now_us = now_us;
    ring->stepped_at_us = now_us;
    memcpy(chord->list, list, ring->config.list_size * sizeof chord->list[0]);
    chord->predecessor = *predecessor;
    chord->is_member = true;
    chord->stabilize_at_us = now_us + ring_jitter(ring, ring->config.stabilize_us);
    chord->finger_at_us = now_us + ring_jitter(ring, 4 * ring->config.stabilize_us);
    ring->heal_at_us = now_us + ring_jitter(ring, ring->config.heal_us);
    chord->finger_next = CHORD_FINGERS_MAX;
    for (unsigned i = 0; i < ring->config.list_size; i++) {
        ring_heard_of(ring, &chord->list[i]);
    }
    ring_heard_of(ring, predecessor);
    for (size_t i = 0; i < known_count; i++) {
        struct table_entry *entry = table_enter(&ring->table, &known[i]);
        if (entry == NULL) {
            continue;
        }
        entry->heard_at_us = now_us == 0 ? 1 : now_us;
        if (i < CHORD_FINGERS_MAX) {
            chord->fingers[i] = known[i].id;
        }
    }
}

bool ring_is_asking_for_experiment(const struct ring *ring, struct address *ret_whom) {
    for (uint32_t i = 0; i < ring->queries_count; i++) {
        if (ring->queries[i].kind == MESSAGE_ASK_STATE) {
            *ret_whom = ring->queries[i].to.peer.address;
            return true;
        }
    }
    return false;
}
