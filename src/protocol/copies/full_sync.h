/*
 * full_sync - a member that keeps everything goes round the ring, arc by arc, and compares each with one of
 * its holders.
 *
 *      full_sync_place() ──lookup──> the arc behind it and its holders ──full_sync_choose()──> one of them,
 * another in each round ──comparison──> full_sync_done(): what was missing here is fetched; on to the next
 * arc
 *
 * Arcs of our own are passed over: as their primary we compare them anyhow (protocol/copies/copy_plan.h). A
 * holder that does not answer is passed over for the next one of the same arc; if none answers, the tour
 * goes on without the arc. A round in which everybody answered and nothing was missing is *whole*.
 *
 * The stops of a round are spread over the interval. Only after one in which much was missing, or somebody
 * silent, the next one is hurried: it begins after a second, later and later while nothing comes. So nobody
 * a node that lies about what it has holds it up, and how much is fetched at a time is the caller's to bound:
 * what was left out is found missing in the next round.
 *
 * Pure, and of one size for every ring: only the position is kept. Not for several threads at once.
 */
#ifndef MNEMON_PROTOCOL_COPIES_FULL_SYNC_H
#define MNEMON_PROTOCOL_COPIES_FULL_SYNC_H

#include "base/err.h"
#include "base/prng.h"
#include "protocol/ring/ring_id.h"

/* 0 stands for the default in parentheses. */
struct full_sync_config {
    uint64_t interval_us; /* (5 min) */
    uint64_t seed;        /* of the jitter */
};

/* The counts of a round. */
struct full_sync_count {
    uint64_t stops_count;   /* arcs of others */
    uint64_t missing_count; /* keys that were found missing here */
    uint64_t silent_count;  /* arcs of which no holder answered */
    uint64_t held_count;    /* keys that were here at its last stop */
    uint64_t deaf_count;    /* arcs of which we are not told what is new */
};

struct full_sync {
    struct full_sync_config config;
    struct prng prng;
    struct ring_id position;    /* looked at in this round: from zero up to it; the last place: nothing yet */
    uint32_t tries_count;       /* holders of the arc behind it that did not answer */
    uint32_t idle_count;        /* hurried rounds in a row that brought nothing */
    uint64_t stop_us;           /* when the next stop is due */
    uint64_t began_us;          /* this round */
    struct full_sync_count now; /* this round */
    struct full_sync_count last; /* the one before it */
    uint64_t rounds_count;       /* that have ended */
    bool is_hurried;             /* this one is */
    bool is_whole;               /* the last one was, and nothing is known to be missing since */
    uint64_t whole_until_us;     /* for how long that counts */
};

void full_sync_init(struct full_sync *full_sync, const struct full_sync_config *config, uint64_t now_us);

/* When the next stop is due, and the first place of its arc. */
uint64_t full_sync_wake_at(const struct full_sync *full_sync);
struct ring_id full_sync_place(const struct full_sync *full_sync);

/* What a lookup of that place said. */
struct full_sync_arc {
    struct ring_id to; /* the owner's place */
    size_t count;      /* of holders, the primary first */
    int self_rank;     /* our own position among them; -1: none */
};

struct full_sync_stop {
    struct ring_id from; /* compare (from, to] … */
    struct ring_id to;
    size_t index; /* … with this one of the holders */
    bool is_last; /* of the round */
    size_t others_count;
};

/* False: nothing to be compared, the arc is our own; it was passed over. */
bool full_sync_choose(struct full_sync *full_sync, const struct full_sync_arc *arc, uint64_t now_us,
                      struct full_sync_stop *ret_stop);

struct full_sync_outcome {
    enum err err; /* any but ERR_OK: it did not answer, or not as one should */
    uint64_t missing_count;
    uint64_t held_count; /* keys that are here now */
    bool is_deaf;        /* the primary does not tell us what is new */
};

void full_sync_done(struct full_sync *full_sync, const struct full_sync_stop *stop,
                    const struct full_sync_outcome *outcome, uint64_t now_us);

/* There is no arc: nobody could say who holds the place, or there is no room for anything. */
void full_sync_postpone(struct full_sync *full_sync, uint64_t now_us);

/* Something that others have did not come: it is not all here, until a round says so again. */
void full_sync_doubt(struct full_sync *full_sync);

/* Was everything here, as far as anybody could know, a short while ago? And is what is new told at once? */
bool full_sync_is_whole(const struct full_sync *full_sync, uint64_t now_us);
bool full_sync_is_current(const struct full_sync *full_sync, uint64_t now_us);

#endif
