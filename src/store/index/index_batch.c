#include <stdlib.h>

#include "base/wire.h"
#include "store/index/index_code.h"
#include "store/index/index_database.h"
#include "store/index/index_url.h"

static const size_t DATA_SIZE_MAX = UINT32_MAX;

struct change {
    uint64_t key_start; /* its first eight bytes, to compare */
    uint32_t offset;    /* of the key in data; the value follows */
    uint32_t value_size;
    uint32_t key_size;
    uint8_t family;
    bool is_removal;
};

/*
 * Changes are gathered and given to RocksDB in the order of their keys: a third of what a duplicate costs the
 * index is the search for the place of its entries in memory, which starts near the one before
 * (index_options.c).
 */
struct index_batch {
    struct index *index;
    rocksdb_writebatch_t *writes;
    struct buf data; /* keys and values */
    struct change *changes;
    size_t changes_count;
    size_t changes_max;
    struct buf key;
    struct buf value;
    struct buf url;
    bool has_dead; /* a block in it has no reference any more */
    enum err err;  /* the first that a put met */
};

struct index_batch *index_batch_new(struct index *index) {
    struct index_batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL) {
        return NULL;
    }
    batch->index = index;
    batch->writes = rocksdb_writebatch_create();
    buf_init(&batch->data, DATA_SIZE_MAX);
    buf_init(&batch->key, INDEX_CODE_CAPTURE_KEY_SIZE_MAX);
    buf_init(&batch->value, INDEX_CODE_CAPTURE_SIZE_MAX);
    buf_init(&batch->url, INDEX_URL_WORK_SIZE_MAX);
    return batch;
}

void index_batch_free(struct index_batch *batch) {
    rocksdb_writebatch_destroy(batch->writes);
    buf_done(&batch->data);
    free(batch->changes);
    buf_done(&batch->key);
    buf_done(&batch->value);
    buf_done(&batch->url);
    free(batch);
}

void index_batch_clear(struct index_batch *batch) {
    buf_clear(&batch->data);
    batch->changes_count = 0;
    batch->has_dead = false;
    batch->err = ERR_OK;
}

/* ---- the order of keys ---- */

static uint64_t start_of(struct bytes key) {
    uint64_t start = 0;
    for (size_t i = 0; i < sizeof start; i++) {
        start = start << 8 | (i < key.size ? key.data[i] : 0);
    }
    return start;
}

static enum err grow(struct index_batch *batch) {
    size_t changes_max = batch->changes_max * 2 + 64;
    struct change *changes = reallocarray(batch->changes, changes_max, sizeof *changes);
    if (changes == NULL) {
        return ERR_MEMORY;
    }
    batch->changes = changes;
    batch->changes_max = changes_max;
    return ERR_OK;
}

static void add(struct index_batch *batch, enum index_family family, struct bytes key, struct bytes value,
                bool is_removal) {
    struct change change = {
        .key_start = start_of(key),
        .offset = (uint32_t)batch->data.size,
        .value_size = (uint32_t)value.size,
        .key_size = (uint32_t)key.size,
        .family = (uint8_t)family,
        .is_removal = is_removal,
    };
    enum err err = batch->changes_count < batch->changes_max ? ERR_OK : grow(batch);
    buf_put(&batch->data, key);
    buf_put(&batch->data, value);
    err = err == ERR_OK ? batch->data.err : err;
    if (err != ERR_OK) {
        batch->err = batch->err != ERR_OK ? batch->err : err;
        return;
    }
    batch->changes[batch->changes_count++] = change;
}

static struct bytes key_of(const struct index_batch *batch, const struct change *change) {
    return bytes_of(batch->data.data + change->offset, change->key_size);
}

/* By family and key, equal ones as they came. */
static int compare(const void *left, const void *right, void *context) {
    const struct change *a = left;
    const struct change *b = right;
    if (a->family != b->family) {
        return a->family < b->family ? -1 : 1;
    }
    if (a->key_start != b->key_start) {
        return a->key_start < b->key_start ? -1 : 1;
    }
    int order = bytes_compare(key_of(context, a), key_of(context, b));
    if (order != 0) {
        return order;
    }
    return a->offset < b->offset ? -1 : 1; /* no two are at one place: keys are not empty */
}

static void give_all(struct index_batch *batch) {
    rocksdb_writebatch_clear(batch->writes); /* of a commit that failed */
    qsort_r(batch->changes, batch->changes_count, sizeof *batch->changes, compare, batch);
    for (size_t i = 0; i < batch->changes_count; i++) {
        const struct change *change = &batch->changes[i];
        rocksdb_column_family_handle_t *family = batch->index->families[change->family];
        const char *key = (const char *)batch->data.data + change->offset;
        if (change->is_removal) {
            rocksdb_writebatch_delete_cf(batch->writes, family, key, change->key_size);
        } else {
            rocksdb_writebatch_put_cf(batch->writes, family, key, change->key_size, key + change->key_size,
                                      change->value_size);
        }
    }
}

/* ---- what is put ---- */

static void put(struct index_batch *batch, enum index_family family, struct bytes key, struct bytes value) {
    add(batch, family, key, value, false);
}

static void take_out(struct index_batch *batch, enum index_family family, struct bytes key) {
    add(batch, family, key, bytes_of(NULL, 0), true);
}

void index_batch_put_block(struct index_batch *batch, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                           const struct block *block) {
    uint8_t key[INDEX_CODE_BLOCK_KEY_SIZE_MAX];
    uint8_t value[INDEX_CODE_SMALL_SIZE_MAX];
    put(batch, INDEX_FAMILY_BLOCKS, index_code_block_key(key, digest, number),
        index_code_block(value, block));
    if (block->references <= 0) {
        batch->has_dead = true;
        atomic_store(&batch->index->has_dead, true); /* at once: too early does no harm */
    }
}

void index_batch_remove_block(struct index_batch *batch, const uint8_t digest[KEY_DIGEST_SIZE],
                              uint16_t number) {
    uint8_t key[INDEX_CODE_BLOCK_KEY_SIZE_MAX];
    take_out(batch, INDEX_FAMILY_BLOCKS, index_code_block_key(key, digest, number));
}

/* False and the error kept where there is no memory for them. */
static bool is_encoded(struct index_batch *batch) {
    enum err err = batch->key.err != ERR_OK ? batch->key.err : batch->value.err;
    batch->err = batch->err != ERR_OK ? batch->err : err;
    return err == ERR_OK;
}

void index_batch_put_capture(struct index_batch *batch, const struct capture *capture) {
    ASSERT(index_can_hold(capture));
    buf_clear(&batch->key);
    buf_clear(&batch->value);
    index_code_put_capture_key(&batch->key, capture);
    index_code_put_capture(&batch->value, capture, &batch->url);
    if (is_encoded(batch)) {
        put(batch, INDEX_FAMILY_CAPTURES, buf_bytes(&batch->key), buf_bytes(&batch->value));
    }
}

void index_batch_remove_capture(struct index_batch *batch, const struct capture *capture) {
    buf_clear(&batch->key);
    buf_clear(&batch->value);
    index_code_put_capture_key(&batch->key, capture);
    if (is_encoded(batch)) {
        take_out(batch, INDEX_FAMILY_CAPTURES, buf_bytes(&batch->key));
    }
}

bool index_batch_has_captures(const struct index_batch *batch, struct bytes surt, int64_t time_us) {
    struct buf prefix;
    buf_init(&prefix, INDEX_CODE_CAPTURE_KEY_SIZE_MAX);
    index_put_capture_prefix(&prefix, surt, time_us);
    bool has = prefix.err != ERR_OK; /* for want of memory: rather too often than never */
    uint64_t start = has ? 0 : start_of(buf_bytes(&prefix));
    for (size_t i = 0; i < batch->changes_count && !has; i++) {
        const struct change *change = &batch->changes[i];
        has = change->family == INDEX_FAMILY_CAPTURES && change->key_start == start &&
              bytes_starts_with(key_of(batch, change), buf_bytes(&prefix));
    }
    buf_done(&prefix);
    return has;
}

void index_batch_put_mended(struct index_batch *batch, const struct location *location) {
    uint8_t key[INDEX_CODE_MENDED_KEY_SIZE];
    uint8_t value[INDEX_CODE_SMALL_SIZE_MAX];
    put(batch, INDEX_FAMILY_META, index_code_mended_key(key, location->segment, location->offset),
        index_code_mended(value, location));
}

void index_batch_remove_mended(struct index_batch *batch, const struct location *location) {
    uint8_t key[INDEX_CODE_MENDED_KEY_SIZE];
    take_out(batch, INDEX_FAMILY_META, index_code_mended_key(key, location->segment, location->offset));
}

void index_batch_put_segment(struct index_batch *batch, uint32_t number,
                             const struct index_segment *segment) {
    uint8_t key[INDEX_CODE_SEGMENT_KEY_SIZE];
    uint8_t value[INDEX_CODE_SMALL_SIZE_MAX];
    put(batch, INDEX_FAMILY_SEGMENTS, index_code_segment_key(key, number),
        index_code_segment(value, segment));
}

void index_batch_remove_segment(struct index_batch *batch, uint32_t number) {
    uint8_t key[INDEX_CODE_SEGMENT_KEY_SIZE];
    take_out(batch, INDEX_FAMILY_SEGMENTS, index_code_segment_key(key, number));
}

void index_batch_set_position(struct index_batch *batch, const struct index_position *position) {
    uint8_t value[INDEX_CODE_SMALL_SIZE_MAX];
    put(batch, INDEX_FAMILY_META, BYTES("position"), index_code_position(value, position));
}

enum err index_commit(struct index *index, struct index_batch *batch, struct err_detail *detail) {
    ASSERT(batch->index == index);
    if (batch->err != ERR_OK) {
        return err_set(detail, batch->err, "%s", err_text(batch->err));
    }
    enum err err = index_database_can_write(index, detail);
    if (err != ERR_OK) {
        return err;
    }
    uint8_t serial[WIRE_VARINT_SIZE_MAX];
    struct wire_writer writer;
    struct bytes written;
    wire_writer_init(&writer, serial, sizeof serial);
    wire_write_varint(&writer, index->serial + 1);
    err = wire_writer_finish(&writer, &written);
    ASSERT(err == ERR_OK);
    put(batch, INDEX_FAMILY_META, BYTES("serial"), written);
    if (batch->has_dead) {
        put(batch, INDEX_FAMILY_META, BYTES("dead"), BYTES(""));
    }
    if (batch->err != ERR_OK) {
        return err_set(detail, batch->err, "%s", err_text(batch->err));
    }
    give_all(batch);
    char *message = NULL;
    rocksdb_set_perf_level(rocksdb_disable); /* of this thread, whosever it is: counting costs 5 % */
    rocksdb_write(index->database, index->write_options, batch->writes, &message);
    if (message != NULL) {
        return index_database_write_failed(index, message, detail);
    }
    index->serial++;
    index_spares_clear(&index->gate->spares);
    index_batch_clear(batch);
    return ERR_OK;
}
