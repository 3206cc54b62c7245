/*
 * query - questions that wait for their answers: repeated by RFC 6298's timer, given up after some tries.
 *
 * An answer counts only with the number of an open question and from the address (and key) that was asked.
 * The answer to a repeated question is taken, however late, but is no measure of the round trip (Karn). Who
 * gives no answer to all tries is silent, which chord.h and small.h take for dead.
 *
 * Against amplification each answer carries a token, a keyed hash of the asker's address, which the asker
 * sends with its next question and has thereby proved its address. Without one, a question is padded, so that
 * no answer is longer than three times the question.
 */
#ifndef MNEMON_PROTOCOL_RING_QUERY_H
#define MNEMON_PROTOCOL_RING_QUERY_H

#include "base/retry.h"
#include "protocol/ring/message.h"

enum {
    QUERY_TRIES_DEAD = 5,
    QUERY_TRIES_LOOKUP = 2,
    QUERY_TRIES_AGAIN =
        2, /* of a node that was silent just now: it may be back, and then must not be passed over */
    QUERY_TRIES_DOUBT = 3, /* with this one chord_doubt() looks after the others */
    QUERY_SILENCES_MAX = 32,
};

enum query_purpose {
    QUERY_SUCCESSOR,   /* stabilize from successor; owner: index of our place */
    QUERY_PREDECESSOR, /* stabilize from predecessor */
    QUERY_RECTIFY,
    QUERY_JOIN,
    QUERY_LOOKUP, /* owner: index of the lookup */
    QUERY_NODES,  /* small.h */
    QUERY_BEFORE, /* before.h; owner: index of our place */
    QUERY_PROBE,  /* likewise: is it there? */
};

struct query {
    uint64_t number;
    struct retry retry;
    struct vnode to;
    struct ring_id key;
    uint64_t digest;
    uint32_t owner;
    uint8_t kind; /* message_kind */
    uint8_t purpose;
    uint8_t from; /* index of our place */
    uint8_t wanted;
    uint8_t tries_max;
};

/* Ask. The caller fills in of *query: purpose, owner, kind, to, from, key, wanted, digest, tries_max. False
 * if too many are open. */
bool query_open(struct ring *ring, const struct query *query);

/* The answer is of no interest any more. */
void query_close(struct ring *ring, enum query_purpose purpose, uint32_t owner);

/* Is this asked of it already? */
bool query_is_open(const struct ring *ring, enum query_purpose purpose, const struct vnode *to);

/* Was it silent to the last of QUERY_TRIES_DEAD questions a short while ago, and has not been heard since? */
bool query_is_silent(const struct ring *ring, const struct vnode *vnode);

/* True if it belonged to a question: its owner has then heard of it. */
bool query_answer(struct ring *ring, const struct event *event, const struct message *message);

/* Repeat or give up what is overdue; wake for the next. */
void query_tick(struct ring *ring);

/* The token that proves this address, and whether a question may be answered with so many bytes. */
uint64_t query_token(const struct ring *ring, const struct address *address);
bool query_may_answer(const struct ring *ring, const struct event *event, uint64_t token, size_t size);

#endif
