/*
 * chord - one place of this node on the ring: its predecessor, its successor list, its fingers.
 *
 * P. Zave's corrected Chord (How to make Chord correct, IEEE TSE 2017), operation by operation:
 *
 *   join                        list := all of m's, predecessor := m, for the member m before us
 *   stabilize from successor    dead: drop the head, append padding, notify the new head
 *                               live: list := [s] + first r-1 of s's; then its predecessor, if it is between,
 *                               is asked; otherwise s is notified
 *   stabilize from predecessor  dead: notify the head; live: list := [p] + first r-1 of p's; notify p
 *   rectify                     a node that notifies becomes predecessor if it is between, or if the old one
 * is dead
 *
 * The list always has r entries, the predecessor is never empty, lists are replaced whole from one answer and
 * at most one question is open; while it is, nodes that ask for the state hear *busy*. Padding is an ID
 * directly behind the last entry and has no address: the list stays full without skipping anybody.
 *
 * What is guaranteed (Zave): as long as no failure leaves a member without a live successor and r + 1
 * principals remain (members that no list skips), there is exactly one ordered ring and it becomes ideal.
 * Before a silent head counts as dead, everybody else in the list is pinged, so that several that died
 * together are found silent together. Whoever was silent just now is asked with fewer tries when its turn
 * comes, but it is asked: dropped unasked, one that crashed and came back would be passed over, which breaks
 * the guarantee (ring-invariants, seed 396).
 *
 * A machine with several places fails as several members at once; r should be larger than the number of
 * places of one machine. If all successors are dead in spite of it, the place goes back to small.h with
 * everybody it remembers.
 *
 * Below r + 1 nodes the lists are those of small.h, and nothing here changes them.
 */
#ifndef MNEMON_PROTOCOL_RING_CHORD_H
#define MNEMON_PROTOCOL_RING_CHORD_H

#include "protocol/ring/message.h"

enum { CHORD_FINGERS_MAX = 40 }; /* of distance 2^127 to 2^88: enough for 2^39 places */

struct query;

struct chord {
    struct vnode self;
    struct vnode list[RING_LIST_MAX]; /* r of them */
    struct vnode predecessor;
    struct vnode before[RING_LIST_MAX];        /* before.h: the predecessor's predecessor first */
    struct vnode candidate;                    /* for predecessor, while the old one is asked */
    struct vnode waiting;                      /* notified while another question was open */
    struct ring_id fingers[CHORD_FINGERS_MAX]; /* zero: none; the places are in the table */
    uint64_t finger_spans[CHORD_FINGERS_MAX];  /* from a finger to the last of those it named;
                                                  ring_estimated_size() */
    uint8_t finger_counts[CHORD_FINGERS_MAX];  /* how many; 0: none */
    uint64_t stabilize_at_us;
    uint64_t join_at_us;
    uint64_t finger_at_us;
    uint64_t rounded_at_us;      /* the last round of stabilizing began */
    uint64_t before_at_us;       /* the predecessor is asked for its chain */
    uint64_t before_asked_at_us; /* was asked */
    uint64_t changed_at_us;      /* the list or the predecessor */
    struct ring_id arc_from;     /* as announced */
    struct ring_id held_from;    /* likewise */
    uint8_t finger_next;
    uint8_t before_count;
    bool is_before_whole; /* the chain comes round to us */
    bool is_before_open;  /* it is asked for */
    bool is_held_stale;   /* what held_from follows from has changed */
    bool has_held;        /* announced */
    bool is_member;
    bool is_busy; /* a question is open */
    bool has_waiting;
    bool has_arc;    /* announced */
    bool is_joining; /* a lookup for our own ID, or the question after it, is on its way */
};

void chord_init(struct chord *chord, const struct vnode *self);

/* The list may have changed at our successor: a round soon. */
void chord_hurry(struct ring *ring, struct chord *chord);

/* The chain has changed: the successor hears of it with a notify. */
void chord_tell_successor(struct ring *ring, struct chord *chord);

/* The head of the list does not answer: are the others there? */
void chord_doubt(struct ring *ring, struct chord *chord);

/* What is due. */
void chord_tick(struct ring *ring, struct chord *chord);

/* NULL for silence. */
void chord_answered(struct ring *ring, struct chord *chord, const struct query *query,
                    const struct message *answer);

/* The lookup for our own ID has ended: the owner of the ID and its predecessor, or NULL. */
void chord_join(struct ring *ring, struct chord *chord, const struct vnode *predecessor);

/* A node that does not know us says that it follows us: another ring, or a gap in ours. */
void chord_meet(struct ring *ring, struct chord *chord, const struct vnode *stranger);

void chord_on_ask_state(struct ring *ring, struct chord *chord, struct message *answer);
void chord_on_notify(struct ring *ring, struct chord *chord, const struct vnode *from);

/* The place and those that it named behind itself, count in all. */
void chord_set_finger(struct chord *chord, unsigned finger, const struct vnode *vnodes, unsigned count);

/* Is this place in the list, the predecessor or a finger? */
bool chord_needs(const struct ring *ring, const struct chord *chord, struct ring_id id);

#endif
