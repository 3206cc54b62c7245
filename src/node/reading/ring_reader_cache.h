/*
 * ring_reader_cache - items in memory, by key, that several threads use: records and listings that came from
 * other nodes.
 *
 * An item begins with a struct ring_reader_cached. It does not change once it was put here, and lasts while
 * somebody uses it. Bounded in count and in bytes; the least recently used items make room. Of several
 * threads that want what is not here at the same time, one goes for it, and the others wait until it is back.
 * Any thread.
 */
#ifndef MNEMON_NODE_READING_RING_READER_CACHE_H
#define MNEMON_NODE_READING_RING_READER_CACHE_H

#include <pthread.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/peer.h"
#include "base/ringkey.h"
#include "run/bell.h"
#include "store/index/index.h"
#include "store/instance/absent.h"

enum { RING_READER_CACHE_KEY_SIZE = 16, RING_READER_FLIGHTS_MAX = 128 };

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

/* A thread that went for an item. */
struct ring_reader_flight {
    uint8_t key[RING_READER_CACHE_KEY_SIZE];
    bool is_used;
    bool is_over;           /* but some have not seen it yet */
    uint32_t waiters_count; /* beside the thread that went */
    enum err err;           /* how it ended */
};

struct ring_reader_cache {
    struct ring_reader_cache_config config;
    pthread_mutex_t lock;
    struct map by_key; /* struct ring_reader_cached * */
    size_t size;
    uint64_t uses_count;
    struct bell over;
    struct ring_reader_flight flights[RING_READER_FLIGHTS_MAX];
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

/*
 * Not NULL: go for it, and say ring_reader_cache_back() when back. NULL: somebody else went, and *ret_err
 * says how it ended; or ERR_BUSY, there are too many.
 */
struct ring_reader_flight *ring_reader_cache_go(struct ring_reader_cache *cache,
                                                const uint8_t key[RING_READER_CACHE_KEY_SIZE],
                                                enum err *ret_err);
void ring_reader_cache_back(struct ring_reader_cache *cache, struct ring_reader_flight *flight, enum err err);

/* ---- listings, which are items of a cache ---- */

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

/* What was listed of one URL lately, so that a page that many want is listed once. It is fresh for some
 * seconds; if the holders are busy or silent, an old one does, up to ten minutes. */
struct ring_reader_listing {
    struct ring_reader_cached cached;   /* first; the key: the first bytes of the SHA-256 of the SURT */
    bool is_partial;                    /* not all nodes that should be heard were */
    bool is_long;                       /* too long to be here: nothing is */
    bool is_of_crowd;                   /* what somebody had that is near to this time */
    int64_t wished_us;                  /* INT64_MAX: the newest */
    struct ring_reader_member *members; /* by time, then by number */
    size_t count;
    struct buf text;    /* of the members' slices */
    struct buf unheard; /* if is_partial: the names of those nodes, ended by a zero; empty: not known */
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
