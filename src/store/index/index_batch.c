#include "store/index/index_batch.h"

#include <stdlib.h>

#include "store/index/index_url.h"

struct index_batch *index_batch_new(void) {
    struct index_batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL) {
        return NULL;
    }
    kv_batch_init(&batch->changes);
    buf_init(&batch->key, INDEX_CODE_CAPTURE_KEY_SIZE_MAX);
    buf_init(&batch->value, INDEX_CODE_CAPTURE_SIZE_MAX);
    buf_init(&batch->url, INDEX_URL_WORK_SIZE_MAX);
    return batch;
}

void index_batch_free(struct index_batch *batch) {
    kv_batch_done(&batch->changes);
    buf_done(&batch->key);
    buf_done(&batch->value);
    buf_done(&batch->url);
    free(batch);
}

void index_batch_clear(struct index_batch *batch) {
    kv_batch_clear(&batch->changes);
    batch->has_dead = false;
}

void index_batch_put_block(struct index_batch *batch, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                           const struct block *block) {
    uint8_t key[INDEX_CODE_BLOCK_KEY_SIZE_MAX];
    uint8_t value[INDEX_CODE_SMALL_SIZE_MAX];
    kv_batch_put(&batch->changes, INDEX_FAMILY_BLOCKS, index_code_block_key(key, digest, number),
                 index_code_block(value, block));
    if (block->references <= 0) {
        batch->has_dead = true;
    }
}

void index_batch_remove_block(struct index_batch *batch, const uint8_t digest[KEY_DIGEST_SIZE],
                              uint16_t number) {
    uint8_t key[INDEX_CODE_BLOCK_KEY_SIZE_MAX];
    kv_batch_remove(&batch->changes, INDEX_FAMILY_BLOCKS, index_code_block_key(key, digest, number));
}

/* False and the error kept where there is no memory for them. */
static bool index_batch_is_encoded(struct index_batch *batch) {
    enum err err = batch->key.err != ERR_OK ? batch->key.err : batch->value.err;
    batch->changes.err = batch->changes.err != ERR_OK ? batch->changes.err : err;
    return err == ERR_OK;
}

void index_batch_put_capture(struct index_batch *batch, const struct capture *capture) {
    ASSERT(index_can_hold(capture));
    buf_clear(&batch->key);
    buf_clear(&batch->value);
    index_code_put_capture_key(&batch->key, capture);
    index_code_put_capture(&batch->value, capture, &batch->url);
    if (index_batch_is_encoded(batch)) {
        kv_batch_put(&batch->changes, INDEX_FAMILY_CAPTURES, buf_bytes(&batch->key),
                     buf_bytes(&batch->value));
    }
}

void index_batch_remove_capture(struct index_batch *batch, const struct capture *capture) {
    buf_clear(&batch->key);
    buf_clear(&batch->value);
    index_code_put_capture_key(&batch->key, capture);
    if (index_batch_is_encoded(batch)) {
        kv_batch_remove(&batch->changes, INDEX_FAMILY_CAPTURES, buf_bytes(&batch->key));
    }
}

bool index_batch_has_captures(const struct index_batch *batch, struct bytes surt, int64_t time_us) {
    struct buf prefix;
    buf_init(&prefix, INDEX_CODE_CAPTURE_KEY_SIZE_MAX);
    index_put_capture_prefix(&prefix, surt, time_us);
    /* For want of memory: rather too often than never. */
    bool has = prefix.err != ERR_OK ||
               kv_batch_has_prefix(&batch->changes, INDEX_FAMILY_CAPTURES, buf_bytes(&prefix));
    buf_done(&prefix);
    return has;
}

void index_batch_put_mended(struct index_batch *batch, const struct location *location) {
    uint8_t key[INDEX_CODE_MENDED_KEY_SIZE];
    uint8_t value[INDEX_CODE_SMALL_SIZE_MAX];
    kv_batch_put(&batch->changes, INDEX_FAMILY_META,
                 index_code_mended_key(key, location->segment, location->offset),
                 index_code_mended(value, location));
}

void index_batch_remove_mended(struct index_batch *batch, const struct location *location) {
    uint8_t key[INDEX_CODE_MENDED_KEY_SIZE];
    kv_batch_remove(&batch->changes, INDEX_FAMILY_META,
                    index_code_mended_key(key, location->segment, location->offset));
}

void index_batch_put_segment(struct index_batch *batch, uint32_t number,
                             const struct index_segment *segment) {
    uint8_t key[INDEX_CODE_SEGMENT_KEY_SIZE];
    uint8_t value[INDEX_CODE_SMALL_SIZE_MAX];
    kv_batch_put(&batch->changes, INDEX_FAMILY_SEGMENTS, index_code_segment_key(key, number),
                 index_code_segment(value, segment));
}

void index_batch_remove_segment(struct index_batch *batch, uint32_t number) {
    uint8_t key[INDEX_CODE_SEGMENT_KEY_SIZE];
    kv_batch_remove(&batch->changes, INDEX_FAMILY_SEGMENTS, index_code_segment_key(key, number));
}

void index_batch_set_position(struct index_batch *batch, const struct index_position *position) {
    uint8_t value[INDEX_CODE_SMALL_SIZE_MAX];
    kv_batch_put(&batch->changes, INDEX_FAMILY_META, BYTES("position"), index_code_position(value, position));
}
