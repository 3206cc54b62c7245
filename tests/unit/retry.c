#include "base/retry.h"

#include "unit.h"

static void a_new_one_is_due_at_once(void **state) {
    (void)state;
    struct retry retry = {0};
    assert_true(retry_is_due(&retry, 0));
}

static void waits_as_long_as_the_destination_needs(void **state) {
    (void)state;
    struct retry retry = {0};
    struct rtt rtt = {0};
    rtt_sample(&rtt, 100000);
    retry_sent(&retry, &rtt, 1000);
    assert_int_equal(retry.tries_count, 1);
    assert_false(retry_is_due(&retry, 1000 + 299999));
    assert_true(retry_is_due(&retry, 1000 + 300000));
    retry_sent(&retry, &rtt, 1000000);
    assert_int_equal(retry.due_us, 1000000 + 600000);
    retry_sent(&retry, NULL, 2000000);
    assert_int_equal(retry.due_us, 2000000 + RTT_TIMEOUT_US_MAX);
}

static void measures_only_what_was_sent_once(void **state) {
    (void)state;
    struct retry retry = {0};
    struct rtt rtt = {0};
    retry_sent(&retry, &rtt, 1000);
    retry_measure(&retry, &rtt, 6000);
    assert_int_equal(rtt.smoothed_us, 5000);
    retry_sent(&retry, &rtt, 10000);
    retry_measure(&retry, &rtt, 900000);
    assert_int_equal(rtt.smoothed_us, 5000);
}

static void doubles_up_to_the_bound(void **state) {
    (void)state;
    struct retry retry = {0};
    const uint64_t waits_us[] = {10, 20, 40, 50, 50};
    for (size_t i = 0; i < sizeof waits_us / sizeof *waits_us; i++) {
        retry_sent_doubling(&retry, 10, 50, 100);
        assert_int_equal(retry.due_us, 100 + waits_us[i]);
    }
    assert_int_equal(retry.tries_count, 5);
    assert_int_equal(retry_doubled_us(1, UINT32_MAX, UINT64_MAX / 2), UINT64_MAX / 2);
    assert_int_equal(retry_doubled_us(7, 0, 5), 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_one_is_due_at_once),
        cmocka_unit_test(waits_as_long_as_the_destination_needs),
        cmocka_unit_test(measures_only_what_was_sent_once),
        cmocka_unit_test(doubles_up_to_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
