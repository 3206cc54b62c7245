/*
 * candidate - whom a lookup may ask next: in which order, and who makes room where there are too many.
 *
 * Those at or behind the key first, for they may be its owner; then those before it, nearest first, of those
 * within a factor of two the quicker one. Who was silent lately comes last.
 */
#ifndef MNEMON_PROTOCOL_RING_CANDIDATE_H
#define MNEMON_PROTOCOL_RING_CANDIDATE_H

#include "protocol/ring/lookup.h"

/* Named by somebody, or known to us; hops_count: until it has answered. */
void candidate_add(struct ring *ring, struct lookup *lookup, const struct vnode *vnode, bool is_behind,
                   uint8_t hops_count);

/* The next to be asked, or NULL. */
struct lookup_candidate *candidate_best(const struct ring *ring, struct lookup *lookup);

/* Those behind the key that were silent are new again, once: false where there are none. */
bool candidate_repeat(struct lookup *lookup);

/* Is somebody nearer to the key than the owner so far, asked or to be asked? */
bool candidate_is_in_doubt(const struct lookup *lookup);

#endif
