#include <stdlib.h>

#include "base/wire.h"
#include "store/index_code.h"
#include "store/index_database.h"
#include "store/index_url.h"

struct index_batch {
    struct index *index;
    rocksdb_writebatch_t *writes;
    struct buf key;
    struct buf value;
    struct buf url;
    enum err err; /* the first that a put met */
};

struct index_batch *index_batch_new(struct index *index) {
    struct index_batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL) {
        return NULL;
    }
    batch->index = index;
    batch->writes = rocksdb_writebatch_create();
    buf_init(&batch->key, INDEX_CODE_CAPTURE_KEY_SIZE_MAX);
    buf_init(&batch->value, INDEX_CODE_CAPTURE_SIZE_MAX);
    buf_init(&batch->url, INDEX_URL_WORK_SIZE_MAX);
    return batch;
}

void index_batch_free(struct index_batch *batch) {
    rocksdb_writebatch_destroy(batch->writes);
    buf_done(&batch->key);
    buf_done(&batch->value);
    buf_done(&batch->url);
    free(batch);
}

void index_batch_clear(struct index_batch *batch) {
    rocksdb_writebatch_clear(batch->writes);
    batch->err = ERR_OK;
}

static void put(struct index_batch *batch, enum index_family family, struct bytes key, struct bytes value) {
    rocksdb_writebatch_put_cf(batch->writes, batch->index->families[family], (const char *)key.data, key.size,
                              (const char *)value.data, value.size);
}

static void take_out(struct index_batch *batch, enum index_family family, struct bytes key) {
    rocksdb_writebatch_delete_cf(batch->writes, batch->index->families[family], (const char *)key.data,
                                 key.size);
}

void index_batch_put_block(struct index_batch *batch, const uint8_t signature[KEY_SIGNATURE_SIZE],
                           uint16_t number, const struct block *block) {
    uint8_t key[INDEX_CODE_BLOCK_KEY_SIZE_MAX];
    uint8_t value[INDEX_CODE_SMALL_SIZE_MAX];
    put(batch, INDEX_FAMILY_BLOCKS, index_code_block_key(key, signature, number),
        index_code_block(value, block));
}

void index_batch_remove_block(struct index_batch *batch, const uint8_t signature[KEY_SIGNATURE_SIZE],
                              uint16_t number) {
    uint8_t key[INDEX_CODE_BLOCK_KEY_SIZE_MAX];
    take_out(batch, INDEX_FAMILY_BLOCKS, index_code_block_key(key, signature, number));
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
    char *message = NULL;
    rocksdb_write(index->database, index->write_options, batch->writes, &message);
    if (message != NULL) {
        return index_database_write_failed(index, message, detail);
    }
    index->serial++;
    index_batch_clear(batch);
    return ERR_OK;
}
