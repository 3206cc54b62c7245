/*
 * keyset_row - the rows of a set of keys in its database, as store/keyset/keyset.h draws them.
 */
#ifndef MNEMON_STORE_KEYSET_KEYSET_ROW_H
#define MNEMON_STORE_KEYSET_KEYSET_ROW_H

#include "store/keyset/keyset_sums.h"
#include "store/kv/kv.h"

enum { KEYSET_ROW_SIZE_MAX = 1 + RINGKEY_SIZE, KEYSET_ROW_SUM_SIZE_MAX = 32 };

/* What a row is found by. */
struct keyset_row {
    uint8_t bytes[KEYSET_ROW_SIZE_MAX];
    size_t size;
};

struct keyset_row keyset_row_of_key(const struct ringkey *key);
struct keyset_row keyset_row_of_digest(const struct ringkey *key);
struct keyset_row keyset_row_of_sum(const struct ringkey *lower);
struct keyset_row keyset_row_of_volume(uint16_t volume);
struct keyset_row keyset_row_of_format(void);

static inline struct bytes keyset_row_bytes(const struct keyset_row *row) {
    return bytes_of(row->bytes, row->size);
}

/* The value of a row of a sum; in out. */
struct bytes keyset_row_sum(const struct ringkey_sum *sum, uint8_t out[KEYSET_ROW_SUM_SIZE_MAX]);

/* The next row of that kind. ERR_NOT_FOUND behind the last of them; ERR_CORRUPT. */
enum err keyset_row_next_key(struct kv_iterator *iterator, struct ringkey *ret_key) MUST_CHECK;
enum err keyset_row_next_sum(struct kv_iterator *iterator, struct keyset_bucket *ret_bucket) MUST_CHECK;

#endif
