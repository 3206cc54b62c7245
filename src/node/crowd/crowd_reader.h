/*
 * crowd_reader - a capture from the crowd: searched for, fetched in pieces from nodes that have it, checked,
 * kept.
 *
 *      wish ─ our own offers ─ crowd_driver_find() ─ hits ─ which capture? ─ holders of it ─ pieces ─ digest
 * and signature ─ offers_put() ─> captured
 *
 * Which capture: the best by the wish's time among those that are vouched for. A capture is vouched for where
 * the node that fetched it, or the one that imported it, has signed that and is trusted (config.trusts: a
 * member of the ring that we know, ourselves), or if the wish names the digest. What is signed by a
 * stranger, or not at all, is taken only where config.takes_any.
 *
 * Pieces: what is above half a MiB goes in pieces of 256 KiB, from up to four holders at once; what one does
 * not give, another does. A holder that gives false bytes is blamed and distrusted, and it is fetched again
 * from others. One that does not have what was found in its name is only passed over: the hit came through
 * others, who may have put the name there. A holder that refers to others (offers.h) adds them; where these
 * do not have it yet, all are asked again a moment later.
 */
#ifndef MNEMON_NODE_CROWD_CROWD_READER_H
#define MNEMON_NODE_CROWD_CROWD_READER_H

#include "node/crowd/crowd_driver.h"
#include "node/crowd/offers.h"

struct crowd_reader;
struct crowd_reader_session; /* of one thread */

/* 0 or NULL stands for the default in parentheses. */
struct crowd_reader_config {
    struct crowd_driver *crowd_driver;
    struct offers *offers;
    struct captures *captures;
    struct peer_rpc *peer_rpc;
    bool takes_any;
    uint64_t size_max; /* (256 MiB) of a payload */
    /* (those of node/crowd/crowd_driver.h, for tests) */
    enum err (*find)(struct crowd_driver *crowd_driver, const struct wish *wish, uint32_t timeout_ms,
                     size_t hits_wanted, struct crowd_driver_hit *out, size_t *ret_count);
    void (*distrust)(struct crowd_driver *crowd_driver, const struct peer *peer);
    bool (*is_distrusted)(struct crowd_driver *crowd_driver, const struct peer *peer);
    bool (*trusts)(void *context, const uint8_t signer[PEER_KEY_SIZE]); /* any thread, must not wait */
    void (*blame)(void *context, const struct peer *peer, const char *sentence);
    void *context;
};

struct crowd_reader *crowd_reader_new(const struct crowd_reader_config *config); /* NULL: out of memory */
void crowd_reader_free(struct crowd_reader *reader);

struct crowd_reader_session *crowd_reader_session_new(struct crowd_reader *reader); /* NULL: out of memory */
void crowd_reader_session_free(struct crowd_reader_session *session);               /* may be NULL */

/* Where it came from, for people. */
struct obtained {
    struct captured captured; /* lasts until the next call of the session */
    struct ringkey key;
    bool is_own;               /* from our own offers */
    bool is_fetch_vouched_for; /* a node that is trusted has fetched it; false: at best imported it */
    uint8_t hops_count;        /* of the search */
    uint8_t holders_count;     /* that gave a part of it */
    struct peer from;          /* the node that gave most of it */
    uint64_t search_us;
    uint64_t transfer_us;
};

/*
 * Search, fetch, check, keep. Waits at most timeout_ms; not on the thread of peer RPC, nor the ring's. surt:
 * of the URL if it is known, else empty (then it is taken from the description). ERR_NOT_FOUND,
 * ERR_TIMEOUT, ERR_MISMATCH: what was given was false; ERR_PERMISSION: nobody trusted vouches for what was
 * found; ERR_BUSY: the holders give to too many others; the errors of crowd_driver_find().
 */
enum err crowd_reader_get(struct crowd_reader_session *session, const struct wish *wish, struct bytes surt,
                          uint32_t timeout_ms, struct obtained *ret_obtained,
                          struct err_detail *detail) MUST_CHECK;

/*
 * Likewise, but without a search: from these holders, or from our own offers. For what they have said that
 * they have.
 */
enum err crowd_reader_take(struct crowd_reader_session *session, const struct wish *wish,
                           const struct crowd_driver_hit *hits, size_t hits_count, uint32_t timeout_ms,
                           struct obtained *ret_obtained, struct err_detail *detail) MUST_CHECK;

/* What it got from others. */
struct crowd_reader_stat {
    uint64_t wanted_count;
    uint64_t own_count;
    uint64_t obtained_count;
    uint64_t obtained_size;
    uint64_t lost_count;
    uint64_t false_count; /* holders that gave something false */
};

void crowd_reader_stat(struct crowd_reader *reader, struct crowd_reader_stat *ret_stat);

#endif
