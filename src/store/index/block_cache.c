#include "store/index/block_cache.h"

#include <sys/mman.h>

struct block_cache *block_cache_new(void) {
    struct block_cache *cache =
        mmap(NULL, sizeof *cache, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (cache == MAP_FAILED) {
        return NULL;
    }
    pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

void block_cache_free(struct block_cache *cache) {
    if (cache != NULL) {
        pthread_mutex_destroy(&cache->lock);
        munmap(cache, sizeof *cache);
    }
}

static uint64_t start_of(const uint8_t digest[KEY_DIGEST_SIZE]) {
    uint64_t start;
    memcpy(&start, digest, sizeof start);
    return start;
}

/* Digests may have few bits, in tests. */
static struct block_set *set_of(struct block_cache *cache, uint64_t start) {
    return &cache->sets[start * UINT64_C(0x9e3779b97f4a7c15) >> (64 - BLOCK_CACHE_SETS_BITS)];
}

/* Its way in the set, or BLOCK_CACHE_WAYS. With the lock. */
static size_t find_way(const struct block_cache *cache, const struct block_set *set,
                       const uint8_t digest[KEY_DIGEST_SIZE]) {
    uint64_t start = start_of(digest);
    for (size_t i = 0; i < BLOCK_CACHE_WAYS; i++) {
        if (set->starts[i] == start && set->ages[i] > cache->cleared_at &&
            memcmp(set->entries[i].digest, digest, KEY_DIGEST_SIZE) == 0) {
            return i;
        }
    }
    return BLOCK_CACHE_WAYS;
}

static size_t oldest_way(const struct block_set *set) {
    size_t oldest = 0;
    for (size_t i = 1; i < BLOCK_CACHE_WAYS; i++) {
        oldest = set->ages[i] < set->ages[oldest] ? i : oldest;
    }
    return oldest;
}

void block_cache_put(struct block_cache *cache, const uint8_t digest[KEY_DIGEST_SIZE],
                     const struct block *block) {
    struct block_set *set = set_of(cache, start_of(digest));
    pthread_mutex_lock(&cache->lock);
    size_t way = find_way(cache, set, digest);
    if (block->references <= 0) {
        if (way < BLOCK_CACHE_WAYS) {
            set->ages[way] = 0;
        }
    } else {
        way = way < BLOCK_CACHE_WAYS ? way : oldest_way(set);
        set->starts[way] = start_of(digest);
        set->ages[way] = ++cache->puts_count;
        memcpy(set->entries[way].digest, digest, KEY_DIGEST_SIZE);
        set->entries[way].block = *block;
    }
    pthread_mutex_unlock(&cache->lock);
}

void block_cache_clear(struct block_cache *cache) {
    pthread_mutex_lock(&cache->lock);
    cache->cleared_at = cache->puts_count;
    pthread_mutex_unlock(&cache->lock);
}

bool block_cache_find(struct block_cache *cache, const uint8_t digest[KEY_DIGEST_SIZE],
                      struct block *ret_block) {
    const struct block_set *set = set_of(cache, start_of(digest));
    pthread_mutex_lock(&cache->lock);
    size_t way = find_way(cache, set, digest);
    if (way < BLOCK_CACHE_WAYS) {
        *ret_block = set->entries[way].block;
    }
    pthread_mutex_unlock(&cache->lock);
    return way < BLOCK_CACHE_WAYS;
}
