#include "base/clock.h"

#include <time.h>

#include "base/assert.h"

static int64_t read_us(clockid_t id) {
    struct timespec now;
    int failed = clock_gettime(id, &now);
    ASSERT(failed == 0);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static uint64_t system_monotonic_us(const struct clock *clock) {
    (void)clock;
    return (uint64_t)read_us(CLOCK_MONOTONIC);
}

static int64_t system_wall_us(const struct clock *clock) {
    (void)clock;
    return read_us(CLOCK_REALTIME);
}

const struct clock clock_system = {.monotonic_us = system_monotonic_us, .wall_us = system_wall_us};
