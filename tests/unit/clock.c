#include "clock-manual.h"

#include <time.h>

#include "aborts.h"
#include "base/utc.h"
#include "unit.h"

static void system_monotonic_clock_never_goes_back(void **state) {
    (void)state;
    uint64_t before_us = clock_monotonic_us(&clock_system);
    assert_true(before_us > 0);
    for (unsigned i = 0; i < 10000; i++) {
        uint64_t now_us = clock_monotonic_us(&clock_system);
        assert_true(now_us >= before_us);
        before_us = now_us;
    }
}

static void system_clocks_count_microseconds(void **state) {
    (void)state;
    /* Between two readings of the same clock in its own units. */
    struct timespec before;
    struct timespec after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    uint64_t monotonic_us = clock_monotonic_us(&clock_system);
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_in_range(monotonic_us, (uint64_t)before.tv_sec * 1000000 + (uint64_t)before.tv_nsec / 1000,
                    (uint64_t)after.tv_sec * 1000000 + (uint64_t)after.tv_nsec / 1000);
    clock_gettime(CLOCK_REALTIME, &before);
    int64_t wall_us = clock_wall_us(&clock_system);
    clock_gettime(CLOCK_REALTIME, &after);
    assert_in_range((uint64_t)wall_us, (uint64_t)before.tv_sec * 1000000 + (uint64_t)before.tv_nsec / 1000,
                    (uint64_t)after.tv_sec * 1000000 + (uint64_t)after.tv_nsec / 1000);
}

/* A machine whose battery is empty, or whose clock was set to the year 20000. */
static void the_wall_clock_has_bounds(void **state) {
    (void)state;
    char text[UTC_RFC3339_SIZE];
    assert_int_equal(clock_bound_wall_us(-1), 0);
    assert_int_equal(clock_bound_wall_us(INT64_MIN), 0);
    assert_int_equal(clock_bound_wall_us(1), 1);
    assert_int_equal(clock_bound_wall_us(INT64_MAX), CLOCK_WALL_MAX_US);
    assert_string_equal(utc_format_rfc3339(clock_bound_wall_us(INT64_MAX), text), "9900-01-01T00:00:00Z");
}

static void manual_clock_stands_still_until_moved(void **state) {
    (void)state;
    struct clock_manual manual;
    clock_manual_init(&manual, -5);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(clock_monotonic_us(&manual.clock), 0);
        assert_int_equal(clock_wall_us(&manual.clock), -5);
    }
    clock_manual_advance(&manual, 7);
    clock_manual_advance(&manual, 0);
    assert_int_equal(clock_monotonic_us(&manual.clock), 7);
    assert_int_equal(clock_wall_us(&manual.clock), 2);
}

static void wall_clock_may_jump_without_the_monotonic_one(void **state) {
    (void)state;
    struct clock_manual manual;
    clock_manual_init(&manual, 1000);
    manual.wall_now_us = 10;
    clock_manual_advance(&manual, 1);
    assert_int_equal(clock_monotonic_us(&manual.clock), 1);
    assert_int_equal(clock_wall_us(&manual.clock), 11);
}

static void manual_clocks_are_independent(void **state) {
    (void)state;
    struct clock_manual one;
    struct clock_manual other;
    clock_manual_init(&one, 0);
    clock_manual_init(&other, 0);
    clock_manual_advance(&one, 3);
    assert_int_equal(clock_monotonic_us(&other.clock), 0);
    assert_int_equal(clock_monotonic_us(&one.clock), 3);
}

static void advance_backwards(void *manual) {
    clock_manual_advance(manual, (uint64_t)-1);
}

static void aborts_on_a_step_back(void **state) {
    (void)state;
    struct clock_manual manual;
    clock_manual_init(&manual, 0);
    assert_true(aborts(advance_backwards, &manual, "by_us < INT64_MAX"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(system_monotonic_clock_never_goes_back),
        cmocka_unit_test(system_clocks_count_microseconds),
        cmocka_unit_test(the_wall_clock_has_bounds),
        cmocka_unit_test(manual_clock_stands_still_until_moved),
        cmocka_unit_test(wall_clock_may_jump_without_the_monotonic_one),
        cmocka_unit_test(manual_clocks_are_independent),
        cmocka_unit_test(aborts_on_a_step_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
