#include "store/keyset/keyset_digests.h"

enum {
    PLACE_ROW_SIZE = 1 + RINGKEY_DIGEST_SIZE + RINGKEY_POSITION_SIZE,
    KEY_ROW_SIZE = 1 + RINGKEY_SIZE,
    BATCH_COUNT = 4096,
};

static const uint8_t *time_of(const struct ringkey *key) {
    return key->bytes + RINGKEY_POSITION_SIZE;
}

static bool is_same_place(const struct ringkey *a, const struct ringkey *b) {
    return memcmp(a->bytes, b->bytes, RINGKEY_POSITION_SIZE) == 0;
}

static bool is_same_digest(const struct ringkey *a, const struct ringkey *b) {
    return memcmp(ringkey_digest(a), ringkey_digest(b), RINGKEY_DIGEST_SIZE) == 0;
}

/* What a row of either kind is found by. */
static struct keyset_row digests_row(const struct keyset_digests *digests, const struct ringkey *key) {
    struct keyset_row row = keyset_row_of_digest(key);
    row.size = digests->is_by_place ? PLACE_ROW_SIZE : KEY_ROW_SIZE;
    return row;
}

/* The other way round; of a row by place the time is in the value. */
static enum err digests_read(struct bytes row, struct bytes value, struct ringkey *ret_key) {
    bool is_by_place = row.size == PLACE_ROW_SIZE && value.size == RINGKEY_TIME_SIZE;
    if (!is_by_place && row.size != KEY_ROW_SIZE) {
        return ERR_CORRUPT;
    }
    const uint8_t *digest = row.data + 1;
    const uint8_t *place = digest + RINGKEY_DIGEST_SIZE;
    *ret_key = ringkey_make(place, 0, digest);
    memcpy(ret_key->bytes + RINGKEY_POSITION_SIZE, is_by_place ? value.data : place + RINGKEY_POSITION_SIZE,
           RINGKEY_TIME_SIZE);
    return ERR_OK;
}

static void digests_put_row(const struct keyset_digests *digests, const struct ringkey *key,
                            struct kv_batch *batch) {
    struct keyset_row row = digests_row(digests, key);
    struct bytes value = digests->is_by_place ? bytes_of(time_of(key), RINGKEY_TIME_SIZE) : bytes_of(NULL, 0);
    kv_batch_put(batch, 0, keyset_row_bytes(&row), value);
}

/* The row of the key, by place, as a key of its time. */
static enum err digests_get(const struct keyset_digests *digests, const struct ringkey *key,
                            struct ringkey *ret_first) {
    struct keyset_row row = digests_row(digests, key);
    struct kv_value value;
    enum err err = kv_get(digests->kv, 0, keyset_row_bytes(&row), KV_GET, &value);
    if (err != ERR_OK) {
        return err;
    }
    err = digests_read(keyset_row_bytes(&row), value.bytes, ret_first);
    kv_value_done(&value);
    return err;
}

enum err keyset_digests_put(const struct keyset_digests *digests, const struct ringkey *key,
                            struct kv_batch *batch) {
    struct ringkey first;
    enum err err = digests->is_by_place ? digests_get(digests, key, &first) : ERR_NOT_FOUND;
    if (err == ERR_NOT_FOUND || (err == ERR_OK && ringkey_compare(key, &first) < 0)) {
        digests_put_row(digests, key, batch);
        return ERR_OK;
    }
    return err;
}

void keyset_digests_remove(const struct keyset_digests *digests, const struct ringkey *key,
                           struct kv_batch *batch) {
    if (!digests->is_by_place) {
        struct keyset_row row = digests_row(digests, key);
        kv_batch_remove(batch, 0, keyset_row_bytes(&row));
    }
}

/* The first key of this place and digest from a key on. */
static enum err digests_find_at(const struct keyset_digests *digests, const struct ringkey *from,
                                bool is_behind, struct ringkey *ret_key) {
    struct keyset_row start = keyset_row_of_key(from);
    struct kv_iterator iterator;
    struct ringkey key;
    enum err err = kv_iterator_init(&iterator, digests->kv, 0, KV_WALK, keyset_row_bytes(&start),
                                    bytes_of(NULL, 0), false);
    if (err != ERR_OK) {
        return err;
    }
    while ((err = keyset_row_next_key(&iterator, &key)) == ERR_OK) {
        bool is_passed = is_behind && ringkey_compare(&key, from) == 0;
        if (!is_same_place(&key, from) || (is_same_digest(&key, from) && !is_passed)) {
            break;
        }
    }
    kv_iterator_done(&iterator);
    if (err == ERR_OK && !is_same_place(&key, from)) {
        return ERR_NOT_FOUND;
    }
    if (err == ERR_OK) {
        *ret_key = key;
    }
    return err;
}

enum err keyset_digests_settle(const struct keyset_digests *digests, const struct ringkey *key,
                               struct kv_batch *batch) {
    struct ringkey first;
    struct ringkey found;
    if (!digests->is_by_place) {
        return ERR_OK;
    }
    enum err err = digests_get(digests, key, &first);
    if (err != ERR_OK) {
        return err == ERR_NOT_FOUND ? ERR_OK : err;
    }
    err = digests_find_at(digests, &first, false, &found);
    if (err == ERR_NOT_FOUND) {
        struct keyset_row row = digests_row(digests, key);
        kv_batch_remove(batch, 0, keyset_row_bytes(&row));
        return ERR_OK;
    }
    if (err == ERR_OK && ringkey_compare(&found, &first) > 0) {
        digests_put_row(digests, &found, batch);
    }
    return err;
}

/* In the rows of the digest from one on: the next key, or the place where the next keys begin. */
static enum err digests_next_row(struct kv_iterator *iterator, const uint8_t digest[RINGKEY_DIGEST_SIZE],
                                 struct ringkey *ret_key) {
    enum err err = kv_iterator_next(iterator, NULL);
    if (err != ERR_OK) {
        return err;
    }
    bool is_of_digest = iterator->key.size > RINGKEY_DIGEST_SIZE && iterator->key.data[0] == 'd' &&
                        memcmp(iterator->key.data + 1, digest, RINGKEY_DIGEST_SIZE) == 0;
    return is_of_digest ? digests_read(iterator->key, iterator->value, ret_key) : ERR_NOT_FOUND;
}

enum err keyset_digests_find(const struct keyset_digests *digests, const uint8_t digest[RINGKEY_DIGEST_SIZE],
                             const struct ringkey *behind, struct ringkey *ret_key) {
    static const uint8_t zero[RINGKEY_POSITION_SIZE];
    struct ringkey from = behind != NULL ? *behind : ringkey_make(zero, INT64_MIN, digest);
    struct keyset_row start = digests_row(digests, &from);
    struct kv_iterator iterator;
    struct ringkey found;
    enum err err = ERR_NOT_FOUND;
    if (behind != NULL && digests->is_by_place) {
        err = digests_find_at(digests, behind, true, &found);
    }
    if (err == ERR_NOT_FOUND) {
        err = kv_iterator_init(&iterator, digests->kv, 0, KV_WALK, keyset_row_bytes(&start),
                               bytes_of(NULL, 0), false);
        if (err != ERR_OK) {
            return err;
        }
        while ((err = digests_next_row(&iterator, digest, &found)) == ERR_OK) {
            if (!digests->is_by_place && (behind == NULL || ringkey_compare(&found, behind) != 0)) {
                break;
            }
            if (!digests->is_by_place || (behind != NULL && is_same_place(&found, behind))) {
                continue; /* what is behind there was looked for */
            }
            err = digests_find_at(digests, &found, false, &found);
            if (err != ERR_NOT_FOUND) {
                break;
            }
        }
        kv_iterator_done(&iterator);
    }
    if (err == ERR_OK) {
        *ret_key = found;
    }
    return err;
}

static enum err digests_write(const struct keyset_digests *digests, struct kv_batch *batch,
                              size_t count_min) {
    if (batch->count < count_min && batch->err == ERR_OK) {
        return ERR_OK;
    }
    enum err err = kv_write(digests->kv, batch, NULL);
    kv_batch_clear(batch);
    return err;
}

enum err keyset_digests_convert(const struct keyset_digests *digests, struct kv_batch *batch) {
    struct kv_iterator iterator;
    struct ringkey key;
    struct ringkey last;
    bool has_last = false;
    enum err err = kv_iterator_init(&iterator, digests->kv, 0, KV_WALK_ALL, BYTES("d"), BYTES("e"), false);
    if (err != ERR_OK) {
        return err;
    }
    while ((err = kv_iterator_next(&iterator, NULL)) == ERR_OK) {
        err = digests_read(iterator.key, iterator.value, &key);
        if (err != ERR_OK) {
            break;
        }
        bool is_first = !has_last || !is_same_place(&key, &last) || !is_same_digest(&key, &last);
        if (iterator.key.size == KEY_ROW_SIZE) {
            kv_batch_remove(batch, 0, iterator.key);
            if (is_first) {
                digests_put_row(digests, &key, batch);
            }
        }
        last = key;
        has_last = true;
        err = digests_write(digests, batch, BATCH_COUNT);
        if (err != ERR_OK) {
            break;
        }
    }
    kv_iterator_done(&iterator);
    err = err == ERR_NOT_FOUND ? ERR_OK : err;
    return err == ERR_OK ? digests_write(digests, batch, 1) : err;
}
