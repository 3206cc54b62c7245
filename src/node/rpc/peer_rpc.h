/*
 * peer_rpc - questions and answers between nodes over encrypted streams, on a thread of its own.
 *
 *      any thread            peer_rpc_ask(peer, service, question) ── waits ──> answer
 *      its own thread        peer_rpc_call(…, done)                           the same without waiting
 *                            services: question ─> handler ─> answer      handlers may wait for the disk
 *
 * One stream per peer (net/stream.h), opened when it is first needed, closed when it was idle for a while, in
 * both directions, whichever side connected. Many questions may be under way on one; each answer names its
 * question. Large things are asked for in pieces (every service that gives bodies takes an offset), so that a
 * broken transfer goes on from where it was and no answer is larger than PEER_RPC_ANSWER_SIZE_MAX.
 *
 * Only members of the ring and of groups are heard (config.admits), each for what they may ask
 * (config.serves). Rates: upload_rate and download_rate bound all streams together. Bounds: questions waiting
 * per peer and in all, bytes of answers queued, streams, time. A peer that breaks the rules of the frames is
 * cut off and blamed.
 *
 * Streams are in TLS (net/channel.h). A node that does not answer to that is asked in the way of programs up
 * to 0.2; on such a stream nothing but the hello is said until it is known that the other side has no TLS. If
 * it has, somebody between the two has kept them from it: the stream is given up and TLS tried again.
 *
 * The first question on a stream is a hello: what its asker speaks; the answer is what the other does. If
 * they have no version in common, nothing else is asked or answered. A node that does not know the question
 * is one of version 1. If this node speaks version 1, too, it does not wait for the answer:
 * docs/protocol/versions.md.
 *
 * What readers ask has a rate of its own (reads_rate): above it they are told ERR_BUSY at once, instead of
 * waiting in a queue that grows. A node that was told so leaves that peer alone for a while
 * (peer_rpc_is_busy()).
 *
 * On the wire, in each stream, after net/frame.h: docs/protocol/ring-services.md, "Questions over streams".
 */
#ifndef MNEMON_NODE_RPC_PEER_RPC_H
#define MNEMON_NODE_RPC_PEER_RPC_H

#include <uv.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/peer.h"
#include "net/identity.h"
#include "node/versions/dialects.h"
#include "replay/admin/ring_view.h"

struct peer_rpc;

enum {
    PEER_RPC_QUESTION_SIZE_MAX = 576 << 10, /* a lease with a robots.txt is the largest */
    PEER_RPC_PIECE_SIZE_MAX = 1 << 20,      /* of a body that is asked for in pieces */
    PEER_RPC_ANSWER_SIZE_MAX = PEER_RPC_PIECE_SIZE_MAX + (64 << 10),
};

/* The values are on the wire. One line each in docs/protocol/ring-services.md. */
enum peer_rpc_service {
    PEER_RPC_PING,    /* answers what it got */
    PEER_RPC_COMPARE, /* keeping: protocol/copies/reconcile.h */
    PEER_RPC_OFFER,   /* copies: keys that the other node should have; answer: which it wants, and of which it
                       * has the body
                       */
    PEER_RPC_CONFIRM, /* copies: does the other node hold these keys? */
    PEER_RPC_PROVE,   /* keeping: a challenge */
    PEER_RPC_CAPTURE, /* keeping, reading: a capture by its key, its body in pieces */
    PEER_RPC_WALK,    /* reading: a page of captures (store/remote/backend_code.h) */
    PEER_RPC_DECREES, /* decrees: what the asker has; answer: what it lacks */
    PEER_RPC_LEND,    /* hosts are borrowed, lent and given back (host_leases_code.h) */
    PEER_RPC_HAND,    /* the crowd: a capture that somebody offers, as PEER_RPC_CAPTURE, or who took it
                         (offers.h) */
    PEER_RPC_PROBE,   /* groups, as the next: random bytes, as many as asked for (group_driver.h) */
    PEER_RPC_MIRROR,  /* groups: pieces of collections (mirror_driver.h) */
    PEER_RPC_FOLLOW,  /* keeping: offer me what is new in your arcs */
    PEER_RPC_ENTRANCE, /* reading: where are your pages for browsers? (public_urls.h) */
    PEER_RPC_IN_FORCE, /* decrees: are these in force at the other node? */
    PEER_RPC_CAPTURES, /* copies: many captures by their keys, as many as fit into an answer */
    PEER_RPC_HELLO,    /* what the two nodes speak (protocol/ring/dialect.h): answered here, asked first */
    PEER_RPC_RELAY,    /* the crowd, for light members: be my relay, search for me (crowd/relay.h) */
    PEER_RPC_RELAYED,  /* and back: have you this? that was found (crowd/relayed.h) */
    PEER_RPC_SEARCH,   /* full text: what this node finds (protocol/search/search_code.h) */
    PEER_RPC_ROLL,     /* the memberships of these keys (protocol/ring/roll.h) */
    PEER_RPC_ACTS,     /* stewards: which acts and charter the asker has; answer: what it lacks */
    PEER_RPC_REPORTS,  /* what nodes say of themselves (node/ring/reports.h) */
    PEER_RPC_SERVICES_COUNT,
};

/*
 * Answer a question: append to *answer, or say an error with a sentence for the asker's log. Runs on the
 * thread of peer_rpc; may wait for the disk, not for another node. The question is borrowed for the call.
 */
typedef enum err peer_rpc_handler(void *context, const struct peer *from, struct bytes question,
                                  struct buf *answer, struct err_detail *detail);

/* A question whose answer comes later: whose it is, and which. */
struct peer_rpc_ticket {
    uint64_t line;
    uint32_t number;
    uint8_t service;
};

/* The answer is borrowed for the call and empty unless err is ERR_OK; on the thread of peer_rpc. */
typedef void peer_rpc_done(void *context, enum err err, struct bytes answer);

/* 0 or NULL stands for the default in parentheses. */
struct peer_rpc_config {
    const struct identity *identity; /* borrowed */
    const struct clock *clock;       /* (clock_system) */
    struct address address;          /* to listen at, TCP */
    bool is_outbound;                /* it listens nowhere and only connects; it then has no address */
    struct address public;           /* (the same) as others reach it */
    const int *held;                 /* (none) a socket bound there already (net/held_port.h), borrowed */
    uint64_t upload_rate;            /* (any) bytes a second, all streams together */
    uint64_t download_rate;          /* (any) */
    uint32_t reads_rate;             /* (any) peer_rpc_begin_read() a second */
    uint32_t streams_max;            /* (256) */
    /* Is the owner of this key a member? Any thread; must not wait. */
    bool (*admits)(void *context, const struct peer *peer);
    /* And may it ask this? The thread of peer_rpc; NULL: every admitted node may. */
    bool (*serves)(void *context, const struct peer *peer, enum peer_rpc_service service);
    /* We are about to connect to the node: it must know us by then. The thread of peer_rpc; may be NULL. */
    void (*meet)(void *context, const struct peer *peer);
    struct dialects *dialects; /* (nobody is told or asked what it speaks, and there is no TLS) borrowed */
    /* There is no version that both speak: likewise. With dialects only. */
    void (*refuse)(void *context, const struct peer *peer, const char *reason);
    /* What the node did is against the rules: for `mnemon ring status`. Any thread. */
    void (*blame)(void *context, const struct peer *peer, const char *sentence);
    void *context;
};

/* ERR_BUSY: the port is taken. Nothing runs yet. */
enum err peer_rpc_new(const struct peer_rpc_config *config, struct peer_rpc **ret_peer_rpc,
                      struct err_detail *detail) MUST_CHECK;

/* The last one before peer_rpc_start() counts. Also while it runs: then once for each service. */
void peer_rpc_serve(struct peer_rpc *peer_rpc, enum peer_rpc_service service, peer_rpc_handler *handler,
                    void *context);

enum err peer_rpc_start(struct peer_rpc *peer_rpc, struct err_detail *detail) MUST_CHECK;

/* Questions that wait end with ERR_CANCELLED, the thread ends. Then peer_rpc_free(). */
void peer_rpc_stop(struct peer_rpc *peer_rpc);
void peer_rpc_free(struct peer_rpc *peer_rpc);

/* ---- any thread but that of peer_rpc ---- */

/*
 * Ask and wait. ERR_TIMEOUT, ERR_UNREACHABLE, ERR_CLOSED, ERR_REFUSED, ERR_BUSY: there was no answer;
 * otherwise the error that the handler there gave. The answer replaces what was in *answer.
 */
enum err peer_rpc_ask(struct peer_rpc *peer_rpc, const struct peer *peer, enum peer_rpc_service service,
                      struct bytes question, uint32_t timeout_ms, struct buf *answer,
                      struct err_detail *detail) MUST_CHECK;

/*
 * The same of several peers: the first two at once, each further one when another failed or after the usual
 * time of answer (base/rtt.h). The first answer that is_good() takes (NULL: any) wins; *ret_index says whose
 * it was. The others are cancelled.
 */
enum err peer_rpc_ask_any(struct peer_rpc *peer_rpc, const struct peer *peers, size_t peers_count,
                          enum peer_rpc_service service, struct bytes question, uint32_t timeout_ms,
                          bool (*is_good)(void *context, size_t index, struct bytes answer), void *context,
                          struct buf *answer, size_t *ret_index, struct err_detail *detail) MUST_CHECK;

/* Run it on the thread of peer_rpc soon; any thread. ERR_CLOSED after peer_rpc_stop(). */
enum err peer_rpc_post(struct peer_rpc *peer_rpc, void (*run)(void *context), void *context) MUST_CHECK;

/* ---- the thread of peer_rpc ---- */

/* done() is called once, never from inside this call. ERR_BUSY: too many wait; ERR_INVALID: our own address.
 */
enum err peer_rpc_call(struct peer_rpc *peer_rpc, const struct peer *peer, enum peer_rpc_service service,
                       struct bytes question, uint32_t timeout_ms, peer_rpc_done *done,
                       void *context) MUST_CHECK;

/*
 * From a handler that cannot answer without keeping the thread: what it returns and appends is not looked at,
 * and the answer is given with the ticket. It must be given, or the asker waits until its time is over.
 */
struct peer_rpc_ticket peer_rpc_defer(struct peer_rpc *peer_rpc);

/* The answer, or an error with a sentence for the asker's log. Nothing happens if the asker has gone. */
void peer_rpc_give(struct peer_rpc *peer_rpc, const struct peer_rpc_ticket *ticket, enum err err,
                   struct bytes answer, const struct err_detail *detail);

/* The same, but only over a stream that is there: of a peer that cannot be reached otherwise. ERR_CLOSED:
 * there is none. */
enum err peer_rpc_call_open(struct peer_rpc *peer_rpc, const struct peer *peer, enum peer_rpc_service service,
                            struct bytes question, uint32_t timeout_ms, peer_rpc_done *done,
                            void *context) MUST_CHECK;

enum peer_rpc_read {
    PEER_RPC_READ_LIST,    /* a listing: whoever gets one may read a capture within the next moment */
    PEER_RPC_READ_CAPTURE, /* the first piece of one */
    PEER_RPC_READ_ON,      /* a further piece: is never refused */
};

/*
 * A handler begins to answer what a reader asks: now, or ERR_BUSY. What goes on with something that was begun
 * is not refused, but counts: a listing without its capture, or half of a capture, would have been in vain.
 */
enum err peer_rpc_begin_read(struct peer_rpc *peer_rpc, const struct peer *from, enum peer_rpc_read read,
                             struct err_detail *detail) MUST_CHECK;

/* ---- any thread ---- */

void peer_rpc_stat(struct peer_rpc *peer_rpc, struct ring_view_rpc *ret_stat);

/* The address at which others reach it; port 0: they do not. */
struct address peer_rpc_address(const struct peer_rpc *peer_rpc);

/* Usual time of answer of that peer in microseconds; 0: not known. */
uint64_t peer_rpc_round_trip_us(struct peer_rpc *peer_rpc, const struct peer *peer);

/*
 * Did the node say ERR_BUSY to PEER_RPC_WALK, PEER_RPC_CAPTURE or PEER_RPC_CAPTURES a moment ago? That counts
 * for 200 ms after the first time, and for up to 2 s if it says nothing else. Questions are sent to it all
 * the same.
 */
bool peer_rpc_is_busy(struct peer_rpc *peer_rpc, const struct peer *peer);

#endif
