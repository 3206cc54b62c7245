/*
 * mode - which of small.c and chord.c keeps the lists of a node's places, and the changes between them.
 *
 *      MODE_JOINING --- somebody's table has us ---> MODE_SMALL --- r + 1 nodes, all agree ---> MODE_CHORD
 *           |                                            ^                                          |
 *           +---- it is in MODE_CHORD: join there        +------- our own place is in our list ------+
 *
 * Up: a node changes when its table has at least r + 1 nodes and each of them has answered with the same
 * table since it last changed. Then all of them hold the lists of an ideal ring, which is the start that
 * Zave's proof wants; only what keeps the lists changes, they stay as they are. Whoever of these hears from
 * one in MODE_CHORD changes too. Questions are answered alike in both modes, so a mixture is no harm.
 *
 * Down: a list that comes round to its own place names the whole ring. The places in it are the new table,
 * and they are asked. A Chord node also goes down when a successor asks it from a small ring that has all of
 * its list. With several places per node this is seen only at r places or fewer; until then Chord runs on
 * with fewer machines than it should. Nodes of the table that are still in Chord only have not noticed yet
 * which nodes are dead: they stay in the table, and the nodes they name are asked.
 *
 * Over: a small ring that hears from somebody outside of its table, alive and in a Chord ring, moves there.
 * Each node looks its own place up in that ring and asks for the list of the member before it. Only when it
 * has that list it leaves the small ring. So in none of these changes a node that was a member is without a
 * place; MODE_JOINING is for nodes that come, and for those that were asleep.
 */
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
