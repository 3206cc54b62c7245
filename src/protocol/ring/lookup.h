/*
 * lookup - which node is responsible for a key: asked step by step, three candidates at a time.
 *
 * Candidates come from the table, then from answers. Those before the key are asked nearest first (among
 * those equally near to a factor of two, the quicker one); those at or behind it only if a node that
 * should know says that they follow. Only the responsible place's own word ends a lookup, and not while
 * somebody nearer to the key is still to be asked: so a wrong answer costs time, and a place that is not
 * there is passed over. If the owner has just died and nobody has taken over yet, the first behind it that
 * answers is the answer; but a node that was silent is asked once more before, for it may be the network's
 * fault.
 *
 * A key of which the table holds the owner's own recent word is answered at once.
 */
#ifndef MNEMON_PROTOCOL_RING_LOOKUP_H
#define MNEMON_PROTOCOL_RING_LOOKUP_H

#include "protocol/ring/message.h"

enum { LOOKUP_CANDIDATES_MAX = 32, LOOKUP_FLIGHT_MAX = 3, LOOKUP_ASKED_MAX = 200 };

enum lookup_purpose { LOOKUP_FREE, LOOKUP_USER, LOOKUP_JOIN, LOOKUP_FINGER, LOOKUP_HEAL };
enum lookup_state { CANDIDATE_NEW, CANDIDATE_ASKED, CANDIDATE_DONE };

struct query;

struct lookup_candidate {
    struct vnode vnode;
    uint8_t hops_count; /* until it has answered */
    uint8_t state;
    bool is_behind; /* the key: may be its owner */
    bool has_answered;
    bool is_blocked;  /* silent lately: asked when nobody else is left */
    bool is_repeated; /* was silent, and is asked once more before another takes its place */
};

struct lookup {
    uint8_t purpose;
    uint8_t wanted;
    uint8_t asked_count;
    uint8_t flight_count;
    uint8_t candidates_count;
    uint8_t hops_count;   /* of the owner */
    bool has_owner;       /* so far */
    bool is_known;        /* LOOKUP_HEAL: they have named us ourselves, so theirs is our ring */
    bool is_widened;      /* all that we know ourselves are candidates, not only the best */
    uint32_t owner_index; /* of our place, or of the finger */
    uint32_t detail;      /* LOOKUP_HEAL: 1 if the node that has our place is to keep it */
    uint64_t number;      /* the user's */
    struct ring_id key;
    struct vnode predecessor;          /* of the owner */
    struct vnode found[RING_LIST_MAX]; /* the owner and its successors */
    uint8_t found_count;
    struct lookup_candidate candidates[LOOKUP_CANDIDATES_MAX];
};

/* Ask; false if too many lookups run. With `only` nobody else is asked at first, for other parts of a
 * ring. */
bool lookup_start(struct ring *ring, enum lookup_purpose purpose, uint32_t vnode_index, uint32_t detail,
                  struct ring_id key, uint8_t wanted, const struct vnode *only);

/* RING_FIND. */
void lookup_command(struct ring *ring, uint64_t number, struct ring_id key, uint8_t wanted);

/* NULL for silence. */
void lookup_answered(struct ring *ring, struct lookup *lookup, const struct query *query,
                     const struct message *answer);

#endif
