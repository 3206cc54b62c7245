/*
 * circle - all places of a small ring in the order of their IDs, ours among them.
 *
 * Made from the table of small.h when it is needed: half a hundred kilobytes on the caller's stack, and one
 * SHA-256 for each place.
 */
#ifndef MNEMON_PROTOCOL_RING_CIRCLE_H
#define MNEMON_PROTOCOL_RING_CIRCLE_H

#include "protocol/ring/small.h"

enum { CIRCLE_VNODES_MAX = (SMALL_NODES_MAX + 1) * RING_VIRTUAL_MAX };

struct circle {
    struct vnode vnodes[CIRCLE_VNODES_MAX];
    unsigned count;
};

void circle_of(const struct ring *ring, struct circle *circle);

/* The index of the first place at or behind an ID. */
unsigned circle_at_or_after(const struct circle *circle, struct ring_id id);

/* The place so many steps from an index. */
static inline const struct vnode *circle_after(const struct circle *circle, unsigned index, unsigned steps) {
    return &circle->vnodes[(index + steps) % circle->count];
}
static inline const struct vnode *circle_before(const struct circle *circle, unsigned index, unsigned steps) {
    return &circle->vnodes[(index + circle->count - steps % circle->count) % circle->count];
}

#endif
