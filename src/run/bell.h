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
 * for its lock. A bell has no lock: what is waited for must be atomic or have a lock of its own, and whoever
 * wakes looks whether it is so. It needs neither init nor done. A bell in memory that the waiting thread
 * frees is rung with that lock held. Linux (futex).
 */
#ifndef MNEMON_RUN_BELL_H
#define MNEMON_RUN_BELL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* All zero to begin with. */
struct bell {
    atomic_uint strokes;
    atomic_uint waiters_count; /* 0: ringing needs no call of the system */
};

static inline unsigned bell_listen(struct bell *bell) {
    return atomic_load_explicit(&bell->strokes, memory_order_acquire);
}

/* Until it has rung since bell_listen() returned this; may return for nothing. */
void bell_wait(struct bell *bell, unsigned heard);

static const uint64_t BELL_NEVER_US = UINT64_MAX;

/* Likewise, but not beyond this time of the system's monotonic clock. False: that has come. */
bool bell_wait_until(struct bell *bell, unsigned heard, uint64_t until_us);

/*
 * As a condition variable has it: give the lock back, wait, take it again. A bell that is rung with the lock
 * held is never missed. False: the time has come.
 */
bool bell_await(struct bell *bell, pthread_mutex_t *lock, uint64_t until_us);

/* What was written before it is seen by those who wake. */
void bell_ring(struct bell *bell);

#endif
