/*
 * bulk - questions and answers between nodes over encrypted streams, on a thread of its own.
 *
 *      any thread            bulk_ask(peer, service, question) ── waits ──> answer
 *      the bulk thread       bulk_call(…, done)                           the same without waiting
 *                            services: question ─> handler ─> answer      handlers may wait for the disk
 *
 * One stream per peer (net/stream.h), opened when it is first needed, closed when it was idle for a while, in
 * both directions: who connected makes no difference. Many questions may be under way on one; each answer
 * names its question. What is large is asked for in pieces (every service that gives bodies takes an offset),
 * so that a transfer that broke goes on where it was and no answer is larger than BULK_ANSWER_SIZE_MAX.
 *
 * Only members of the ring and of groups are heard (config.admits), each for what they may ask
 * (config.serves). Rates: upload_rate and download_rate bound all streams together. Bounds: questions waiting
 * per peer and in all, bytes of answers queued, streams, time. A peer that breaks the rules of the frames is
 * cut off and blamed.
 *
 * What readers ask has a rate of its own (reads_rate): above it they are told ERR_BUSY at once, instead of
 * waiting in a queue that grows. Who was told so leaves that peer alone for a while (bulk_is_busy()).
 *
 * On the wire, in each stream, after net/frame.h: docs/protocol/together.md, "Questions over streams".
 */
#ifndef MNEMON_NODE_RPC_BULK_H
#define MNEMON_NODE_RPC_BULK_H

#include <uv.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/peer.h"
#include "net/identity.h"

struct bulk;

enum {
    BULK_QUESTION_SIZE_MAX = 576 << 10, /* a lease with a robots.txt is the largest */
    BULK_PIECE_SIZE_MAX = 1 << 20,      /* of a body that is asked for in pieces */
    BULK_ANSWER_SIZE_MAX = BULK_PIECE_SIZE_MAX + (64 << 10),
};

/* The values are on the wire. One line each in docs/protocol/together.md. */
enum bulk_service {
    BULK_PING,    /* answers what it got */
    BULK_COMPARE, /* keeping: protocol/copies/reconcile.h */
    BULK_OFFER, /* keeping: keys that he should have; answer: which he wants, and of which he has the body */
    BULK_CONFIRM,  /* keeping: does he hold these keys? */
    BULK_PROVE,    /* keeping: a challenge */
    BULK_CAPTURE,  /* keeping, reading: a capture by its key, its body in pieces */
    BULK_WALK,     /* reading: a page of captures (store/remote/backend_code.h) */
    BULK_DECREES,  /* decrees: digest of the set, missing ones */
    BULK_LEND,     /* lending: hosts are borrowed, lent and given back (lending_code.h) */
    BULK_HAND,     /* the crowd: a capture that somebody offers, as BULK_CAPTURE, or who took it (offers.h) */
    BULK_PROBE,    /* groups, as the next: random bytes, as many as asked for (group_driver.h) */
    BULK_MIRROR,   /* groups: pieces of collections (mirror_driver.h) */
    BULK_FOLLOW,   /* keeping: offer me what is new in your arcs */
    BULK_ENTRANCE, /* reading: where are your pages for browsers? (entrances.h) */
    BULK_SERVICES_COUNT,
};

/*
 * Answer a question: append to *answer, or say an error with a sentence for the asker's log. Runs on the bulk
 * thread; may wait for the disk, not for another node. The question is borrowed for the call.
 */
typedef enum err bulk_handler(void *context, const struct peer *from, struct bytes question,
                              struct buf *answer, struct err_detail *detail);

/* The answer is borrowed for the call and empty unless err is ERR_OK; on the bulk thread. */
typedef void bulk_done(void *context, enum err err, struct bytes answer);

/* 0 or NULL stands for the default in parentheses. */
struct bulk_config {
    const struct identity *identity; /* borrowed */
    const struct clock *clock;       /* (clock_system) */
    struct address address;          /* to listen at, TCP */
    const int *held;                 /* (none) a socket bound there already (net/held_port.h), borrowed */
    uint64_t upload_rate;            /* (any) bytes a second, all streams together */
    uint64_t download_rate;          /* (any) */
    uint32_t reads_rate;             /* (any) bulk_begin_read() a second */
    uint32_t streams_max;            /* (256) */
    /* Is the owner of this key a member? Any thread; must not wait. */
    bool (*admits)(void *context, const struct peer *peer);
    /* And may he ask this? The bulk thread; NULL: whoever is admitted may. */
    bool (*serves)(void *context, const struct peer *peer, enum bulk_service service);
    /* We are about to connect to him: he must know us by then. The bulk thread; may be NULL. */
    void (*meet)(void *context, const struct peer *peer);
    /* What he did is against the rules: for `mnemon ring status`. Any thread. */
    void (*blame)(void *context, const struct peer *peer, const char *sentence);
    void *context;
};

struct bulk_stat {
    uint64_t questions_count; /* asked by us */
    uint64_t failed_count;    /* of them */
    uint64_t answers_count;   /* given by us */
    uint64_t refused_count;   /* questions of others that were not answered: strangers, bounds */
    uint64_t reads_count;     /* what readers asked and was begun */
    uint64_t shed_count;      /* and what was too much */
    uint64_t sent_size;
    uint64_t received_size;
    uint32_t streams_count;
};

/* ERR_BUSY where the port is taken. Nothing runs yet. */
enum err bulk_new(const struct bulk_config *config, struct bulk **ret_bulk,
                  struct err_detail *detail) MUST_CHECK;

/* The last one before bulk_start() counts. Also while it runs: then once for each service. */
void bulk_serve(struct bulk *bulk, enum bulk_service service, bulk_handler *handler, void *context);

enum err bulk_start(struct bulk *bulk, struct err_detail *detail) MUST_CHECK;

/* Questions that wait end with ERR_CANCELLED, the thread ends. Then bulk_free(). */
void bulk_stop(struct bulk *bulk);
void bulk_free(struct bulk *bulk);

/* ---- any thread but the bulk thread ---- */

/*
 * Ask and wait. ERR_TIMEOUT, ERR_UNREACHABLE, ERR_CLOSED, ERR_REFUSED, ERR_BUSY: there was no answer;
 * otherwise the error that the handler there gave. The answer replaces what was in *answer.
 */
enum err bulk_ask(struct bulk *bulk, const struct peer *peer, enum bulk_service service,
                  struct bytes question, uint32_t timeout_ms, struct buf *answer,
                  struct err_detail *detail) MUST_CHECK;

/*
 * The same of several peers: the first two at once, each further one when another failed or after the usual
 * time of answer (base/rtt.h). The first answer that is_good() takes (NULL: any) wins; *ret_index says whose
 * it was. The others are cancelled.
 */
enum err bulk_ask_any(struct bulk *bulk, const struct peer *peers, size_t peers_count,
                      enum bulk_service service, struct bytes question, uint32_t timeout_ms,
                      bool (*is_good)(void *context, size_t index, struct bytes answer), void *context,
                      struct buf *answer, size_t *ret_index, struct err_detail *detail) MUST_CHECK;

/* Run it on the bulk thread soon; any thread. ERR_CLOSED after bulk_stop(). */
enum err bulk_post(struct bulk *bulk, void (*run)(void *context), void *context) MUST_CHECK;

/* ---- the bulk thread ---- */

/* done() is called once, never from inside this call. ERR_BUSY: too many wait; ERR_INVALID: our own address.
 */
enum err bulk_call(struct bulk *bulk, const struct peer *peer, enum bulk_service service,
                   struct bytes question, uint32_t timeout_ms, bulk_done *done, void *context) MUST_CHECK;

enum bulk_read {
    BULK_READ_LIST,    /* a listing: whoever gets one may read a capture within the next moment */
    BULK_READ_CAPTURE, /* the first piece of one */
    BULK_READ_ON,      /* a further piece: is never refused */
};

/*
 * A handler begins to answer what a reader asks: now, or ERR_BUSY. What goes on with something that was begun
 * is not refused, but counts: a listing without its capture, or half of a capture, would have been in vain.
 */
enum err bulk_begin_read(struct bulk *bulk, const struct peer *from, enum bulk_read read,
                         struct err_detail *detail) MUST_CHECK;

/* For timers. */
uv_loop_t *bulk_loop(struct bulk *bulk);

/* ---- any thread ---- */

void bulk_stat(struct bulk *bulk, struct bulk_stat *ret_stat);

/* Where it listens. */
struct address bulk_address(const struct bulk *bulk);

/* Usual time of answer of that peer in microseconds; 0: not known. */
uint64_t bulk_round_trip_us(struct bulk *bulk, const struct peer *peer);

/*
 * Did he say ERR_BUSY to BULK_WALK or BULK_CAPTURE a moment ago? 200 ms after the first time, up to 2 s where
 * he says nothing else. What he is asked all the same is sent.
 */
bool bulk_is_busy(struct bulk *bulk, const struct peer *peer);

#endif
