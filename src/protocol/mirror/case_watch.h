/*
 * case_watch - finds paths that differ only by the case of ASCII letters: two files here, one on systems that
 * do not tell them apart. Pure.
 *
 * They are allowed; the publisher is told. The memory is the caller's: 8 bytes for each slot, of which
 * three quarters are used. What does not fit is not watched, and counted. Paths are remembered as
 * 64-bit hashes, so a false alarm is possible, and as rare as that.
 */
#ifndef MNEMON_PROTOCOL_MIRROR_CASE_WATCH_H
#define MNEMON_PROTOCOL_MIRROR_CASE_WATCH_H

#include "base/bytes.h"

struct case_watch {
    uint64_t *slots; /* 0: free */
    size_t slots_count;
    size_t used_count;
    uint64_t unwatched_count;
    uint64_t seed;
};

/* slots_count: a power of two, at least 4. */
void case_watch_init(struct case_watch *watch, uint64_t *slots, size_t slots_count, uint64_t seed);

/* Is there one already that differs from this path, which is new and sound, only by case? */
bool case_watch_meets(struct case_watch *watch, struct bytes path);

#endif
