/*
 * ring_reader_cache - records that came from other nodes, in memory, so that a page's parts come once.
 *
 * Checked before they are put here. The least recently used make room. Any thread; what is taken is a copy.
 */
#ifndef MNEMON_NODE_READING_RING_READER_CACHE_H
#define MNEMON_NODE_READING_RING_READER_CACHE_H

#include <pthread.h>

#include "base/scratch.h"

enum {
    RING_READER_CACHE_SIZE_MAX = 64 << 20,
    RING_READER_CACHE_ITEM_SIZE_MAX = 8 << 20,
    RING_READER_CACHE_COUNT_MAX = 512,
};

/* A record, and the request that goes with it; where in the record the payload lies. */
struct ring_reader_parcel {
    uint64_t number; /* of the capture */
    bool is_whole;   /* with its document; else as the revisit that it is */
    size_t payload_start;
    size_t payload_size;
};

struct ring_reader_cached {
    struct ring_reader_parcel parcel;
    uint8_t *bytes; /* the record, then the request; NULL: an empty slot */
    size_t record_size;
    size_t size;
    uint64_t used_at;
};

struct ring_reader_cache {
    pthread_mutex_t lock;
    struct ring_reader_cached slots[RING_READER_CACHE_COUNT_MAX];
    size_t size;
    uint64_t uses_count;
};

void ring_reader_cache_init(struct ring_reader_cache *cache);
void ring_reader_cache_done(struct ring_reader_cache *cache);

/* What does not fit, or finds no memory, is not kept. */
void ring_reader_cache_put(struct ring_reader_cache *cache, const struct ring_reader_parcel *parcel,
                           struct bytes record, struct bytes request);

/* Into *record and *request, which are cleared first. False: it is not there, or did not fit in. */
bool ring_reader_cache_take(struct ring_reader_cache *cache, struct ring_reader_parcel *parcel,
                            struct scratch *record, struct buf *request);

#endif
