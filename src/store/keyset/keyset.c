#include "store/keyset/keyset.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/wire.h"
#include "store/index/index_code.h"
#include "store/keyset/keyset_state.h"

enum { FORMAT_VERSION = 1, FORMAT_SIZE = 2 };

/* ---- opening ---- */

static enum err check_format(struct keyset *keyset, struct err_detail *detail) {
    struct keyset_row row = keyset_row_of_format();
    const uint8_t format[FORMAT_SIZE] = {FORMAT_VERSION, (uint8_t)keyset->mapping};
    enum err err = keyset_database_get(&keyset->database, &row, &keyset->entry);
    if (err == ERR_OK) {
        return bytes_equal(buf_bytes(&keyset->entry), bytes_of(format, sizeof format))
                   ? ERR_OK
                   : err_set(detail, ERR_MISMATCH, "the set of keys has another format or mapping");
    }
    if (err != ERR_NOT_FOUND) {
        return err_set(detail, err, "the set of keys: %s", err_text(err));
    }
    rocksdb_writebatch_t *writes = rocksdb_writebatch_create();
    rocksdb_writebatch_put(writes, (const char *)row.bytes, row.size, (const char *)format, sizeof format);
    err = keyset_database_write(&keyset->database, writes, detail);
    rocksdb_writebatch_destroy(writes);
    return err;
}

/* Behind all keys so far: into the last bucket, or into a new one behind it. */
static enum err append_sum(struct keyset *keyset, const struct ringkey *before, const struct ringkey *key) {
    struct keyset_sums *sums = &keyset->sums;
    struct keyset_position last = {.slot = sums->slots_count - 1};
    last.bucket = sums->slots[last.slot].chunk->count - 1;
    struct ringkey_sum sum = ringkey_sum_of(&keyset->sha256, key);
    bool is_full = keyset_sums_bucket(sums, last)->sum.count >= KEYSET_BUCKET_COUNT_NEW;
    keyset_sums_add(sums, last, &sum);
    if (!is_full) {
        return ERR_OK;
    }
    struct ringkey lower = ringkey_bound(before, key);
    return keyset_sums_divide(sums, last, &lower, &sum);
}

static enum err load_sums(struct keyset *keyset, struct err_detail *detail) {
    static const struct ringkey zero;
    struct keyset_row first = keyset_row_of_key(&zero);
    struct keyset_cursor cursor;
    struct ringkey key;
    struct ringkey before = zero;
    enum err err = keyset_sums_init(&keyset->sums);
    err = err == ERR_OK ? keyset_cursor_init(&cursor, &keyset->database, &first, true) : err;
    if (err != ERR_OK) {
        return err_set(detail, err, "the set of keys: %s", err_text(err));
    }
    while ((err = keyset_cursor_next_key(&cursor, &key)) == ERR_OK) {
        err = append_sum(keyset, &before, &key);
        if (err != ERR_OK) {
            break;
        }
        before = key;
    }
    keyset_cursor_done(&cursor);
    return err == ERR_NOT_FOUND ? ERR_OK : err_set(detail, err, "the set of keys: %s", err_text(err));
}

static void unload(struct keyset *keyset) {
    keyset_forget_changes(keyset);
    keyset->page.is_loaded = false;
    keyset_sums_done(&keyset->sums);
    keyset_database_close(&keyset->database);
}

static enum err load(struct keyset *keyset, struct err_detail *detail) {
    enum err err = keyset_database_open(&keyset->database, detail);
    err = err == ERR_OK ? check_format(keyset, detail) : err;
    err = err == ERR_OK ? load_sums(keyset, detail) : err;
    if (err != ERR_OK) {
        unload(keyset);
    }
    return err;
}

enum err keyset_clear(struct keyset *keyset, const char *reason, struct err_detail *detail) {
    snprintf(keyset->remade, sizeof keyset->remade, "%s", reason);
    unload(keyset);
    enum err err = keyset_database_destroy(&keyset->database, detail);
    return err == ERR_OK ? load(keyset, detail) : err;
}

enum err keyset_mend(struct keyset *keyset, struct err_detail *detail) {
    struct err_detail first = {0};
    unload(keyset);
    enum err err = load(keyset, &first);
    if (err == ERR_CORRUPT || err == ERR_MISMATCH) {
        return keyset_clear(keyset, err_detail_text(&first, err), detail);
    }
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s", err_detail_text(&first, err));
}

const char *keyset_remade(const struct keyset *keyset) {
    return keyset->remade;
}

enum err keyset_open(const char *directory, enum position_mapping mapping, struct keyset **ret_keyset,
                     struct err_detail *detail) {
    struct keyset *keyset = calloc(1, sizeof *keyset);
    if (keyset == NULL) {
        return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    }
    keyset->mapping = mapping;
    buf_init(&keyset->values, KEYSET_PENDING_SIZE_MAX);
    buf_init(&keyset->entry, KEYSET_ENTRY_SIZE_MAX);
    keyset->writes = rocksdb_writebatch_create();
    keyset->changes = calloc(KEYSET_PENDING_COUNT_MAX, sizeof *keyset->changes);
    enum err err = keyset_database_init(&keyset->database, directory);
    err = err == ERR_OK ? sha256_init(&keyset->sha256) : err;
    if (err != ERR_OK || keyset->changes == NULL) {
        keyset_close(keyset);
        return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    }
    err = keyset_mend(keyset, detail);
    if (err != ERR_OK) {
        keyset_close(keyset);
        return err;
    }
    *ret_keyset = keyset;
    return ERR_OK;
}

void keyset_close(struct keyset *keyset) {
    unload(keyset);
    keyset_database_done(&keyset->database);
    if (keyset->sha256.context != NULL) {
        sha256_done(&keyset->sha256);
    }
    rocksdb_writebatch_destroy(keyset->writes);
    buf_done(&keyset->values);
    buf_done(&keyset->entry);
    free(keyset->page.keys);
    free(keyset->page.before);
    free(keyset->changes);
    free(keyset);
}

/* ---- looking up ---- */

uint64_t keyset_count(const struct keyset *keyset) {
    return keyset_sums_all(&keyset->sums).count;
}

struct ringkey keyset_key(struct keyset *keyset, const struct capture *capture) {
    return position_capture_key(&keyset->sha256, capture, keyset->mapping);
}

enum err keyset_find(struct keyset *keyset, const struct ringkey *key, struct keyset_entry *ret_entry) {
    struct keyset_row row = keyset_row_of_key(key);
    enum err err = keyset_database_get(&keyset->database, &row, &keyset->entry);
    if (err != ERR_OK) {
        return err;
    }
    struct wire_reader reader;
    wire_reader_init(&reader, buf_bytes(&keyset->entry));
    struct keyset_entry entry = {.volume = (uint16_t)wire_read_varint(&reader, UINT16_MAX)};
    entry.surt = wire_read_bytes(&reader, wire_reader_left(&reader));
    if (wire_reader_finish(&reader, NULL) != ERR_OK) {
        return ERR_CORRUPT;
    }
    *ret_entry = entry;
    return ERR_OK;
}

enum err keyset_contains(struct keyset *keyset, const struct ringkey *key, bool *ret_contains) {
    struct keyset_row row = keyset_row_of_key(key);
    enum err err = keyset_database_get(&keyset->database, &row, NULL);
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        return err;
    }
    *ret_contains = err == ERR_OK;
    return ERR_OK;
}

enum err keyset_find_digest(struct keyset *keyset, const uint8_t digest[RINGKEY_DIGEST_SIZE],
                            const struct ringkey *behind, struct ringkey *ret_key) {
    static const uint8_t zero[RINGKEY_POSITION_SIZE];
    struct ringkey start = ringkey_make(zero, INT64_MIN, digest);
    struct keyset_row row = keyset_row_of_digest(behind != NULL ? behind : &start);
    struct keyset_cursor cursor;
    struct bytes found;
    enum err err = keyset_cursor_init(&cursor, &keyset->database, &row, false);
    if (err != ERR_OK) {
        return err;
    }
    err = keyset_cursor_next(&cursor, &found);
    if (err == ERR_OK && behind != NULL && bytes_equal(found, bytes_of(row.bytes, row.size))) {
        err = keyset_cursor_next(&cursor, &found);
    }
    if (err == ERR_OK && !bytes_starts_with(found, bytes_of(row.bytes, 1 + RINGKEY_DIGEST_SIZE))) {
        err = ERR_NOT_FOUND;
    } else if (err == ERR_OK && found.size != 1 + RINGKEY_SIZE) {
        err = ERR_CORRUPT;
    } else if (err == ERR_OK) {
        size_t start_size = RINGKEY_SIZE - RINGKEY_DIGEST_SIZE;
        memcpy(ret_key->bytes, found.data + 1 + RINGKEY_DIGEST_SIZE, start_size);
        memcpy(ret_key->bytes + start_size, found.data + 1, RINGKEY_DIGEST_SIZE);
    }
    keyset_cursor_done(&cursor);
    return err;
}

enum err keyset_position(struct keyset *keyset, uint16_t volume, struct index_position *ret_position) {
    struct keyset_row row = keyset_row_of_volume(volume);
    enum err err = keyset_database_get(&keyset->database, &row, &keyset->entry);
    if (err == ERR_NOT_FOUND) {
        *ret_position = (struct index_position){0};
        return ERR_OK;
    }
    return err == ERR_OK ? index_code_read_position(buf_bytes(&keyset->entry), ret_position) : err;
}

enum err keyset_find_volume(struct keyset *keyset, uint16_t from, uint16_t *ret_volume) {
    struct keyset_row first = keyset_row_of_volume(from);
    struct keyset_cursor cursor;
    struct bytes row;
    enum err err = keyset_cursor_init(&cursor, &keyset->database, &first, false);
    if (err != ERR_OK) {
        return err;
    }
    err = keyset_cursor_next(&cursor, &row);
    bool is_position = err == ERR_OK && row.size == first.size && row.data[0] == first.bytes[0];
    if (is_position) {
        *ret_volume = (uint16_t)(row.data[1] << 8 | row.data[2]);
    }
    keyset_cursor_done(&cursor);
    return err == ERR_OK && !is_position ? ERR_NOT_FOUND : err;
}

size_t keyset_memory_size(const struct keyset *keyset) {
    return keyset_sums_size(&keyset->sums);
}
