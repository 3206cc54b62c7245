/*
 * reconcile - which keys of an arc have two nodes not in common? Range-based set reconciliation.
 *
 *      asker                                   answerer
 *      the sum of my arc is s     ──────>      mine is another: here are the sums of 16 parts
 *      parts 3 and 9 differ:      <──────
 *      16 parts of each …         ──────>      … of these two, here are all keys
 *      (asker knows)              <──────
 *
 * Whoever receives a message compares each range with its own set and answers about those that differ: with
 * the sums of 16 parts of it, or below 32 keys with the keys themselves. Equal sets cost one question and an
 * answer of one byte; n differences about n · log16(keys) · 16 sums. The answerer keeps nothing between
 * messages. The asker learns the difference in both directions: keys that it needs and keys that the other
 * one needs. The sets may change meanwhile; what is reported was true when it was looked at.
 *
 * Messages have a maximum size. A node that cannot say all answers for the first part of the arc and gives
 * one sum for the rest, which is then compared in the next round; so does one that has found many keys at
 * once.
 *
 * What the other side claims is not proof: it may lie about its own set, and then the keys reported do not
 * exist or are missing. It cannot make anybody work without end: an asker gives up after some rounds without
 * progress.
 *
 * Pure: no memory is taken, sums come from the set (base/ringkey.h). Specified, with vectors, in
 * docs/protocol/copies.md.
 */
#ifndef MNEMON_PROTOCOL_COPIES_RECONCILE_H
#define MNEMON_PROTOCOL_COPIES_RECONCILE_H

#include "protocol/copies/reconcile_arc.h"
#include "protocol/copies/reconcile_message.h"

enum {
    RECONCILE_PARTS_COUNT = 16,
    RECONCILE_LIST_BELOW = 32,         /* keys: fewer are listed instead of split */
    RECONCILE_MESSAGE_SIZE_MIN = 4096, /* of the room for one */
    RECONCILE_FOUND_MAX = 4096,        /* keys reported from one answer */
    RECONCILE_IDLE_ROUNDS_MAX = 40,    /* splitting 2^48 keys takes 12 on either side */
};

/* Called while an answer is taken. The key is borrowed for the call. */
struct reconcile_report {
    void (*need)(void *context, const struct ringkey *key); /* the other side has it, we do not */
    void (*have)(void *context, const struct ringkey *key); /* we have it, the other side does not */
    void *context;
};

/* The asker's side. */
struct reconcile {
    struct reconcile_arc arc;
    struct ringkey_set set;
    struct reconcile_report report;
    struct reconcile_position settled; /* everything before it is known */
    uint32_t idle_rounds_count;        /* since that moved */
};

void reconcile_init(struct reconcile *reconcile, const struct reconcile_arc *arc,
                    const struct ringkey_set *set, const struct reconcile_report *report);

/* Before the first question: leave out what is before this key. One outside of the arc changes nothing. */
void reconcile_skip_to(struct reconcile *reconcile, const struct ringkey *key);

/* The first question. memory has room for size_max bytes, RECONCILE_MESSAGE_SIZE_MIN to …_MAX. */
enum err reconcile_ask(struct reconcile *reconcile, void *memory, size_t size_max, struct bytes *ret_question,
                       struct err_detail *detail) MUST_CHECK;

/*
 * Take the answer in, report what it shows, and say the next question; an empty one: all is known.
 * ERR_INVALID, ERR_TRUNCATED, ERR_LIMIT: the other side is at fault, detail says how; errors of the set
 * otherwise. What was reported before an error stands.
 */
enum err reconcile_take(struct reconcile *reconcile, struct bytes answer, void *memory, size_t size_max,
                        struct bytes *ret_question, struct err_detail *detail) MUST_CHECK;

/* The answerer's side, all of it. Errors as above. */
enum err reconcile_answer(const struct reconcile_arc *arc, const struct ringkey_set *set,
                          struct bytes question, void *memory, size_t size_max, struct bytes *ret_answer,
                          struct err_detail *detail) MUST_CHECK;

#endif
