/*
 * mirror_state - what is inside struct mirror. One machine in several files, 900 lines in all: mirror.c knows
 * sources and versions, mirror_fetch.c decides which batch comes from which source.
 *
 * Waits and bars are kept with each source and not in base/standing.h: they are of one collection, and a
 * source has several clocks of its own (asked, looked at, told, fetched from).
 */
#ifndef MNEMON_PROTOCOL_MIRROR_MIRROR_STATE_H
#define MNEMON_PROTOCOL_MIRROR_MIRROR_STATE_H

#include "base/prng.h"
#include "base/retry.h"
#include "base/step.h"
#include "protocol/mirror/mirror.h"

enum { MIRROR_BAD_MAX = 4 };
static const uint64_t MIRROR_OFFERS_ALL = UINT64_MAX;

struct mirror_neighbour {
    struct mirror_source source;
    bool is_listed;    /* only while the list is made anew */
    bool has_version;  /* it told us that it has this one */
    bool lacks_target; /* it said so, whatever it told before */
    struct version version;

    uint64_t rate; /* bytes a second, as fetching found it; 0: not yet */
    uint64_t fetched_size;
    uint64_t batch; /* that is open with it; 0: none */
    uint64_t started_us;
    uint64_t expected_us;
    uint64_t cancelled; /* a batch that it need not go on with, to be said; 0: none */

    uint64_t offered_size; /* MIRROR_OFFERS_ALL: not said yet */
    uint64_t withheld_size;
    bool is_part; /* it is getting the rest itself */
    bool is_looked_at;
    struct retry look; /* tries: in a row without anything coming of it */

    uint64_t barred_until_us;
    struct retry fetch; /* tries: batches in a row that failed */
    struct retry ask;   /* tries: in a row without an answer */

    bool is_told; /* of what we hold */
    struct retry tell;
};

/* It waits for a source if no neighbour has it open. */
struct mirror_batch {
    uint64_t number;
    uint64_t size;
    bool is_needed; /* of what was withheld */
};

struct mirror {
    struct mirror_config config; /* complete; held and name as below */
    struct prng prng;
    enum mirror_phase phase;
    bool has_held;
    struct version held;
    struct version target;              /* while fetching and applying */
    struct version bad[MIRROR_BAD_MAX]; /* the last ones that could not be used */
    size_t bad_count;                   /* ever */
    uint64_t gather_until_us;
    uint32_t unapplied_count; /* in a row */

    struct mirror_neighbour *neighbours;
    size_t neighbours_count;

    struct mirror_batch *batches;
    size_t batches_count;
    uint64_t batch_number; /* the last one */
    uint64_t wanted_size;
    bool is_all_wanted;
    bool is_shared; /* the target: others are told of it before it is held */
    bool is_in_need;
    uint64_t progress_us; /* when something came last, or the version began */

    struct mirror_counters counters;
};

static inline bool mirror_is_barred(const struct mirror_neighbour *neighbour, uint64_t now_us) {
    return now_us < neighbour->barred_until_us;
}

/* mirror.c */
struct mirror_neighbour *mirror_find(const struct mirror *mirror, const uint8_t key[PEER_KEY_SIZE]);
void mirror_bar(struct mirror *mirror, struct mirror_neighbour *neighbour, uint64_t now_us);
uint64_t mirror_backoff_us(struct mirror *mirror, uint32_t failed_count);

/* mirror_fetch.c */
size_t mirror_candidates(const struct mirror *mirror, uint64_t now_us);
struct mirror_neighbour *mirror_best(const struct mirror *mirror, uint64_t now_us); /* NULL: no candidate */
void mirror_drop_batches(struct mirror *mirror);
void mirror_forget_offers(struct mirror *mirror, uint64_t now_us);
bool mirror_next_look(struct mirror *mirror, uint64_t now_us, struct mirror_task *ret_task);
bool mirror_next_fetch(struct mirror *mirror, uint64_t now_us, struct mirror_task *ret_task);
uint64_t mirror_fetch_wake_at(struct mirror *mirror, uint64_t now_us);

#endif
