/* index_database - the open database, for the files that make up the index: reading, walking, writing. */
#ifndef MNEMON_STORE_INDEX_DATABASE_H
#define MNEMON_STORE_INDEX_DATABASE_H

#include <stdatomic.h>

#include "store/index.h"
#include "store/index_options.h"

struct index {
    rocksdb_t *database;
    rocksdb_column_family_handle_t *families[INDEX_FAMILIES_COUNT];
    rocksdb_cache_t *cache;
    rocksdb_readoptions_t *read_options;
    rocksdb_writeoptions_t *write_options;
    _Atomic(enum err) write_err; /* of the first write that failed */
};

/* The error that a message of RocksDB stands for, with the message as detail. Takes the message. */
enum err index_database_failed(char *take_message, struct err_detail *detail);

/*
 * The same for a write, of which there must be none afterwards: RocksDB fails an assertion of its own where a
 * log that could not be written is to be synced.
 */
enum err index_database_write_failed(struct index *index, char *take_message, struct err_detail *detail);

/* The error of the write that failed before, if any. Ask before each. */
enum err index_database_can_write(const struct index *index, struct err_detail *detail) MUST_CHECK;

#endif
