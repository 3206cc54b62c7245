/*
 * clock - the two clocks of a process behind one interface: monotonic for waiting, wall for dates.
 *
 * Whoever needs the time is given a `struct clock`; nobody calls the system on the side. Protocol code does
 * not even get the clock: the time comes with each event. Tests use a clock_manual
 * (tests/unit/clock-manual.h).
 */
#ifndef MNEMON_BASE_CLOCK_H
#define MNEMON_BASE_CLOCK_H

#include <stdint.h>

struct clock {
    uint64_t (*monotonic_us)(const struct clock *clock); /* never goes back; its zero means nothing */
    int64_t (*wall_us)(const struct clock *clock);       /* UTC since 1970; may jump */
};

/* 1970 to the end of 9899: dates a hundred years ahead can still be written. */
static const int64_t CLOCK_WALL_MAX_US = INT64_C(250246627200) * 1000000;

/* The time, or the nearer bound if a machine's clock shows nonsense. */
int64_t clock_bound_wall_us(int64_t time_us);

/* The operating system's clocks; the wall clock within its bounds. */
extern const struct clock clock_system;

static inline uint64_t clock_monotonic_us(const struct clock *clock) {
    return clock->monotonic_us(clock);
}

static inline int64_t clock_wall_us(const struct clock *clock) {
    return clock->wall_us(clock);
}

#endif
