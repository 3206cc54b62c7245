/* clock_manual - a clock that stands still until it is moved. Its .clock is what others are given. */
#ifndef CLOCK_MANUAL_H
#define CLOCK_MANUAL_H

#include "base/assert.h"
#include "base/clock.h"

struct clock_manual {
    struct clock clock; /* first: the functions find the rest from here */
    uint64_t monotonic_now_us;
    int64_t wall_now_us;
};

static inline uint64_t clock_manual_monotonic_us(const struct clock *clock) {
    return ((const struct clock_manual *)clock)->monotonic_now_us;
}

static inline int64_t clock_manual_wall_us(const struct clock *clock) {
    return ((const struct clock_manual *)clock)->wall_now_us;
}

static inline void clock_manual_init(struct clock_manual *manual, int64_t wall_us) {
    *manual = (struct clock_manual){
        .clock = {.monotonic_us = clock_manual_monotonic_us, .wall_us = clock_manual_wall_us},
        .wall_now_us = wall_us,
    };
}

static inline void clock_manual_advance(struct clock_manual *manual, uint64_t by_us) {
    ASSERT(by_us < INT64_MAX);
    manual->monotonic_now_us += by_us;
    manual->wall_now_us += (int64_t)by_us;
}

#endif
