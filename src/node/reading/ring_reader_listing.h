/*
 * ring_reader_listing - what was listed of one URL lately, so that a page that many want is listed once.
 *
 * A listing does not change once it is made; it lasts while somebody uses it. It is fresh for some seconds;
 * where the holders are busy or silent, an old one does, up to ten minutes. Bounded in count and in bytes;
 * the least recently used make room. Any thread.
 */
#ifndef MNEMON_NODE_READING_RING_READER_LISTING_H
#define MNEMON_NODE_READING_RING_READER_LISTING_H

#include <pthread.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/peer.h"
#include "base/ringkey.h"
#include "store/index/index.h"

enum {
    RING_READER_LISTING_HASH_SIZE = 16,
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
    uint64_t listed_at_us; /* by him; 0: it was not */
};

struct ring_reader_listing {
    uint8_t hash[RING_READER_LISTING_HASH_SIZE]; /* the first bytes of the SHA-256 of the SURT */
    bool is_partial;                             /* not all who should were heard */
    bool is_long;                                /* too long to be here: nothing is */
    bool is_of_crowd;                            /* what somebody had that is near to this time */
    int64_t wished_us;                           /* INT64_MAX: the newest */
    struct ring_reader_member *members;          /* by time, then by number */
    size_t count;
    struct buf text; /* of the members' slices */
    uint64_t made_at_us;

    /* The table's lock. */
    uint64_t fresh_until_us;
    uint64_t used_at;
    uint32_t users_count; /* the table is one */
};

struct ring_reader_listings {
    pthread_mutex_t lock;
    struct map by_hash; /* struct ring_reader_listing * */
    size_t size;
    uint64_t uses_count;
};

void ring_reader_listings_init(struct ring_reader_listings *listings, uint64_t seed);
void ring_reader_listings_done(struct ring_reader_listings *listings);

/* Empty; its maker is its only user. NULL: out of memory. */
struct ring_reader_listing *ring_reader_listing_new(const uint8_t hash[RING_READER_LISTING_HASH_SIZE]);

/* Append a copy of it. ERR_LIMIT: there are too many. Before the listing is put anywhere. */
enum err ring_reader_listing_add(struct ring_reader_listing *listing,
                                 const struct ring_reader_member *member) MUST_CHECK;

/* All are there: the slices of its members point into it from now on. */
void ring_reader_listing_finish(struct ring_reader_listing *listing);

/* Into the table, in place of an older one of the same SURT. */
void ring_reader_listings_put(struct ring_reader_listings *listings, struct ring_reader_listing *listing,
                              uint64_t fresh_until_us);

/* The one of this SURT, if it is fresh, or any that is not too old. Used until it is let go. */
struct ring_reader_listing *ring_reader_listings_take(struct ring_reader_listings *listings,
                                                      const uint8_t hash[RING_READER_LISTING_HASH_SIZE],
                                                      uint64_t now_us, bool may_be_stale);

/* It has to do for longer. */
void ring_reader_listings_prolong(struct ring_reader_listings *listings, struct ring_reader_listing *listing,
                                  uint64_t fresh_until_us);

/* Forget the one of this SURT, if there is one: not even as an old one is it worth anything. */
void ring_reader_listings_forget(struct ring_reader_listings *listings,
                                 const uint8_t hash[RING_READER_LISTING_HASH_SIZE]);
void ring_reader_listings_release(struct ring_reader_listings *listings, struct ring_reader_listing *listing);

#endif
