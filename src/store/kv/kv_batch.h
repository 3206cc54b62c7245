/*
 * kv_batch - changes of a database (store/kv/kv.h) that are to be written together, gathered cheaply and kept
 * in the order of their keys.
 *
 * The order is what it is for: a third to a half of what an entry costs is the database's search for its
 * place in memory, and that search starts at the place of the entry before. Of several changes of one key
 * only what remains is written: a URL that came and was finished within a batch never reaches the database.
 *
 * The first failure sticks until kv_batch_clear(); kv_write() returns it. One thread at a time. A batch may
 * be copied to another place like any struct, as long as only one of the two is used afterwards.
 */
#ifndef MNEMON_STORE_KV_KV_BATCH_H
#define MNEMON_STORE_KV_KV_BATCH_H

#include "base/buf.h"

enum kv_change_kind {
    KV_CHANGE_PUT,
    KV_CHANGE_REMOVE,      /* whatever was there */
    KV_CHANGE_REMOVE_ONCE, /* the one put that there was */
};

struct kv_change {
    uint64_t key_start; /* its first eight bytes, to compare */
    uint32_t offset;    /* of the key in data; the value follows */
    uint32_t key_size;
    uint32_t value_size;
    uint8_t family;
    uint8_t kind; /* enum kv_change_kind */
};

struct kv_batch {
    struct buf data;
    struct kv_change *changes;
    size_t count;
    size_t count_max;
    enum err err;
};

void kv_batch_init(struct kv_batch *batch);
void kv_batch_done(struct kv_batch *batch);

/* Empty again, error forgotten. Memory is kept for reuse. */
void kv_batch_clear(struct kv_batch *batch);

/*
 * Room for so many more changes, whose keys and values have that size together: putting them cannot fail
 * then. On failure the batch is as it was, without an error that sticks.
 */
enum err kv_batch_reserve(struct kv_batch *batch, size_t count, size_t size) MUST_CHECK;

/* No key is empty. */
void kv_batch_put(struct kv_batch *batch, size_t family, struct bytes key, struct bytes value);

/* A key that may have been put any number of times. */
void kv_batch_remove(struct kv_batch *batch, size_t family, struct bytes key);

/* A key that was put exactly once since it was last removed, and is never removed otherwise. Cheaper on disk:
 * the put and its removal vanish when they meet, without a trace. */
void kv_batch_remove_once(struct kv_batch *batch, size_t family, struct bytes key);

/* Is there a change of a key that begins so? Looks at all changes. */
bool kv_batch_has_prefix(const struct kv_batch *batch, size_t family, struct bytes prefix);

/* Sort by family and key, and drop what other changes make void. Does nothing more when done again. */
void kv_batch_sort(struct kv_batch *batch);

/* Bytes of keys and values. */
static inline size_t kv_batch_size(const struct kv_batch *batch) {
    return batch->data.size;
}

static inline struct bytes kv_batch_key(const struct kv_batch *batch, const struct kv_change *change) {
    return bytes_of(batch->data.data + change->offset, change->key_size);
}

static inline struct bytes kv_batch_value(const struct kv_batch *batch, const struct kv_change *change) {
    return bytes_of(batch->data.data + change->offset + change->key_size, change->value_size);
}

#endif
