/*
 * quota - how much disk the local volumes of an archive may take in all: segments, and indexes with all that
 * lies in their directories.
 *
 *      |<------------------------ size_max ------------------------>|<- QUOTA_OVER ->|
 *      | documents                               |<- QUOTA_RESERVE ->|                |
 *                                                | removals and compaction            |
 *
 * Each volume counts its own part: it measures it when it is opened and again after each QUOTA_STEP of what
 * may be used, and adds what it appends meanwhile. Nothing is kept on disk, so nothing can be wrong after a
 * crash. What would not fit is refused before it is written (ERR_QUOTA). Removals make room, so they may take
 * a little more; so may compaction, which needs room for what is left of a segment while it rewrites it:
 * therefore segments are small under a quota.
 *
 * Any thread.
 */
#ifndef MNEMON_STORE_VOLUME_QUOTA_H
#define MNEMON_STORE_VOLUME_QUOTA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    QUOTA_RESERVE = 128, /* this part of the quota is left for what makes room */
    QUOTA_OVER = 200,    /* and this part more */
    QUOTA_STEP = 400,    /* after each such part a volume is measured again */
    QUOTA_SEGMENT = 64,  /* a segment is at most such a part */
};

static const uint64_t QUOTA_SIZE_MIN = UINT64_C(64) << 20; /* an empty index with its reserve takes 9 MiB */

struct quota {
    uint64_t size_max; /* 0: there is none */
    _Atomic uint64_t used_size;
};

static inline bool quota_is_set(const struct quota *quota) {
    return quota != NULL && quota->size_max > 0;
}

static inline uint64_t quota_used(const struct quota *quota) {
    return atomic_load_explicit(&quota->used_size, memory_order_relaxed);
}

/* In thousandths; may be a little more than 1,000. 0 without a quota. */
static inline uint64_t quota_permille(const struct quota *quota) {
    return quota_is_set(quota) ? quota_used(quota) / (quota->size_max / 1000) : 0;
}

/* *part, what a volume was counted with, is another size now. */
void quota_count(struct quota *quota, uint64_t *part, uint64_t size);

/* Do so many bytes fit? */
bool quota_admits(const struct quota *quota, uint64_t size, bool makes_room);

/* What the files in a directory of the real file system take, and in those below it. */
uint64_t quota_measure(const char *directory);

#endif
