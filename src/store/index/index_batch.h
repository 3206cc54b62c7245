/*
 * index_batch - changes of an index, collected until index_commit() writes all of them or none.
 *
 * Changes reach the database in the order of their keys (store/kv/kv_batch.h): a third of what a duplicate
 * costs the index is the search for the place of its entries in memory. One thread at a time.
 */
#ifndef MNEMON_STORE_INDEX_INDEX_BATCH_H
#define MNEMON_STORE_INDEX_INDEX_BATCH_H

#include "store/index/index_code.h"
#include "store/kv/kv_batch.h"

struct index_batch {
    struct kv_batch changes;
    struct buf key; /* work space */
    struct buf value;
    struct buf url;
    bool has_dead; /* a block in it has no reference any more */
};

struct index_batch *index_batch_new(void); /* NULL: out of memory */
void index_batch_free(struct index_batch *batch);
void index_batch_clear(struct index_batch *batch);

void index_batch_put_block(struct index_batch *batch, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                           const struct block *block);
void index_batch_remove_block(struct index_batch *batch, const uint8_t digest[KEY_DIGEST_SIZE],
                              uint16_t number);

void index_batch_put_capture(struct index_batch *batch, const struct capture *capture);

/* Only SURT, time, segment and offset of the capture matter. */
void index_batch_remove_capture(struct index_batch *batch, const struct capture *capture);

/* Does the batch put or remove a capture of this SURT and time? Looks at all of its changes. */
bool index_batch_has_captures(const struct index_batch *batch, struct bytes surt, int64_t time_us);

void index_batch_put_mended(struct index_batch *batch, const struct location *location);
void index_batch_remove_mended(struct index_batch *batch, const struct location *location);

void index_batch_put_segment(struct index_batch *batch, uint32_t number, const struct index_segment *segment);
void index_batch_remove_segment(struct index_batch *batch, uint32_t number);
void index_batch_set_position(struct index_batch *batch, const struct index_position *position);

#endif
