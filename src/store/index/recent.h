/*
 * recent - what the last commits of a volume entered into its index, in memory.
 *
 * For readers that follow the volume closely (follow.h): they need not read and decompress what was written a
 * moment ago. A reader that is further behind reads the segments, and both give the same entries.
 *
 *      committer ── entries, in the order of their places ──> [ the last 4,096, at most 2 MiB ] ──> follow
 *
 * A convenience: an entry that is not here, for want of memory or because it is too old, is on the disk. Any
 * thread.
 */
#ifndef MNEMON_STORE_INDEX_RECENT_H
#define MNEMON_STORE_INDEX_RECENT_H

#include <pthread.h>

#include "store/index/ledger.h"

enum { RECENT_COUNT_MAX = 4096, RECENT_SIZE_MAX = 2 << 20 };

struct recent {
    pthread_mutex_t lock;
    struct ledger_entry *entries[RECENT_COUNT_MAX]; /* lock: a ring; each with its text behind it */
    size_t first;                                   /* lock */
    size_t count;                                   /* lock */
    size_t size;                                    /* lock: in bytes */
};

void recent_init(struct recent *recent);
void recent_done(struct recent *recent);

/* A record that is durable and in the index. It lies behind all that were added before. */
void recent_add(struct recent *recent, const struct ledger_entry *entry);

/* The record that begins at this position; its slices are in text, which is cleared first. False: not here.
 */
bool recent_find(struct recent *recent, const struct index_position *position, struct buf *text,
                 struct ledger_entry *ret_entry);

#endif
