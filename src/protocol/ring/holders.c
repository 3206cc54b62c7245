/*
 * holders - what this node is responsible for, told to the application, and ring_held_arc() of ring.h.
 *
 * A key belongs to the first place at or behind it, and copies of it to the next nodes behind that. Seen from
 * a place of ours it reaches back over those before it until as many other nodes are between:
 *
 *      ... p4 ... p3 ... p2 ... p1 ... us      copies 3: (p3, us], if p1, p2, p3 are three nodes
 *                  (---- held ----------]
 *                                  (own-]
 *
 * Places of a node that was counted are passed over, and if one of our own places comes, what is before it
 * is held by that one. In a small ring all is known; in Chord a place knows its list and its chain
 * (before.c).
 */
#include "protocol/ring/ring_state.h"

/* ---- the held arc ---- */

/* Those before a place, one after the other. */
struct backwards {
    const struct ring *ring;
    struct vnode nodes[RING_LIST_MAX]; /* other nodes so far */
    unsigned nodes_count;
};

/* Does what is held begin behind this place? */
static bool is_end(struct backwards *backwards, const struct vnode *vnode, unsigned copies) {
    if (ring_is_own(backwards->ring, vnode)) {
        return true;
    }
    if (!vnodes_have_node(backwards->nodes, backwards->nodes_count, vnode)) {
        backwards->nodes[backwards->nodes_count++] = *vnode;
    }
    return backwards->nodes_count == copies;
}

static struct ring_id held_in_circle(const struct ring *ring, const struct chord *chord, unsigned copies) {
    struct backwards backwards = {.ring = ring};
    struct circle circle;
    circle_of(ring, &circle);
    unsigned at = circle_at_or_after(&circle, chord->self.id);
    for (unsigned i = 1; i < circle.count; i++) {
        const struct vnode *vnode = circle_before(&circle, at, i);
        if (is_end(&backwards, vnode, copies)) {
            return vnode->id;
        }
    }
    return chord->self.id;
}

static bool held_in_chain(const struct ring *ring, const struct chord *chord, unsigned copies,
                          struct ring_id *ret_from) {
    struct backwards backwards = {.ring = ring};
    for (unsigned i = 0; i <= chord->before_count; i++) {
        const struct vnode *vnode = i == 0 ? &chord->predecessor : &chord->before[i - 1];
        if (is_end(&backwards, vnode, copies)) {
            *ret_from = vnode->id;
            return true;
        }
    }
    *ret_from = chord->self.id;
    return chord->is_before_whole;
}

bool ring_held_arc(const struct ring *ring, uint8_t vnode, unsigned copies, struct ring_id *ret_from,
                   struct ring_id *ret_to) {
    ASSERT(vnode < ring->config.vnodes_count && copies > 0 && copies <= RING_LIST_MAX);
    const struct chord *chord = &ring->vnodes[vnode];
    if (!chord->is_member) {
        return false;
    }
    struct ring_id from;
    if (ring->mode == MODE_SMALL) {
        from = held_in_circle(ring, chord, copies);
    } else if (!held_in_chain(ring, chord, copies, &from)) {
        return false;
    }
    *ret_from = from;
    *ret_to = chord->self.id;
    return true;
}

/* ---- notices ---- */

static void holders_tell(struct ring *ring, enum ring_notice notice, const struct chord *chord,
                         struct ring_id from) {
    uint8_t memory[1 + 2 * RING_ID_SIZE];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_u8(&writer, chord->self.index);
    message_write_id(&writer, from);
    message_write_id(&writer, chord->self.id);
    outbox_notice(ring->out, notice, bytes_of(memory, writer.size));
}

static void announce_own(struct ring *ring, struct chord *chord) {
    bool is_news = !chord->has_arc || !ring_id_equal(chord->arc_from, chord->predecessor.id);
    chord->has_arc = true;
    if (is_news) {
        chord->arc_from = chord->predecessor.id;
        holders_tell(ring, RING_ARC, chord, chord->arc_from);
    }
}

static void announce_held(struct ring *ring, struct chord *chord) {
    struct ring_id from;
    struct ring_id to;
    chord->is_held_stale = false;
    if (!ring_held_arc(ring, (uint8_t)(chord - ring->vnodes), ring->config.copies, &from, &to)) {
        return; /* told when it is known */
    }
    bool is_news = !chord->has_held || !ring_id_equal(chord->held_from, from);
    chord->has_held = true;
    chord->held_from = from;
    if (is_news) {
        holders_tell(ring, RING_HELD, chord, from);
    }
}

static void announce_gone(struct ring *ring, struct chord *chord) {
    if (chord->has_arc) {
        outbox_notice(ring->out, RING_GONE, bytes_of(&chord->self.index, 1));
    }
    chord->has_arc = false;
    chord->has_held = false;
    chord->is_held_stale = true;
}

void holders_announce(struct ring *ring) {
    bool is_member = ring->light.is_reached;
    for (unsigned i = 0; i < ring->config.vnodes_count; i++) {
        struct chord *chord = &ring->vnodes[i];
        is_member |= chord->is_member;
        if (!chord->is_member) {
            announce_gone(ring, chord);
            continue;
        }
        announce_own(ring, chord);
        if (chord->is_held_stale) {
            announce_held(ring, chord);
        }
    }
    if (is_member != ring->was_member) {
        ring->was_member = is_member;
        uint8_t byte = is_member;
        outbox_notice(ring->out, RING_MEMBER, bytes_of(&byte, 1));
    }
}
