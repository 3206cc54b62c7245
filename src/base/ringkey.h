/*
 * ringkey - the key of a capture on the ring, sums over sets of them, and the contract of such a set.
 *
 *      place[16]  time[8]  digest[16]       compared as bytes
 *
 * The place is that of the URL on the ring, the time is in microseconds with its top bit inverted,
 * big-endian, so that it sorts, the digest is the start of the SHA-256 of the payload. Equal keys, equal
 * captures (docs/decisions/0011-one-archive-on-the-ring.md).
 *
 * A sum is the count of keys and the sum, modulo 2^128, of the first 16 bytes of the SHA-256 of each, read as
 * a little-endian number. Sums of parts add up to the sum of the whole, so a set can keep them and never
 * scan.
 *
 * The set is a table, so that protocol/copies/reconcile.h compares what store/keyset/keyset.h keeps, and
 * neither knows the other.
 */
#ifndef MNEMON_BASE_RINGKEY_H
#define MNEMON_BASE_RINGKEY_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/sha256.h"

enum {
    RINGKEY_POSITION_SIZE = 16,
    RINGKEY_TIME_SIZE = 8,
    RINGKEY_DIGEST_SIZE = 16,
    RINGKEY_SIZE = RINGKEY_POSITION_SIZE + RINGKEY_TIME_SIZE + RINGKEY_DIGEST_SIZE,
};

struct ringkey {
    uint8_t bytes[RINGKEY_SIZE];
};

/* digest: at least RINGKEY_DIGEST_SIZE bytes. */
struct ringkey ringkey_make(const uint8_t place[RINGKEY_POSITION_SIZE], int64_t time_us,
                            const uint8_t *digest);
int64_t ringkey_time_us(const struct ringkey *key);

static inline const uint8_t *ringkey_digest(const struct ringkey *key) {
    return key->bytes + RINGKEY_POSITION_SIZE + RINGKEY_TIME_SIZE;
}

static inline int ringkey_compare(const struct ringkey *a, const struct ringkey *b) {
    return memcmp(a->bytes, b->bytes, RINGKEY_SIZE);
}

/* The bound with the most zeros at its end that is above a and not above b. a < b. */
struct ringkey ringkey_bound(const struct ringkey *a, const struct ringkey *b);

/* ---- sums ---- */

struct ringkey_sum {
    uint64_t count;
    uint64_t low;
    uint64_t high;
};

/* The sum of one key. */
struct ringkey_sum ringkey_sum_of(struct sha256 *sha256, const struct ringkey *key);
void ringkey_sum_add(struct ringkey_sum *sum, const struct ringkey_sum *other);
void ringkey_sum_subtract(struct ringkey_sum *sum, const struct ringkey_sum *other);

static inline bool ringkey_sum_equal(const struct ringkey_sum *a, const struct ringkey_sum *b) {
    return a->count == b->count && a->low == b->low && a->high == b->high;
}

/* ---- sets ---- */

/* lower <= key < upper; without an upper bound to the end of all keys. Never empty as an interval. */
struct ringkey_range {
    struct ringkey lower;
    struct ringkey upper;
    bool has_upper;
};

/* The errors are the set's own, such as ERR_IO. One thread; the set does not change during a call. */
struct ringkey_set_table {
    /* Must not read the whole range. */
    enum err (*sum)(void *context, const struct ringkey_range *range, struct ringkey_sum *ret_sum);

    /*
     * A bound inside of the range with rank keys before it, or up to slack fewer or more if that is
     * cheaper, but at least one on either side. 0 < rank < count of the range.
     */
    enum err (*cut)(void *context, const struct ringkey_range *range, uint64_t rank, uint64_t slack,
                    struct ringkey *ret_bound);

    /* The first keys of the range, at most count_max. */
    enum err (*list)(void *context, const struct ringkey_range *range, struct ringkey *out, size_t count_max,
                     size_t *ret_count);
};

struct ringkey_set {
    const struct ringkey_set_table *table;
    void *context;
};

#endif
