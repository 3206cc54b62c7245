/*
 * comparison - one comparison of an arc with another node, turn by turn: which keys does one of the two have
 * and the other not? What is missing here is wanted, what is missing there is offered.
 *
 *      comparison_begin() ──> question ──answer──> comparison_take() ──> another turn, while there is one
 *                                                       │
 *      comparison_outcome() <── all is offered <── comparison_offer() ──wishes──> comparison_take_wishes()
 *
 * Bounded: after so many keys it ends, and says where the next one shall go on. Pure; its memory is given.
 */
#ifndef MNEMON_PROTOCOL_COPIES_COMPARISON_H
#define MNEMON_PROTOCOL_COPIES_COMPARISON_H

#include "protocol/copies/copy_plan.h"
#include "protocol/copies/reconcile.h"

/* What follows from it. Only what is aimed at counts as missing. */
enum comparison_aim { COMPARISON_FETCH = 1, COMPARISON_GIVE = 2, COMPARISON_BOTH = 3 };

enum comparison_want { COMPARISON_COMING, COMPARISON_NO_ROOM, COMPARISON_UNWANTED };

struct comparison {
    /* Given. */
    struct ringkey *haves; /* found_max */
    uint32_t found_max;
    uint8_t *memory; /* of a message */
    uint32_t message_size;
    enum comparison_want (*want)(void *context, const struct ringkey *key, const struct peer *peer);
    void *context;

    /* Of the one that is under way. */
    struct ring_id from;
    struct ring_id to;
    struct peer peer;
    enum comparison_aim aim;
    struct reconcile reconcile;
    struct bytes message; /* the next question; empty: all is known */
    uint32_t haves_count;
    uint32_t offered_count; /* of them */
    uint64_t need_count;
    uint64_t have_count;
    uint64_t coming_count;
    bool is_cut;                     /* there is more than we want to know at once */
    bool is_refused;                 /* there was no room for something, here or there */
    struct reconcile_position first; /* of it */
};

/* (from, to], from the key *rest on if it is not NULL. Errors are the set's. */
enum err comparison_begin(struct comparison *comparison, const struct ringkey_set *set, struct ring_id from,
                          struct ring_id to, const struct ringkey *rest, const struct peer *peer,
                          enum comparison_aim aim) MUST_CHECK;

static inline bool comparison_has_turn(const struct comparison *comparison) {
    return comparison->message.size > 0 && !comparison->is_cut;
}

/* ERR_INVALID, ERR_TRUNCATED, ERR_LIMIT: the other side breaks the rules. */
enum err comparison_take(struct comparison *comparison, struct bytes answer) MUST_CHECK;

/* The next keys to be offered, at most COPIES_KEYS_MAX; 0: none are left. */
size_t comparison_offer(const struct comparison *comparison, const struct ringkey **ret_keys);

/* What the other node said of them (enum copies_wish). */
void comparison_take_wishes(struct comparison *comparison, const uint8_t *wishes, size_t count);

struct copy_plan_outcome comparison_outcome(const struct comparison *comparison, enum err err);

#endif
