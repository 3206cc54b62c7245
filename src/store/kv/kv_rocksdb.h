/* kv_rocksdb - what RocksDB is told of a database and its families. Private to kv.c; each is the caller's to
 * destroy. */
#ifndef MNEMON_STORE_KV_KV_ROCKSDB_H
#define MNEMON_STORE_KV_KV_ROCKSDB_H

#include <rocksdb/c.h>

#include "store/kv/kv.h"

rocksdb_options_t *kv_database_options(const struct kv_options *data);
rocksdb_options_t *kv_family_options(const struct kv_family *family, rocksdb_cache_t *cache);
rocksdb_readoptions_t *kv_walk_options(enum kv_walk walk);

#endif
