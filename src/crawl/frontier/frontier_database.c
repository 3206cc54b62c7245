#include "crawl/frontier/frontier_database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/index/index_database.h"

static const size_t CACHE_SIZE = 2 << 20; /* what is read is read once; some tables of contents are not */
static const size_t WRITE_BUFFER_SIZE = 8 << 20;
static const size_t READ_AHEAD_SIZE = 1 << 20;

/* It is opened only where there is room for what an opening writes: see index_database_reserve_log(). */
static const off_t ROOM_SIZE = 8 << 20;

enum {
    DIRECTORY_MODE = 0755,
    FILE_MODE = 0644,
    WRITE_BUFFERS_COUNT = 2,
    BACKGROUND_JOBS_MAX = 2,
    OPEN_FILES_MAX = 128,
    PAGE_SIZE = 8 << 10,           /* neighbours are read */
    PAGE_PARTITION_SIZE = 4 << 10, /* of tables of contents */
    WAL_POINT_IN_TIME = 2,         /* recovery up to the first damage */
    LOG_LEVEL_ERROR = 3,
    MANIFEST_SIZE_MAX = 4 << 20,
    RUNS_BEFORE_MERGE = 8,
};

/* ---- options ---- */

/* Tables of contents lie in the cache, in pieces: memory does not grow with the frontier. No filters: on the
 * way of a crawl nothing is looked up that may be missing. */
static void set_table_options(rocksdb_options_t *options, rocksdb_cache_t *cache) {
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_block_based_options_set_block_size(table, PAGE_SIZE);
    rocksdb_block_based_options_set_format_version(table, 5);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
    rocksdb_block_based_options_set_pin_top_level_index_and_filter(table, 1);
    rocksdb_block_based_options_set_index_type(table,
                                               rocksdb_block_based_table_index_type_two_level_index_search);
    rocksdb_block_based_options_set_metadata_block_size(table, PAGE_PARTITION_SIZE);
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_block_based_options_destroy(table);
}

/*
 * Universal compaction: every entry is written again three to five times on its way, not ten times and more
 * as with levels. That is most of what a URL costs here.
 */
static void set_compaction(rocksdb_options_t *options) {
    rocksdb_options_set_compaction_style(options, rocksdb_universal_compaction);
    rocksdb_options_set_level0_file_num_compaction_trigger(options, RUNS_BEFORE_MERGE);
    rocksdb_options_set_max_background_jobs(options, BACKGROUND_JOBS_MAX);
    rocksdb_options_set_compression(options, rocksdb_lz4_compression);
}

static rocksdb_options_t *new_options(rocksdb_cache_t *cache) {
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_write_buffer_size(options, WRITE_BUFFER_SIZE);
    rocksdb_options_set_max_write_buffer_number(options, WRITE_BUFFERS_COUNT);
    rocksdb_options_set_max_open_files(options, OPEN_FILES_MAX);
    rocksdb_options_set_wal_recovery_mode(options, WAL_POINT_IN_TIME);
    rocksdb_options_set_max_manifest_file_size(options, MANIFEST_SIZE_MAX);
    rocksdb_options_set_info_log_level(options, LOG_LEVEL_ERROR);
    rocksdb_options_set_keep_log_file_num(options, 2);
    rocksdb_options_set_stats_dump_period_sec(options, 0);
    rocksdb_options_set_stats_persist_period_sec(options, 0);
    rocksdb_options_set_skip_stats_update_on_db_open(options, 1);
    set_table_options(options, cache);
    set_compaction(options);
    return options;
}

/* ---- the database ---- */

enum err frontier_database_init(struct frontier_database *database, const char *directory,
                                struct err_detail *detail) {
    *database = (struct frontier_database){0};
    if (mkdir(directory, DIRECTORY_MODE) != 0 && errno != EEXIST) {
        enum err err = err_from_errno(errno);
        return err_set(detail, err, "%s: %s", directory, err_text(err));
    }
    database->directory = strdup(directory);
    if (database->directory == NULL) {
        return err_set(detail, ERR_MEMORY, "%s: %s", directory, err_text(ERR_MEMORY));
    }
    pthread_rwlock_init(&database->lock, NULL);
    database->cache = rocksdb_cache_create_lru(CACHE_SIZE);
    database->write_options = rocksdb_writeoptions_create();
    return ERR_OK;
}

void frontier_database_done(struct frontier_database *database) {
    if (database->directory == NULL) {
        return;
    }
    frontier_database_close(database);
    rocksdb_cache_destroy(database->cache);
    rocksdb_writeoptions_destroy(database->write_options);
    pthread_rwlock_destroy(&database->lock);
    free(database->directory);
}

/* "directory/name", to be freed; NULL without memory. */
static char *path_of(const struct frontier_database *database, const char *name) {
    char *path = NULL;
    return asprintf(&path, "%s/%s", database->directory, name) < 0 ? NULL : path;
}

static enum err check_room(const struct frontier_database *database, struct err_detail *detail) {
    char *path = path_of(database, "room.tmp");
    int fd = path == NULL ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    int number = fd < 0 ? errno : posix_fallocate(fd, 0, ROOM_SIZE);
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    free(path);
    enum err err = number == 0 ? ERR_OK : err_from_errno(number);
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s: %s", database->directory, strerror(number));
}

enum err frontier_database_open(struct frontier_database *database, struct err_detail *detail) {
    char *message = NULL;
    ASSERT(database->rocksdb == NULL);
    enum err err = check_room(database, detail);
    if (err != ERR_OK) {
        return err;
    }
    rocksdb_options_t *options = new_options(database->cache);
    pthread_rwlock_wrlock(&database->lock);
    database->rocksdb = rocksdb_open(options, database->directory, &message);
    pthread_rwlock_unlock(&database->lock);
    rocksdb_options_destroy(options);
    if (message != NULL) {
        return index_database_failed(message, detail);
    }
    index_database_reserve_log(database->directory);
    return ERR_OK;
}

void frontier_database_close(struct frontier_database *database) {
    pthread_rwlock_wrlock(&database->lock);
    if (database->rocksdb != NULL) {
        rocksdb_close(database->rocksdb);
    }
    database->rocksdb = NULL;
    pthread_rwlock_unlock(&database->lock);
}

static enum err closed(struct err_detail *detail) {
    return err_set(detail, ERR_IO, "the frontier is closed after an error");
}

static enum err get_locked(struct frontier_database *database, struct bytes key, struct buf *value,
                           struct err_detail *detail) {
    if (database->rocksdb == NULL) {
        return closed(detail);
    }
    char *message = NULL;
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    rocksdb_pinnableslice_t *slice =
        rocksdb_get_pinned(database->rocksdb, options, (const char *)key.data, key.size, &message);
    rocksdb_readoptions_destroy(options);
    if (message != NULL) {
        return index_database_failed(message, detail);
    }
    if (slice == NULL) {
        return ERR_NOT_FOUND;
    }
    size_t size = 0;
    const char *data = rocksdb_pinnableslice_value(slice, &size);
    buf_clear(value);
    enum err err = buf_put(value, bytes_of(data, size));
    rocksdb_pinnableslice_destroy(slice);
    return err;
}

enum err frontier_database_get(struct frontier_database *database, struct bytes key, struct buf *value,
                               struct err_detail *detail) {
    pthread_rwlock_rdlock(&database->lock);
    enum err err = get_locked(database, key, value, detail);
    pthread_rwlock_unlock(&database->lock);
    return err;
}

enum err frontier_database_write(struct frontier_database *database, rocksdb_writebatch_t *writes,
                                 struct err_detail *detail) {
    char *message = NULL;
    rocksdb_write(database->rocksdb, database->write_options, writes, &message);
    return message == NULL ? ERR_OK : index_database_failed(message, detail);
}

enum err frontier_database_sync(struct frontier_database *database, struct err_detail *detail) {
    char *message = NULL;
    rocksdb_flush_wal(database->rocksdb, 1, &message);
    return message == NULL ? ERR_OK : index_database_failed(message, detail);
}

/* ---- walks ---- */

enum err frontier_cursor_init(struct frontier_cursor *cursor, struct frontier_database *database,
                              struct bytes from, struct bytes to, bool is_long) {
    *cursor = (struct frontier_cursor){.database = database, .from = from};
    pthread_rwlock_rdlock(&database->lock);
    if (database->rocksdb == NULL) {
        pthread_rwlock_unlock(&database->lock);
        return closed(NULL);
    }
    cursor->options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_iterate_upper_bound(cursor->options, (const char *)to.data, to.size);
    if (is_long) {
        rocksdb_readoptions_set_fill_cache(cursor->options, 0);
        rocksdb_readoptions_set_readahead_size(cursor->options, READ_AHEAD_SIZE);
    }
    cursor->iterator = rocksdb_create_iterator(database->rocksdb, cursor->options);
    return ERR_OK;
}

void frontier_cursor_done(struct frontier_cursor *cursor) {
    rocksdb_iter_destroy(cursor->iterator);
    rocksdb_readoptions_destroy(cursor->options);
    pthread_rwlock_unlock(&cursor->database->lock);
}

enum err frontier_cursor_next(struct frontier_cursor *cursor, struct bytes *ret_key, struct bytes *ret_value,
                              struct err_detail *detail) {
    if (cursor->has_started) {
        rocksdb_iter_next(cursor->iterator);
    } else {
        rocksdb_iter_seek(cursor->iterator, (const char *)cursor->from.data, cursor->from.size);
        cursor->has_started = true;
    }
    if (!rocksdb_iter_valid(cursor->iterator)) {
        char *message = NULL;
        rocksdb_iter_get_error(cursor->iterator, &message);
        return message == NULL ? ERR_NOT_FOUND : index_database_failed(message, detail);
    }
    size_t size = 0;
    const char *data = rocksdb_iter_key(cursor->iterator, &size);
    *ret_key = bytes_of(data, size);
    data = rocksdb_iter_value(cursor->iterator, &size);
    *ret_value = bytes_of(data, size);
    return ERR_OK;
}
