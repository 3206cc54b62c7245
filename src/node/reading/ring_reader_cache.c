#include "node/reading/ring_reader_cache.h"

#include <stdlib.h>

void ring_reader_cache_init(struct ring_reader_cache *cache) {
    *cache = (struct ring_reader_cache){0};
    pthread_mutex_init(&cache->lock, NULL);
}

void ring_reader_cache_done(struct ring_reader_cache *cache) {
    for (size_t i = 0; i < RING_READER_CACHE_COUNT_MAX; i++) {
        free(cache->slots[i].bytes);
    }
    pthread_mutex_destroy(&cache->lock);
}

static struct ring_reader_cached *find(struct ring_reader_cache *cache,
                                       const struct ring_reader_parcel *parcel) {
    for (size_t i = 0; i < RING_READER_CACHE_COUNT_MAX; i++) {
        struct ring_reader_cached *slot = &cache->slots[i];
        if (slot->bytes != NULL && slot->parcel.number == parcel->number &&
            slot->parcel.is_whole == parcel->is_whole) {
            return slot;
        }
    }
    return NULL;
}

static void drop(struct ring_reader_cache *cache, struct ring_reader_cached *slot) {
    cache->size -= slot->size;
    free(slot->bytes);
    *slot = (struct ring_reader_cached){0};
}

/* An empty slot, after what was used longest ago has made room. */
static struct ring_reader_cached *make_room(struct ring_reader_cache *cache, size_t size) {
    for (;;) {
        struct ring_reader_cached *empty = NULL;
        struct ring_reader_cached *oldest = NULL;
        for (size_t i = 0; i < RING_READER_CACHE_COUNT_MAX; i++) {
            struct ring_reader_cached *slot = &cache->slots[i];
            if (slot->bytes == NULL) {
                empty = slot;
            } else if (oldest == NULL || slot->used_at < oldest->used_at) {
                oldest = slot;
            }
        }
        if (empty != NULL && cache->size + size <= RING_READER_CACHE_SIZE_MAX) {
            return empty;
        }
        drop(cache, oldest); /* there is one: no item is as large as the cache */
    }
}

void ring_reader_cache_put(struct ring_reader_cache *cache, const struct ring_reader_parcel *parcel,
                           struct bytes record, struct bytes request) {
    size_t size = record.size + request.size;
    if (record.size == 0 || size > RING_READER_CACHE_ITEM_SIZE_MAX) {
        return;
    }
    uint8_t *bytes = malloc(size);
    if (bytes == NULL) {
        return;
    }
    memcpy(bytes, record.data, record.size);
    if (request.size > 0) {
        memcpy(bytes + record.size, request.data, request.size);
    }
    pthread_mutex_lock(&cache->lock);
    struct ring_reader_cached *slot = find(cache, parcel);
    if (slot != NULL) { /* somebody else was faster */
        free(bytes);
    } else {
        slot = make_room(cache, size);
        *slot = (struct ring_reader_cached){
            .parcel = *parcel, .bytes = bytes, .record_size = record.size, .size = size};
        cache->size += size;
    }
    slot->used_at = ++cache->uses_count;
    pthread_mutex_unlock(&cache->lock);
}

bool ring_reader_cache_take(struct ring_reader_cache *cache, struct ring_reader_parcel *parcel,
                            struct scratch *record, struct buf *request) {
    pthread_mutex_lock(&cache->lock);
    struct ring_reader_cached *slot = find(cache, parcel);
    bool is_there = slot != NULL;
    if (is_there) {
        slot->used_at = ++cache->uses_count;
        *parcel = slot->parcel;
        scratch_clear(record);
        buf_clear(request);
        is_there = scratch_put(record, bytes_of(slot->bytes, slot->record_size)) == ERR_OK &&
                   buf_put(request, bytes_of(slot->bytes + slot->record_size,
                                             slot->size - slot->record_size)) == ERR_OK;
    }
    pthread_mutex_unlock(&cache->lock);
    return is_there;
}
