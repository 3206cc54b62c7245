/* breaker: who could not be reached is left alone for a while, then one call tries. */
#include "store/remote/breaker.h"
#include "clock-manual.h"

#include "unit.h"

enum { RETRY_US = 5000000 };

struct fixture {
    struct clock_manual clock;
    struct breaker breaker;
    uint64_t left_us;
};

static int set_up(void **state) {
    static struct fixture fixture;
    clock_manual_init(&fixture.clock, 0);
    breaker_init(&fixture.breaker, &fixture.clock.clock, RETRY_US);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state) {
    breaker_done(&((struct fixture *)*state)->breaker);
    return 0;
}

static bool allows(struct fixture *fixture) {
    return breaker_allows(&fixture->breaker, &fixture->left_us);
}

static void lets_all_pass_while_the_other_side_is_reached(void **state) {
    for (int i = 0; i < 3; i++) {
        assert_true(allows(*state));
    }
    breaker_report(&((struct fixture *)*state)->breaker, true);
    assert_true(allows(*state));
}

static void opens_with_the_first_failure_and_says_for_how_long(void **state) {
    struct fixture *fixture = *state;
    assert_true(allows(fixture));
    breaker_report(&fixture->breaker, false);
    clock_manual_advance(&fixture->clock, RETRY_US / 5);
    assert_false(allows(fixture));
    assert_int_equal(fixture->left_us, RETRY_US / 5 * 4);
    assert_true(breaker_is_open(&fixture->breaker, &fixture->left_us));
}

static void lets_one_call_try_after_the_time(void **state) {
    struct fixture *fixture = *state;
    breaker_report(&fixture->breaker, false);
    clock_manual_advance(&fixture->clock, RETRY_US);
    assert_false(breaker_is_open(&fixture->breaker, &fixture->left_us)); /* asking takes nobody's turn */
    assert_true(allows(fixture));
    assert_false(allows(fixture));
    breaker_report(&fixture->breaker, false);
    assert_false(allows(fixture));
    clock_manual_advance(&fixture->clock, RETRY_US);
    assert_true(allows(fixture));
    breaker_report(&fixture->breaker, true);
    assert_true(allows(fixture));
    assert_true(allows(fixture));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lets_all_pass_while_the_other_side_is_reached, set_up, tear_down),
        cmocka_unit_test_setup_teardown(opens_with_the_first_failure_and_says_for_how_long, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(lets_one_call_try_after_the_time, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
