/*
 * keyset_sums - the sums of a large sorted set of keys, in buckets of neighbours.
 *
 *      chunks  [ chunk, sum | chunk, sum | … ]          in order
 *      chunk   [ lower, sum | lower, sum | … ]          up to 256 buckets
 *      bucket  the keys from its lower bound up to the next one's: about 48 to 96, which are not here
 *
 * A bucket is divided when it has too many keys, so it does not matter how they are spread: all captures of a
 * large host may share one place. The sum of any run of buckets costs one pass over the sums of the chunks,
 * which is short (800 of them at 10 million keys), and over those of two chunks. 64 bytes a bucket: 1 to
 * 1.5 bytes a key.
 *
 * The first bucket begins with the key of all zeros. One thread.
 */
#ifndef MNEMON_STORE_KEYSET_KEYSET_SUMS_H
#define MNEMON_STORE_KEYSET_KEYSET_SUMS_H

#include "base/ringkey.h"

enum { KEYSET_SUMS_CHUNK_COUNT = 256 };

struct keyset_bucket {
    struct ringkey_sum sum;
    struct ringkey lower;
};

struct keyset_chunk {
    size_t count;
    struct keyset_bucket buckets[KEYSET_SUMS_CHUNK_COUNT];
};

struct keyset_slot {
    struct keyset_chunk *chunk;
    struct ringkey_sum sum;
};

struct keyset_sums {
    struct keyset_slot *slots;
    size_t slots_count;
    size_t slots_capacity;
};

/* Which bucket. */
struct keyset_position {
    size_t slot;
    size_t bucket;
};

/* One bucket, without keys. */
enum err keyset_sums_init(struct keyset_sums *sums) MUST_CHECK;
void keyset_sums_done(struct keyset_sums *sums);

/* The bucket that a key belongs to. */
struct keyset_position keyset_sums_find(const struct keyset_sums *sums, const struct ringkey *key);

/* The bucket that the key of this rank, from 0, is in; the last one if there are not so many. */
struct keyset_position keyset_sums_find_rank(const struct keyset_sums *sums, uint64_t rank);

/* All keys before the bucket. */
struct ringkey_sum keyset_sums_before(const struct keyset_sums *sums, struct keyset_position position);
struct ringkey_sum keyset_sums_all(const struct keyset_sums *sums);

struct keyset_bucket *keyset_sums_bucket(const struct keyset_sums *sums, struct keyset_position position);

/* The bucket after; false at the last one. */
bool keyset_sums_next(const struct keyset_sums *sums, struct keyset_position *position);

void keyset_sums_add(struct keyset_sums *sums, struct keyset_position position,
                     const struct ringkey_sum *sum);
void keyset_sums_subtract(struct keyset_sums *sums, struct keyset_position position,
                          const struct ringkey_sum *sum);

/* Keys of the bucket from lower on, with this sum, become the bucket behind it. */
enum err keyset_sums_divide(struct keyset_sums *sums, struct keyset_position position,
                            const struct ringkey *lower, const struct ringkey_sum *sum) MUST_CHECK;

/* A bucket without keys goes, unless it is the first one. False: it stays. */
bool keyset_sums_drop_empty(struct keyset_sums *sums, struct keyset_position position);

/* Bytes taken. */
size_t keyset_sums_size(const struct keyset_sums *sums);

#endif
