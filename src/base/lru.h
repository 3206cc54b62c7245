/*
 * lru - a table of fixed capacity whose least recently used entry makes room for a new one.
 *
 * For what strangers can make us remember: it never grows, and a flood costs nothing but the oldest. Keys
 * have one size and are copied, values have one size and stay where they are until they are removed. All
 * memory is asked for at the start; the system hands out pages of it as they are used.
 */
#ifndef MNEMON_BASE_LRU_H
#define MNEMON_BASE_LRU_H

#include "base/map.h"

struct lru {
    struct map places; /* key: index of its node */
    uint8_t *nodes;    /* struct lru_node, key, value */
    size_t node_size;
    size_t key_size;
    size_t value_offset;
    uint32_t capacity;
    uint32_t used;   /* nodes that were ever used */
    uint32_t newest; /* index, or LRU_NONE */
    uint32_t oldest;
    uint32_t free; /* first of the list of removed nodes */
};

static const uint32_t LRU_NONE = UINT32_MAX;

/* Hashed with a secret seed: strangers choose the keys. lru_done() may follow also if it fails. */
enum err lru_init(struct lru *lru, size_t key_size, size_t value_size, uint32_t capacity) MUST_CHECK;
void lru_done(struct lru *lru);

/* The value of the key, which is now the most recently used one, or NULL. */
void *lru_find(struct lru *lru, const void *key);

/* What lru_add() would throw out: NULL while there is room. */
const void *lru_next_out(const struct lru *lru);

/* The key that was not used for longest; NULL: the table is empty. */
const void *lru_oldest(const struct lru *lru);

/* A zeroed value for a key that is not in the table. */
void *lru_add(struct lru *lru, const void *key);

void lru_remove(struct lru *lru, const void *key);

static inline size_t lru_count(const struct lru *lru) {
    return lru->places.count;
}

#endif
