/*
 * circle - all places of a small ring in the order of their IDs, ours among them.
 *
 * Made from the table of small.c when it is needed: half a hundred kilobytes on the caller's stack, and one
 * SHA-256 for each place.
 */
#include "protocol/ring/ring_state.h"

/* An ID that is there already belongs to the node that was first: no two hold one place. */
static void insert(struct circle *circle, const struct vnode *vnode) {
    unsigned at = circle->count;
    while (at > 0 && ring_id_compare(vnode->id, circle->vnodes[at - 1].id) < 0) {
        at--;
    }
    if (at > 0 && ring_id_equal(vnode->id, circle->vnodes[at - 1].id)) {
        return;
    }
    memmove(&circle->vnodes[at + 1], &circle->vnodes[at], (circle->count - at) * sizeof circle->vnodes[0]);
    circle->vnodes[at] = *vnode;
    circle->count++;
}

void circle_of(const struct ring *ring, struct circle *circle) {
    struct sha256 sha256 = ring->sha256;
    circle->count = 0;
    for (unsigned i = 0; i < ring->config.vnodes_count; i++) {
        insert(circle, &ring->vnodes[i].self);
    }
    for (uint32_t i = 0; i < ring->small.nodes_count; i++) {
        struct vnode vnode = ring->small.nodes[i].first;
        for (unsigned j = 0; j < ring->small.nodes[i].vnodes_count; j++) {
            vnode.index = (uint8_t)(ring->small.nodes[i].first.index + j);
            vnode.id = ring_id_of_node(&sha256, &vnode.peer.address, vnode.index);
            insert(circle, &vnode);
        }
    }
}

unsigned circle_at_or_after(const struct circle *circle, struct ring_id id) {
    unsigned index = 0;
    while (index < circle->count && ring_id_compare(circle->vnodes[index].id, id) < 0) {
        index++;
    }
    return index == circle->count ? 0 : index;
}

size_t ring_circle(const struct ring *ring, struct vnode out[RING_CIRCLE_MAX]) {
    struct circle circle = {.count = 0};
    if (ring->mode == MODE_SMALL) {
        circle_of(ring, &circle);
        memcpy(out, circle.vnodes, circle.count * sizeof *out);
    }
    return circle.count;
}

uint64_t ring_circle_generation(const struct ring *ring) {
    return ring->small.generation;
}
