/* Changes of a keyset: collected, written in one batch, then counted in the sums. */
#include <stdlib.h>

#include "base/wire.h"
#include "store/index/index_code.h"
#include "store/keyset/keyset_state.h"

void keyset_forget_changes(struct keyset *keyset) {
    keyset->changes_count = 0;
    buf_clear(&keyset->values);
    rocksdb_writebatch_clear(keyset->writes);
}

static enum err add_change(struct keyset *keyset, const struct keyset_change *change,
                           struct err_detail *detail) {
    keyset->changes[keyset->changes_count] = *change;
    keyset->changes[keyset->changes_count].number = (uint32_t)keyset->changes_count;
    keyset->changes_count++;
    return keyset->changes_count == KEYSET_PENDING_COUNT_MAX ? keyset_commit(keyset, detail) : ERR_OK;
}

enum err keyset_put(struct keyset *keyset, const struct capture *capture, struct err_detail *detail) {
    uint8_t volume[WIRE_VARINT_SIZE_MAX];
    struct wire_writer writer;
    if (keyset->values.size + KEYSET_ENTRY_SIZE_MAX > KEYSET_PENDING_SIZE_MAX) {
        enum err err = keyset_commit(keyset, detail);
        if (err != ERR_OK) {
            return err;
        }
    }
    ASSERT(capture->surt.size <= INDEX_SURT_SIZE_MAX);
    struct keyset_change change = {.key = keyset_key(keyset, capture), .value_offset = keyset->values.size};
    wire_writer_init(&writer, volume, sizeof volume);
    wire_write_varint(&writer, capture->volume);
    buf_put(&keyset->values, bytes_of(volume, writer.size));
    buf_put(&keyset->values, capture->surt);
    change.value_size = keyset->values.size - change.value_offset;
    if (keyset->values.err != ERR_OK) {
        return err_set(detail, keyset->values.err, "%s", err_text(keyset->values.err));
    }
    return add_change(keyset, &change, detail);
}

enum err keyset_remove(struct keyset *keyset, const struct ringkey *key, struct err_detail *detail) {
    struct keyset_change change = {.key = *key, .is_removal = true};
    return add_change(keyset, &change, detail);
}

void keyset_set_position(struct keyset *keyset, uint16_t volume, const struct index_position *position) {
    uint8_t memory[INDEX_CODE_SMALL_SIZE_MAX];
    struct keyset_row row = keyset_row_of_volume(volume);
    struct bytes value = index_code_position(memory, position);
    rocksdb_writebatch_put(keyset->writes, (const char *)row.bytes, row.size, (const char *)value.data,
                           value.size);
}

/* ---- a commit ---- */

static int compare_changes(const void *a, const void *b) {
    const struct keyset_change *left = a;
    const struct keyset_change *right = b;
    int order = ringkey_compare(&left->key, &right->key);
    return order != 0 ? order : (left->number > right->number) - (left->number < right->number);
}

/* Of several changes of one key the last one counts, and that only where it changes something. */
static enum err find_effective(struct keyset *keyset) {
    qsort(keyset->changes, keyset->changes_count, sizeof *keyset->changes, compare_changes);
    for (size_t i = 0; i < keyset->changes_count; i++) {
        struct keyset_change *change = &keyset->changes[i];
        bool is_last = i + 1 == keyset->changes_count || ringkey_compare(&change->key, &change[1].key) != 0;
        if (!is_last) {
            continue;
        }
        bool is_there;
        enum err err = keyset_contains(keyset, &change->key, &is_there);
        if (err != ERR_OK) {
            return err;
        }
        change->is_effective = is_there == change->is_removal;
    }
    return ERR_OK;
}

static void put_writes(struct keyset *keyset) {
    rocksdb_writebatch_t *writes = keyset->writes;
    for (size_t i = 0; i < keyset->changes_count; i++) {
        const struct keyset_change *change = &keyset->changes[i];
        struct keyset_row row = keyset_row_of_key(&change->key);
        struct keyset_row digest_row = keyset_row_of_digest(&change->key);
        if (!change->is_effective) {
            continue;
        }
        if (change->is_removal) {
            rocksdb_writebatch_delete(writes, (const char *)row.bytes, row.size);
            rocksdb_writebatch_delete(writes, (const char *)digest_row.bytes, digest_row.size);
        } else {
            rocksdb_writebatch_put(writes, (const char *)row.bytes, row.size,
                                   (const char *)keyset->values.data + change->value_offset,
                                   change->value_size);
            rocksdb_writebatch_put(writes, (const char *)digest_row.bytes, digest_row.size, "", 0);
        }
    }
}

/* ---- the sums follow ---- */

static void count_changes(struct keyset *keyset) {
    for (size_t i = 0; i < keyset->changes_count; i++) {
        const struct keyset_change *change = &keyset->changes[i];
        if (!change->is_effective) {
            continue;
        }
        struct ringkey_sum sum = ringkey_sum_of(&keyset->sha256, &change->key);
        struct keyset_position position = keyset_sums_find(&keyset->sums, &change->key);
        if (change->is_removal) {
            keyset_sums_subtract(&keyset->sums, position, &sum);
        } else {
            keyset_sums_add(&keyset->sums, position, &sum);
        }
    }
}

/* Into parts of equal size; from its end, so that the page stays true of what is left. */
static enum err divide(struct keyset *keyset, struct keyset_position position) {
    enum err err = keyset_load_page(keyset, position);
    const struct keyset_page *page = &keyset->page;
    size_t parts_count = (page->count + KEYSET_BUCKET_COUNT_NEW - 1) / KEYSET_BUCKET_COUNT_NEW;
    size_t end = page->count;
    for (size_t i = parts_count; err == ERR_OK && i-- > 1;) {
        size_t at = page->count * i / parts_count;
        struct ringkey lower = ringkey_bound(&page->keys[at - 1], &page->keys[at]);
        struct ringkey_sum sum = page->before[end];
        ringkey_sum_subtract(&sum, &page->before[at]);
        err = keyset_sums_divide(&keyset->sums, keyset_sums_find(&keyset->sums, &page->lower), &lower, &sum);
        end = at;
    }
    keyset->page.is_loaded = false;
    return err;
}

static enum err mind_buckets(struct keyset *keyset) {
    enum err err = ERR_OK;
    for (size_t i = 0; i < keyset->changes_count && err == ERR_OK; i++) {
        const struct keyset_change *change = &keyset->changes[i];
        struct keyset_position position = keyset_sums_find(&keyset->sums, &change->key);
        if (change->is_effective && change->is_removal) {
            keyset_sums_drop_empty(&keyset->sums, position);
        } else if (keyset_sums_bucket(&keyset->sums, position)->sum.count > KEYSET_BUCKET_COUNT_MAX) {
            err = divide(keyset, position);
        }
    }
    return err;
}

static enum err apply(struct keyset *keyset, struct err_detail *detail) {
    enum err err = find_effective(keyset);
    if (err != ERR_OK) {
        return err_set(detail, err, "the set of keys: %s", err_text(err));
    }
    put_writes(keyset);
    if (rocksdb_writebatch_count(keyset->writes) > 0) {
        err = keyset_database_write(&keyset->database, keyset->writes, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    keyset->page.is_loaded = false;
    count_changes(keyset);
    err = mind_buckets(keyset);
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "the set of keys: %s", err_text(err));
}

enum err keyset_commit(struct keyset *keyset, struct err_detail *detail) {
    if (keyset->database.rocksdb == NULL) {
        keyset_forget_changes(keyset);
        return err_set(detail, ERR_IO, "the set of keys is closed after an error");
    }
    enum err err = apply(keyset, detail);
    keyset_forget_changes(keyset);
    if (err != ERR_OK) {
        /* Sums and keys may differ now: closed until keyset_mend(). */
        keyset_database_close(&keyset->database);
    }
    return err;
}
