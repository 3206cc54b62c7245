/*
 * ring_id - places on the ring: numbers of 128 bits, the first of a SHA-256, counted in a circle.
 *
 * A node's places come from its address and a virtual index (0 to 31), so that nobody chooses one; of an IPv6
 * address only the /64 counts, and ports never do: many nodes behind one address share its places. A key's
 * place comes from what it names (a URL in canonical form, a host).
 */
#ifndef MNEMON_PROTOCOL_RING_RING_ID_H
#define MNEMON_PROTOCOL_RING_RING_ID_H

#include "base/address.h"
#include "base/bytes.h"
#include "base/sha256.h"

enum { RING_ID_SIZE = 16, RING_VIRTUAL_MAX = 32 };

struct ring_id {
    uint64_t high;
    uint64_t low;
};

struct ring_id ring_id_of_node(struct sha256 *sha256, const struct address *address, uint8_t virtual_index);
struct ring_id ring_id_of_key(struct sha256 *sha256, struct bytes key);

/* As 16 bytes, the most significant first: how places lie on the wire and in keys of captures. */
struct ring_id ring_id_read(const uint8_t bytes[RING_ID_SIZE]);
void ring_id_write(struct ring_id id, uint8_t out[RING_ID_SIZE]);

static inline bool ring_id_equal(struct ring_id a, struct ring_id b) {
    return a.high == b.high && a.low == b.low;
}

/* -1, 0, 1, as numbers. */
static inline int ring_id_compare(struct ring_id a, struct ring_id b) {
    if (a.high != b.high) {
        return a.high < b.high ? -1 : 1;
    }
    return a.low == b.low ? 0 : a.low < b.low ? -1 : 1;
}

/* b - a, the way from a to b in the direction of the ring. */
static inline struct ring_id ring_id_distance(struct ring_id a, struct ring_id b) {
    return (struct ring_id){b.high - a.high - (b.low < a.low), b.low - a.low};
}

/* a + 2^bit, a + 1 (bit 0) … */
struct ring_id ring_id_add_power(struct ring_id a, unsigned bit);

/* Is x strictly between a and b, in the direction of the ring? Between a and a is everything but a. */
static inline bool ring_id_is_between(struct ring_id a, struct ring_id x, struct ring_id b) {
    struct ring_id way = ring_id_distance(a, x);
    struct ring_id end = ring_id_distance(a, b);
    bool is_start = way.high == 0 && way.low == 0;
    bool is_circle = end.high == 0 && end.low == 0;
    return !is_start && (is_circle || ring_id_compare(way, end) < 0);
}

/* Is x in (a, b]: is b responsible for x if a is its predecessor? (a, a] is everything. */
static inline bool ring_id_is_owned(struct ring_id a, struct ring_id x, struct ring_id b) {
    return ring_id_equal(x, b) || ring_id_is_between(a, x, b);
}

#endif
