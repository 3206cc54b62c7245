/* index_options - how RocksDB is set up for the index: what each column family is like, and the bounds. */
#ifndef MNEMON_STORE_INDEX_INDEX_OPTIONS_H
#define MNEMON_STORE_INDEX_INDEX_OPTIONS_H

#include <rocksdb/c.h>

enum index_family {
    INDEX_FAMILY_DEFAULT, /* RocksDB insists on it; empty */
    INDEX_FAMILY_BLOCKS,
    INDEX_FAMILY_CAPTURES,
    INDEX_FAMILY_SEGMENTS,
    INDEX_FAMILY_META,
    INDEX_FAMILIES_COUNT,
};

extern const char *const index_family_names[INDEX_FAMILIES_COUNT];

struct index_options {
    rocksdb_options_t *database;
    rocksdb_options_t *families[INDEX_FAMILIES_COUNT];
};

/* The cache is shared by all families and must outlive the database. RocksDB copies the rest when opening. */
void index_options_init(struct index_options *options, rocksdb_cache_t *cache);
void index_options_done(struct index_options *options);

rocksdb_cache_t *index_options_cache_new(void);

#endif
