/*
 * breaker - a circuit breaker: whoever could not be reached is not tried again by everybody at once.
 *
 *      closed ── a call fails to reach the other side ──> open ── after retry_after ──> one call may try
 *        ^                                                 ^                                 │
 *        └────────────────── it reached it ────────────────┼─────────────────────────────────┤
 *                                                          └────────── it did not ───────────┘
 *
 * Any thread. Every call that was allowed reports. No table of standing (base/standing.h): it is about one
 * server, and after the wait exactly one call may try.
 */
#ifndef MNEMON_STORE_REMOTE_BREAKER_H
#define MNEMON_STORE_REMOTE_BREAKER_H

#include <pthread.h>

#include "base/bytes.h"
#include "base/clock.h"

struct breaker {
    const struct clock *clock;
    uint64_t retry_after_us;
    pthread_mutex_t lock;
    bool is_open;         /* lock */
    bool is_trying;       /* lock: open, and one call is on its way */
    uint64_t retry_at_us; /* lock: of the monotonic clock */
};

void breaker_init(struct breaker *breaker, const struct clock *clock, uint64_t retry_after_us);
void breaker_done(struct breaker *breaker);

/* May a call be made? Otherwise *ret_left_us says for how long not. */
bool breaker_allows(struct breaker *breaker, uint64_t *ret_left_us);

/* The same for a caller that will not call the server now: nothing is to be reported. */
bool breaker_is_open(struct breaker *breaker, uint64_t *ret_left_us);

void breaker_report(struct breaker *breaker, bool has_reached);

#endif
