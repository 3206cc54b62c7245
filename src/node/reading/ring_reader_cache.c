#include "node/reading/ring_reader_cache.h"

void ring_reader_cache_init(struct ring_reader_cache *cache, const struct ring_reader_cache_config *config) {
    *cache = (struct ring_reader_cache){.config = *config};
    map_init(&cache->by_key, RING_READER_CACHE_KEY_SIZE, sizeof(struct ring_reader_cached *),
             config->count_max, config->seed);
    pthread_mutex_init(&cache->lock, NULL);
}

void ring_reader_cache_done(struct ring_reader_cache *cache) {
    ring_reader_cache_clear(cache);
    map_done(&cache->by_key);
    pthread_mutex_destroy(&cache->lock);
}

/* ---- within the lock ---- */

static struct ring_reader_cached *cache_find(struct ring_reader_cache *cache, const uint8_t *key) {
    struct ring_reader_cached **item = map_get(&cache->by_key, bytes_of(key, RING_READER_CACHE_KEY_SIZE));
    return item != NULL ? *item : NULL;
}

static void cache_let_go(struct ring_reader_cache *cache, struct ring_reader_cached *item) {
    item->users_count--;
    if (item->users_count == 0) {
        cache->config.free(item);
    }
}

static void cache_drop(struct ring_reader_cache *cache, struct ring_reader_cached *item) {
    cache->size -= item->size;
    map_remove(&cache->by_key, bytes_of(item->key, RING_READER_CACHE_KEY_SIZE));
    cache_let_go(cache, item);
}

static struct ring_reader_cached *cache_oldest(struct ring_reader_cache *cache) {
    struct ring_reader_cached *oldest = NULL;
    size_t cursor = 0;
    struct bytes key;
    void *value;
    while (map_next(&cache->by_key, &cursor, &key, &value)) {
        struct ring_reader_cached *item = *(struct ring_reader_cached **)value;
        oldest = oldest == NULL || item->used_at < oldest->used_at ? item : oldest;
    }
    return oldest;
}

/* ---- any thread ---- */

void ring_reader_cache_put(struct ring_reader_cache *cache, void *generic) {
    struct ring_reader_cached *item = generic;
    pthread_mutex_lock(&cache->lock);
    struct ring_reader_cached *old = cache_find(cache, item->key);
    if (old != NULL) { /* may be the same: its maker uses it still */
        cache_drop(cache, old);
    }
    while (cache->by_key.count > 0 && (cache->by_key.count == cache->config.count_max ||
                                       cache->size + item->size > cache->config.size_max)) {
        cache_drop(cache, cache_oldest(cache));
    }
    if (map_reserve(&cache->by_key, cache->by_key.count + 1) == ERR_OK) {
        *(struct ring_reader_cached **)map_put(&cache->by_key, bytes_of(item->key, sizeof item->key)) = item;
        cache->size += item->size;
        item->users_count++;
        item->used_at = ++cache->uses_count;
    }
    pthread_mutex_unlock(&cache->lock);
}

void *ring_reader_cache_take(struct ring_reader_cache *cache, const uint8_t key[RING_READER_CACHE_KEY_SIZE]) {
    pthread_mutex_lock(&cache->lock);
    struct ring_reader_cached *item = cache_find(cache, key);
    if (item != NULL) {
        item->users_count++;
        item->used_at = ++cache->uses_count;
    }
    pthread_mutex_unlock(&cache->lock);
    return item;
}

void ring_reader_cache_release(struct ring_reader_cache *cache, void *item) {
    pthread_mutex_lock(&cache->lock);
    cache_let_go(cache, item);
    pthread_mutex_unlock(&cache->lock);
}

void ring_reader_cache_forget(struct ring_reader_cache *cache,
                              const uint8_t key[RING_READER_CACHE_KEY_SIZE]) {
    pthread_mutex_lock(&cache->lock);
    struct ring_reader_cached *item = cache_find(cache, key);
    if (item != NULL) {
        cache_drop(cache, item);
    }
    pthread_mutex_unlock(&cache->lock);
}

void ring_reader_cache_clear(struct ring_reader_cache *cache) {
    pthread_mutex_lock(&cache->lock);
    while (cache->by_key.count > 0) {
        cache_drop(cache, cache_oldest(cache));
    }
    pthread_mutex_unlock(&cache->lock);
}
