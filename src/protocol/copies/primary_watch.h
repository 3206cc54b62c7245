/*
 * primary_watch - is the primary of the arc before ours to be relied on, and who sees to it if not?
 *
 *      ── (p, q] ── Q ── (q, self] ── we ── the nodes that follow us
 *
 * A primary sees to the copies of its arc (protocol/copies/copy_plan.h), and nobody to the primary: one that
 * only claims to hold, gives what is false or never compares would leave all of its arc to chance. So every
 * node watches the one before each of its places. It challenges it now and then with a key of its arc, hears
 * of what it gave that was false, and knows when it last compared with it. One that was found out fails until
 * it has shown, some time later, that it holds what it should; one that has not compared for long fails until
 * it does.
 *
 * If it fails, its arc is ours too, for the copies of this node: its copies are then our own and those of
 * the nodes that follow us, as many as if it were not in the ring. For everybody else it stays what it is.
 * If several in a row fail, the caller goes on to the one before (primary_watch_set() with all of them).
 *
 * Pure, of one size. What does not fit is not watched. Not for several threads at once. No table of standing
 * (base/standing.h): an entry is an arc, and being found out ends by a proof and not by time alone.
 */
#ifndef MNEMON_PROTOCOL_COPIES_PRIMARY_WATCH_H
#define MNEMON_PROTOCOL_COPIES_PRIMARY_WATCH_H

#include "base/err.h"
#include "base/peer.h"
#include "base/prng.h"
#include "protocol/ring/ring_id.h"

enum { PRIMARY_WATCH_WATCHED_MAX = 64 };

/* 0 stands for the default in parentheses. */
struct primary_watch_config {
    uint64_t challenge_interval_us; /* (10 min) */
    uint64_t silence_us;            /* (2 h) without a comparison */
    uint64_t bar_us;                /* (30 min) before one that was found out may show that it is better */
    uint64_t seed;                  /* of the jitter */
};

/* Somebody else's, before ours. */
struct primary_watch_arc {
    struct peer primary;
    struct ring_id from;
    struct ring_id to;
};

struct primary_watch_watched {
    struct primary_watch_arc arc;
    uint64_t heard_us;     /* when it last compared with us, or came to be watched */
    uint64_t challenge_us; /* when next */
    uint64_t barred_until_us;
    uint32_t lost_count; /* challenges in a row to which it said that it does not have it */
    bool is_false;
};

struct primary_watch {
    struct primary_watch_config config;
    struct prng prng;
    struct primary_watch_watched watched[PRIMARY_WATCH_WATCHED_MAX];
    size_t count;
};

void primary_watch_init(struct primary_watch *primary_watch, const struct primary_watch_config *config);

/* All that are to be watched from now on; of those that were already, what is known stays. */
void primary_watch_set(struct primary_watch *primary_watch, const struct primary_watch_arc *arcs,
                       size_t count, uint64_t now_us);

/* It compared with us. */
void primary_watch_hear(struct primary_watch *primary_watch, const struct peer *peer, uint64_t now_us);

/* It gave something false, whatever it was. */
void primary_watch_accuse(struct primary_watch *primary_watch, const struct peer *peer, uint64_t now_us);

/* Challenge the primary of this arc. False: nobody now. */
bool primary_watch_next(struct primary_watch *primary_watch, uint64_t now_us,
                        struct primary_watch_arc *ret_arc);

/*
 * How it went. ERR_MISMATCH: it cannot prove it. ERR_NOT_FOUND, ERR_CORRUPT: it says that it does not have
 * it, which may be new; after some in a row it is the same. ERR_OK: it has it, or we had nothing to ask for.
 * Else: no answer.
 */
void primary_watch_done(struct primary_watch *primary_watch, const struct peer *peer, enum err err,
                        uint64_t now_us);

bool primary_watch_fails(const struct primary_watch *primary_watch, const struct peer *peer, uint64_t now_us);

/* One bit for each that is watched, in the order of primary_watch_set(): which of them fail now. */
uint64_t primary_watch_failing(const struct primary_watch *primary_watch, uint64_t now_us);

#endif
