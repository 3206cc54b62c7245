#include "store/index/index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/wire.h"
#include "store/index/index_code.h"
#include "store/index/index_database.h"

enum {
    FORMAT_VERSION = 3,
    DIRECTORY_MODE = 0755,
    LEVELS_COUNT = 7,  /* of RocksDB, where nothing else is said */
    SETTLE_SHARE = 20, /* one file is merged into so many at most */
};

/* ---- opening ---- */

/* The slice keeps what it needs of the database in memory, so it outlives the gate. */
static enum err get_with(const struct index *index, const rocksdb_readoptions_t *options,
                         enum index_family family, struct bytes key, rocksdb_pinnableslice_t **ret_slice) {
    char *message = NULL;
    enum err err = index_database_enter(index);
    if (err != ERR_OK) {
        return err;
    }
    rocksdb_set_perf_level(rocksdb_disable); /* of this thread, whosever it is: counting costs 5 % */
    rocksdb_pinnableslice_t *slice = rocksdb_get_pinned_cf(index->database, options, index->families[family],
                                                           (const char *)key.data, key.size, &message);
    index_database_leave(index);
    if (message != NULL) {
        return index_database_failed(message, NULL);
    }
    if (slice == NULL) {
        return ERR_NOT_FOUND;
    }
    *ret_slice = slice;
    return ERR_OK;
}

static enum err get(const struct index *index, enum index_family family, struct bytes key,
                    rocksdb_pinnableslice_t **ret_slice) {
    return get_with(index, index->read_options, family, key, ret_slice);
}

static struct bytes slice_bytes(const rocksdb_pinnableslice_t *slice) {
    size_t size = 0;
    const char *data = rocksdb_pinnableslice_value(slice, &size);
    return bytes_of(data, size);
}

static enum err write_format(struct index *index, struct err_detail *detail) {
    static const char version = FORMAT_VERSION;
    char *message = NULL;
    rocksdb_put_cf(index->database, index->write_options, index->families[INDEX_FAMILY_META], "format", 6,
                   &version, sizeof version, &message);
    return message == NULL ? ERR_OK : index_database_failed(message, detail);
}

/* A new index gets the format, any other must have ours. */
static enum err check_format(struct index *index, struct err_detail *detail) {
    rocksdb_pinnableslice_t *slice = NULL;
    enum err err = get(index, INDEX_FAMILY_META, BYTES("format"), &slice);
    if (err == ERR_NOT_FOUND) {
        return write_format(index, detail);
    }
    if (err != ERR_OK) {
        return err_set(detail, err, "cannot read the format of the index: %s", err_text(err));
    }
    struct wire_reader reader;
    wire_reader_init(&reader, slice_bytes(slice));
    uint8_t version = wire_read_u8(&reader);
    err = wire_reader_finish(&reader, NULL);
    rocksdb_pinnableslice_destroy(slice);
    if (err != ERR_OK) {
        return err_set(detail, ERR_CORRUPT, "the format of the index is damaged");
    }
    if (version != FORMAT_VERSION) {
        return err_set(detail, ERR_MISMATCH, "the index has format %u, not %u", version, FORMAT_VERSION);
    }
    return ERR_OK;
}

static enum err read_dead(struct index *index) {
    rocksdb_pinnableslice_t *slice = NULL;
    enum err err = get(index, INDEX_FAMILY_META, BYTES("dead"), &slice);
    if (err == ERR_OK) {
        rocksdb_pinnableslice_destroy(slice);
        atomic_store(&index->has_dead, true);
    }
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

enum err index_open(const char *directory, struct index **ret_index, struct err_detail *detail) {
    if (mkdir(directory, DIRECTORY_MODE) != 0 && errno != EEXIST) {
        enum err err = err_from_errno(errno);
        return err_set(detail, err, "%s: %s", directory, err_text(err));
    }
    struct index *index = index_database_new(directory);
    if (index == NULL) {
        return err_set(detail, ERR_MEMORY, "%s: %s", directory, err_text(ERR_MEMORY));
    }
    enum err err = index_database_open(index, false, detail);
    if (err == ERR_OK) {
        err = check_format(index, detail);
    }
    if (err == ERR_OK) {
        err = index_read_serial(index, &index->serial);
    }
    if (err == ERR_OK) {
        err = read_dead(index);
    }
    if (err != ERR_OK) {
        index_close(index);
        return err;
    }
    *ret_index = index;
    return ERR_OK;
}

void index_close(struct index *index) {
    index_database_close(index);
    index_database_free(index);
}

enum err index_destroy(const char *directory, struct err_detail *detail) {
    char *message = NULL;
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_destroy_db(options, directory, &message);
    rocksdb_options_destroy(options);
    return message == NULL ? ERR_OK : index_database_failed(message, detail);
}

/* ---- reading one entry ---- */

static enum err find_block(const struct index *index, const rocksdb_readoptions_t *options,
                           const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number, struct block *ret_block) {
    uint8_t key[INDEX_CODE_BLOCK_KEY_SIZE_MAX];
    rocksdb_pinnableslice_t *slice = NULL;
    enum err err =
        get_with(index, options, INDEX_FAMILY_BLOCKS, index_code_block_key(key, digest, number), &slice);
    if (err != ERR_OK) {
        return err;
    }
    err = index_code_read_block(slice_bytes(slice), ret_block);
    rocksdb_pinnableslice_destroy(slice);
    return err;
}

enum err index_find_block(const struct index *index, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                          struct block *ret_block) {
    return find_block(index, index->read_options, digest, number, ret_block);
}

enum err index_probe_block(const struct index *index, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                           struct block *ret_block) {
    return find_block(index, index->walk_options, digest, number, ret_block);
}

enum err index_find_segment(const struct index *index, uint32_t number, struct index_segment *ret_segment) {
    uint8_t key[INDEX_CODE_SEGMENT_KEY_SIZE];
    rocksdb_pinnableslice_t *slice = NULL;
    enum err err = get(index, INDEX_FAMILY_SEGMENTS, index_code_segment_key(key, number), &slice);
    if (err != ERR_OK) {
        return err;
    }
    err = index_code_read_segment(slice_bytes(slice), ret_segment);
    rocksdb_pinnableslice_destroy(slice);
    return err;
}

enum err index_has_capture(const struct index *index, const struct capture *capture, bool *ret_is_there) {
    struct buf key;
    rocksdb_pinnableslice_t *slice = NULL;
    ASSERT(index_can_hold(capture));
    buf_init(&key, INDEX_CODE_CAPTURE_KEY_SIZE_MAX);
    index_code_put_capture_key(&key, capture);
    enum err err = key.err != ERR_OK ? key.err : get(index, INDEX_FAMILY_CAPTURES, buf_bytes(&key), &slice);
    buf_done(&key);
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        return err;
    }
    if (slice != NULL) {
        rocksdb_pinnableslice_destroy(slice);
    }
    *ret_is_there = err == ERR_OK;
    return ERR_OK;
}

enum err index_is_live(const struct index *index, const struct capture *capture, bool *ret_is_live) {
    struct block block;
    bool is_there = false;
    enum err err = index_find_block(index, capture->digest, capture->block_number, &block);
    if (err == ERR_OK && block.references > 0) {
        err = index_has_capture(index, capture, &is_there);
    }
    if (err == ERR_OK || err == ERR_NOT_FOUND) {
        *ret_is_live = is_there;
        err = ERR_OK;
    }
    return err;
}

enum err index_find_mended(const struct index *index, uint32_t segment, uint64_t offset,
                           struct location *ret_location) {
    uint8_t from[INDEX_CODE_MENDED_KEY_SIZE];
    struct bytes start = index_code_mended_key(from, segment, offset);
    enum err err = index_database_enter(index);
    if (err != ERR_OK) {
        return err;
    }
    rocksdb_iterator_t *iterator =
        rocksdb_create_iterator_cf(index->database, index->read_options, index->families[INDEX_FAMILY_META]);
    rocksdb_iter_seek(iterator, (const char *)start.data, start.size);
    if (rocksdb_iter_valid(iterator)) {
        size_t key_size = 0;
        size_t value_size = 0;
        const char *key = rocksdb_iter_key(iterator, &key_size);
        const char *value = rocksdb_iter_value(iterator, &value_size);
        err = index_code_read_mended(bytes_of(key, key_size), bytes_of(value, value_size), segment,
                                     ret_location);
    } else {
        char *message = NULL;
        rocksdb_iter_get_error(iterator, &message);
        err = message == NULL ? ERR_NOT_FOUND : index_database_failed(message, NULL);
    }
    rocksdb_iter_destroy(iterator);
    index_database_leave(index);
    return err;
}

enum err index_position(const struct index *index, struct index_position *ret_position) {
    rocksdb_pinnableslice_t *slice = NULL;
    enum err err = get(index, INDEX_FAMILY_META, BYTES("position"), &slice);
    if (err == ERR_NOT_FOUND) {
        *ret_position = (struct index_position){0};
        return ERR_OK;
    }
    if (err != ERR_OK) {
        return err;
    }
    err = index_code_read_position(slice_bytes(slice), ret_position);
    rocksdb_pinnableslice_destroy(slice);
    return err;
}

enum err index_read_serial(const struct index *index, uint64_t *ret_serial) {
    rocksdb_pinnableslice_t *slice = NULL;
    enum err err = get(index, INDEX_FAMILY_META, BYTES("serial"), &slice);
    if (err != ERR_OK) {
        *ret_serial = 0;
        return err == ERR_NOT_FOUND ? ERR_OK : err;
    }
    struct wire_reader reader;
    wire_reader_init(&reader, slice_bytes(slice));
    uint64_t serial = wire_read_varint(&reader, UINT64_MAX);
    err = wire_reader_finish(&reader, NULL);
    rocksdb_pinnableslice_destroy(slice);
    *ret_serial = serial;
    return err == ERR_OK ? ERR_OK : ERR_CORRUPT;
}

/* 0 where RocksDB does not know. */
static uint64_t property(const struct index *index, enum index_family family, const char *name) {
    uint64_t value = 0;
    rocksdb_property_int_cf(index->database, index->families[family], name, &value);
    return value;
}

void index_counts(const struct index *index, struct index_counts *ret_counts) {
    *ret_counts = (struct index_counts){0};
    if (index_database_enter(index) != ERR_OK) {
        return;
    }
    struct index_counts counts = {
        .blocks_count = property(index, INDEX_FAMILY_BLOCKS, "rocksdb.estimate-num-keys"),
        .captures_count = property(index, INDEX_FAMILY_CAPTURES, "rocksdb.estimate-num-keys"),
        .memory_size = rocksdb_cache_get_usage(index->cache),
    };
    for (enum index_family i = 0; i < INDEX_FAMILIES_COUNT; i++) {
        counts.disk_size += property(index, i, "rocksdb.total-sst-files-size");
        counts.memory_size += property(index, i, "rocksdb.size-all-mem-tables");
        counts.memory_size += property(index, i, "rocksdb.estimate-table-readers-mem");
        counts.compactions_count =
            property(index, i, "rocksdb.num-running-compactions"); /* of all families */
    }
    index_database_leave(index);
    *ret_counts = counts;
}

bool index_has_dead(const struct index *index) {
    return atomic_load(&index->has_dead);
}

void index_set_cache_size(const struct index *index, size_t size) {
    rocksdb_cache_set_capacity(index->cache, size);
}

/* ---- at rest ---- */

static uint64_t files_at_level(const struct index *index, enum index_family family, int level) {
    char name[sizeof "rocksdb.num-files-at-level" + 2];
    snprintf(name, sizeof name, "rocksdb.num-files-at-level%d", level);
    char *text = rocksdb_property_value_cf(index->database, index->families[family], name);
    uint64_t count = text == NULL ? 0 : strtoull(text, NULL, 10);
    rocksdb_free(text);
    return count;
}

/* What lies above the lowest level is merged into it, unless it is little and all of that were rewritten. */
static bool is_worth_settling(const struct index *index, enum index_family family) {
    uint64_t above_count = 0;
    uint64_t lowest_count = 0;
    for (int i = 0; i < LEVELS_COUNT; i++) {
        uint64_t count = files_at_level(index, family, i);
        if (count > 0) {
            above_count += lowest_count;
            lowest_count = count;
        }
    }
    return above_count > 0 && above_count * SETTLE_SHARE >= lowest_count;
}

void index_settle(const struct index *index) {
    static const enum index_family families[] = {INDEX_FAMILY_CAPTURES, INDEX_FAMILY_BLOCKS};
    if (atomic_load(&index->write_err) != ERR_OK || index_database_enter(index) != ERR_OK) {
        return;
    }
    index_spares_clear(&index->gate->spares);
    bool is_merging = property(index, INDEX_FAMILY_CAPTURES, "rocksdb.num-running-compactions") > 0;
    for (size_t i = 0; i < sizeof families / sizeof families[0] && !is_merging; i++) {
        if (is_worth_settling(index, families[i])) {
            char *message = NULL;
            rocksdb_suggest_compact_range_cf(index->database, index->families[families[i]], NULL, 0, NULL, 0,
                                             &message);
            rocksdb_free(message); /* a suggestion that was not taken */
        }
    }
    index_database_leave(index);
}

/* ---- durability ---- */

enum err index_flush(struct index *index, struct err_detail *detail) {
    enum err err = index_database_can_write(index, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = index_database_enter(index);
    if (err != ERR_OK) {
        return err;
    }
    char *message = NULL;
    rocksdb_flush_wal(index->database, 1, &message);
    index_database_leave(index);
    return message == NULL ? ERR_OK : index_database_write_failed(index, message, detail);
}

static enum err flush_families(struct index *index, struct err_detail *detail) {
    enum err err = index_database_can_write(index, detail);
    if (err != ERR_OK) {
        return err;
    }
    char *message = NULL;
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    for (int i = 0; i < INDEX_FAMILIES_COUNT && message == NULL; i++) {
        rocksdb_flush_cf(index->database, options, index->families[i], &message);
    }
    rocksdb_flushoptions_destroy(options);
    return message == NULL ? ERR_OK : index_database_write_failed(index, message, detail);
}

enum err index_compact(struct index *index, struct err_detail *detail) {
    enum { REWRITE_LOWEST_LEVEL = 2 };
    enum err err = flush_families(index, detail);
    if (err != ERR_OK) {
        return err;
    }
    rocksdb_compactoptions_t *options = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_bottommost_level_compaction(options, REWRITE_LOWEST_LEVEL);
    for (int i = 0; i < INDEX_FAMILIES_COUNT; i++) {
        rocksdb_compact_range_cf_opt(index->database, index->families[i], options, NULL, 0, NULL, 0);
    }
    rocksdb_compactoptions_destroy(options);
    return flush_families(index,
                          detail); /* compaction itself reports nothing; a failed one stops all writes */
}
