#include "store/keyset/keyset_row.h"

#include "base/wire.h"

struct keyset_row keyset_row_of_key(const struct ringkey *key) {
    struct keyset_row row = {.bytes = {'k'}, .size = 1 + RINGKEY_SIZE};
    memcpy(row.bytes + 1, key->bytes, RINGKEY_SIZE);
    return row;
}

struct keyset_row keyset_row_of_digest(const struct ringkey *key) {
    struct keyset_row row = {.bytes = {'d'}, .size = 1 + RINGKEY_SIZE};
    memcpy(row.bytes + 1, ringkey_digest(key), RINGKEY_DIGEST_SIZE);
    memcpy(row.bytes + 1 + RINGKEY_DIGEST_SIZE, key->bytes, RINGKEY_SIZE - RINGKEY_DIGEST_SIZE);
    return row;
}

struct keyset_row keyset_row_of_sum(const struct ringkey *lower) {
    struct keyset_row row = {.bytes = {'s'}, .size = 1 + RINGKEY_SIZE};
    memcpy(row.bytes + 1, lower->bytes, RINGKEY_SIZE);
    return row;
}

struct keyset_row keyset_row_of_volume(uint16_t volume) {
    return (struct keyset_row){.bytes = {'p', (uint8_t)(volume >> 8), (uint8_t)volume}, .size = 3};
}

struct keyset_row keyset_row_of_format(void) {
    return (struct keyset_row){.bytes = "mformat", .size = 7};
}

struct bytes keyset_row_sum(const struct ringkey_sum *sum, uint8_t out[KEYSET_ROW_SUM_SIZE_MAX]) {
    struct wire_writer writer;
    wire_writer_init(&writer, out, KEYSET_ROW_SUM_SIZE_MAX);
    wire_write_varint(&writer, sum->count);
    wire_write_u64(&writer, sum->low);
    wire_write_u64(&writer, sum->high);
    return bytes_of(out, writer.size);
}

static enum err row_next(struct kv_iterator *iterator, char kind, struct ringkey *ret_key) {
    enum err err = kv_iterator_next(iterator, NULL);
    if (err != ERR_OK) {
        return err;
    }
    if (iterator->key.size == 0 || iterator->key.data[0] != kind) {
        return ERR_NOT_FOUND;
    }
    if (iterator->key.size != 1 + RINGKEY_SIZE) {
        return ERR_CORRUPT;
    }
    memcpy(ret_key->bytes, iterator->key.data + 1, RINGKEY_SIZE);
    return ERR_OK;
}

enum err keyset_row_next_key(struct kv_iterator *iterator, struct ringkey *ret_key) {
    return row_next(iterator, 'k', ret_key);
}

enum err keyset_row_next_sum(struct kv_iterator *iterator, struct keyset_bucket *ret_bucket) {
    enum { COUNT_BITS = 48 };
    struct wire_reader reader;
    enum err err = row_next(iterator, 's', &ret_bucket->lower);
    if (err != ERR_OK) {
        return err;
    }
    wire_reader_init(&reader, iterator->value);
    ret_bucket->sum.count = wire_read_varint(&reader, UINT64_C(1) << COUNT_BITS);
    ret_bucket->sum.low = wire_read_u64(&reader);
    ret_bucket->sum.high = wire_read_u64(&reader);
    return wire_reader_finish(&reader, NULL) == ERR_OK ? ERR_OK : ERR_CORRUPT;
}
