/*
 * reconcile_arc - an arc of the ring laid out straight: positions, and a set of keys as seen along it.
 *
 *      arc (from, to]     from < to:  from+1 ……………… to             all positions begin with 0
 *                         else:       from+1 …… ff|00 …… to        behind the zero of the ring with 1
 *      from == to:        the whole ring, beginning behind from
 *
 * A position is a key with one byte in front, which counts how often the zero of the ring was passed.
 * Positions compare as bytes, so whoever uses them need not think of wrapping. Pure.
 */
#ifndef MNEMON_PROTOCOL_COPIES_RECONCILE_ARC_H
#define MNEMON_PROTOCOL_COPIES_RECONCILE_ARC_H

#include "base/ringkey.h"

struct reconcile_arc {
    uint8_t from[RINGKEY_POSITION_SIZE]; /* not included */
    uint8_t to[RINGKEY_POSITION_SIZE];   /* included */
};

enum { RECONCILE_POSITION_SIZE = 1 + RINGKEY_SIZE };

struct reconcile_position {
    uint8_t bytes[RECONCILE_POSITION_SIZE];
};

/* Positions from start to, not including, end. */
struct reconcile_position reconcile_arc_start(const struct reconcile_arc *arc);
struct reconcile_position reconcile_arc_end(const struct reconcile_arc *arc);

/* Where a key, or a bound between keys, lies. Outside of the arc if it is before start or not before end.
 */
struct reconcile_position reconcile_arc_position(const struct reconcile_arc *arc, const struct ringkey *key);

/* The next one. */
struct reconcile_position reconcile_arc_behind(struct reconcile_position position);

/* The key, or bound between keys, that lies there. */
struct ringkey reconcile_position_key(const struct reconcile_position *position);

static inline int reconcile_position_compare(const struct reconcile_position *a,
                                             const struct reconcile_position *b) {
    return memcmp(a->bytes, b->bytes, RECONCILE_POSITION_SIZE);
}

/* ---- the table of a set, between positions; lower < upper ---- */

enum err reconcile_arc_sum(const struct ringkey_set *set, const struct reconcile_position *lower,
                           const struct reconcile_position *upper, struct ringkey_sum *ret_sum) MUST_CHECK;

/* 0 < rank < count of keys between lower and upper. */
enum err reconcile_arc_cut(const struct ringkey_set *set, const struct reconcile_position *lower,
                           const struct reconcile_position *upper, uint64_t rank, uint64_t slack,
                           struct reconcile_position *ret_bound) MUST_CHECK;
enum err reconcile_arc_list(const struct ringkey_set *set, const struct reconcile_position *lower,
                            const struct reconcile_position *upper, struct ringkey *out, size_t count_max,
                            size_t *ret_count) MUST_CHECK;

#endif
