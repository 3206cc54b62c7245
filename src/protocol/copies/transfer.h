/*
 * transfer - which captures a node fetches next, from whom, and how many at once.
 *
 *      transfer_want() ──> waiting, a queue per giver and lane ──transfer_next()──> a question for many keys
 *                             ^                                                        │
 *                             └──── wanted still ──── transfer_settle(), each key <────┤
 *                                                     transfer_answered(), the line <──┘
 *
 * Many questions are under way with each giver, as many as its *window* has room for. The window follows the
 * line: it grows by what has come as long as answers take little more than the shortest time that one took,
 * which is measured again now and then with nothing else under way, and shrinks when they begin to queue. So
 * a long line is filled, and a narrow one is not flooded: what readers ask waits behind half a second of
 * copies at most. Each question asks for a quarter of the window.
 *
 * Givers take turns, so a slow or silent one delays nobody else's copies. Of one giver, what our own arcs
 * lack comes before what others offer, as protocol/copies/transfer_order.h has it. Captures that are too
 * large to come with others are asked for alone, in pieces; so is everything that a giver of an earlier
 * version has, which knows no questions for many. Of captures with equal payloads one is fetched first; the
 * others follow when it is here, without the payload.
 *
 * A giver that is silent is left alone for a while, longer each time. A key that it does not give is asked
 * for a few times; then it is given up, and a comparison finds it again (protocol/copies/copy_plan.h).
 *
 * Pure: no clock, no I/O, no memory but what transfer_init() was given. Not for several threads at once.
 */
#ifndef MNEMON_PROTOCOL_COPIES_TRANSFER_H
#define MNEMON_PROTOCOL_COPIES_TRANSFER_H

#include "base/peer.h"
#include "base/ringkey.h"
#include "protocol/copies/transfer_order.h"

struct transfer;

enum {
    TRANSFER_KEYS_MAX = 64,         /* of one question */
    TRANSFER_ANSWER_MIN = 16 << 10, /* bytes that a question asks for */
    TRANSFER_ANSWER_MAX = 512 << 10,
    TRANSFER_WINDOW_MIN = 4 * TRANSFER_ANSWER_MIN,
    TRANSFER_WINDOW_MAX = 8 << 20,
};

/* 0 stands for the default in parentheses. */
struct transfer_config {
    uint32_t wanted_max;    /* (32,768) keys, of each lane half of them */
    uint32_t givers_max;    /* (64) at a time */
    uint32_t questions_max; /* (64) under way in all, those for one key not counted */
    uint32_t alone_max;     /* (3) questions for one key under way in all */
    bool has_slow_lines;    /* one giver at a time */
    uint64_t seed;          /* of the table of keys */
};

size_t transfer_size(const struct transfer_config *config);
struct transfer *transfer_init(void *memory, const struct transfer_config *config);

/* This key is missing here and the peer has it. Once of each giver, however often it is said. False: no room.
 */
bool transfer_want(struct transfer *transfer, enum transfer_order_lane lane, const struct ringkey *key,
                   const struct peer *giver);

/* ---- what to do ---- */

struct transfer_question {
    uint32_t id;
    struct peer giver;
    bool is_alone;     /* one key, in pieces if need be */
    uint32_t size_max; /* of the answer, about */
    uint32_t count;
    uint32_t items[TRANSFER_KEYS_MAX]; /* for transfer_settle(): below wanted_max */
    struct ringkey keys[TRANSFER_KEYS_MAX];
    bool is_about[TRANSFER_KEYS_MAX]; /* its payload is here: the description is enough */
};

/* What is here already. May read the disk; must not call back. */
struct transfer_set {
    bool (*has_key)(void *context, const struct ringkey *key);
    bool (*has_payload)(void *context, const struct ringkey *key);
    void *context;
};

/* False: nothing now; look again at transfer_wake_at(), or when something was answered or settled. */
bool transfer_next(struct transfer *transfer, const struct transfer_set *set, uint64_t now_us,
                   struct transfer_question *ret_question);
uint64_t transfer_wake_at(const struct transfer *transfer, uint64_t now_us);

/* ---- how it went ---- */

enum transfer_line {
    TRANSFER_CAME,        /* an answer of so many bytes */
    TRANSFER_SILENT,      /* none */
    TRANSFER_BUSY,        /* it gives to others now */
    TRANSFER_UNSUPPORTED, /* it knows no questions for many keys */
};

/* The question is over: its line is free again. Its items are settled one by one, before or after. */
void transfer_answered(struct transfer *transfer, uint32_t id, enum transfer_line line, uint64_t size,
                       uint64_t now_us);

enum transfer_outcome {
    TRANSFER_STORED,      /* it is durable here, or was here already */
    TRANSFER_LATER,       /* the answer was full: at once again */
    TRANSFER_TOO_LARGE,   /* alone */
    TRANSFER_ABSENT,      /* it has not got it yet: again a few times, later */
    TRANSFER_NOT_GIVEN,   /* no answer, or it was busy: likewise */
    TRANSFER_NO_ORIGINAL, /* its payload is not here after all: again a few times, with it */
    TRANSFER_FAILED,      /* what was given is false, or our disk fails: no more */
};

/* False: it is given up; a comparison must find it. */
bool transfer_settle(struct transfer *transfer, uint32_t item, enum transfer_outcome outcome,
                     uint64_t now_us);

/* ---- what people and the node's other parts want to know ---- */

/* The key of an item that is not settled, and the node that has it. */
const struct ringkey *transfer_key(const struct transfer *transfer, uint32_t item);
const struct peer *transfer_giver(const struct transfer *transfer, uint32_t item);

struct transfer_status {
    uint32_t wanted_count;    /* in all, with those under way */
    uint32_t waiting_count;   /* of these, not asked for yet */
    uint32_t questions_count; /* under way */
};
struct transfer_status transfer_status(const struct transfer *transfer);

/* All keys that are wanted; one of several givers as often. */
typedef void transfer_visit(void *context, const struct ringkey *key);
void transfer_each(const struct transfer *transfer, transfer_visit *visit, void *context);

/* Is a key of that place wanted? True of few places of which none is. */
bool transfer_may_want(const struct transfer *transfer, const uint8_t place[RINGKEY_POSITION_SIZE]);

/* Bytes that may be under way with that giver; 0: it is not known. */
uint32_t transfer_window(const struct transfer *transfer, const struct peer *giver);

/* Invariants; for tests and simulations. */
bool transfer_check(const struct transfer *transfer);

#endif
