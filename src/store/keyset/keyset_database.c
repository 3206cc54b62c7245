#include "store/keyset/keyset_database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/index/index_database.h"

static const size_t CACHE_SIZE = 4 << 20;
static const size_t WRITE_BUFFER_SIZE = 4 << 20;
static const size_t READ_AHEAD_SIZE = 1 << 20;
static const double MEMTABLE_BLOOM_RATIO = 0.05; /* of a write buffer: most keys that are put are new */
static const off_t ROOM_SIZE = 8 << 20; /* for what an opening writes: see index_database_reserve_log() */

enum {
    DIRECTORY_MODE = 0755,
    FILE_MODE = 0644,
    BACKGROUND_JOBS_MAX = 2,
    OPEN_FILES_MAX = 128,
    BLOOM_BITS_PER_KEY = 10,
    PAGE_SIZE = 8 << 10,           /* a bucket is read at once */
    PAGE_PARTITION_SIZE = 4 << 10, /* of filters and tables of contents */
    WAL_POINT_IN_TIME = 2,         /* recovery up to the first damage */
    LOG_LEVEL_ERROR = 3,
    MANIFEST_SIZE_MAX = 4 << 20,
    RUNS_BEFORE_MERGE = 8,
};

/* ---- rows ---- */

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

struct keyset_row keyset_row_of_volume(uint16_t volume) {
    return (struct keyset_row){.bytes = {'p', (uint8_t)(volume >> 8), (uint8_t)volume}, .size = 3};
}

struct keyset_row keyset_row_of_format(void) {
    return (struct keyset_row){.bytes = "mformat", .size = 7};
}

/* ---- the database ---- */

/* Filters and tables of contents lie in the cache, in pieces: memory does not grow with the set. */
static void set_table_options(rocksdb_options_t *options, rocksdb_cache_t *cache) {
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_block_based_options_set_block_size(table, PAGE_SIZE);
    rocksdb_block_based_options_set_format_version(table, 5);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
    rocksdb_block_based_options_set_pin_top_level_index_and_filter(table, 1);
    rocksdb_block_based_options_set_index_type(table,
                                               rocksdb_block_based_table_index_type_two_level_index_search);
    rocksdb_block_based_options_set_partition_filters(table, 1);
    rocksdb_block_based_options_set_metadata_block_size(table, PAGE_PARTITION_SIZE);
    rocksdb_block_based_options_set_filter_policy(table,
                                                  rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS_PER_KEY));
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_block_based_options_destroy(table);
}

static rocksdb_options_t *new_options(rocksdb_cache_t *cache) {
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_write_buffer_size(options, WRITE_BUFFER_SIZE);
    rocksdb_options_set_max_write_buffer_number(options, 2);
    rocksdb_options_set_max_background_jobs(options, BACKGROUND_JOBS_MAX);
    rocksdb_options_set_max_open_files(options, OPEN_FILES_MAX);
    /* Universal compaction writes an entry again fewer times than levels do. */
    rocksdb_options_set_compaction_style(options, rocksdb_universal_compaction);
    rocksdb_options_set_level0_file_num_compaction_trigger(options, RUNS_BEFORE_MERGE);
    rocksdb_options_set_memtable_prefix_bloom_size_ratio(options, MEMTABLE_BLOOM_RATIO);
    rocksdb_options_set_memtable_whole_key_filtering(options, 1);
    rocksdb_options_set_compression(options, rocksdb_lz4_compression);
    rocksdb_options_set_wal_recovery_mode(options, WAL_POINT_IN_TIME);
    rocksdb_options_set_max_manifest_file_size(options, MANIFEST_SIZE_MAX);
    rocksdb_options_set_info_log_level(options, LOG_LEVEL_ERROR);
    rocksdb_options_set_keep_log_file_num(options, 2);
    rocksdb_options_set_stats_dump_period_sec(options, 0);
    rocksdb_options_set_stats_persist_period_sec(options, 0);
    set_table_options(options, cache);
    return options;
}

enum err keyset_database_init(struct keyset_database *database, const char *directory) {
    *database = (struct keyset_database){.directory = strdup(directory)};
    if (database->directory == NULL) {
        return ERR_MEMORY;
    }
    database->cache = rocksdb_cache_create_lru(CACHE_SIZE);
    database->read_options = rocksdb_readoptions_create();
    database->write_options = rocksdb_writeoptions_create();
    return ERR_OK;
}

void keyset_database_done(struct keyset_database *database) {
    if (database->directory == NULL) {
        return;
    }
    keyset_database_close(database);
    rocksdb_writeoptions_destroy(database->write_options);
    rocksdb_readoptions_destroy(database->read_options);
    rocksdb_cache_destroy(database->cache);
    free(database->directory);
}

static enum err check_room(const struct keyset_database *database, struct err_detail *detail) {
    char *path = NULL;
    int number = mkdir(database->directory, DIRECTORY_MODE) != 0 && errno != EEXIST ? errno : 0;
    if (number == 0 && asprintf(&path, "%s/room.tmp", database->directory) < 0) {
        path = NULL;
        number = ENOMEM;
    }
    int fd = number != 0 ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    if (number == 0) {
        number = fd < 0 ? errno : posix_fallocate(fd, 0, ROOM_SIZE);
    }
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    free(path);
    return number == 0
               ? ERR_OK
               : err_set(detail, err_from_errno(number), "%s: %s", database->directory, strerror(number));
}

enum err keyset_database_open(struct keyset_database *database, struct err_detail *detail) {
    ASSERT(database->rocksdb == NULL);
    enum err err = check_room(database, detail);
    if (err != ERR_OK) {
        return err;
    }
    char *message = NULL;
    rocksdb_options_t *options = new_options(database->cache);
    database->rocksdb = rocksdb_open(options, database->directory, &message);
    rocksdb_options_destroy(options);
    if (message != NULL) {
        database->rocksdb = NULL;
        return index_database_failed(message, detail);
    }
    index_database_reserve_log(database->directory);
    return ERR_OK;
}

void keyset_database_close(struct keyset_database *database) {
    if (database->rocksdb != NULL) {
        rocksdb_close(database->rocksdb);
    }
    database->rocksdb = NULL;
}

enum err keyset_database_destroy(struct keyset_database *database, struct err_detail *detail) {
    char *message = NULL;
    ASSERT(database->rocksdb == NULL);
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_destroy_db(options, database->directory, &message);
    rocksdb_options_destroy(options);
    return message == NULL ? ERR_OK : index_database_failed(message, detail);
}

enum err keyset_database_get(struct keyset_database *database, const struct keyset_row *row,
                             struct buf *value) {
    char *message = NULL;
    if (database->rocksdb == NULL) {
        return ERR_IO;
    }
    rocksdb_pinnableslice_t *slice = rocksdb_get_pinned(database->rocksdb, database->read_options,
                                                        (const char *)row->bytes, row->size, &message);
    if (message != NULL) {
        return index_database_failed(message, NULL);
    }
    if (slice == NULL) {
        return ERR_NOT_FOUND;
    }
    enum err err = ERR_OK;
    if (value != NULL) {
        size_t size = 0;
        const char *data = rocksdb_pinnableslice_value(slice, &size);
        buf_clear(value);
        err = buf_put(value, bytes_of(data, size));
    }
    rocksdb_pinnableslice_destroy(slice);
    return err;
}

enum err keyset_database_write(struct keyset_database *database, rocksdb_writebatch_t *writes,
                               struct err_detail *detail) {
    char *message = NULL;
    if (database->rocksdb == NULL) {
        return err_set(detail, ERR_IO, "the set of keys is closed after an error");
    }
    rocksdb_write(database->rocksdb, database->write_options, writes, &message);
    if (message == NULL) {
        return ERR_OK;
    }
    /* RocksDB must not be written to after a write has failed. */
    keyset_database_close(database);
    return index_database_failed(message, detail);
}

/* ---- walks ---- */

enum err keyset_cursor_init(struct keyset_cursor *cursor, struct keyset_database *database,
                            const struct keyset_row *from, bool is_long) {
    if (database->rocksdb == NULL) {
        return ERR_IO;
    }
    *cursor = (struct keyset_cursor){.options = rocksdb_readoptions_create()};
    if (is_long) {
        rocksdb_readoptions_set_fill_cache(cursor->options, 0);
        rocksdb_readoptions_set_readahead_size(cursor->options, READ_AHEAD_SIZE);
    }
    cursor->iterator = rocksdb_create_iterator(database->rocksdb, cursor->options);
    rocksdb_iter_seek(cursor->iterator, (const char *)from->bytes, from->size);
    return ERR_OK;
}

void keyset_cursor_done(struct keyset_cursor *cursor) {
    rocksdb_iter_destroy(cursor->iterator);
    rocksdb_readoptions_destroy(cursor->options);
}

enum err keyset_cursor_next(struct keyset_cursor *cursor, struct bytes *ret_row) {
    if (cursor->has_started && rocksdb_iter_valid(cursor->iterator)) {
        rocksdb_iter_next(cursor->iterator);
    }
    cursor->has_started = true;
    if (!rocksdb_iter_valid(cursor->iterator)) {
        char *message = NULL;
        rocksdb_iter_get_error(cursor->iterator, &message);
        return message == NULL ? ERR_NOT_FOUND : index_database_failed(message, NULL);
    }
    size_t size = 0;
    const char *data = rocksdb_iter_key(cursor->iterator, &size);
    *ret_row = bytes_of(data, size);
    return ERR_OK;
}

enum err keyset_cursor_next_key(struct keyset_cursor *cursor, struct ringkey *ret_key) {
    struct bytes row;
    enum err err = keyset_cursor_next(cursor, &row);
    if (err != ERR_OK) {
        return err;
    }
    if (row.size == 0 || row.data[0] != 'k') {
        return ERR_NOT_FOUND;
    }
    if (row.size != 1 + RINGKEY_SIZE) {
        return ERR_CORRUPT;
    }
    memcpy(ret_key->bytes, row.data + 1, RINGKEY_SIZE);
    return ERR_OK;
}
