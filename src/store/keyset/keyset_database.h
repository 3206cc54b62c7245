/* keyset_database - the database of a keyset: its entries (drawn in keyset.h), looked up, walked, written. */
#ifndef MNEMON_STORE_KEYSET_KEYSET_DATABASE_H
#define MNEMON_STORE_KEYSET_KEYSET_DATABASE_H

#include <rocksdb/c.h>

#include "base/buf.h"
#include "base/ringkey.h"

enum { KEYSET_ROW_SIZE_MAX = 1 + RINGKEY_SIZE };

/* The key of an entry. */
struct keyset_row {
    uint8_t bytes[KEYSET_ROW_SIZE_MAX];
    size_t size;
};

struct keyset_row keyset_row_of_key(const struct ringkey *key);
struct keyset_row keyset_row_of_digest(const struct ringkey *key);
struct keyset_row keyset_row_of_volume(uint16_t volume);
struct keyset_row keyset_row_of_format(void);

struct keyset_database {
    char *directory;
    rocksdb_t *rocksdb; /* NULL: closed */
    rocksdb_cache_t *cache;
    rocksdb_readoptions_t *read_options;
    rocksdb_writeoptions_t *write_options;
};

enum err keyset_database_init(struct keyset_database *database, const char *directory) MUST_CHECK;
void keyset_database_done(struct keyset_database *database);

enum err keyset_database_open(struct keyset_database *database, struct err_detail *detail) MUST_CHECK;
void keyset_database_close(struct keyset_database *database);

/* Remove all files; it is closed. */
enum err keyset_database_destroy(struct keyset_database *database, struct err_detail *detail) MUST_CHECK;

/* value (may be NULL) is replaced. ERR_NOT_FOUND. */
enum err keyset_database_get(struct keyset_database *database, const struct keyset_row *row,
                             struct buf *value) MUST_CHECK;
enum err keyset_database_write(struct keyset_database *database, rocksdb_writebatch_t *writes,
                               struct err_detail *detail) MUST_CHECK;

/* A walk over rows from one on. */
struct keyset_cursor {
    rocksdb_iterator_t *iterator;
    rocksdb_readoptions_t *options;
    bool has_started;
};

/* is_long: it will read all, so read ahead and leave the cache as it is. */
enum err keyset_cursor_init(struct keyset_cursor *cursor, struct keyset_database *database,
                            const struct keyset_row *from, bool is_long) MUST_CHECK;
void keyset_cursor_done(struct keyset_cursor *cursor);

/* ERR_NOT_FOUND at the end of the database. The slice lasts until the next call. */
enum err keyset_cursor_next(struct keyset_cursor *cursor, struct bytes *ret_row) MUST_CHECK;

/* The same for rows of keys only: ERR_NOT_FOUND behind the last of them. */
enum err keyset_cursor_next_key(struct keyset_cursor *cursor, struct ringkey *ret_key) MUST_CHECK;

#endif
