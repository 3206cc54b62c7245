/*
 * retry - one question that is repeated until it is answered or given up: when it is due next, and how often
 * it was asked.
 *
 * Two clocks drive it. A question to a destination whose round trip is measured waits by RFC 6298 (rtt.h);
 * one that waits for people, disks or a whole ring to recover waits twice as long each time. What is asked,
 * whom, and after how many tries it is given up, is the caller's. Pure: the time is passed in.
 */
#ifndef MNEMON_BASE_RETRY_H
#define MNEMON_BASE_RETRY_H

#include "base/rtt.h"

#include <stdbool.h>

/* All zero: due at once, never asked. */
struct retry {
    uint64_t sent_at_us; /* the last time */
    uint64_t due_us;     /* then it is repeated, or given up */
    uint32_t tries_count;
};

/* It was just sent: wait as long as this destination needs. rtt may be NULL: nothing is known of it. */
void retry_sent(struct retry *retry, const struct rtt *rtt, uint64_t now_us);

/* It was just sent: wait first_us the first time, then twice as long each time, at most max_us. */
void retry_sent_doubling(struct retry *retry, uint64_t first_us, uint64_t max_us, uint64_t now_us);

static inline bool retry_is_due(const struct retry *retry, uint64_t now_us) {
    return now_us >= retry->due_us;
}

/* The answer came. Karn's rule: if it was sent more than once, nobody knows which one was answered. */
void retry_measure(const struct retry *retry, struct rtt *rtt, uint64_t now_us);

/* first_us, doubled so many times, at most max_us. */
uint64_t retry_doubled_us(uint64_t first_us, uint32_t times, uint64_t max_us);

#endif
