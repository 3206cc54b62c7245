/*
 * index_spares - iterators over the captures of one SURT that have been used and may be used again.
 *
 * To make an iterator of RocksDB and to free it costs a sixth of a lookup over HTTP. One that was made since
 * the last commit still shows everything, so it waits here for the next lookup; after a commit it is freed.
 * It keeps old files of the index from being removed, so nobody keeps spares for long: index_settle() frees
 * them too.
 *
 * Any thread.
 */
#ifndef MNEMON_STORE_INDEX_INDEX_SPARES_H
#define MNEMON_STORE_INDEX_INDEX_SPARES_H

#include <pthread.h>
#include <rocksdb/c.h>
#include <stddef.h>
#include <stdint.h>

enum { INDEX_SPARES_MAX = 8 }; /* as many lookups at once gain by it */

struct index_spares {
    pthread_mutex_t lock;
    rocksdb_iterator_t *iterators[INDEX_SPARES_MAX]; /* lock */
    size_t count;                                    /* lock */
    uint64_t sequence;                               /* lock: of the database when they were made */
};

void index_spares_init(struct index_spares *spares);
void index_spares_done(struct index_spares *spares); /* none are left: index_spares_clear() */

/* One that shows the database as it is with this sequence number; NULL: make one. */
rocksdb_iterator_t *index_spares_take(struct index_spares *spares, uint64_t sequence);

/* It was made, or taken, with this sequence number. */
void index_spares_put(struct index_spares *spares, rocksdb_iterator_t *take_iterator, uint64_t sequence);
void index_spares_clear(struct index_spares *spares);

#endif
