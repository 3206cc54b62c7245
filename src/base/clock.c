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

static uint64_t manual_monotonic_us(const struct clock *clock) {
    return ((const struct clock_manual *)clock)->monotonic_now_us;
}

static int64_t manual_wall_us(const struct clock *clock) {
    return ((const struct clock_manual *)clock)->wall_now_us;
}

void clock_manual_init(struct clock_manual *manual, int64_t wall_us) {
    *manual = (struct clock_manual){
        .clock = {.monotonic_us = manual_monotonic_us, .wall_us = manual_wall_us},
        .wall_now_us = wall_us,
    };
}

void clock_manual_advance(struct clock_manual *manual, uint64_t by_us) {
    ASSERT(by_us < INT64_MAX);
    manual->monotonic_now_us += by_us;
    manual->wall_now_us += (int64_t)by_us;
}
