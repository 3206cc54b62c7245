#include "protocol/ring/mode.h"

#include "protocol/ring/ring_state.h"

enum { FIRST_ROUND_SPEED = 10 }; /* the first round of stabilizing comes sooner */

void mode_become_chord(struct ring *ring) {
    ring->mode = MODE_CHORD;
    for (unsigned i = 0; i < ring->config.vnodes_count; i++) {
        struct chord *chord = &ring->vnodes[i];
        chord->stabilize_at_us =
            ring_jitter(ring, ring->config.stabilize_us / FIRST_ROUND_SPEED) + ring->now_us;
        chord->finger_at_us = ring->now_us + ring_jitter(ring, ring->config.stabilize_us);
        chord->finger_next = 0;
        chord->is_busy = false;
        chord->is_joining = false;
        chord->has_waiting = false;
    }
    ring->small.candidates_count = 0;
    ring->small.is_moving = false;
}

/* Questions of Chord are of no interest any more. The table is empty and the lists are as they were. */
static void become_small(struct ring *ring) {
    ring->mode = MODE_SMALL;
    ring->small.nodes_count = 0;
    ring->small.candidates_count = 0;
    ring->small.is_moving = false;
    for (unsigned i = 0; i < ring->config.vnodes_count; i++) {
        struct chord *chord = &ring->vnodes[i];
        chord->is_busy = false;
        chord->has_waiting = false;
        chord->is_joining = false;
        chord->is_before_open = false;
        chord->before_at_us = STEP_NEVER_US;
        query_close(ring, QUERY_SUCCESSOR, i);
        query_close(ring, QUERY_PREDECESSOR, i);
        query_close(ring, QUERY_RECTIFY, i);
        query_close(ring, QUERY_JOIN, i);
        query_close(ring, QUERY_BEFORE, i);
        query_close(ring, QUERY_PROBE, i);
    }
}

void mode_move(struct ring *ring, const struct vnode *through) {
    if (ring->small.is_moving) {
        return;
    }
    ring->small.is_moving = true;
    ring->small.moving_through = *through;
    for (unsigned i = 0; i < ring->config.vnodes_count; i++) {
        ring->vnodes[i].join_at_us = ring->now_us;
    }
}

void mode_joined(struct ring *ring, const struct chord *chord) {
    if (ring->small.is_moving) { /* our other places are still of the small ring: they come after this one */
        for (unsigned i = 0; i < ring->config.vnodes_count; i++) {
            struct chord *other = &ring->vnodes[i];
            other->is_member = other == chord;
            other->join_at_us = ring->now_us;
        }
    }
    ring->small.is_moving = false;
    ring->small.nodes_count = 0;
    ring->small.candidates_count = 0;
    ring->mode = MODE_CHORD;
}

/* ---- down ---- */

/* One place of a node that may be in the table already. */
static void add_vnode(struct ring *ring, const struct vnode *vnode) {
    if (vnode_is_padding(vnode) || ring_is_own(ring, vnode)) {
        return;
    }
    struct small_node *node = small_find(ring, &vnode->peer.address);
    if (node == NULL) {
        (void)small_add(ring, &(struct small_node){.first = *vnode, .vnodes_count = 1});
        return;
    }
    unsigned low = node->first.index < vnode->index ? node->first.index : vnode->index;
    unsigned high = (unsigned)node->first.index + node->vnodes_count;
    high = high > vnode->index + 1u ? high : vnode->index + 1u;
    node->first = low == vnode->index ? *vnode : node->first;
    node->vnodes_count = (uint8_t)(high - low);
}

void mode_shrink(struct ring *ring, const struct chord *chord) {
    unsigned r = ring->config.list_size;
    unsigned end = 0;
    while (end < r && !ring_id_equal(chord->list[end].id, chord->self.id)) {
        end++;
    }
    if (end == r) {
        return;
    }
    struct vnode list[RING_LIST_MAX];
    memcpy(list, chord->list, sizeof list);
    become_small(ring);
    for (unsigned i = 0; i < end; i++) {
        add_vnode(ring, &list[i]);
    }
    small_changed(ring);
}

void mode_follow_down(struct ring *ring, const struct message *nodes) {
    become_small(ring);
    for (unsigned i = 0; i < nodes->vnodes_count; i++) {
        struct small_node node = {.first = nodes->vnodes[i], .vnodes_count = nodes->nodes_vnodes_count[i]};
        if (!ring_is_own(ring, &node.first)) {
            (void)small_add(ring, &node); /* dead nodes leave it by silence */
        }
    }
    small_changed(ring);
}

void mode_fall_back(struct ring *ring, struct chord *chord) {
    for (unsigned i = 0; i < ring->config.vnodes_count; i++) {
        const struct chord *other = &ring->vnodes[i];
        if (other != chord && other->is_member) { /* it joins again through our other places */
            chord->is_member = false;
            chord->join_at_us = ring->now_us;
            return;
        }
    }
    struct vnode before[RING_LIST_MAX + 1] = {chord->predecessor};
    unsigned count = 1;
    for (unsigned i = 0; i < chord->before_count; i++) {
        before[count++] = chord->before[i];
    }
    become_small(ring);
    small_changed(ring);
    for (unsigned i = 0; i < count; i++) { /* whoever is left is near */
        small_meet(ring, &before[i]);
    }
    ring->heal_at_us = ring->now_us;
}

void mode_rejoin(struct ring *ring) {
    struct small *small = &ring->small;
    const struct chord *chord = &ring->vnodes[0];
    bool is_joining = ring->mode == MODE_JOINING; /* then we know the nodes that we were told of */
    become_small(ring);
    small->contacts_count = is_joining ? small->contacts_count : 0;
    memset(small->is_contact_open, 0, sizeof small->is_contact_open);
    for (unsigned i = 0;
         !is_joining && i < ring->config.list_size && small->contacts_count < SMALL_CANDIDATES_MAX; i++) {
        if (!vnode_is_padding(&chord->list[i]) && !ring_is_own(ring, &chord->list[i])) {
            small->contacts[small->contacts_count++] = chord->list[i];
        }
    }
    small->contacts_at_us = ring->now_us;
    small->is_ring_met = false;
    ring->mode = MODE_JOINING;
    small_changed(ring);
}
