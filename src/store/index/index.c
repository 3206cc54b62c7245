#include "store/index/index.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/wire.h"
#include "store/index/index_batch.h"
#include "store/kv/kv.h"
#include "store/kv/kv_room.h"

enum {
    FORMAT_VERSION = 3,
    WRITE_BUFFER_SIZE = 32 << 20,      /* newest entries of all families together */
    SMALL_WRITE_BUFFER_SIZE = 1 << 20, /* of a family of few entries */
    /* A lookup reads, unpacks and keeps in the cache one page of each. Captures in pages of 8 KiB would take
     * 7 % less on disk; a lookup that does not find its page in the cache takes 1.8 times as long. */
    PAGE_SIZE = 4 << 10,
};

#define SMALL_FAMILY(text)                                                                    \
    {                                                                                         \
        .name = (text), .write_buffer_size = SMALL_WRITE_BUFFER_SIZE, .page_size = PAGE_SIZE, \
        .has_filter = true                                                                    \
    }

static const struct kv_family index_families[INDEX_FAMILIES_COUNT] = {
    [INDEX_FAMILY_DEFAULT] = SMALL_FAMILY("default"),
    [INDEX_FAMILY_SEGMENTS] = SMALL_FAMILY("segments"),
    [INDEX_FAMILY_META] = SMALL_FAMILY("meta"),
    /* Digests do not compress, so reading one shall not pay for it. Most that are looked for are not
     * there: also the newest entries have a filter. */
    [INDEX_FAMILY_BLOCKS] = {.name = "blocks",
                             .write_buffer_size = WRITE_BUFFER_SIZE,
                             .page_size = PAGE_SIZE,
                             .has_filter = true,
                             .has_memory_filter = true},
    /* Their filter knows SURTs, not keys. */
    [INDEX_FAMILY_CAPTURES] = {.name = "captures",
                               .write_buffer_size = WRITE_BUFFER_SIZE,
                               .page_size = PAGE_SIZE,
                               .compression = KV_LZ4_ZSTD,
                               .has_filter = true,
                               .prefix_size = index_code_surt_size,
                               .prefix_name = "mnemon.surt"},
};

const struct kv_options index_kv_options = {
    .families = index_families,
    .families_count = INDEX_FAMILIES_COUNT,
    .cache_size = 64 << 20,
    .memory_size_max = WRITE_BUFFER_SIZE,
    .log_size_max = 128 << 20,
    .open_files_max = 256,
    .looks_for_room = true,
};

struct index {
    struct kv *kv;
    atomic_bool has_dead; /* index_has_dead() */
    uint64_t serial;      /* the writer's: of the last commit */
};

struct kv *index_kv(const struct index *index) {
    return index->kv;
}

enum err index_forget(struct index *index, struct err_detail *detail) {
    return kv_forget(index->kv, detail);
}

/* ---- opening ---- */

static enum err index_get(const struct index *index, enum index_family family, struct bytes key,
                          struct kv_value *ret_value) {
    return kv_get(index->kv, family, key, KV_GET, ret_value);
}

static enum err index_write_format(struct index *index, struct err_detail *detail) {
    static const char version = FORMAT_VERSION;
    return kv_put(index->kv, INDEX_FAMILY_META, BYTES("format"), bytes_of(&version, sizeof version), detail);
}

/* A new index gets the format, any other must have ours. */
static enum err index_check_format(struct index *index, struct err_detail *detail) {
    struct kv_value value;
    enum err err = index_get(index, INDEX_FAMILY_META, BYTES("format"), &value);
    if (err == ERR_NOT_FOUND) {
        return index_write_format(index, detail);
    }
    if (err != ERR_OK) {
        return err_set(detail, err, "cannot read the format of the index: %s", err_text(err));
    }
    struct wire_reader reader;
    wire_reader_init(&reader, value.bytes);
    uint8_t version = wire_read_u8(&reader);
    err = wire_reader_finish(&reader, NULL);
    kv_value_done(&value);
    if (err != ERR_OK) {
        return err_set(detail, ERR_CORRUPT, "the format of the index is damaged");
    }
    if (version != FORMAT_VERSION) {
        return err_set(detail, ERR_MISMATCH, "the index has format %u, not %u", version, FORMAT_VERSION);
    }
    return ERR_OK;
}

static enum err index_read_dead(struct index *index) {
    struct kv_value value;
    enum err err = index_get(index, INDEX_FAMILY_META, BYTES("dead"), &value);
    if (err == ERR_OK) {
        kv_value_done(&value);
        atomic_store(&index->has_dead, true);
    }
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* How many commits have been made, as the database has it. */
static enum err index_read_serial(const struct index *index, uint64_t *ret_serial) {
    struct kv_value value;
    enum err err = index_get(index, INDEX_FAMILY_META, BYTES("serial"), &value);
    if (err != ERR_OK) {
        *ret_serial = 0;
        return err == ERR_NOT_FOUND ? ERR_OK : err;
    }
    struct wire_reader reader;
    wire_reader_init(&reader, value.bytes);
    uint64_t serial = wire_read_varint(&reader, UINT64_MAX);
    err = wire_reader_finish(&reader, NULL);
    kv_value_done(&value);
    *ret_serial = serial;
    return err == ERR_OK ? ERR_OK : ERR_CORRUPT;
}

/* ERR_OK for `why`: to write as well. */
static enum err index_open_as(const char *directory, enum err why, struct index **ret_index,
                              struct err_detail *detail) {
    struct index *index = calloc(1, sizeof *index);
    struct kv *kv = kv_new(directory, &index_kv_options);
    if (index == NULL || kv == NULL) {
        free(index);
        if (kv != NULL) {
            kv_free(kv);
        }
        return err_set(detail, ERR_MEMORY, "%s: %s", directory, err_text(ERR_MEMORY));
    }
    index->kv = kv;
    enum err err = why == ERR_OK ? kv_open(kv, detail) : kv_open_to_read(kv, why, detail);
    if (err == ERR_OK) {
        err = index_check_format(index, detail);
    }
    if (err == ERR_OK) {
        err = index_read_serial(index, &index->serial);
    }
    if (err == ERR_OK) {
        err = index_read_dead(index);
    }
    if (err != ERR_OK) {
        index_close(index);
        return err;
    }
    *ret_index = index;
    return ERR_OK;
}

enum err index_open(const char *directory, struct index **ret_index, struct err_detail *detail) {
    return index_open_as(directory, ERR_OK, ret_index, detail);
}

enum err index_open_to_read(const char *directory, enum err why, struct index **ret_index,
                            struct err_detail *detail) {
    ASSERT(why != ERR_OK);
    return index_open_as(directory, why, ret_index, detail);
}

enum err index_has_room(const char *directory, struct err_detail *detail) {
    return kv_room_look(directory, detail);
}

void index_close(struct index *index) {
    kv_free(index->kv);
    free(index);
}

enum err index_destroy(const char *directory, struct err_detail *detail) {
    return kv_destroy(directory, detail);
}

/* ---- reading one entry ---- */

static enum err index_get_block(const struct index *index, enum kv_get_kind kind,
                                const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                                struct block *ret_block) {
    uint8_t key[INDEX_CODE_BLOCK_KEY_SIZE_MAX];
    struct kv_value value;
    enum err err =
        kv_get(index->kv, INDEX_FAMILY_BLOCKS, index_code_block_key(key, digest, number), kind, &value);
    if (err != ERR_OK) {
        return err;
    }
    err = index_code_read_block(value.bytes, ret_block);
    kv_value_done(&value);
    return err;
}

enum err index_find_block(const struct index *index, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                          struct block *ret_block) {
    return index_get_block(index, KV_GET, digest, number, ret_block);
}

enum err index_probe_block(const struct index *index, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                           struct block *ret_block) {
    return index_get_block(index, KV_GET_ONCE, digest, number, ret_block);
}

enum err index_find_segment(const struct index *index, uint32_t number, struct index_segment *ret_segment) {
    uint8_t key[INDEX_CODE_SEGMENT_KEY_SIZE];
    struct kv_value value;
    enum err err = index_get(index, INDEX_FAMILY_SEGMENTS, index_code_segment_key(key, number), &value);
    if (err != ERR_OK) {
        return err;
    }
    err = index_code_read_segment(value.bytes, ret_segment);
    kv_value_done(&value);
    return err;
}

enum err index_has_capture(const struct index *index, const struct capture *capture, bool *ret_is_there) {
    struct buf key;
    struct kv_value value;
    ASSERT(index_can_hold(capture));
    buf_init(&key, INDEX_CODE_CAPTURE_KEY_SIZE_MAX);
    index_code_put_capture_key(&key, capture);
    enum err err =
        key.err != ERR_OK ? key.err : index_get(index, INDEX_FAMILY_CAPTURES, buf_bytes(&key), &value);
    buf_done(&key);
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        return err;
    }
    if (err == ERR_OK) {
        kv_value_done(&value);
    }
    *ret_is_there = err == ERR_OK;
    return ERR_OK;
}

enum err index_is_live(const struct index *index, const struct capture *capture, bool *ret_is_live) {
    struct block block;
    bool is_there = false;
    enum err err = index_find_block(index, capture->digest, capture->block_number, &block);
    if (err == ERR_OK && block.references > 0) {
        err = index_has_capture(index, capture, &is_there);
    }
    if (err == ERR_OK || err == ERR_NOT_FOUND) {
        *ret_is_live = is_there;
        err = ERR_OK;
    }
    return err;
}

enum err index_find_mended(const struct index *index, uint32_t segment, uint64_t offset,
                           struct location *ret_location) {
    uint8_t from[INDEX_CODE_MENDED_KEY_SIZE];
    struct kv_iterator iterator;
    enum err err = kv_iterator_init(&iterator, index->kv, INDEX_FAMILY_META, KV_WALK,
                                    index_code_mended_key(from, segment, offset), bytes_of(NULL, 0), false);
    if (err != ERR_OK) {
        return err;
    }
    err = kv_iterator_next(&iterator, NULL);
    if (err == ERR_OK) {
        err = index_code_read_mended(iterator.key, iterator.value, segment, ret_location);
    }
    kv_iterator_done(&iterator);
    return err;
}

enum err index_position(const struct index *index, struct index_position *ret_position) {
    struct kv_value value;
    enum err err = index_get(index, INDEX_FAMILY_META, BYTES("position"), &value);
    if (err == ERR_NOT_FOUND) {
        *ret_position = (struct index_position){0};
        return ERR_OK;
    }
    if (err != ERR_OK) {
        return err;
    }
    err = index_code_read_position(value.bytes, ret_position);
    kv_value_done(&value);
    return err;
}

void index_counts(const struct index *index, struct index_counts *ret_counts) {
    struct kv_stat stat = kv_stat(index->kv);
    *ret_counts = (struct index_counts){
        .blocks_count = stat.entries_count[INDEX_FAMILY_BLOCKS],
        .captures_count = stat.entries_count[INDEX_FAMILY_CAPTURES],
        .disk_size = stat.disk_size,
        .memory_size = stat.memory_size,
        .compactions_count = stat.compactions_count,
    };
}

bool index_has_dead(const struct index *index) {
    return atomic_load(&index->has_dead);
}

void index_set_cache_size(const struct index *index, size_t size) {
    kv_set_cache_size(index->kv, size);
}

void index_settle(const struct index *index) {
    kv_settle(index->kv);
}

/* ---- writing ---- */

static void index_put_serial(struct kv_batch *changes, uint64_t serial) {
    uint8_t memory[WIRE_VARINT_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_varint(&writer, serial);
    struct bytes written = wire_writer_bytes(&writer);
    kv_batch_put(changes, INDEX_FAMILY_META, BYTES("serial"), written);
}

enum err index_commit(struct index *index, struct index_batch *batch, struct err_detail *detail) {
    index_put_serial(&batch->changes, index->serial + 1);
    if (batch->has_dead) {
        kv_batch_put(&batch->changes, INDEX_FAMILY_META, BYTES("dead"), BYTES(""));
        atomic_store(&index->has_dead, true); /* before anybody can see it; too early does no harm */
    }
    enum err err = kv_write(index->kv, &batch->changes, detail);
    if (err != ERR_OK) {
        return err;
    }
    index->serial++;
    index_batch_clear(batch);
    return ERR_OK;
}

/* A commit that was reported as failed must not be there after all: its records were taken back. */
static enum err index_check_serial(const struct index *index, struct err_detail *detail) {
    uint64_t serial;
    enum err err = index_read_serial(index, &serial);
    if (err == ERR_OK && serial != index->serial) {
        err = err_set(detail, ERR_MISMATCH, "the index holds a commit that failed; it must be rebuilt");
    }
    return err;
}

enum err index_mend(struct index *index, struct err_detail *detail) {
    if (kv_can_write(index->kv, NULL) == ERR_OK) {
        return ERR_OK;
    }
    enum err err = kv_mend(index->kv, detail);
    if (err == ERR_OK) {
        err = index_check_serial(index, detail);
    }
    if (err != ERR_OK) {
        kv_stop_writes(index->kv, err);
    }
    return err;
}
