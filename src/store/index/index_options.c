#include "store/index/index_options.h"

#include <stddef.h>

#include "base/bytes.h"
#include "store/index/index_code.h"

static const size_t CACHE_SIZE = 64 << 20;
static const size_t WRITE_BUFFER_SIZE = 32 << 20;      /* newest entries of all families together */
static const size_t SMALL_WRITE_BUFFER_SIZE = 1 << 20; /* of a family of few entries */
static const double MEMTABLE_BLOOM_RATIO = 0.05;       /* of a write buffer */
static const uint64_t WAL_SIZE_MAX = 128 << 20;
static const uint64_t FILE_SIZE = 32 << 20;
static const uint64_t LEVEL_SIZE = 128 << 20;

enum {
    BACKGROUND_JOBS_MAX = 2,
    OPEN_FILES_MAX = 256,
    BLOOM_BITS_PER_KEY = 10, /* one miss in a hundred reads for nothing */
    /* A lookup reads, unpacks and keeps in the cache one page of each. Captures in pages of 8 KiB would take
     * 7 % less on disk; a lookup that does not find its page in the cache takes 1.8 times as long. */
    BLOCKS_PAGE_SIZE = 4 << 10,
    CAPTURES_PAGE_SIZE = 4 << 10,
    ZSTD_WINDOW_DEFAULT = -14, /* of RocksDB; zstd has its own */
    ZSTD_LEVEL = 6, /* 1 % smaller than 3; a dictionary would save 3 % but is loaded for every page read */
    PAGE_PARTITION_SIZE = 4 << 10, /* of filters and tables of contents */
    WAL_POINT_IN_TIME = 2,         /* recovery up to the first damage, all families alike */
    LOG_LEVEL_ERROR = 3,
    MANIFEST_SIZE_MAX = 16 << 20,
};

const char *const index_family_names[INDEX_FAMILIES_COUNT] = {
    [INDEX_FAMILY_DEFAULT] = "default",   [INDEX_FAMILY_BLOCKS] = "blocks",
    [INDEX_FAMILY_CAPTURES] = "captures", [INDEX_FAMILY_SEGMENTS] = "segments",
    [INDEX_FAMILY_META] = "meta",
};

rocksdb_cache_t *index_options_cache_new(void) {
    return rocksdb_cache_create_lru(CACHE_SIZE);
}

static rocksdb_options_t *new_database_options(void) {
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_create_missing_column_families(options, 1);
    rocksdb_options_set_db_write_buffer_size(options, WRITE_BUFFER_SIZE);
    rocksdb_options_set_max_total_wal_size(options, WAL_SIZE_MAX);
    rocksdb_options_set_max_background_jobs(options, BACKGROUND_JOBS_MAX);
    rocksdb_options_set_max_open_files(options, OPEN_FILES_MAX);
    rocksdb_options_set_wal_recovery_mode(options, WAL_POINT_IN_TIME);
    /* The sorted files alone are a moment of the index too: even if the log is lost, the position is not
     * ahead of the other families. */
    rocksdb_options_set_atomic_flush(options, 1);
    rocksdb_options_set_max_manifest_file_size(options, MANIFEST_SIZE_MAX);
    rocksdb_options_set_info_log_level(options, LOG_LEVEL_ERROR); /* index_database_reserve_log() */
    rocksdb_options_set_keep_log_file_num(options, 2);
    rocksdb_options_set_stats_dump_period_sec(options, 0);
    rocksdb_options_set_stats_persist_period_sec(options, 0);
    return options;
}

/* Filters and tables of contents lie in the cache as well, in pieces: memory does not grow with the index. */
static rocksdb_block_based_table_options_t *new_table_options(rocksdb_cache_t *cache, size_t page_size) {
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_block_based_options_set_block_size(table, page_size);
    rocksdb_block_based_options_set_format_version(table, 5);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(table, 1);
    rocksdb_block_based_options_set_pin_top_level_index_and_filter(table, 1);
    rocksdb_block_based_options_set_index_type(table,
                                               rocksdb_block_based_table_index_type_two_level_index_search);
    rocksdb_block_based_options_set_partition_filters(table, 1);
    rocksdb_block_based_options_set_metadata_block_size(table, PAGE_PARTITION_SIZE);
    rocksdb_block_based_options_set_filter_policy(table,
                                                  rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS_PER_KEY));
    return table;
}

/*
 * The place of a new entry in memory is searched for from the place of the last one with the same first byte,
 * and not from the top: a quarter of what a commit costs. The C interface knows this option by its name only;
 * a RocksDB that does not know it is slower.
 */
static rocksdb_options_t *with_hints(rocksdb_options_t *take_options) {
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

static rocksdb_options_t *new_family_options(size_t write_buffer_size) {
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_write_buffer_size(options, write_buffer_size);
    rocksdb_options_set_max_write_buffer_number(options, 2);
    rocksdb_options_set_target_file_size_base(options, FILE_SIZE);
    rocksdb_options_set_max_bytes_for_level_base(options, LEVEL_SIZE);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1);
    rocksdb_options_set_compression(options, rocksdb_no_compression);
    return with_hints(options);
}

static rocksdb_options_t *new_small_options(rocksdb_cache_t *cache) {
    rocksdb_options_t *options = new_family_options(SMALL_WRITE_BUFFER_SIZE);
    rocksdb_block_based_table_options_t *table = new_table_options(cache, BLOCKS_PAGE_SIZE);
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_block_based_options_destroy(table);
    return options;
}

/* Signatures do not compress, so reading one shall not pay for it. */
static rocksdb_options_t *new_blocks_options(rocksdb_cache_t *cache) {
    rocksdb_options_t *options = new_family_options(WRITE_BUFFER_SIZE);
    /* Most digests that are looked for are not there: also the newest entries have a filter. */
    rocksdb_options_set_memtable_prefix_bloom_size_ratio(options, MEMTABLE_BLOOM_RATIO);
    rocksdb_options_set_memtable_whole_key_filtering(options, 1);
    rocksdb_block_based_table_options_t *table = new_table_options(cache, BLOCKS_PAGE_SIZE);
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_block_based_options_destroy(table);
    return options;
}

/* ---- the filter of captures knows SURTs, not keys ---- */

static char *surt_of_key(void *state, const char *key, size_t size, size_t *ret_size) {
    (void)state;
    *ret_size = index_code_surt_size(bytes_of(key, size));
    return (char *)key;
}

static unsigned char has_surt(void *state, const char *key, size_t size) {
    (void)state;
    return index_code_surt_size(bytes_of(key, size)) > 0;
}

static unsigned char is_surt(void *state, const char *prefix, size_t size) {
    (void)state;
    return index_code_surt_size(bytes_of(prefix, size)) == size;
}

static const char *surt_name(void *state) {
    (void)state;
    return "mnemon.surt"; /* stored in every file: another name makes its filter useless */
}

static void surt_done(void *state) {
    (void)state;
}

static rocksdb_options_t *new_captures_options(rocksdb_cache_t *cache) {
    rocksdb_options_t *options = new_family_options(WRITE_BUFFER_SIZE);
    rocksdb_options_set_compression(options, rocksdb_lz4_compression);
    rocksdb_options_set_bottommost_compression(options, rocksdb_zstd_compression);
    rocksdb_options_set_bottommost_compression_options(options, ZSTD_WINDOW_DEFAULT, ZSTD_LEVEL, 0, 0, 1);
    rocksdb_options_set_prefix_extractor(
        options, rocksdb_slicetransform_create(NULL, surt_done, surt_of_key, has_surt, is_surt, surt_name));
    rocksdb_block_based_table_options_t *table = new_table_options(cache, CAPTURES_PAGE_SIZE);
    rocksdb_block_based_options_set_whole_key_filtering(table, 0);
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_block_based_options_destroy(table);
    return options;
}

void index_options_init(struct index_options *options, rocksdb_cache_t *cache) {
    *options = (struct index_options){
        .database = new_database_options(),
        .families =
            {
                [INDEX_FAMILY_DEFAULT] = new_small_options(cache),
                [INDEX_FAMILY_BLOCKS] = new_blocks_options(cache),
                [INDEX_FAMILY_CAPTURES] = new_captures_options(cache),
                [INDEX_FAMILY_SEGMENTS] = new_small_options(cache),
                [INDEX_FAMILY_META] = new_small_options(cache),
            },
    };
}

void index_options_done(struct index_options *options) {
    rocksdb_options_destroy(options->database);
    for (int i = 0; i < INDEX_FAMILIES_COUNT; i++) {
        rocksdb_options_destroy(options->families[i]);
    }
}
