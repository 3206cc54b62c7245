/*
 * queue - what happens next: the pending events of a simulation in their total order (time, sequence).
 *
 * A heap whose memory doubles up to a limit. Entries are cancelled lazily: whoever pops one knows by its
 * sequence number whether it still counts. When the limit is reached, the stale ones are thrown out; so a
 * limit of twice the entries that can count at once is never in the way.
 */
#ifndef MNEMON_SIM_WORLD_QUEUE_H
#define MNEMON_SIM_WORLD_QUEUE_H

#include "base/err.h"
#include "base/heap.h"

struct queue {
    struct heap heap;
    size_t count_max;
    uint64_t sequence_last;
    /* True if the entry still counts. */
    bool (*counts)(const void *context, const struct heap_item *item);
    const void *context;
};

void queue_init(struct queue *queue, size_t count_max,
                bool (*counts)(const void *context, const struct heap_item *item), const void *context);
void queue_done(struct queue *queue);

/* *ret_sequence is never 0. ERR_LIMIT if count_max entries count, ERR_MEMORY. */
enum err queue_push(struct queue *queue, uint64_t at_us, uint64_t value, uint64_t *ret_sequence) MUST_CHECK;

static inline const struct heap_item *queue_peek(const struct queue *queue) {
    return heap_peek(&queue->heap);
}

static inline bool queue_pop(struct queue *queue, struct heap_item *ret_item) {
    return heap_pop(&queue->heap, ret_item);
}

#endif
