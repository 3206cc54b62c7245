/*
 * rpc - questions and answers over datagrams: asked again when lost, not faster than the path bears.
 *
 *      rpc_call ── waits for its turn ── sent ── answer: done(ERR_OK)
 *                        ▲                 │── silence: sent again, each time after twice as long; the last
 *                        └── window ───────┘   time done(ERR_TIMEOUT)
 *
 * Time-outs come from the round trips measured with each destination (base/rtt.h, Karn's rule). How many
 * questions are under way to a destination is bounded by a window that grows by one a round trip and is
 * halved when one is lost (AIMD), and by in_flight_max for all together. An answer counts where the number is
 * known and it comes from whom was asked; a late one is dropped.
 *
 * A question may arrive more than once: what it asks for must be such that this does no harm. On the wire:
 * 0 for a question or 1 for an answer (1 byte), number (8), contents. The socket belongs to somebody else,
 * who hands over what comes as DATAGRAM_RPC by rpc_take(). All functions belong to the loop's thread.
 */
#ifndef MNEMON_NET_RPC_H
#define MNEMON_NET_RPC_H

#include "net/datagram.h"

enum {
    RPC_HEAD_SIZE = 9,
    RPC_CONTENTS_SIZE_MAX = DATAGRAM_PAYLOAD_SIZE_MAX - RPC_HEAD_SIZE,
    RPC_WINDOW_FIRST = 4,
    RPC_WINDOW_MAX = 64,
};

struct rpc;

/* What is on the wire. */
struct rpc_message {
    bool is_answer;
    uint64_t number;
    struct bytes contents;
};

/* Writes RPC_HEAD_SIZE + contents.size bytes and returns them. */
struct bytes rpc_write(const struct rpc_message *message, uint8_t out[DATAGRAM_PAYLOAD_SIZE_MAX]);

/* False where it is none; the contents borrow the input. */
bool rpc_read(struct bytes input, struct rpc_message *ret_message);

/* Whom an answer goes to. */
struct rpc_ticket {
    struct peer peer;
    uint64_t number;
};

/* The answer is borrowed for the call, and empty unless err is ERR_OK. */
typedef void rpc_done(void *context, enum err err, struct bytes answer);

/* 0 stands for the default in parentheses. */
struct rpc_config {
    uv_loop_t *loop;
    const struct clock *clock; /* (clock_system) */
    struct datagram *datagram; /* borrowed until rpc_free() */
    uint32_t calls_max;        /* (1,024) waiting and under way */
    uint32_t in_flight_max;    /* (256) */
    uint32_t tries_max;        /* (4) */
    /* Answer with rpc_answer(), now or later, or not at all. NULL: we answer nothing. */
    void (*on_request)(void *context, const struct rpc_ticket *ticket, struct bytes request);
    void *context;
};

struct rpc_stats {
    uint64_t calls;
    uint64_t answered;
    uint64_t timeouts;  /* calls without an answer after all tries */
    uint64_t repeated;  /* questions sent again */
    uint64_t late;      /* answers that nobody waits for */
    uint64_t malformed; /* no question, no answer */
};

enum err rpc_new(const struct rpc_config *config, struct rpc **ret_rpc) MUST_CHECK;

/* Calls end with ERR_CANCELLED. The memory goes when the loop has run once more. Not from inside a callback.
 */
void rpc_free(struct rpc *rpc);

/*
 * Ask. ERR_BUSY: calls_max is reached. ERR_INVALID: the peer cannot be asked (see datagram_send()). Otherwise
 * done() is called once, from the loop and never from inside this call, unless the call is cancelled.
 */
enum err rpc_call(struct rpc *rpc, const struct peer *peer, struct bytes request, rpc_done *done,
                  void *context, uint64_t *ret_number) MUST_CHECK;

/* done() will not be called. Nothing happens where the call is over. */
void rpc_cancel(struct rpc *rpc, uint64_t number);

/* It may be lost: who asked asks again. */
void rpc_answer(struct rpc *rpc, const struct rpc_ticket *ticket, struct bytes answer);

/* A message of kind DATAGRAM_RPC came. */
void rpc_take(struct rpc *rpc, const struct datagram_message *message);

const struct rpc_stats *rpc_stats(const struct rpc *rpc);

#endif
