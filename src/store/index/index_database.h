/*
 * index_database - the open database, for the files that make up the index: reading, walking, writing,
 * mending.
 *
 * Whoever uses the database enters the gate, for one call, or for as long as a cursor lives. Only
 * index_mend() closes it in between, when nobody is inside.
 */
#ifndef MNEMON_STORE_INDEX_INDEX_DATABASE_H
#define MNEMON_STORE_INDEX_INDEX_DATABASE_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/index/index.h"
#include "store/index/index_options.h"
#include "store/index/index_spares.h"

struct index_gate {
    pthread_rwlock_t lock;     /* to write: nobody else uses the database */
    atomic_uint cursors_count; /* that are open: they use it without the lock */
    struct index_spares spares;
};

struct index {
    char *directory;
    struct index_gate *gate; /* apart: to read an index is to leave it as it is */
    rocksdb_t *database;     /* gate; NULL where it was closed and could not be opened again */
    rocksdb_column_family_handle_t *families[INDEX_FAMILIES_COUNT]; /* gate */
    rocksdb_cache_t *cache;
    rocksdb_readoptions_t *read_options;
    rocksdb_readoptions_t *surt_options; /* of what all has the SURT that was looked for */
    rocksdb_readoptions_t *walk_options; /* of what is read once: the cache stays as it is */
    rocksdb_writeoptions_t *write_options;
    atomic_bool has_dead;        /* index_has_dead() */
    _Atomic(enum err) write_err; /* of the first write that failed */
    uint64_t serial;             /* the writer's: of the last commit */
    uint64_t mend_after_us;      /* the writer's: not before this time */
};

/* NULL: out of memory. Not open yet. */
struct index *index_database_new(const char *directory);
void index_database_free(struct index *index);

enum err index_database_open(struct index *index, bool is_read_only, struct err_detail *detail) MUST_CHECK;
void index_database_close(struct index *index);

/*
 * Debian's RocksDB has its assertions on, and one of them ends the process when its own log (DIR/LOG) is
 * written to again after the disk refused a line. So after each opening its log gets room of its own, where
 * the file system can reserve it.
 */
void index_database_reserve_log(const char *directory);

/* ERR_IO where there is no database. */
enum err index_database_enter(const struct index *index) MUST_CHECK;
void index_database_leave(const struct index *index);

/* The error that a message of RocksDB stands for, with the message as detail. Takes the message. */
enum err index_database_failed(char *take_message, struct err_detail *detail);

/*
 * The same for a write, of which there must be none afterwards: RocksDB fails an assertion of its own where a
 * log that could not be written is to be synced.
 */
enum err index_database_write_failed(struct index *index, char *take_message, struct err_detail *detail);

/* The error of the write that failed before, if any. Ask before each. */
enum err index_database_can_write(const struct index *index, struct err_detail *detail) MUST_CHECK;

/* How many commits have been made, as the database has it. */
enum err index_read_serial(const struct index *index, uint64_t *ret_serial) MUST_CHECK;

#endif
