/*
 * taken - no two nodes have one place.
 *
 * IDs come from addresses without ports, so nodes behind one address (of IPv6: in one /64) need places of
 * different indices. Whoever has a place keeps it. Whoever comes and finds that another live node has it
 * takes the next indices by itself, or, if its indices are fixed, stays outside until it is told to join
 * again; it asks with the same places, for the other may be gone by then. Nobody is believed to live on
 * hearsay: the other must have answered itself. Our own address and port are ourselves in an earlier life and
 * no conflict.
 *
 *      seen while joining     the owner of our own ID has our ID and another address      (lookup.c)
 *                             somebody's table begins with places that are ours, too      (small.c)
 *      seen as a member       two rings have met, or two came at once: the successor has another
 *                             predecessor with our ID, which answers                       (chord.c)
 *                             otherwise the larger address gives way
 */
#ifndef MNEMON_PROTOCOL_RING_TAKEN_H
#define MNEMON_PROTOCOL_RING_TAKEN_H

#include "protocol/ring/message.h"

struct small_node;
struct chord;

struct taken {
    bool is_noted; /* in this step */
    uint8_t index; /* of ours */
    uint8_t moves_left;
    struct vnode holder;
};

void taken_init(struct taken *taken);

/* Is this somebody else at the ID of our place? */
bool taken_is_rival(const struct chord *chord, const struct vnode *vnode);

/* A node, perhaps one of the table, says of itself what it has. True if it cannot be so beside us: then
 * it is noted if it is we who give way. */
bool taken_on_node(struct ring *ring, const struct small_node *node, bool is_member);

/* Does a node of the table have one of its places? */
bool taken_is_known(const struct ring *ring, const struct small_node *node);

/* Is there a node in this table that has a place of ours? */
bool taken_is_named(const struct ring *ring, const struct message *nodes);

/* If both are members, the one with the larger address gives way. */
bool taken_gives_way(const struct ring *ring, const struct address *to);

/* This place of ours belongs to the holder. What follows is done by taken_settle(), at the end of the step.
 */
void taken_note(struct ring *ring, uint8_t index, const struct vnode *holder);
void taken_settle(struct ring *ring);

#endif
