/*
 * local - what this node can say of a key without asking anybody: from its own places, their lists and the
 * table. Lookups begin with it, and the questions of others are answered from it.
 */
#ifndef MNEMON_PROTOCOL_RING_LOCAL_H
#define MNEMON_PROTOCOL_RING_LOCAL_H

#include "protocol/ring/message.h"

enum { LOCAL_NEXT_MAX = 8 };

struct chord;
struct table_entry;

/* Our place that is responsible for the key, or NULL. */
const struct chord *local_owner(const struct ring *ring, struct ring_id key);

/* Our own place that comes first behind the key; NULL if we are no member. */
const struct chord *local_first(const struct ring *ring, struct ring_id key);

/* A place of ours and its successors, of each node the first; at most `wanted`. */
uint8_t local_copy(const struct ring *ring, const struct chord *chord, struct vnode *vnodes, unsigned wanted);

/* Has it answered within living memory, or do our lists name it, and is it not silent just now? */
bool local_is_useful(const struct ring *ring, const struct table_entry *entry);

/* The nearest before the key that we would ask ourselves, nearest first, nearer than we. */
unsigned local_preceding(const struct ring *ring, struct ring_id key, struct vnode *vnodes,
                         unsigned vnodes_max);

/* Real places at or behind the key from the list of our place before it: the first is its owner, if it lives.
 */
unsigned local_succeeding(const struct ring *ring, struct ring_id key, struct vnode *vnodes,
                          unsigned vnodes_max);

/* Nearer to the key than a few places usually are, by the density of our own list. */
bool local_is_near(const struct ring *ring, struct ring_id key, struct ring_id id);

/* The owner's own recent word, and those behind it in the table: how many places; 0 if fewer are known. */
unsigned local_fresh(const struct ring *ring, struct ring_id key, struct vnode *vnodes, unsigned wanted);

/* The answer to somebody's MESSAGE_FIND. */
void local_on_find(struct ring *ring, const struct message *question, struct message *answer);

#endif
