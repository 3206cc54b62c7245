/*
 * block_cache - the blocks that the last commits changed, in memory.
 *
 * A writer asks for the block of every document. In the index that is a walk through a list of all its newest
 * entries, or a page of the disk; a document that comes again mostly does so soon, or often.
 *
 *      committer ── index has the new ones ──> block_cache ──> changes_advance()
 *                                                  └──> writers, after changes_now()
 *
 * In this order (changes.h) what a writer finds here is never older than its changes_now(), so the committer
 * may trust its look exactly as if it had asked the index. Hence only blocks that the index has just taken
 * may be put, by the holder of the volume's ledger_lock; any other change of blocks clears the cache. Only
 * live blocks of number 0 are kept, which nearly all are. Finding: any thread.
 */
#ifndef MNEMON_STORE_INDEX_BLOCK_CACHE_H
#define MNEMON_STORE_INDEX_BLOCK_CACHE_H

#include <pthread.h>

#include "store/index/index.h"

enum {
    BLOCK_CACHE_WAYS = 4,
    BLOCK_CACHE_SETS_BITS = 15,
    BLOCK_CACHE_SETS_COUNT = 1 << BLOCK_CACHE_SETS_BITS
};

/* What is looked at first lies together: a document that is not here costs one wait for memory. */
struct block_set {
    uint64_t starts[BLOCK_CACHE_WAYS]; /* of the digests */
    uint64_t ages[BLOCK_CACHE_WAYS];   /* puts so far, when it was put; 0: free */
    struct {
        uint8_t digest[KEY_DIGEST_SIZE];
        struct block block;
    } entries[BLOCK_CACHE_WAYS];
};

struct block_cache {
    pthread_mutex_t lock;
    uint64_t puts_count; /* lock */
    uint64_t cleared_at; /* lock: what is not younger counts as free */
    struct block_set sets[BLOCK_CACHE_SETS_COUNT];
};

/* It has 12 MiB, which it takes from the system page by page as it fills. NULL: out of memory. */
struct block_cache *block_cache_new(void);
void block_cache_free(struct block_cache *cache); /* may be NULL */

/* The block is now this. One without references is forgotten. */
void block_cache_put(struct block_cache *cache, const uint8_t digest[KEY_DIGEST_SIZE],
                     const struct block *block);
void block_cache_clear(struct block_cache *cache);

/* The block of number 0; false if it is not here. */
bool block_cache_find(struct block_cache *cache, const uint8_t digest[KEY_DIGEST_SIZE],
                      struct block *ret_block);

#endif
