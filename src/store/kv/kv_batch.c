#include "store/kv/kv_batch.h"

#include <stdlib.h>

static const size_t DATA_SIZE_MAX = UINT32_MAX;

void kv_batch_init(struct kv_batch *batch) {
    *batch = (struct kv_batch){0};
    buf_init(&batch->data, DATA_SIZE_MAX);
}

void kv_batch_done(struct kv_batch *batch) {
    buf_done(&batch->data);
    free(batch->changes);
}

void kv_batch_clear(struct kv_batch *batch) {
    buf_clear(&batch->data);
    batch->count = 0;
    batch->err = ERR_OK;
}

/* ---- gathering ---- */

/* As a number that sorts as the bytes do. */
static uint64_t kv_batch_start_of(struct bytes key) {
    uint64_t start = 0;
    for (size_t i = 0; i < sizeof start; i++) {
        start = start << 8 | (i < key.size ? key.data[i] : 0);
    }
    return start;
}

/* By at least `count`. */
static enum err kv_batch_grow(struct kv_batch *batch, size_t count) {
    size_t count_max = batch->count_max * 2 + (count > 64 ? count : 64);
    struct kv_change *changes = reallocarray(batch->changes, count_max, sizeof *changes);
    if (changes == NULL) {
        return ERR_MEMORY;
    }
    batch->changes = changes;
    batch->count_max = count_max;
    return ERR_OK;
}

enum err kv_batch_reserve(struct kv_batch *batch, size_t count, size_t size) {
    if (batch->err != ERR_OK) {
        return batch->err;
    }
    enum err err = batch->count + count <= batch->count_max ? ERR_OK : kv_batch_grow(batch, count);
    if (err == ERR_OK) {
        err = buf_reserve(&batch->data, size);
        batch->data.err = ERR_OK; /* nothing was put that is not there */
    }
    return err;
}

static void kv_batch_append(struct kv_batch *batch, size_t family, enum kv_change_kind kind, struct bytes key,
                            struct bytes value) {
    ASSERT(family <= UINT8_MAX && key.size > 0);
    struct kv_change change = {
        .key_start = kv_batch_start_of(key),
        .offset = (uint32_t)batch->data.size,
        .key_size = (uint32_t)key.size,
        .value_size = (uint32_t)value.size,
        .family = (uint8_t)family,
        .kind = (uint8_t)kind,
    };
    enum err err = batch->count < batch->count_max ? ERR_OK : kv_batch_grow(batch, 1);
    buf_put(&batch->data, key);
    buf_put(&batch->data, value);
    err = err == ERR_OK ? batch->data.err : err;
    if (err != ERR_OK) {
        batch->err = batch->err != ERR_OK ? batch->err : err;
        return;
    }
    batch->changes[batch->count++] = change;
}

void kv_batch_put(struct kv_batch *batch, size_t family, struct bytes key, struct bytes value) {
    kv_batch_append(batch, family, KV_CHANGE_PUT, key, value);
}

void kv_batch_remove(struct kv_batch *batch, size_t family, struct bytes key) {
    kv_batch_append(batch, family, KV_CHANGE_REMOVE, key, bytes_of(NULL, 0));
}

void kv_batch_remove_once(struct kv_batch *batch, size_t family, struct bytes key) {
    kv_batch_append(batch, family, KV_CHANGE_REMOVE_ONCE, key, bytes_of(NULL, 0));
}

bool kv_batch_has_prefix(const struct kv_batch *batch, size_t family, struct bytes prefix) {
    uint64_t start = kv_batch_start_of(prefix);
    uint64_t mask = prefix.size >= sizeof start ? UINT64_MAX : ~(UINT64_MAX >> 8 * prefix.size);
    for (size_t i = 0; i < batch->count; i++) {
        const struct kv_change *change = &batch->changes[i];
        if (change->family == family && (change->key_start & mask) == start &&
            bytes_starts_with(kv_batch_key(batch, change), prefix)) {
            return true;
        }
    }
    return false;
}

/* ---- the order of keys ---- */

/* By family, then by key. */
static int kv_batch_compare(const struct kv_batch *batch, const struct kv_change *a,
                            const struct kv_change *b) {
    if (a->family != b->family) {
        return a->family < b->family ? -1 : 1;
    }
    if (a->key_start != b->key_start) {
        return a->key_start < b->key_start ? -1 : 1;
    }
    return bytes_compare(kv_batch_key(batch, a), kv_batch_key(batch, b));
}

/* Equal ones as they came. */
static int kv_batch_order(const void *left, const void *right, void *context) {
    const struct kv_change *a = left;
    const struct kv_change *b = right;
    int order = kv_batch_compare(context, a, b);
    if (order != 0) {
        return order;
    }
    return a->offset < b->offset ? -1 : 1; /* no two are at one place: keys are not empty */
}

/* What remains of the changes of one key, behind the first `count` of the batch, which are done. */
static size_t kv_batch_reduce(struct kv_batch *batch, size_t count, size_t from, size_t to) {
    struct kv_change first = batch->changes[from];
    struct kv_change last = batch->changes[to - 1];
    if (first.kind == KV_CHANGE_REMOVE_ONCE) {
        batch->changes[count++] = first; /* of a put before this batch */
    }
    if (last.kind != KV_CHANGE_REMOVE_ONCE) {
        batch->changes[count++] = last; /* else it came and went */
    }
    return count;
}

void kv_batch_sort(struct kv_batch *batch) {
    size_t count = 0;
    if (batch->count > 0) {
        qsort_r(batch->changes, batch->count, sizeof *batch->changes, kv_batch_order, batch);
    }
    for (size_t from = 0, to = 0; from < batch->count; from = to) {
        while (to < batch->count &&
               kv_batch_compare(batch, &batch->changes[from], &batch->changes[to]) == 0) {
            to++;
        }
        count = kv_batch_reduce(batch, count, from, to);
    }
    batch->count = count;
}
