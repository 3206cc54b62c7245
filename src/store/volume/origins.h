/*
 * origins - the URIs of documents that were stored, or found to be stored, lately; in memory.
 *
 * A revisit names the URI of the record that it is a duplicate of. If that is its own the writer has it in
 * hand; where the same document comes under another URL, it stands in the original's record alone, on the
 * disk and compressed with the document. Copies of one document mostly come soon after each other (a page
 * with and without its session id, a logo, what a site says instead of 404), so it is remembered here.
 *
 *      committer, new documents ──────────┐
 *      writer that had to read a record ──┴──> [ the last 131,072, at most 4 MiB of text ] ──> writers
 *
 * By the place of the record, of which there is never another one with other bytes: nothing need ever be
 * taken back. A convenience: what is not here is read. Any thread.
 */
#ifndef MNEMON_STORE_VOLUME_ORIGINS_H
#define MNEMON_STORE_VOLUME_ORIGINS_H

#include <pthread.h>

#include "base/buf.h"
#include "store/document/location.h"

enum {
    ORIGINS_WAYS = 8, /* of these, a new one takes the place of the oldest */
    ORIGINS_SETS_COUNT = 1 << 14,
    ORIGINS_TEXT_SIZE = 4 << 20,
    ORIGINS_URI_SIZE_MAX = 1 << 10, /* longer ones are read each time */
};

/* All zero: free. */
struct origin {
    uint64_t offset; /* of the record */
    uint32_t segment;
    uint32_t size; /* of the URI */
    uint64_t end;  /* of the URI, in all text that was ever written; grows with each one */
};

struct origins {
    pthread_mutex_t lock;
    uint64_t text_end; /* lock: bytes written so far, to a ring */
    struct origin sets[ORIGINS_SETS_COUNT][ORIGINS_WAYS];
    uint8_t text[ORIGINS_TEXT_SIZE];
};

/* It has 7 MiB, which it takes from the system page by page as it fills. NULL: out of memory. */
struct origins *origins_new(void);
void origins_free(struct origins *origins); /* may be NULL */

/* The record at the location, which is durable, has this target URI. */
void origins_add(struct origins *origins, const struct location *location, struct bytes uri);

/* Its URI, in place of what is in uri; false if it is not known. */
bool origins_find(struct origins *origins, const struct location *location, struct buf *uri);

#endif
