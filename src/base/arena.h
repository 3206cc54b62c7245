/*
 * arena - memory that is given out piece by piece and taken back all at once.
 *
 * One per request, page or run. It grows from the heap up to a maximum. Pieces are zeroed and aligned for any
 * type.
 */
#ifndef MNEMON_BASE_ARENA_H
#define MNEMON_BASE_ARENA_H

#include "base/bytes.h"

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first */
    uint8_t *next;              /* free memory of the current block */
    size_t left;                /* how much of it */
    size_t used;                /* given out since the last reset, with padding */
    size_t size_max;
    bool is_short; /* a piece could not be given: one look behind many of them is enough */
};

void arena_init(struct arena *arena, size_t size_max);
void arena_done(struct arena *arena);

/*
 * A struct of that size in an arena of its own, which is its first member: *_new() of whatever takes all its
 * memory at once. NULL as from arena_take(). arena_free() gives everything back; NULL is nothing.
 */
void *arena_new(size_t size, size_t size_max);
void arena_free(void *owner);

/* All pieces are gone; one block of heap memory is kept for reuse. */
void arena_reset(struct arena *arena);

/* NULL when the maximum is reached or the heap is out of memory. */
void *arena_take(struct arena *arena, size_t size);

/* count * size without overflow. */
void *arena_take_array(struct arena *arena, size_t count, size_t size);

/* A copy of the bytes, with a zero byte behind it that does not count. .data is NULL on failure. */
struct bytes arena_copy(struct arena *arena, struct bytes bytes);

/* A copy of a text that is shown: "" on failure, NULL for NULL. */
const char *arena_text(struct arena *arena, const char *text);

#endif
