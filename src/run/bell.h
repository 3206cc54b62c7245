/*
 * bell - many threads wait for one event, and one call wakes them all.
 *
 *      waiting                                         ringing
 *        heard = bell_listen(bell)                       make it so
 *        is it so?  ──no──> bell_wait(bell, heard)       bell_ring(bell)
 *             └<──────────────────┘
 *
 * Waking threads one by one, by a semaphore each, costs a call for each, and the first that is woken takes
 * the processor from the one who was about to wake the others. A condition variable would have them queue up
 * for its lock. A bell has no lock: what is waited for must be atomic, and whoever wakes looks whether it is
 * so. Linux (futex).
 */
#ifndef MNEMON_RUN_BELL_H
#define MNEMON_RUN_BELL_H

#include <stdatomic.h>

/* All zero to begin with. */
struct bell {
    atomic_uint strokes;
};

static inline unsigned bell_listen(struct bell *bell) {
    return atomic_load_explicit(&bell->strokes, memory_order_acquire);
}

/* Until it has rung since bell_listen() returned this; may return for nothing. */
void bell_wait(struct bell *bell, unsigned heard);

/* What was written before it is seen by those who wake. */
void bell_ring(struct bell *bell);

#endif
