#include "sim/world/queue.h"

#include <stdlib.h>

#include "base/assert.h"

enum { QUEUE_COUNT_FIRST = 256 };

void queue_init(struct queue *queue, size_t count_max,
                bool (*counts)(const void *context, const struct heap_item *item), const void *context) {
    ASSERT(count_max > 0);
    *queue = (struct queue){.count_max = count_max, .counts = counts, .context = context};
}

void queue_done(struct queue *queue) {
    free(queue->heap.items);
    queue->heap = (struct heap){0};
}

/* Pushing in place is safe: the heap never grows past the item that is read next. */
static void throw_out_stale(struct queue *queue) {
    struct heap *heap = &queue->heap;
    size_t count = heap->count;
    heap->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct heap_item item = heap->items[i];
        if (queue->counts(queue->context, &item)) {
            bool has_room = heap_push(heap, item);
            ASSERT(has_room);
        }
    }
}

static enum err queue_make_room(struct queue *queue) {
    struct heap *heap = &queue->heap;
    if (heap->count_max == queue->count_max) {
        throw_out_stale(queue);
        return heap->count < heap->count_max ? ERR_OK : ERR_LIMIT;
    }
    size_t count_max = heap->count_max == 0 ? QUEUE_COUNT_FIRST : 2 * heap->count_max;
    count_max = count_max < queue->count_max ? count_max : queue->count_max;
    struct heap_item *items = realloc(heap->items, count_max * sizeof *items);
    if (items == NULL) {
        return ERR_MEMORY;
    }
    heap_move(heap, items, count_max);
    return ERR_OK;
}

enum err queue_push(struct queue *queue, uint64_t at_us, uint64_t value, uint64_t *ret_sequence) {
    if (queue->heap.count == queue->heap.count_max) {
        enum err err = queue_make_room(queue);
        if (err != ERR_OK) {
            return err;
        }
    }
    uint64_t sequence = ++queue->sequence_last;
    bool has_room = heap_push(&queue->heap, (struct heap_item){at_us, sequence, value});
    ASSERT(has_room);
    *ret_sequence = sequence;
    return ERR_OK;
}
