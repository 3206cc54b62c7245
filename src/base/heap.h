/*
 * heap - what is due next: a binary min-heap of (key, tie, value).
 *
 * Ordered by key, then by tie, so that the order is total and the same on every run: timers, hosts by their
 * next allowed fetch, the simulator's events. The value is the caller's: an index or a small number.
 * Cancelling is lazy: the caller recognises a stale entry by its tie when it comes out.
 *
 * The caller gives the memory and thereby the limit. Push and pop cost O(log n) and move 24 bytes a level.
 */
#ifndef MNEMON_BASE_HEAP_H
#define MNEMON_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_item {
    uint64_t key; /* mostly a time */
    uint64_t tie; /* mostly a sequence number */
    uint64_t value;
};

struct heap {
    struct heap_item *items; /* items[0] is the least; the children of i are at 2i+1 and 2i+2 */
    size_t count;
    size_t count_max;
};

void heap_init(struct heap *heap, struct heap_item *items, size_t count_max);

/* The caller has moved the items to larger memory. */
void heap_move(struct heap *heap, struct heap_item *items, size_t count_max);

/* False when the heap is full. */
bool heap_push(struct heap *heap, struct heap_item item);

/* The least item, or NULL if the heap is empty; valid until the next change. */
static inline const struct heap_item *heap_peek(const struct heap *heap) {
    return heap->count == 0 ? NULL : heap->items;
}

/* False if the heap is empty. */
bool heap_pop(struct heap *heap, struct heap_item *ret_item);

#endif
