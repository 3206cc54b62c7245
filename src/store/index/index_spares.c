#include "store/index/index_spares.h"

#include "base/assert.h"

void index_spares_init(struct index_spares *spares) {
    *spares = (struct index_spares){0};
    pthread_mutex_init(&spares->lock, NULL);
}

void index_spares_done(struct index_spares *spares) {
    ASSERT(spares->count == 0);
    pthread_mutex_destroy(&spares->lock);
}

/* With the lock. */
static void clear(struct index_spares *spares) {
    while (spares->count > 0) {
        rocksdb_iter_destroy(spares->iterators[--spares->count]);
    }
}

void index_spares_clear(struct index_spares *spares) {
    pthread_mutex_lock(&spares->lock);
    clear(spares);
    pthread_mutex_unlock(&spares->lock);
}

rocksdb_iterator_t *index_spares_take(struct index_spares *spares, uint64_t sequence) {
    rocksdb_iterator_t *iterator = NULL;
    pthread_mutex_lock(&spares->lock);
    if (spares->count > 0 && spares->sequence == sequence) {
        iterator = spares->iterators[--spares->count];
    }
    pthread_mutex_unlock(&spares->lock);
    return iterator;
}

void index_spares_put(struct index_spares *spares, rocksdb_iterator_t *take_iterator, uint64_t sequence) {
    pthread_mutex_lock(&spares->lock);
    if (sequence > spares->sequence) {
        clear(spares);
        spares->sequence = sequence;
    }
    if (sequence == spares->sequence && spares->count < INDEX_SPARES_MAX) {
        spares->iterators[spares->count++] = take_iterator;
        take_iterator = NULL;
    }
    pthread_mutex_unlock(&spares->lock);
    if (take_iterator != NULL) {
        rocksdb_iter_destroy(take_iterator);
    }
}
