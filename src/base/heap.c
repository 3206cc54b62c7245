#include "base/heap.h"

#include "base/assert.h"

static bool before(const struct heap_item *a, const struct heap_item *b) {
    return a->key != b->key ? a->key < b->key : a->tie < b->tie;
}

void heap_init(struct heap *heap, struct heap_item *items, size_t count_max) {
    *heap = (struct heap){.items = items, .count_max = count_max};
}

void heap_move(struct heap *heap, struct heap_item *items, size_t count_max) {
    ASSERT(count_max >= heap->count);
    heap->items = items;
    heap->count_max = count_max;
}

bool heap_push(struct heap *heap, struct heap_item item) {
    if (heap->count == heap->count_max) {
        return false;
    }
    size_t hole = heap->count++;
    while (hole > 0) {
        size_t parent = (hole - 1) / 2;
        if (!before(&item, &heap->items[parent])) {
            break;
        }
        heap->items[hole] = heap->items[parent];
        hole = parent;
    }
    heap->items[hole] = item;
    return true;
}

bool heap_pop(struct heap *heap, struct heap_item *ret_item) {
    if (heap->count == 0) {
        return false;
    }
    *ret_item = heap->items[0];
    struct heap_item last = heap->items[--heap->count];
    size_t hole = 0;
    for (;;) {
        size_t child = 2 * hole + 1;
        if (child >= heap->count) {
            break;
        }
        if (child + 1 < heap->count && before(&heap->items[child + 1], &heap->items[child])) {
            child++;
        }
        if (!before(&heap->items[child], &last)) {
            break;
        }
        heap->items[hole] = heap->items[child];
        hole = child;
    }
    if (heap->count > 0) {
        heap->items[hole] = last;
    }
    return true;
}
