/*
 * seen - the set of all known URLs in memory, as fingerprints.
 *
 *      fingerprint   [ 10 bits: which table | 22 bits | 32 bits: where in it, roughly ]        never 0
 *
 *      tables[1024]  each  [ f . f f . . f ]      open addressing, 0 is a free slot
 *
 * A fingerprint is a keyed hash (map_hash), so that no page can offer URLs that collide. Each table grows for
 * itself, by a quarter, when four slots of five are used: at any moment at most one of 1,024 tables exists
 * twice, and a known URL takes 10 to 12.5 bytes, the growing included. Finding one touches one or two cache
 * lines.
 *
 * Nothing is ever taken out. One thread.
 */
#ifndef MNEMON_CRAWL_FRONTIER_SEEN_H
#define MNEMON_CRAWL_FRONTIER_SEEN_H

#include "base/bytes.h"
#include "base/err.h"

enum { SEEN_TABLES_COUNT = 1 << 10 };

struct seen_table {
    uint64_t *slots;
    uint32_t count;
    uint32_t slots_count;
};

struct seen {
    struct seen_table tables[SEEN_TABLES_COUNT];
    uint64_t count;
    uint64_t memory_size; /* of the slots */
    uint64_t memory_peak; /* the most that it has been, with a table that was being moved */
};

void seen_init(struct seen *seen);
void seen_done(struct seen *seen);

/* The fingerprint of a URL under the key. */
uint64_t seen_fingerprint(struct bytes url, uint64_t key);

bool seen_has(const struct seen *seen, uint64_t fingerprint);

/* Ask the processor for the memory that seen_has() will look at. */
void seen_prefetch(const struct seen *seen, uint64_t fingerprint);

/* ERR_EXISTS if it is there already; ERR_MEMORY. */
enum err seen_put(struct seen *seen, uint64_t fingerprint) MUST_CHECK;

#endif
