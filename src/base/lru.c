#include "base/lru.h"

#include <stdlib.h>
#include <unistd.h>

struct lru_node {
    uint32_t newer; /* also: next in the list of free ones */
    uint32_t older;
};

static struct lru_node *lru_node_at(const struct lru *lru, uint32_t index) {
    ASSERT(index < lru->used);
    return (struct lru_node *)(void *)(lru->nodes + index * lru->node_size);
}

static uint8_t *key_at(const struct lru *lru, uint32_t index) {
    return (uint8_t *)lru_node_at(lru, index) + sizeof(struct lru_node);
}

static void *value_at(const struct lru *lru, uint32_t index) {
    return (uint8_t *)lru_node_at(lru, index) + lru->value_offset;
}

static size_t aligned(size_t size) {
    return (size + 7) & ~(size_t)7;
}

enum err lru_init(struct lru *lru, size_t key_size, size_t value_size, uint32_t capacity) {
    uint64_t seed;
    ASSERT(capacity > 0 && capacity < LRU_NONE);
    *lru = (struct lru){.key_size = key_size, .capacity = capacity, .newest = LRU_NONE};
    lru->oldest = lru->free = LRU_NONE;
    lru->value_offset = aligned(sizeof(struct lru_node) + key_size);
    lru->node_size = aligned(lru->value_offset + value_size);
    ASSERT(getentropy(&seed, sizeof seed) == 0); /* fails for large buffers and bad pointers only */
    map_init(&lru->places, key_size, sizeof(uint32_t), capacity, seed);
    lru->nodes = calloc(capacity, lru->node_size);
    enum err err = lru->nodes == NULL ? ERR_MEMORY : map_reserve(&lru->places, capacity);
    if (err != ERR_OK) {
        lru_done(lru);
    }
    return err;
}

void lru_done(struct lru *lru) {
    map_done(&lru->places);
    free(lru->nodes);
    lru->nodes = NULL;
}

static void unlink_node(struct lru *lru, uint32_t index) {
    struct lru_node *node = lru_node_at(lru, index);
    *(node->newer == LRU_NONE ? &lru->newest : &lru_node_at(lru, node->newer)->older) = node->older;
    *(node->older == LRU_NONE ? &lru->oldest : &lru_node_at(lru, node->older)->newer) = node->newer;
}

static void link_newest(struct lru *lru, uint32_t index) {
    *lru_node_at(lru, index) = (struct lru_node){.newer = LRU_NONE, .older = lru->newest};
    *(lru->newest == LRU_NONE ? &lru->oldest : &lru_node_at(lru, lru->newest)->newer) = index;
    lru->newest = index;
}

void *lru_find(struct lru *lru, const void *key) {
    const uint32_t *index = map_get(&lru->places, bytes_of(key, lru->key_size));
    if (index == NULL) {
        return NULL;
    }
    if (*index != lru->newest) {
        unlink_node(lru, *index);
        link_newest(lru, *index);
    }
    return value_at(lru, *index);
}

const void *lru_next_out(const struct lru *lru) {
    return lru_count(lru) < lru->capacity ? NULL : value_at(lru, lru->oldest);
}

const void *lru_oldest(const struct lru *lru) {
    return lru_count(lru) == 0 ? NULL : key_at(lru, lru->oldest);
}

void lru_remove(struct lru *lru, const void *key) {
    const uint32_t *place = map_get(&lru->places, bytes_of(key, lru->key_size));
    if (place == NULL) {
        return;
    }
    uint32_t index = *place;
    map_remove(&lru->places, bytes_of(key, lru->key_size));
    unlink_node(lru, index);
    lru_node_at(lru, index)->newer = lru->free;
    lru->free = index;
}

static uint32_t take_node(struct lru *lru) {
    if (lru->free != LRU_NONE) {
        uint32_t index = lru->free;
        lru->free = lru_node_at(lru, index)->newer;
        return index;
    }
    ASSERT(lru->used < lru->capacity);
    return lru->used++;
}

void *lru_add(struct lru *lru, const void *key) {
    if (lru_count(lru) == lru->capacity) {
        lru_remove(lru, key_at(lru, lru->oldest));
    }
    uint32_t index = take_node(lru);
    memcpy(key_at(lru, index), key, lru->key_size);
    memset(value_at(lru, index), 0, lru->node_size - lru->value_offset);
    link_newest(lru, index);
    uint32_t *place = map_put(&lru->places, bytes_of(key, lru->key_size));
    ASSERT(place != NULL);
    *place = index;
    return value_at(lru, index);
}
