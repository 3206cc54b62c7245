/*
 * holders - what this node is responsible for, told to the application; who else holds a key: ring_holders()
 * and ring_held_arc() of ring.h.
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
 * (before.h).
 */
#ifndef MNEMON_PROTOCOL_RING_HOLDERS_H
#define MNEMON_PROTOCOL_RING_HOLDERS_H

#include "protocol/ring/ring.h"

/* Notices of what has changed in this step: RING_ARC, RING_HELD, RING_GONE, RING_MEMBER. */
void holders_announce(struct ring *ring);

#endif
