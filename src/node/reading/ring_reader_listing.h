/*
 * ring_reader_listing - what was listed of one URL lately, so that a page that many want is listed once.
 *
 * An item of a ring_reader_cache. It is fresh for some seconds; if the holders are busy or silent, an old one
 * does, up to ten minutes. Any thread.
 */
#ifndef MNEMON_NODE_READING_RING_READER_LISTING_H
#define MNEMON_NODE_READING_RING_READER_LISTING_H

#include "base/buf.h"
#include "base/peer.h"
#include "base/ringkey.h"
#include "node/reading/ring_reader_cache.h"
#include "store/index/index.h"

enum {
    RING_READER_LISTING_COUNT_MAX = 1000, /* captures of one; a URL with more is walked each time */
    RING_READER_LISTING_SIZE_MAX = 1 << 20,
    RING_READER_LISTINGS_MAX = 4096,
    RING_READER_LISTINGS_SIZE_MAX = 32 << 20,
};

/* A capture that another node has. */
struct ring_reader_member {
    uint64_t number;
    struct ringkey key;
    struct capture capture;
    struct peer from;
    uint64_t listed_at_us; /* by that node; 0: it was not */
};

struct ring_reader_listing {
    struct ring_reader_cached cached;   /* first; the key: the first bytes of the SHA-256 of the SURT */
    bool is_partial;                    /* not all nodes that should be heard were */
    bool is_long;                       /* too long to be here: nothing is */
    bool is_of_crowd;                   /* what somebody had that is near to this time */
    int64_t wished_us;                  /* INT64_MAX: the newest */
    struct ring_reader_member *members; /* by time, then by number */
    size_t count;
    struct buf text; /* of the members' slices */
    uint64_t made_at_us;
    _Atomic(uint64_t) fresh_until_us;
};

/* Empty; its maker is its only user. NULL: out of memory. */
struct ring_reader_listing *ring_reader_listing_new(const uint8_t hash[RING_READER_CACHE_KEY_SIZE]);

/* Append a copy of it. ERR_LIMIT: there are too many. Before the listing is put anywhere. */
enum err ring_reader_listing_add(struct ring_reader_listing *listing,
                                 const struct ring_reader_member *member) MUST_CHECK;

/* All are there: the slices of its members point into it from now on. */
void ring_reader_listing_finish(struct ring_reader_listing *listing);

/* Into the cache; and out of it if it is fresh, or, with may_be_stale, not too old. */
void ring_reader_listing_put(struct ring_reader_cache *cache, struct ring_reader_listing *listing,
                             uint64_t fresh_until_us);
struct ring_reader_listing *ring_reader_listing_take(struct ring_reader_cache *cache,
                                                     const uint8_t hash[RING_READER_CACHE_KEY_SIZE],
                                                     uint64_t now_us, bool may_be_stale);

/* For the cache's config. */
void ring_reader_listing_free(void *item);

#endif
