/*
 * pool - the messages in flight: taken when sent, given back when delivered, no malloc in between.
 *
 *      class 0   104 bytes of payload   [p p p … 256 of them] [ … ]     most protocol messages
 *      class 1   488                    [ … ]
 *      class 2   1176                   [ … ]                           STEP_MESSAGE_SIZE_MAX
 *
 * Blocks are allocated when first needed and kept until pool_done(); a freed parcel is the next one taken,
 * while it is still in the cache. A parcel never moves. count_max bounds all classes together.
 */
#ifndef MNEMON_SIM_WORLD_POOL_H
#define MNEMON_SIM_WORLD_POOL_H

#include "base/bytes.h"
#include "base/err.h"

enum { POOL_CLASSES_COUNT = 3, POOL_BLOCK_PARCELS_COUNT = 256, POOL_COUNT_MAX = 1 << 28 };

struct parcel {
    uint64_t number;
    uint32_t from;
    uint32_t to;
    uint32_t code;
    uint32_t size;
    uint8_t bytes[];
};

struct pool_class {
    uint8_t **blocks;
    uint32_t blocks_count;
    uint32_t blocks_max;
    uint32_t free_id; /* of the parcel freed last; its .from holds the next; POOL_NONE at the end */
};

struct pool {
    struct pool_class classes[POOL_CLASSES_COUNT];
    uint32_t count; /* taken now */
    uint32_t count_max;
};

/* count_max is at most POOL_COUNT_MAX. */
void pool_init(struct pool *pool, uint32_t count_max);
void pool_done(struct pool *pool);

/* Room for size bytes, at most STEP_MESSAGE_SIZE_MAX; .size is set. ERR_LIMIT at count_max, ERR_MEMORY. */
enum err pool_take(struct pool *pool, size_t size, uint32_t *ret_id) MUST_CHECK;
void pool_give(struct pool *pool, uint32_t id);

/* Valid until pool_give(). */
struct parcel *pool_at(const struct pool *pool, uint32_t id);

#endif
