/*
 * frontier_database - the frontier's RocksDB: opened with little memory, and again after an error.
 *
 * One family of entries; their kinds are told apart by the first byte of the key (frontier_code.h). Entries
 * are written by one thread, in batches. Reading is for any thread: the lock keeps the database from being
 * closed meanwhile.
 */
#ifndef MNEMON_CRAWL_FRONTIER_FRONTIER_DATABASE_H
#define MNEMON_CRAWL_FRONTIER_FRONTIER_DATABASE_H

#include <pthread.h>
#include <rocksdb/c.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

struct frontier_database {
    char *directory;
    rocksdb_t *rocksdb;    /* NULL: closed */
    pthread_rwlock_t lock; /* held for writing while it is opened or closed */
    rocksdb_cache_t *cache;
    rocksdb_writeoptions_t *write_options;
};

/* The directory is made where it is missing. */
enum err frontier_database_init(struct frontier_database *database, const char *directory,
                                struct err_detail *detail) MUST_CHECK;
void frontier_database_done(struct frontier_database *database);

/* After a write that failed RocksDB takes no more: close, and open again. */
enum err frontier_database_open(struct frontier_database *database, struct err_detail *detail) MUST_CHECK;
void frontier_database_close(struct frontier_database *database);

/* ERR_NOT_FOUND. The value replaces what is in the buffer. */
enum err frontier_database_get(struct frontier_database *database, struct bytes key, struct buf *value,
                               struct err_detail *detail) MUST_CHECK;

/* All of it or nothing. */
enum err frontier_database_write(struct frontier_database *database, rocksdb_writebatch_t *writes,
                                 struct err_detail *detail) MUST_CHECK;

/* What was written survives a crash of the machine. Not after a write that failed. */
enum err frontier_database_sync(struct frontier_database *database, struct err_detail *detail) MUST_CHECK;

/* A walk over the keys from `from` up to, not including, `to`. */
struct frontier_cursor {
    struct frontier_database *database; /* its lock is held */
    rocksdb_iterator_t *iterator;
    rocksdb_readoptions_t *options;
    struct bytes from;
    bool has_started;
};

/* Both keys must outlive the cursor. is_long: of many entries, read ahead and past the cache. */
enum err frontier_cursor_init(struct frontier_cursor *cursor, struct frontier_database *database,
                              struct bytes from, struct bytes to, bool is_long) MUST_CHECK;
void frontier_cursor_done(struct frontier_cursor *cursor);

/* ERR_NOT_FOUND at the end. The slices hold until the next call. */
enum err frontier_cursor_next(struct frontier_cursor *cursor, struct bytes *ret_key, struct bytes *ret_value,
                              struct err_detail *detail) MUST_CHECK;

static inline void frontier_database_put(rocksdb_writebatch_t *writes, struct bytes key, struct bytes value) {
    rocksdb_writebatch_put(writes, (const char *)key.data, key.size, (const char *)value.data, value.size);
}

#endif
