#include "base/rtt.h"

#include "unit.h"

static void waits_half_a_second_for_a_stranger(void **state) {
    (void)state;
    struct rtt rtt = {0};
    assert_int_equal(rtt_timeout_us(&rtt, 1), RTT_TIMEOUT_US_FIRST);
    assert_int_equal(rtt_timeout_us(&rtt, 2), 2 * RTT_TIMEOUT_US_FIRST);
    assert_int_equal(rtt_timeout_us(&rtt, 9), RTT_TIMEOUT_US_MAX);
}

static void follows_rfc_6298(void **state) {
    (void)state;
    struct rtt rtt = {0};
    rtt_sample(&rtt, 100000);
    assert_int_equal(rtt.smoothed_us, 100000);
    assert_int_equal(rtt.variation_us, 50000);
    assert_int_equal(rtt_timeout_us(&rtt, 1), 300000); /* srtt + 4 * rttvar */
    rtt_sample(&rtt, 180000);
    assert_int_equal(rtt.variation_us, 57500); /* 3/4 * 50000 + 1/4 * 80000 */
    assert_int_equal(rtt.smoothed_us, 110000); /* 7/8 * 100000 + 1/8 * 180000 */
}

static void a_steady_destination_is_waited_for_the_least_time(void **state) {
    (void)state;
    struct rtt rtt = {0};
    for (unsigned i = 0; i < 100; i++) {
        rtt_sample(&rtt, 5000);
    }
    assert_int_equal(rtt_timeout_us(&rtt, 1), RTT_TIMEOUT_US_MIN);
    rtt_sample(&rtt, 0);
    rtt_sample(&rtt, UINT64_MAX);
    assert_true(rtt.smoothed_us > 0);
    assert_int_equal(rtt_timeout_us(&rtt, 1), RTT_TIMEOUT_US_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_half_a_second_for_a_stranger),
        cmocka_unit_test(follows_rfc_6298),
        cmocka_unit_test(a_steady_destination_is_waited_for_the_least_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
