#include "store/remote/breaker.h"

void breaker_init(struct breaker *breaker, const struct clock *clock, uint64_t retry_after_us) {
    *breaker = (struct breaker){.clock = clock, .retry_after_us = retry_after_us};
    pthread_mutex_init(&breaker->lock, NULL);
}

void breaker_done(struct breaker *breaker) {
    pthread_mutex_destroy(&breaker->lock);
}

/* With the lock. */
static bool is_closed_now(const struct breaker *breaker, uint64_t *ret_left_us) {
    uint64_t now_us = clock_monotonic_us(breaker->clock);
    *ret_left_us = breaker->retry_at_us > now_us ? breaker->retry_at_us - now_us : 0;
    return !breaker->is_open || (!breaker->is_trying && *ret_left_us == 0);
}

bool breaker_allows(struct breaker *breaker, uint64_t *ret_left_us) {
    pthread_mutex_lock(&breaker->lock);
    bool is_allowed = is_closed_now(breaker, ret_left_us);
    if (breaker->is_open && is_allowed) {
        breaker->is_trying = true;
    }
    pthread_mutex_unlock(&breaker->lock);
    return is_allowed;
}

bool breaker_is_open(struct breaker *breaker, uint64_t *ret_left_us) {
    pthread_mutex_lock(&breaker->lock);
    bool is_allowed = is_closed_now(breaker, ret_left_us);
    pthread_mutex_unlock(&breaker->lock);
    return !is_allowed;
}

void breaker_report(struct breaker *breaker, bool has_reached) {
    uint64_t now_us = clock_monotonic_us(breaker->clock);
    pthread_mutex_lock(&breaker->lock);
    breaker->is_open = !has_reached;
    breaker->is_trying = false;
    breaker->retry_at_us = now_us + breaker->retry_after_us;
    pthread_mutex_unlock(&breaker->lock);
}
