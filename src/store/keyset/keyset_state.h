/* keyset_state - what a keyset is made of, for the files that make it up: keyset.c, keyset_write.c. */
#ifndef MNEMON_STORE_KEYSET_KEYSET_STATE_H
#define MNEMON_STORE_KEYSET_KEYSET_STATE_H

#include "store/keyset/keyset.h"
#include "store/keyset/keyset_database.h"
#include "store/keyset/keyset_sums.h"

enum {
    KEYSET_BUCKET_COUNT_MAX = 96, /* keys; more and it is divided */
    KEYSET_BUCKET_COUNT_NEW = 64, /* in one that is made when opening or dividing, at most */
    KEYSET_PENDING_COUNT_MAX = 4096,
    KEYSET_PENDING_SIZE_MAX = 16 << 20, /* of their values */
    KEYSET_ENTRY_SIZE_MAX = INDEX_SURT_SIZE_MAX + 16,
};

/* The keys of one bucket, as they were read last: neighbouring ranges meet in the same bucket. */
struct keyset_page {
    bool is_loaded;
    struct ringkey lower; /* of the bucket */
    struct ringkey *keys;
    struct ringkey_sum *before; /* of all keys before each of them in the bucket, and at the end of all */
    size_t count;
    size_t capacity;
};

/* A change that was not committed yet. */
struct keyset_change {
    struct ringkey key;
    uint32_t number; /* in the order of their coming: the last change of a key counts */
    bool is_removal;
    bool is_effective; /* while committing: the set really changes */
    size_t value_offset;
    size_t value_size;
};

struct keyset {
    struct keyset_database database;
    enum position_mapping mapping;
    struct sha256 sha256;
    struct keyset_sums sums;
    struct keyset_page page;
    struct keyset_change *changes; /* KEYSET_PENDING_COUNT_MAX */
    size_t changes_count;
    struct buf values;            /* of the changes */
    rocksdb_writebatch_t *writes; /* positions; when committing the changes too */
    struct buf entry;             /* that was read last */
    char remade[ERR_TEXT_SIZE_MAX];
};

/* The keys of the bucket, in keyset->page. ERR_CORRUPT where they are not as many as the sums say. */
enum err keyset_load_page(struct keyset *keyset, struct keyset_position position) MUST_CHECK;

/* Forget what is pending. */
void keyset_forget_changes(struct keyset *keyset);

#endif
