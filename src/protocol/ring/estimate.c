/*
 * How many there are, from how dense they are where we look: ring_estimated_size() and ring_estimated_nodes()
 * of ring.h.
 *
 * A place knows a stretch of the circle: its chain, itself, its list. Where the stretch meets itself the
 * number is exact. Else each finger adds the stretch of the list that its owner named with it: with eight
 * places a finger and a finger for each power of two, some sixty places of a thousand, and an error of an
 * eighth.
 */
#include "protocol/ring/ring.h"
#include "protocol/ring/state.h"

static const double CIRCLE = 18446744073709551616.0; /* 2^64: the high half of an ID */

struct stretch {
    double vnodes_count; /* gaps between neighbours */
    double length;       /* of them together */
};

static double length_of(struct ring_id from, struct ring_id to) {
    return (double)ring_id_distance(from, to).high / CIRCLE;
}

/* True where it goes round: then vnodes_count is exact. */
static bool own_stretch(const struct ring *ring, const struct chord *chord, struct stretch *ret_stretch) {
    const struct vnode *first =
        chord->before_count > 0 ? &chord->before[chord->before_count - 1] : &chord->predecessor;
    struct stretch stretch = {.vnodes_count = chord->before_count + 1};
    stretch.length = length_of(first->id, chord->self.id);
    struct ring_id last = chord->self.id;
    for (unsigned i = 0; i < ring->config.list_size && !vnode_is_padding(&chord->list[i]); i++) {
        bool is_round = ring_id_equal(chord->list[i].id, first->id);
        stretch.length += length_of(last, chord->list[i].id);
        stretch.vnodes_count++;
        last = chord->list[i].id;
        if (is_round) {
            *ret_stretch = stretch;
            return true;
        }
    }
    *ret_stretch = stretch;
    return chord->is_before_whole;
}

static uint64_t small_size(const struct ring *ring) {
    uint64_t count = ring->vnodes[0].is_member ? ring->config.vnodes_count : 0;
    for (uint32_t i = 0; i < ring->small.nodes_count && count > 0; i++) {
        count += ring->small.nodes[i].vnodes_count;
    }
    return count;
}

uint64_t ring_estimated_size(const struct ring *ring) {
    if (ring->mode != MODE_CHORD) {
        return small_size(ring);
    }
    struct stretch sum = {0};
    for (unsigned i = 0; i < ring->config.vnodes_count; i++) {
        const struct chord *chord = &ring->vnodes[i];
        struct stretch own;
        if (!chord->is_member) {
            continue;
        }
        if (own_stretch(ring, chord, &own)) {
            return chord->is_before_whole ? chord->before_count + 2u : (uint64_t)own.vnodes_count;
        }
        sum.vnodes_count += own.vnodes_count;
        sum.length += own.length;
        for (unsigned j = 0; j < CHORD_FINGERS_MAX; j++) {
            bool is_again = j > 0 && ring_id_equal(chord->fingers[j], chord->fingers[j - 1]);
            if (chord->finger_counts[j] > 0 && !is_again) {
                sum.vnodes_count += chord->finger_counts[j];
                sum.length += (double)chord->finger_spans[j] / CIRCLE;
            }
        }
    }
    return sum.length > 0 ? (uint64_t)(sum.vnodes_count / sum.length + 0.5) : 1;
}

/* Of the places that we have heard of, so many are the first of their node. */
uint64_t ring_estimated_nodes(const struct ring *ring) {
    if (ring->mode != MODE_CHORD) {
        return ring->vnodes[0].is_member ? ring->small.nodes_count + 1u : 0;
    }
    uint64_t vnodes = ring->config.vnodes_count;
    uint64_t firsts = 1;
    for (uint32_t i = 0; i < ring->table.count; i++) {
        const struct vnode *vnode = &ring->table.entries[ring->table.order[i]].vnode;
        if (!ring_is_own(ring, vnode)) {
            vnodes++;
            firsts += vnode->index == 0;
        }
    }
    return (ring_estimated_size(ring) * firsts + vnodes / 2) / vnodes;
}
