#include "run/turnstile.h"

#include <time.h>

#include "base/assert.h"

enum { LOOK_PERIOD_MS = 250 };

void turnstile_init(struct turnstile *turnstile, size_t inside_max, size_t waiting_max) {
    *turnstile = (struct turnstile){.inside_max = inside_max, .waiting_max = waiting_max};
    pthread_mutex_init(&turnstile->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&turnstile->has_left, &attributes);
    pthread_condattr_destroy(&attributes);
}

void turnstile_done(struct turnstile *turnstile) {
    ASSERT(turnstile->inside_count == 0 && turnstile->waiting_count == 0);
    pthread_cond_destroy(&turnstile->has_left);
    pthread_mutex_destroy(&turnstile->lock);
}

static void turnstile_wait(struct turnstile *turnstile, uint32_t wait_ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)wait_ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&turnstile->has_left, &turnstile->lock, &until);
}

bool turnstile_enter(struct turnstile *turnstile, uint32_t timeout_ms, bool (*has_gone)(void *context),
                     void *context) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t until_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 + timeout_ms;
    pthread_mutex_lock(&turnstile->lock);
    bool is_given_up = turnstile->inside_count >= turnstile->inside_max &&
                       turnstile->waiting_count >= turnstile->waiting_max;
    turnstile->waiting_count++;
    while (!is_given_up && turnstile->inside_count >= turnstile->inside_max) {
        turnstile_wait(turnstile, LOOK_PERIOD_MS);
        pthread_mutex_unlock(&turnstile->lock);
        clock_gettime(CLOCK_MONOTONIC, &now);
        is_given_up = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 >= until_ms ||
                      (has_gone != NULL && has_gone(context));
        pthread_mutex_lock(&turnstile->lock);
    }
    turnstile->waiting_count--;
    turnstile->inside_count += is_given_up ? 0 : 1;
    if (is_given_up) {
        pthread_cond_signal(&turnstile->has_left); /* it may have been woken in the place of another */
    }
    pthread_mutex_unlock(&turnstile->lock);
    return !is_given_up;
}

void turnstile_leave(struct turnstile *turnstile) {
    pthread_mutex_lock(&turnstile->lock);
    ASSERT(turnstile->inside_count > 0);
    turnstile->inside_count--;
    pthread_cond_signal(&turnstile->has_left);
    pthread_mutex_unlock(&turnstile->lock);
}

size_t turnstile_waiting_count(struct turnstile *turnstile) {
    pthread_mutex_lock(&turnstile->lock);
    size_t count = turnstile->waiting_count;
    pthread_mutex_unlock(&turnstile->lock);
    return count;
}
