/*
 * clock - the two clocks of a process behind one interface: monotonic for waiting, wall for dates.
 *
 * Whoever needs the time is given a `struct clock`; nobody calls the system on the side. Protocol code does
 * not even get the clock: the time comes with each event. Tests and the simulator use a clock_manual.
 */
#ifndef MNEMON_BASE_CLOCK_H
#define MNEMON_BASE_CLOCK_H

#include <stdint.h>

struct clock {
    uint64_t (*monotonic_us)(const struct clock *clock); /* never goes back; its zero means nothing */
    int64_t (*wall_us)(const struct clock *clock);       /* UTC since 1970; may jump */
};

/* The operating system's clocks. */
extern const struct clock clock_system;

/* A clock that stands still until it is moved. Its .clock is what others are given. */
struct clock_manual {
    struct clock clock; /* first: the functions find the rest from here */
    uint64_t monotonic_now_us;
    int64_t wall_now_us;
};

void clock_manual_init(struct clock_manual *manual, int64_t wall_us);
void clock_manual_advance(struct clock_manual *manual, uint64_t by_us);

static inline uint64_t clock_monotonic_us(const struct clock *clock) {
    return clock->monotonic_us(clock);
}

static inline int64_t clock_wall_us(const struct clock *clock) {
    return clock->wall_us(clock);
}

#endif
