#include "crawl/frontier/frontier_batch.h"

#include <stdlib.h>

static const size_t DATA_SIZE_MAX = UINT32_MAX; /* far more than frontier_is_behind() lets come */

void frontier_batch_init(struct frontier_batch *batch) {
    *batch = (struct frontier_batch){0};
    buf_init(&batch->data, DATA_SIZE_MAX);
}

void frontier_batch_done(struct frontier_batch *batch) {
    buf_done(&batch->data);
    free(batch->changes);
}

void frontier_batch_clear(struct frontier_batch *batch) {
    buf_clear(&batch->data);
    batch->count = 0;
}

/* As a number that sorts as the bytes do. */
static uint64_t start_of(struct bytes key) {
    uint64_t start = 0;
    for (size_t i = 0; i < 8; i++) {
        start = start << 8 | (i < key.size ? key.data[i] : 0);
    }
    return start;
}

static void append(struct frontier_batch *batch, struct bytes key, struct bytes value,
                   enum frontier_change_kind kind) {
    ASSERT(key.size <= UINT16_MAX && value.size <= UINT32_MAX);
    if (batch->count == batch->count_max) {
        size_t count_max = batch->count_max * 2 + 256;
        struct frontier_change *changes = reallocarray(batch->changes, count_max, sizeof *changes);
        ASSERT(changes != NULL);
        batch->changes = changes;
        batch->count_max = count_max;
    }
    batch->changes[batch->count++] = (struct frontier_change){
        .key_start = start_of(key),
        .offset = (uint32_t)batch->data.size,
        .key_size = (uint16_t)key.size,
        .kind = (uint8_t)kind,
        .value_size = (uint32_t)value.size,
    };
    buf_put(&batch->data, key);
    buf_put(&batch->data, value);
    ASSERT(batch->data.err == ERR_OK);
}

void frontier_batch_put(struct frontier_batch *batch, struct bytes key, struct bytes value) {
    append(batch, key, value, FRONTIER_CHANGE_PUT);
}

void frontier_batch_remove(struct frontier_batch *batch, struct bytes key) {
    append(batch, key, bytes_of(NULL, 0), FRONTIER_CHANGE_REMOVE);
}

void frontier_batch_erase(struct frontier_batch *batch, struct bytes key) {
    append(batch, key, bytes_of(NULL, 0), FRONTIER_CHANGE_ERASE);
}

static struct bytes key_of(const struct frontier_batch *batch, const struct frontier_change *change) {
    return bytes_of(batch->data.data + change->offset, change->key_size);
}

/* By key, equal ones as they came. */
static int compare(const void *left, const void *right, void *context) {
    const struct frontier_change *a = left;
    const struct frontier_change *b = right;
    if (a->key_start != b->key_start) {
        return a->key_start < b->key_start ? -1 : 1;
    }
    int order = bytes_compare(key_of(context, a), key_of(context, b));
    if (order != 0) {
        return order;
    }
    return a->offset < b->offset ? -1 : 1; /* no two are at one place: keys are not empty */
}

static void give_one(const struct frontier_batch *batch, const struct frontier_change *change,
                     rocksdb_writebatch_t *writes) {
    const char *key = (const char *)batch->data.data + change->offset;
    switch ((enum frontier_change_kind)change->kind) {
    case FRONTIER_CHANGE_PUT:
        rocksdb_writebatch_put(writes, key, change->key_size, key + change->key_size, change->value_size);
        break;
    case FRONTIER_CHANGE_REMOVE:
        /* It and its put, of which there is exactly one, vanish where they meet, without a trace. */
        rocksdb_writebatch_singledelete(writes, key, change->key_size);
        break;
    case FRONTIER_CHANGE_ERASE:
        rocksdb_writebatch_delete(writes, key, change->key_size);
        break;
    }
}

/* What remains of the changes of one key. */
static void give_key(const struct frontier_batch *batch, const struct frontier_change *first, size_t count,
                     rocksdb_writebatch_t *writes) {
    const struct frontier_change *last = first + count - 1;
    if (first->kind == FRONTIER_CHANGE_REMOVE) {
        give_one(batch, first, writes); /* of a put before this batch */
    }
    if (last->kind != FRONTIER_CHANGE_REMOVE) {
        give_one(batch, last, writes); /* else it came and went */
    }
}

void frontier_batch_give(struct frontier_batch *batch, rocksdb_writebatch_t *writes) {
    qsort_r(batch->changes, batch->count, sizeof *batch->changes, compare, batch);
    for (size_t from = 0, to = 0; from < batch->count; from = to) {
        struct bytes key = key_of(batch, &batch->changes[from]);
        while (to < batch->count && bytes_equal(key_of(batch, &batch->changes[to]), key)) {
            to++;
        }
        give_key(batch, &batch->changes[from], to - from, writes);
    }
}
