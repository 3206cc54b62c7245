/*
 * mode - which of small.h and chord.h keeps the lists of a node's places, and the changes between them.
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
#ifndef MNEMON_PROTOCOL_RING_MODE_H
#define MNEMON_PROTOCOL_RING_MODE_H

#include "protocol/ring/message.h"

struct chord;

/* Small: all agree on the table, or one of them has changed. */
void mode_become_chord(struct ring *ring);

/* Small: there is a ring beside ours, and `through` is in it. */
void mode_move(struct ring *ring, const struct vnode *through);

/* A place of ours has got its list from a Chord ring. */
void mode_joined(struct ring *ring, const struct chord *chord);

/* Chord: somebody of a small ring named its nodes, which are all that we know, too. */
void mode_follow_down(struct ring *ring, const struct message *nodes);

/* Chord: change if the list has come round. */
void mode_shrink(struct ring *ring, const struct chord *chord);

/* Chord: all successors are dead. */
void mode_fall_back(struct ring *ring, struct chord *chord);

/* We were away for too long, or another has our place. The ring is joined anew through nodes that we know. */
void mode_rejoin(struct ring *ring);

#endif
