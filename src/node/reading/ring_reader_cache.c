#include "node/reading/ring_reader_cache.h"

#include <stdlib.h>

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

struct ring_reader_flight *ring_reader_cache_go(struct ring_reader_cache *cache,
                                                const uint8_t key[RING_READER_CACHE_KEY_SIZE],
                                                enum err *ret_err) {
    struct ring_reader_flight *other = NULL;
    struct ring_reader_flight *mine = NULL;
    pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < RING_READER_FLIGHTS_MAX && other == NULL; i++) {
        struct ring_reader_flight *flight = &cache->flights[i];
        if (!flight->is_used) {
            mine = flight;
        } else if (!flight->is_over && memcmp(flight->key, key, sizeof flight->key) == 0) {
            other = flight;
        }
    }
    if (other != NULL) {
        mine = NULL;
        other->waiters_count++;
        while (!other->is_over) {
            (void)bell_await(&cache->over, &cache->lock, BELL_NEVER_US);
        }
        *ret_err = other->err;
        other->waiters_count--;
        other->is_used = other->waiters_count > 0;
    } else if (mine != NULL) {
        *mine = (struct ring_reader_flight){.is_used = true};
        memcpy(mine->key, key, sizeof mine->key);
    } else {
        *ret_err = ERR_BUSY;
    }
    pthread_mutex_unlock(&cache->lock);
    return mine;
}

void ring_reader_cache_back(struct ring_reader_cache *cache, struct ring_reader_flight *flight,
                            enum err err) {
    pthread_mutex_lock(&cache->lock);
    flight->err = err;
    flight->is_over = true;
    flight->is_used = flight->waiters_count > 0;
    bell_ring(&cache->over);
    pthread_mutex_unlock(&cache->lock);
}

/* ---- listings ---- */

enum { MEMBERS_COUNT_FIRST = 4 };
static const uint64_t STALE_US = UINT64_C(600) * 1000000;

void ring_reader_listing_free(void *item) {
    struct ring_reader_listing *listing = item;
    free(listing->members);
    buf_done(&listing->text);
    buf_done(&listing->unheard);
    free(listing);
}

struct ring_reader_listing *ring_reader_listing_new(const uint8_t hash[RING_READER_CACHE_KEY_SIZE]) {
    struct ring_reader_listing *listing = calloc(1, sizeof *listing);
    if (listing != NULL) {
        memcpy(listing->cached.key, hash, sizeof listing->cached.key);
        buf_init(&listing->text, RING_READER_LISTING_SIZE_MAX);
        buf_init(&listing->unheard, ABSENT_TEXT_SIZE_MAX);
        listing->cached.users_count = 1;
    }
    return listing;
}

static bool listing_reserve(struct ring_reader_listing *listing) {
    bool is_full = listing->count >= MEMBERS_COUNT_FIRST && (listing->count & (listing->count - 1)) == 0;
    if (listing->members != NULL && !is_full) {
        return true;
    }
    size_t room = listing->count < MEMBERS_COUNT_FIRST ? MEMBERS_COUNT_FIRST : 2 * listing->count;
    struct ring_reader_member *members = realloc(listing->members, room * sizeof *members);
    if (members != NULL) {
        listing->members = members;
    }
    return members != NULL;
}

enum err ring_reader_listing_add(struct ring_reader_listing *listing,
                                 const struct ring_reader_member *member) {
    if (listing->count == RING_READER_LISTING_COUNT_MAX) {
        return ERR_LIMIT;
    }
    if (!listing_reserve(listing)) {
        return ERR_MEMORY;
    }
    listing->members[listing->count++] = *member;
    buf_put(&listing->text, member->capture.surt);
    buf_put(&listing->text, member->capture.url);
    return buf_put(&listing->text, member->capture.mime);
}

void ring_reader_listing_finish(struct ring_reader_listing *listing) {
    struct bytes text = buf_bytes(&listing->text);
    size_t at = 0;
    for (size_t i = 0; i < listing->count; i++) {
        struct capture *capture = &listing->members[i].capture;
        struct bytes *slices[] = {&capture->surt, &capture->url, &capture->mime};
        for (size_t j = 0; j < 3; j++) {
            *slices[j] = bytes_slice(text, at, at + slices[j]->size);
            at += slices[j]->size;
        }
    }
}

void ring_reader_listing_put(struct ring_reader_cache *cache, struct ring_reader_listing *listing,
                             uint64_t fresh_until_us) {
    listing->fresh_until_us = fresh_until_us;
    listing->cached.size =
        sizeof *listing + listing->text.capacity + 2 * listing->count * sizeof listing->members[0];
    ring_reader_cache_put(cache, listing);
}

struct ring_reader_listing *ring_reader_listing_take(struct ring_reader_cache *cache,
                                                     const uint8_t hash[RING_READER_CACHE_KEY_SIZE],
                                                     uint64_t now_us, bool may_be_stale) {
    struct ring_reader_listing *listing = ring_reader_cache_take(cache, hash);
    if (listing == NULL) {
        return NULL;
    }
    bool is_good = now_us < listing->fresh_until_us ||
                   (may_be_stale && listing->count > 0 && now_us < listing->made_at_us + STALE_US);
    if (!is_good) {
        ring_reader_cache_release(cache, listing);
    }
    return is_good ? listing : NULL;
}
