#include "base/clock.h"

#include <time.h>

#include "base/assert.h"

static int64_t read_us(clockid_t id) {
    struct timespec now;
    int failed = clock_gettime(id, &now);
    ASSERT(failed == 0);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_bound_wall_us(int64_t time_us) {
    return time_us < 0 ? 0 : time_us > CLOCK_WALL_MAX_US ? CLOCK_WALL_MAX_US : time_us;
}

static uint64_t system_monotonic_us(const struct clock *clock) {
    (void)clock;
    return (uint64_t)read_us(CLOCK_MONOTONIC);
}

static int64_t system_wall_us(const struct clock *clock) {
    (void)clock;
    return clock_bound_wall_us(read_us(CLOCK_REALTIME));
}

const struct clock clock_system = {.monotonic_us = system_monotonic_us, .wall_us = system_wall_us};
