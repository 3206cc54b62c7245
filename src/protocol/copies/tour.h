/*
 * tour - a member that keeps everything goes round the ring, arc by arc, and compares each with one of its
 * holders.
 *
 *      tour_place() ──lookup──> the arc behind it and its holders ──tour_choose()──> one of them, another in
 *      each round ──comparison──> tour_done(): what was missing here is fetched; on to the next arc
 *
 * Arcs of our own are passed over: as their primary we compare them anyhow (protocol/copies/copy_plan.h). A
 * holder that does not answer is passed over for the next one of the same arc; where none answers, the tour
 * goes on without the arc. A round in which everybody answered and nothing was missing is *whole*.
 *
 * The stops of a round are spread over the interval. Only after one in which much was missing, or somebody
 * silent, the next one is hurried: it begins after a second, later and later while nothing comes. So nobody
 * who lies about what he has holds it up, and how much is fetched at a time is the caller's to bound: what
 * was left out is found missing in the next round.
 *
 * Pure, and of one size for every ring: only the position is kept. Not for several threads at once.
 */
#ifndef MNEMON_PROTOCOL_COPIES_TOUR_H
#define MNEMON_PROTOCOL_COPIES_TOUR_H

#include "base/err.h"
#include "base/prng.h"
#include "protocol/ring/ring_id.h"

/* 0 stands for the default in parentheses. */
struct tour_config {
    uint64_t interval_us; /* (5 min) */
    uint64_t seed;        /* of the jitter */
};

/* Of a round. */
struct tour_count {
    uint64_t stops_count;   /* arcs of others */
    uint64_t missing_count; /* keys that were found missing here */
    uint64_t silent_count;  /* arcs of which no holder answered */
    uint64_t held_count;    /* keys that were here at its last stop */
    uint64_t deaf_count;    /* arcs of which we are not told what is new */
};

struct tour {
    struct tour_config config;
    struct prng prng;
    struct ring_id position; /* looked at in this round: from zero up to it; the last place: nothing yet */
    uint32_t tries_count;    /* holders of the arc behind it that did not answer */
    uint32_t idle_count;     /* hurried rounds in a row that brought nothing */
    uint64_t stop_us;        /* when the next stop is due */
    uint64_t began_us;       /* this round */
    struct tour_count now;   /* this round */
    struct tour_count last;  /* the one before it */
    uint64_t rounds_count;   /* that have ended */
    bool is_hurried;         /* this one is */
    bool is_whole;           /* the last one was, and nothing is known to be missing since */
    uint64_t whole_until_us; /* for how long that counts */
};

void tour_init(struct tour *tour, const struct tour_config *config, uint64_t now_us);

/* When the next stop is due, and the first place of its arc. */
uint64_t tour_wake_at(const struct tour *tour);
struct ring_id tour_place(const struct tour *tour);

/* What a lookup of that place said. */
struct tour_arc {
    struct ring_id to; /* the owner's place */
    size_t count;      /* of holders, the primary first */
    int self_rank;     /* our own position among them; -1: none */
};

struct tour_stop {
    struct ring_id from; /* compare (from, to] … */
    struct ring_id to;
    size_t index; /* … with this one of the holders */
    bool is_last; /* of the round */
    size_t others_count;
};

/* False: nothing to be compared, the arc is our own; it was passed over. */
bool tour_choose(struct tour *tour, const struct tour_arc *arc, uint64_t now_us, struct tour_stop *ret_stop);

struct tour_outcome {
    enum err err; /* any but ERR_OK: he did not answer, or not as one should */
    uint64_t missing_count;
    uint64_t held_count; /* keys that are here now */
    bool is_deaf;        /* the primary does not tell us what is new */
};

void tour_done(struct tour *tour, const struct tour_stop *stop, const struct tour_outcome *outcome,
               uint64_t now_us);

/* There is no arc: nobody could say who holds the place, or there is no room for anything. */
void tour_postpone(struct tour *tour, uint64_t now_us);

/* Something that others have did not come: it is not all here, until a round says so again. */
void tour_doubt(struct tour *tour);

/* Was everything here, as far as anybody could know, a short while ago? And is what is new told at once? */
bool tour_is_whole(const struct tour *tour, uint64_t now_us);
bool tour_is_current(const struct tour *tour, uint64_t now_us);

#endif
