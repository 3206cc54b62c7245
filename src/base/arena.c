#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>

enum { ARENA_ALIGNMENT = alignof(max_align_t), ARENA_BLOCK_SIZE_MIN = 4096, ARENA_BLOCK_SIZE_MAX = 1 << 20 };

struct arena_block {
    struct arena_block *older;
    size_t size;
    alignas(max_align_t) uint8_t data[];
};

void arena_init(struct arena *arena, size_t size_max) {
    *arena = (struct arena){.size_max = size_max};
}

void arena_done(struct arena *arena) {
    while (arena->blocks != NULL) {
        struct arena_block *older = arena->blocks->older;
        free(arena->blocks);
        arena->blocks = older;
    }
    *arena = (struct arena){.size_max = arena->size_max};
}

void *arena_new(size_t size, size_t size_max) {
    struct arena arena;
    ASSERT(size >= sizeof arena);
    arena_init(&arena, size_max);
    struct arena *owner = arena_take(&arena, size);
    if (owner != NULL) {
        *owner = arena;
    } else {
        arena_done(&arena);
    }
    return owner;
}

void arena_free(void *owner) {
    if (owner != NULL) {
        struct arena arena = *(struct arena *)owner; /* it lies in its own memory */
        arena_done(&arena);
    }
}

void arena_reset(struct arena *arena) {
    struct arena_block *keep = arena->blocks;
    if (keep != NULL) {
        arena->blocks = keep->older;
        keep->older = NULL;
    }
    arena_done(arena);
    if (keep != NULL) {
        arena->blocks = keep;
        arena->next = keep->data;
        arena->left = keep->size;
    }
}

static bool add_block(struct arena *arena, size_t size_needed) {
    size_t size = arena->blocks == NULL ? ARENA_BLOCK_SIZE_MIN : arena->blocks->size * 2;
    if (size > ARENA_BLOCK_SIZE_MAX) {
        size = ARENA_BLOCK_SIZE_MAX;
    }
    if (size < size_needed) {
        size = size_needed;
    }
    struct arena_block *block = malloc(sizeof *block + size);
    if (block == NULL) {
        return false;
    }
    block->older = arena->blocks;
    block->size = size;
    arena->blocks = block;
    arena->next = block->data;
    arena->left = size;
    return true;
}

static void *arena_refuse(struct arena *arena) {
    arena->is_short = true;
    return NULL;
}

void *arena_take(struct arena *arena, size_t size) {
    if (size > arena->size_max || size > PTRDIFF_MAX / 2) {
        return arena_refuse(arena); /* the second keeps rounding and block headers from wrapping */
    }
    size_t rounded = (size + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
    if (rounded > arena->size_max - arena->used) {
        return arena_refuse(arena);
    }
    if (rounded > arena->left && !add_block(arena, rounded)) {
        return arena_refuse(arena);
    }
    if (arena->next == NULL && !add_block(arena, rounded)) {
        return arena_refuse(arena); /* a first piece of size 0 still needs an address */
    }
    void *piece = arena->next;
    arena->next += rounded;
    arena->left -= rounded;
    arena->used += rounded;
    memset(piece, 0, rounded);
    return piece;
}

void *arena_take_array(struct arena *arena, size_t count, size_t size) {
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        return arena_refuse(arena);
    }
    return arena_take(arena, total);
}

struct bytes arena_copy(struct arena *arena, struct bytes bytes) {
    uint8_t *copy = bytes.size == SIZE_MAX ? NULL : arena_take(arena, bytes.size + 1);
    if (copy == NULL) {
        return bytes_of(NULL, 0);
    }
    if (bytes.size > 0) {
        memcpy(copy, bytes.data, bytes.size);
    }
    return bytes_of(copy, bytes.size);
}

const char *arena_text(struct arena *arena, const char *text) {
    if (text == NULL) {
        return NULL;
    }
    struct bytes copy = arena_copy(arena, bytes_of_string(text));
    return copy.data != NULL ? (const char *)copy.data : "";
}
