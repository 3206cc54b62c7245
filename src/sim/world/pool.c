#include "sim/world/pool.h"

#include <stdlib.h>

#include "base/step.h"

enum { CLASS_SHIFT = 30 }; /* an id is two bits of class and 30 of index in the class */
static const uint32_t POOL_NONE = UINT32_MAX;

/* Whole parcels are 128, 512 and 1224 bytes. */
static const uint32_t payload_sizes[POOL_CLASSES_COUNT] = {104, 488, 1176};

_Static_assert(STEP_MESSAGE_SIZE_MAX <= 1176, "the largest message fits the largest class");

static size_t parcel_size(uint32_t class_index) {
    return sizeof(struct parcel) + payload_sizes[class_index];
}

void pool_init(struct pool *pool, uint32_t count_max) {
    ASSERT(count_max > 0 && count_max <= POOL_COUNT_MAX);
    *pool = (struct pool){.count_max = count_max};
    for (unsigned i = 0; i < POOL_CLASSES_COUNT; i++) {
        pool->classes[i].free_id = POOL_NONE;
    }
}

void pool_done(struct pool *pool) {
    for (unsigned i = 0; i < POOL_CLASSES_COUNT; i++) {
        for (uint32_t block = 0; block < pool->classes[i].blocks_count; block++) {
            free(pool->classes[i].blocks[block]);
        }
        free(pool->classes[i].blocks);
    }
    pool_init(pool, pool->count_max);
}

struct parcel *pool_at(const struct pool *pool, uint32_t id) {
    uint32_t class_index = id >> CLASS_SHIFT;
    uint32_t index = id & ((UINT32_C(1) << CLASS_SHIFT) - 1);
    uint8_t *block = pool->classes[class_index].blocks[index / POOL_BLOCK_PARCELS_COUNT];
    return (struct parcel *)(void *)(block + index % POOL_BLOCK_PARCELS_COUNT * parcel_size(class_index));
}

static enum err pool_grow(struct pool *pool, uint32_t class_index) {
    struct pool_class *class = &pool->classes[class_index];
    if (class->blocks_count == class->blocks_max) {
        uint32_t blocks_max = class->blocks_max == 0 ? 16 : 2 * class->blocks_max;
        uint8_t **blocks = realloc(class->blocks, blocks_max * sizeof *blocks);
        if (blocks == NULL) {
            return ERR_MEMORY;
        }
        class->blocks = blocks;
        class->blocks_max = blocks_max;
    }
    uint8_t *block = malloc(POOL_BLOCK_PARCELS_COUNT * parcel_size(class_index));
    if (block == NULL) {
        return ERR_MEMORY;
    }
    uint32_t first = class_index << CLASS_SHIFT | class->blocks_count * POOL_BLOCK_PARCELS_COUNT;
    class->blocks[class->blocks_count++] = block;
    for (uint32_t i = POOL_BLOCK_PARCELS_COUNT; i-- > 0;) {
        pool_at(pool, first + i)->from = class->free_id;
        class->free_id = first + i;
    }
    return ERR_OK;
}

enum err pool_take(struct pool *pool, size_t size, uint32_t *ret_id) {
    ASSERT(size <= STEP_MESSAGE_SIZE_MAX);
    if (pool->count == pool->count_max) {
        return ERR_LIMIT;
    }
    uint32_t class_index = 0;
    while (size > payload_sizes[class_index]) {
        class_index++;
    }
    struct pool_class *class = &pool->classes[class_index];
    if (class->free_id == POOL_NONE && pool_grow(pool, class_index) != ERR_OK) {
        return ERR_MEMORY;
    }
    uint32_t id = class->free_id;
    struct parcel *parcel = pool_at(pool, id);
    class->free_id = parcel->from;
    *parcel = (struct parcel){.size = (uint32_t)size};
    pool->count++;
    *ret_id = id;
    return ERR_OK;
}

void pool_give(struct pool *pool, uint32_t id) {
    ASSERT(pool->count > 0);
    struct pool_class *class = &pool->classes[id >> CLASS_SHIFT];
    pool_at(pool, id)->from = class->free_id;
    class->free_id = id;
    pool->count--;
}
