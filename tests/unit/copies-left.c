#include "node/copies/copies_left.h"

#include "unit.h"

static const uint64_t SECOND_US = 1000000;

/* From a count on, so many each tenth of a second; returns when it ends. */
static uint64_t run(struct copies_left *left, uint64_t *count, uint64_t now_us, uint32_t tenths,
                    uint64_t each) {
    for (uint32_t i = 0; i < tenths; i++) {
        now_us += SECOND_US / 10;
        *count += each;
        copies_left_note(left, *count, true, now_us);
    }
    return now_us;
}

static void tells_by_the_pace_of_late(void **state) {
    (void)state;
    struct copies_left left = {0};
    uint64_t count = 500; /* of before */
    uint64_t now_us = 50 * SECOND_US;
    copies_left_note(&left, count, false, now_us);
    assert_int_equal(copies_left_s(&left, 1000, now_us), 0);
    now_us = run(&left, &count, now_us, 31, 10);
    assert_int_equal(copies_left_s(&left, 1000, now_us), 10);
    assert_int_equal(copies_left_s(&left, 1, now_us), 1);
    assert_int_equal(copies_left_s(&left, 0, now_us), 0);
    now_us = run(&left, &count, now_us, 200, 1); /* slower, for long */
    assert_in_range(copies_left_s(&left, 1000, now_us), 95, 100);
}

static void tells_nothing_if_nothing_comes(void **state) {
    (void)state;
    struct copies_left left = {0};
    uint64_t count = 0;
    copies_left_note(&left, 0, true, SECOND_US);
    uint64_t now_us = run(&left, &count, SECOND_US, 20, 10);
    now_us = run(&left, &count, now_us, 100, 0);
    assert_true(copies_left_s(&left, 10, now_us) > 0); /* asked less and less often */
    now_us = run(&left, &count, now_us, 110, 0);
    assert_int_equal(copies_left_s(&left, 10, now_us), 0);
}

/* An hour without work is no slow hour. */
static void leaves_out_the_time_without_work(void **state) {
    (void)state;
    struct copies_left left = {0};
    uint64_t count = 0;
    copies_left_note(&left, 0, true, SECOND_US);
    uint64_t now_us = run(&left, &count, SECOND_US, 30, 10);
    copies_left_note(&left, count, false, now_us);
    copies_left_note(&left, count, false, now_us + 3600 * SECOND_US);
    now_us += 3600 * SECOND_US;
    copies_left_note(&left, count, true, now_us);
    now_us = run(&left, &count, now_us, 12, 10);
    assert_in_range(copies_left_s(&left, 1000, now_us), 9, 11);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_by_the_pace_of_late),
        cmocka_unit_test(tells_nothing_if_nothing_comes),
        cmocka_unit_test(leaves_out_the_time_without_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
