/*
 * ring_reader_cache - items in memory, by key, that several threads use: records and listings that came from
 * other nodes.
 *
 * An item begins with a struct ring_reader_cached. It does not change once it was put here, and lasts while
 * somebody uses it. Bounded in count and in bytes; the least recently used items make room. Any thread.
 */
#ifndef MNEMON_NODE_READING_RING_READER_CACHE_H
#define MNEMON_NODE_READING_RING_READER_CACHE_H

#include <pthread.h>

#include "base/map.h"

enum { RING_READER_CACHE_KEY_SIZE = 16 };

struct ring_reader_cached {
    uint8_t key[RING_READER_CACHE_KEY_SIZE];
    size_t size;          /* for the bound; set before it is put */
    uint32_t users_count; /* lock, once it was put: the cache is one. Its maker sets 1 */
    uint64_t used_at;     /* lock */
};

struct ring_reader_cache_config {
    size_t count_max;
    size_t size_max; /* larger than any item */
    void (*free)(void *item);
    uint64_t seed;
};

struct ring_reader_cache {
    struct ring_reader_cache_config config;
    pthread_mutex_t lock;
    struct map by_key; /* struct ring_reader_cached * */
    size_t size;
    uint64_t uses_count;
};

void ring_reader_cache_init(struct ring_reader_cache *cache, const struct ring_reader_cache_config *config);
void ring_reader_cache_done(struct ring_reader_cache *cache);

/* In place of an older one of its key. Without memory it is not kept. */
void ring_reader_cache_put(struct ring_reader_cache *cache, void *item);

/* NULL: it is not there. Used until it is let go. */
void *ring_reader_cache_take(struct ring_reader_cache *cache, const uint8_t key[RING_READER_CACHE_KEY_SIZE]);
void ring_reader_cache_release(struct ring_reader_cache *cache, void *item);

/* Forget the one of this key, if there is one; or all. */
void ring_reader_cache_forget(struct ring_reader_cache *cache, const uint8_t key[RING_READER_CACHE_KEY_SIZE]);
void ring_reader_cache_clear(struct ring_reader_cache *cache);

#endif
