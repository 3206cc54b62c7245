/*
 * map - a hash map that is walked in the order of insertion, whatever the hash.
 *
 *      slots   [ . 2 . 0 . . 1 . ]      which entry a hash leads to, open addressing
 *      entries [ a | b | c |       ]    dense, in order of insertion; a removed one leaves a gap until
 *                                       the entries are packed again
 *
 * The order makes runs repeatable: two processes with different hash seeds walk the same. The seed is there
 * because keys come from outside (hosts, digests), and whoever knows the hash could make all of them
 * collide; the hash is SipHash-1-3.
 *
 * Keys are either copied (key_size > 0: all have that size) or borrowed (key_size 0: any bytes, which the
 * owner keeps alive and unchanged). Values have one size; map_get() and map_put() return their place, valid
 * until the next put, reserve or remove.
 *
 * map_put() never allocates. map_reserve() does, up to count_max: called once at the start for protocol code
 * that must not allocate later, or before each put elsewhere.
 */
#ifndef MNEMON_BASE_MAP_H
#define MNEMON_BASE_MAP_H

#include "base/bytes.h"
#include "base/err.h"

struct map {
    uint32_t *slots;  /* entry index + 1, or 0; a power of two of them, at most half used */
    uint8_t *entries; /* entries_count of entry_size bytes: struct map_entry, key, value */
    size_t slots_count;
    size_t entries_count; /* with gaps */
    size_t entries_max;
    size_t count; /* without gaps */
    size_t count_max;
    size_t key_size;
    size_t value_offset; /* in an entry */
    size_t entry_size;
    uint64_t seed;
};

void map_init(struct map *map, size_t key_size, size_t value_size, size_t count_max, uint64_t seed);
void map_done(struct map *map);

/* Room for at least count entries without further allocation. ERR_LIMIT above count_max. */
enum err map_reserve(struct map *map, size_t count) MUST_CHECK;

/* The value of the key, or NULL. */
void *map_get(const struct map *map, struct bytes key);

/* The value of the key; a new one is zeroed. NULL if there is no room: map_reserve() first. */
void *map_put(struct map *map, struct bytes key);

/* False if the key is not there. */
bool map_remove(struct map *map, struct bytes key);

void map_clear(struct map *map);

/*
 * Walk: start with *cursor = 0; false at the end. The entry just returned may be removed during the walk;
 * puts may not happen.
 */
bool map_next(const struct map *map, size_t *cursor, struct bytes *ret_key, void **ret_value);

/* SipHash-1-3 under a key made of the seed. */
uint64_t map_hash(struct bytes bytes, uint64_t seed);

#endif
