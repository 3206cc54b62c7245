#include "store/index.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/wire.h"
#include "store/index_code.h"
#include "store/index_database.h"

enum { FORMAT_VERSION = 1, DIRECTORY_MODE = 0755 };

/*
 * RocksDB hands out text only: "IO error: While appending to file: 000123.log: No space left on device". The
 * kind is at its start and the system's words at its end; paths, which may hold any words, are in between.
 */
static enum err err_of_message(struct bytes message) {
    static const struct {
        const char *end;
        enum err err;
    } ends[] = {
        {"No space left on device", ERR_NO_SPACE},
        {"Disk quota exceeded", ERR_NO_SPACE},
        {"Resource temporarily unavailable", ERR_BUSY}, /* another process has the lock */
        {"No locks available", ERR_BUSY},               /* this process has it */
        {"Not a directory", ERR_NOT_FOUND},
        {"is not a directory", ERR_NOT_FOUND},
        {"Permission denied", ERR_PERMISSION},
        {"Operation not permitted", ERR_PERMISSION},
        {"Read-only file system", ERR_PERMISSION},
        {"Too many open files", ERR_LIMIT},
        {"File too large", ERR_LIMIT},
        {"Cannot allocate memory", ERR_MEMORY},
        {"No such file or directory", ERR_CORRUPT}, /* the manifest names files that are gone */
    };
    message = bytes_trim(message);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (bytes_ends_with(message, bytes_of_string(ends[i].end))) {
            return ends[i].err;
        }
    }
    return bytes_starts_with(message, BYTES("IO error")) ? ERR_IO : ERR_CORRUPT;
}

enum err index_database_failed(char *take_message, struct err_detail *detail) {
    enum err err = err_of_message(bytes_of_string(take_message));
    err_set(detail, err, "%s", take_message);
    rocksdb_free(take_message);
    return err;
}

enum err index_database_write_failed(struct index *index, char *take_message, struct err_detail *detail) {
    enum err err = index_database_failed(take_message, detail);
    atomic_store(&index->write_err, err);
    return err;
}

enum err index_database_can_write(const struct index *index, struct err_detail *detail) {
    enum err err = atomic_load(&index->write_err);
    return err == ERR_OK ? ERR_OK
                         : err_set(detail, err, "an earlier write to the index failed: %s", err_text(err));
}

/* ---- opening ---- */

static enum err get(const struct index *index, enum index_family family, struct bytes key,
                    rocksdb_pinnableslice_t **ret_slice) {
    char *message = NULL;
    rocksdb_pinnableslice_t *slice =
        rocksdb_get_pinned_cf(index->database, index->read_options, index->families[family],
                              (const char *)key.data, key.size, &message);
    if (message != NULL) {
        return index_database_failed(message, NULL);
    }
    if (slice == NULL) {
        return ERR_NOT_FOUND;
    }
    *ret_slice = slice;
    return ERR_OK;
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

static enum err open_database(struct index *index, const char *directory, struct err_detail *detail) {
    struct index_options options;
    char *message = NULL;
    index_options_init(&options, index->cache);
    index->database = rocksdb_open_column_families(
        options.database, directory, INDEX_FAMILIES_COUNT, index_family_names,
        (const rocksdb_options_t *const *)options.families, index->families, &message);
    index_options_done(&options);
    return message == NULL ? ERR_OK : index_database_failed(message, detail);
}

enum err index_open(const char *directory, struct index **ret_index, struct err_detail *detail) {
    if (mkdir(directory, DIRECTORY_MODE) != 0 && errno != EEXIST) {
        enum err err = err_from_errno(errno);
        return err_set(detail, err, "%s: %s", directory, err_text(err));
    }
    struct index *index = calloc(1, sizeof *index);
    if (index == NULL) {
        return err_set(detail, ERR_MEMORY, "%s: %s", directory, err_text(ERR_MEMORY));
    }
    index->cache = index_options_cache_new();
    index->read_options = rocksdb_readoptions_create();
    index->write_options = rocksdb_writeoptions_create();
    enum err err = open_database(index, directory, detail);
    if (err == ERR_OK) {
        err = check_format(index, detail);
    }
    if (err != ERR_OK) {
        index_close(index);
        return err;
    }
    *ret_index = index;
    return ERR_OK;
}

void index_close(struct index *index) {
    if (index->database != NULL) {
        for (int i = 0; i < INDEX_FAMILIES_COUNT; i++) {
            rocksdb_column_family_handle_destroy(index->families[i]);
        }
        rocksdb_close(index->database);
    }
    rocksdb_writeoptions_destroy(index->write_options);
    rocksdb_readoptions_destroy(index->read_options);
    rocksdb_cache_destroy(index->cache);
    free(index);
}

enum err index_destroy(const char *directory, struct err_detail *detail) {
    char *message = NULL;
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_destroy_db(options, directory, &message);
    rocksdb_options_destroy(options);
    return message == NULL ? ERR_OK : index_database_failed(message, detail);
}

/* ---- reading one entry ---- */

enum err index_find_block(const struct index *index, const uint8_t signature[KEY_SIGNATURE_SIZE],
                          uint16_t number, struct block *ret_block) {
    uint8_t key[INDEX_CODE_BLOCK_KEY_SIZE_MAX];
    rocksdb_pinnableslice_t *slice = NULL;
    enum err err = get(index, INDEX_FAMILY_BLOCKS, index_code_block_key(key, signature, number), &slice);
    if (err != ERR_OK) {
        return err;
    }
    err = index_code_read_block(slice_bytes(slice), ret_block);
    rocksdb_pinnableslice_destroy(slice);
    return err;
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

/* 0 where RocksDB does not know. */
static uint64_t property(const struct index *index, enum index_family family, const char *name) {
    uint64_t value = 0;
    rocksdb_property_int_cf(index->database, index->families[family], name, &value);
    return value;
}

void index_counts(const struct index *index, struct index_counts *ret_counts) {
    struct index_counts counts = {
        .blocks_count = property(index, INDEX_FAMILY_BLOCKS, "rocksdb.estimate-num-keys"),
        .captures_count = property(index, INDEX_FAMILY_CAPTURES, "rocksdb.estimate-num-keys"),
        .memory_size = rocksdb_cache_get_usage(index->cache),
    };
    for (enum index_family i = 0; i < INDEX_FAMILIES_COUNT; i++) {
        counts.disk_size += property(index, i, "rocksdb.total-sst-files-size");
        counts.memory_size += property(index, i, "rocksdb.size-all-mem-tables");
        counts.memory_size += property(index, i, "rocksdb.estimate-table-readers-mem");
    }
    *ret_counts = counts;
}

/* ---- durability ---- */

enum err index_flush(struct index *index, struct err_detail *detail) {
    enum err err = index_database_can_write(index, detail);
    if (err != ERR_OK) {
        return err;
    }
    char *message = NULL;
    rocksdb_flush_wal(index->database, 1, &message);
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
