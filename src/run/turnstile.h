/*
 * turnstile - how many threads may do something costly at once.
 *
 *      if (turnstile_enter(&turnstile, 10000, left, context)) { …; turnstile_leave(&turnstile); }
 *
 * The others wait in front of it, but not too many of them and not for ever: a thread that waits is one that
 * does nothing for anybody else. So costly work of outsiders takes a known part of a pool's threads, and the
 * rest of the pool goes on. Any thread; a thread enters once.
 */
#ifndef MNEMON_RUN_TURNSTILE_H
#define MNEMON_RUN_TURNSTILE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct turnstile {
    size_t inside_max;
    size_t waiting_max;
    pthread_mutex_t lock;
    pthread_cond_t has_left;
    size_t inside_count;  /* lock */
    size_t waiting_count; /* lock */
};

void turnstile_init(struct turnstile *turnstile, size_t inside_max, size_t waiting_max);
void turnstile_done(struct turnstile *turnstile);

/*
 * False: too many wait, it took too long, or has_gone() says that nobody wants the work any more; that is
 * asked a few times a second while waiting, without the lock, and may be NULL.
 */
bool turnstile_enter(struct turnstile *turnstile, uint32_t timeout_ms, bool (*has_gone)(void *context),
                     void *context);
void turnstile_leave(struct turnstile *turnstile);

/* Now, for those who watch. */
size_t turnstile_waiting_count(struct turnstile *turnstile);

#endif
