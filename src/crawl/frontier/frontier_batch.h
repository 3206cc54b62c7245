/*
 * frontier_batch - changes that are to be written together, gathered cheaply and handed to RocksDB in the
 * order of their keys.
 *
 * The order is what it is for: half of what a URL costs is RocksDB's search for the place of each entry in
 * its memory, and that search starts at the place of the one before. Of several changes of one key only what
 * remains is handed on: a URL that came and was finished within a batch never gets to RocksDB's queue.
 */
#ifndef MNEMON_CRAWL_FRONTIER_FRONTIER_BATCH_H
#define MNEMON_CRAWL_FRONTIER_FRONTIER_BATCH_H

#include <rocksdb/c.h>

#include "base/buf.h"

enum frontier_change_kind {
    FRONTIER_CHANGE_PUT,
    FRONTIER_CHANGE_REMOVE, /* of the one put that there was */
    FRONTIER_CHANGE_ERASE,  /* of whatever was there */
};

struct frontier_change {
    uint64_t key_start; /* its first eight bytes, to compare */
    uint32_t offset;    /* of the key in data; the value follows */
    uint16_t key_size;
    uint8_t kind; /* enum frontier_change_kind */
    uint32_t value_size;
};

struct frontier_batch {
    struct buf data;
    struct frontier_change *changes;
    size_t count;
    size_t count_max;
};

void frontier_batch_init(struct frontier_batch *batch);
void frontier_batch_done(struct frontier_batch *batch);

/* Memory is kept for reuse. */
void frontier_batch_clear(struct frontier_batch *batch);

/* Without memory the process ends: a change that is forgotten would leave the frontier contradicting itself.
 */
void frontier_batch_put(struct frontier_batch *batch, struct bytes key, struct bytes value);

/* Of a key that was put exactly once since it was last removed. */
void frontier_batch_remove(struct frontier_batch *batch, struct bytes key);

/* Of a key that may have been put any number of times, and is never removed otherwise. Dearer on disk. */
void frontier_batch_erase(struct frontier_batch *batch, struct bytes key);

/* Bytes of keys and values. */
static inline size_t frontier_batch_size(const struct frontier_batch *batch) {
    return batch->data.size;
}

/* Append what is to be written. The batch is sorted, else as before. */
void frontier_batch_give(struct frontier_batch *batch, rocksdb_writebatch_t *writes);

#endif
