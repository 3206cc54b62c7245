#include "store/kv/kv_rocksdb.h"

static const double MEMORY_FILTER_RATIO = 0.05; /* of a write buffer */
static const uint64_t FILE_SIZE = 32 << 20;
static const uint64_t LEVEL_SIZE = 128 << 20;
static const size_t READ_AHEAD_SIZE = 1 << 20;

enum {
    BACKGROUND_JOBS_MAX = 2,
    WRITE_BUFFERS_COUNT = 2,
    BLOOM_BITS_PER_KEY = 10,       /* one miss in a hundred reads for nothing */
    PAGE_PARTITION_SIZE = 4 << 10, /* of filters and tables of contents */
    ZSTD_WINDOW_DEFAULT = -14,     /* of RocksDB; zstd has its own */
    ZSTD_LEVEL = 6, /* 1 % smaller than 3; a dictionary would save 3 % but is loaded for every page read */
    RUNS_BEFORE_MERGE = 8,
    WAL_POINT_IN_TIME = 2, /* recovery up to the first damage, all families alike */
    LOG_LEVEL_ERROR = 3,
    MANIFEST_SIZE_MAX = 16 << 20,
};

static char *kv_prefix_of(void *state, const char *key, size_t size, size_t *ret_size) {
    const struct kv_family *family = state;
    *ret_size = family->prefix_size(bytes_of(key, size));
    return (char *)key;
}

static unsigned char kv_has_prefix(void *state, const char *key, size_t size) {
    const struct kv_family *family = state;
    return family->prefix_size(bytes_of(key, size)) > 0;
}

static unsigned char kv_is_prefix(void *state, const char *prefix, size_t size) {
    const struct kv_family *family = state;
    return family->prefix_size(bytes_of(prefix, size)) == size;
}

static const char *kv_prefix_name(void *state) {
    const struct kv_family *family = state;
    return family->prefix_name;
}

static void kv_prefix_done(void *state) {
    (void)state;
}

rocksdb_options_t *kv_database_options(const struct kv_options *data) {
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_create_missing_column_families(options, 1);
    rocksdb_options_set_db_write_buffer_size(options, data->memory_size_max);
    rocksdb_options_set_max_total_wal_size(options, data->log_size_max);
    rocksdb_options_set_max_background_jobs(options, BACKGROUND_JOBS_MAX);
    rocksdb_options_set_max_open_files(options, data->open_files_max);
    rocksdb_options_set_wal_recovery_mode(options, WAL_POINT_IN_TIME);
    /* The sorted files alone are a moment of the database too: even if the log is lost, no family is ahead of
     * another. */
    rocksdb_options_set_atomic_flush(options, data->families_count > 1);
    /* How many entries are removals tells levels what to merge first; runs do not ask, and open sooner. */
    rocksdb_options_set_skip_stats_update_on_db_open(options, data->families[0].is_in_runs);
    rocksdb_options_set_max_manifest_file_size(options, MANIFEST_SIZE_MAX);
    rocksdb_options_set_info_log_level(options, LOG_LEVEL_ERROR); /* kv_room_reserve_log() */
    rocksdb_options_set_keep_log_file_num(options, 2);
    rocksdb_options_set_stats_dump_period_sec(options, 0);
    rocksdb_options_set_stats_persist_period_sec(options, 0);
    return options;
}

/* Filters and tables of contents lie in the cache as well, in pieces. */
static void kv_set_table(rocksdb_options_t *options, const struct kv_family *family, rocksdb_cache_t *cache) {
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_block_based_options_set_block_size(table, family->page_size);
    rocksdb_block_based_options_set_format_version(table, 5);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(table, 1);
    rocksdb_block_based_options_set_pin_top_level_index_and_filter(table, 1);
    rocksdb_block_based_options_set_index_type(table,
                                               rocksdb_block_based_table_index_type_two_level_index_search);
    rocksdb_block_based_options_set_metadata_block_size(table, PAGE_PARTITION_SIZE);
    if (family->has_filter) {
        rocksdb_block_based_options_set_partition_filters(table, 1);
        rocksdb_block_based_options_set_filter_policy(
            table, rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS_PER_KEY));
        rocksdb_block_based_options_set_whole_key_filtering(table, family->prefix_size == NULL);
    }
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_block_based_options_destroy(table);
}

/*
 * The place of a new entry in memory is searched for from the place of the last one with the same first byte,
 * and not from the top: a quarter of what a commit costs the index. The C interface knows this option by its
 * name only; a RocksDB that does not know it is slower.
 */
static rocksdb_options_t *kv_with_hints(rocksdb_options_t *take_options) {
    rocksdb_options_t *hinted = rocksdb_options_create();
    char *message = NULL;
    rocksdb_get_options_from_string(take_options, "memtable_insert_with_hint_prefix_extractor=fixed:1",
                                    hinted, &message);
    rocksdb_options_destroy(message == NULL ? take_options : hinted);
    if (message == NULL) {
        return hinted;
    }
    rocksdb_free(message);
    return take_options;
}

static void kv_set_files(rocksdb_options_t *options, const struct kv_family *family) {
    if (family->is_in_runs) {
        rocksdb_options_set_compaction_style(options, rocksdb_universal_compaction);
        rocksdb_options_set_level0_file_num_compaction_trigger(options, RUNS_BEFORE_MERGE);
    } else {
        rocksdb_options_set_target_file_size_base(options, FILE_SIZE);
        rocksdb_options_set_max_bytes_for_level_base(options, LEVEL_SIZE);
        rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1);
    }
    rocksdb_options_set_compression(options, family->compression == KV_PLAIN ? rocksdb_no_compression
                                                                             : rocksdb_lz4_compression);
    if (family->compression == KV_LZ4_ZSTD) {
        rocksdb_options_set_bottommost_compression(options, rocksdb_zstd_compression);
        rocksdb_options_set_bottommost_compression_options(options, ZSTD_WINDOW_DEFAULT, ZSTD_LEVEL, 0, 0, 1);
    }
}

rocksdb_options_t *kv_family_options(const struct kv_family *family, rocksdb_cache_t *cache) {
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_write_buffer_size(options, family->write_buffer_size);
    rocksdb_options_set_max_write_buffer_number(options, WRITE_BUFFERS_COUNT);
    kv_set_files(options, family);
    options = kv_with_hints(options);
    if (family->has_memory_filter) {
        rocksdb_options_set_memtable_prefix_bloom_size_ratio(options, MEMORY_FILTER_RATIO);
        rocksdb_options_set_memtable_whole_key_filtering(options, 1);
    }
    if (family->prefix_size != NULL) {
        rocksdb_options_set_prefix_extractor(
            options, rocksdb_slicetransform_create((void *)family, kv_prefix_done, kv_prefix_of,
                                                   kv_has_prefix, kv_is_prefix, kv_prefix_name));
    }
    kv_set_table(options, family, cache);
    return options;
}

rocksdb_readoptions_t *kv_walk_options(enum kv_walk walk) {
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_fill_cache(options, walk == KV_WALK || walk == KV_WALK_PREFIX);
    rocksdb_readoptions_set_readahead_size(options, walk == KV_WALK_ALL ? READ_AHEAD_SIZE : 0);
    rocksdb_readoptions_set_prefix_same_as_start(options, walk == KV_WALK_PREFIX);
    rocksdb_readoptions_set_total_order_seek(options, walk != KV_WALK_PREFIX);
    return options;
}
