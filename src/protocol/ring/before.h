/*
 * before - the places before one of ours: its predecessor, that one's predecessor, and so on.
 *
 * Chord itself needs only the predecessor; a holder of copies of others' keys must know how far back they
 * reach. So each place keeps a chain, learnt like the successor list from the other side: [p] + p's chain,
 * replaced whole from one answer of the predecessor p. It ends before our own place comes round again, or at
 * before_size().
 *
 *      p --- notify, with a digest of p's chain ---> us     ours differs: we ask p for it
 *      us -- ask-before, with a digest of our list --> p    its differs: it stabilizes soon
 *
 * At rest nothing is asked. A change runs along the ring as fast as messages do, the chain forwards and the
 * list backwards, instead of one place a round. The digests are hints and nothing more: a wrong one costs a
 * question. The chain decides nothing in Chord; it is as true as the predecessors' words (holders.h).
 */
#ifndef MNEMON_PROTOCOL_RING_BEFORE_H
#define MNEMON_PROTOCOL_RING_BEFORE_H

#include "protocol/ring/message.h"

struct chord;
struct query;

/* How long chains are: the copies of the charter and some, because a node may have several places in one. */
unsigned before_size(const struct ring *ring);

/* For notify: of the part of our chain that a successor takes over. */
uint64_t before_digest(const struct ring *ring, const struct chord *chord);

/* The predecessor is another one now: what is known of those before it stays. */
void before_follow(struct ring *ring, struct chord *chord, const struct vnode *old);

/* Our list or predecessor has changed: the predecessor is asked, and so told, soon. */
void before_hurry(struct ring *ring, struct chord *chord);

void before_tick(struct ring *ring, struct chord *chord);

/* NULL for silence. */
void before_answered(struct ring *ring, struct chord *chord, const struct query *query,
                     const struct message *answer);

/* The digest of a notify from our predecessor. */
void before_on_notify(struct ring *ring, struct chord *chord, uint64_t digest);

/* The node `from` asks for our chain. */
void before_on_ask(struct ring *ring, struct chord *chord, const struct vnode *from,
                   const struct message *question, struct message *answer);

#endif
