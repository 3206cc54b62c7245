#include "crawl/rules/pace.h"

#include "base/utc.h"
#include "unit.h"

enum { S = 1000000 };
static const int64_t WALL_US = INT64_C(1767322800) * S; /* 2026-01-02 03:00:00 */

/* A request that took this long ended at now_us; returns how long to wait from there. */
static uint64_t finish(struct pace *pace, const struct pace_config *config, unsigned status,
                       uint64_t duration_us, const char *retry_after, uint64_t now_us) {
    struct pace_answer answer = {
        .status = (uint16_t)status, .duration_us = duration_us, .retry_after = bytes_of_string(retry_after)};
    pace_finish(pace, config, &answer, now_us, WALL_US);
    return pace_next_us(pace) == UINT64_MAX ? UINT64_MAX : pace_next_us(pace) - now_us;
}

static void assert_why(const struct pace *pace, uint64_t now_us, const char *expected) {
    struct buf text;
    buf_init(&text, 200);
    pace_put_why(pace, now_us, WALL_US, &text);
    assert_bytes_equal(buf_bytes(&text), bytes_of_string(expected));
    buf_done(&text);
}

static void a_fresh_host_is_ready(void **state) {
    (void)state;
    struct pace pace;
    pace_init(&pace);
    assert_int_equal(pace_next_us(&pace), 0);
    assert_int_equal(pace_why(&pace, 0), PACE_READY);
    assert_why(&pace, 0, "ready");
}

static void slow_hosts_get_rest(void **state) {
    (void)state;
    struct pace pace;
    struct pace_config config = pace_defaults;
    pace_init(&pace);
    /* Quick ones get the shortest delay. */
    assert_int_equal(finish(&pace, &config, 200, 10000, "", 100 * S), config.delay_min_us);
    assert_int_equal(pace_why(&pace, 100 * S), PACE_DELAY);
    assert_int_equal(pace_why(&pace, 100 * S + config.delay_min_us), PACE_READY);
    pace_init(&pace);
    assert_int_equal(finish(&pace, &config, 200, 4200000, "", 100 * S), 4 * 4200000);
    assert_why(&pace, 100 * S, "slow: 4.2 s per answer");
    /* One slow answer is no slow host, but counts. */
    pace_init(&pace);
    finish(&pace, &config, 200, 100000, "", 100 * S);
    uint64_t wait_us = finish(&pace, &config, 200, 8 * S, "", 200 * S);
    assert_true(wait_us > 8 * S && wait_us < 16 * S);
    /* And it recovers. */
    for (int i = 0; i < 40; i++) {
        wait_us = finish(&pace, &config, 200, 100000, "", (uint64_t)(300 + 100 * i) * S);
    }
    assert_int_equal(wait_us, config.delay_min_us);
    assert_int_equal(finish(&pace, &config, 200, UINT64_MAX, "", 9000ull * S), config.delay_max_us);
}

static void the_users_delay_replaces_the_adaptive_one(void **state) {
    (void)state;
    struct pace pace;
    struct pace_config config = pace_defaults;
    config.has_delay = true;
    config.delay_us = 3 * S;
    pace_init(&pace);
    assert_int_equal(finish(&pace, &config, 200, 20 * S, "", 100 * S), 3 * S);
    assert_why(&pace, 100 * S, "delay between requests");
    config.delay_us = 0;
    pace_init(&pace);
    pace_set_crawl_delay(&pace, &config, 10 * S);
    assert_int_equal(finish(&pace, &config, 200, 20 * S, "", 100 * S), 0);
    assert_int_equal(pace_why(&pace, 100 * S), PACE_READY);
    /* But who asks for rest gets it. */
    assert_int_equal(finish(&pace, &config, 429, S, "7", 200 * S), 7 * S);
    assert_int_equal(finish(&pace, &config, 503, S, "", 300 * S), 2 * config.backoff_min_us);
}

static void crawl_delay_is_honoured_up_to_a_limit(void **state) {
    (void)state;
    struct pace pace;
    struct pace_config config = pace_defaults;
    pace_init(&pace);
    pace_set_crawl_delay(&pace, &config, 10 * S);
    assert_int_equal(finish(&pace, &config, 200, 10000, "", 100 * S), 10 * S);
    assert_why(&pace, 100 * S, "Crawl-delay 10 s");
    pace_set_crawl_delay(&pace, &config, 3600ull * S);
    assert_true(pace.is_crawl_delay_cut);
    assert_int_equal(finish(&pace, &config, 200, 10000, "", 200 * S), 60 * S);
    assert_why(&pace, 200 * S, "Crawl-delay 60 s (it asks for more)");
    pace_set_crawl_delay(&pace, &config, 500000);
    assert_int_equal(finish(&pace, &config, 200, 3 * S, "", 300 * S) > 500000, true); /* the larger one */
}

static void retry_after_in_seconds_and_as_date(void **state) {
    (void)state;
    static const struct {
        const char *value;
        bool is_valid;
        uint64_t us;
    } cases[] = {
        {"120", true, 120ull * S},
        {" 0 ", true, 0},
        {"Fri, 02 Jan 2026 03:03:00 GMT", true, 180ull * S},
        {"Friday, 02-Jan-26 03:01:00 GMT", true, 60ull * S},
        {"Fri, 02 Jan 2026 02:00:00 GMT", true, 0},
        {"99999999999999999999999", true, (uint64_t)UINT32_MAX * S},
        {"", false, 0},
        {"soon", false, 0},
        {"-5", false, 0},
        {"1.5", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t us = 0;
        assert_int_equal(pace_read_retry_after(bytes_of_string(cases[i].value), WALL_US, &us),
                         cases[i].is_valid);
        assert_int_equal(us, cases[i].us);
    }
    struct pace pace;
    pace_init(&pace);
    assert_int_equal(finish(&pace, &pace_defaults, 503, S, "Fri, 02 Jan 2026 03:03:00 GMT", 50 * S), 180 * S);
    assert_why(&pace, 50 * S, "Retry-After until 03:03");
    pace_init(&pace);
    assert_int_equal(finish(&pace, &pace_defaults, 429, S, "999999", 50 * S),
                     pace_defaults.retry_after_max_us);
    /* Elsewhere it means nothing. */
    pace_init(&pace);
    assert_int_equal(finish(&pace, &pace_defaults, 200, 1000, "500", 50 * S), pace_defaults.delay_min_us);
}

static void bad_answers_double_the_wait_and_good_ones_halve_it(void **state) {
    (void)state;
    struct pace pace;
    struct pace_config config = pace_defaults;
    pace_init(&pace);
    uint64_t now_us = 0;
    for (uint64_t expected_us = config.backoff_min_us; expected_us < config.backoff_max_us;
         expected_us *= 2) {
        now_us += 3600ull * S;
        assert_int_equal(finish(&pace, &config, 503, 1000, "", now_us), expected_us);
    }
    for (int i = 0; i < 100; i++) { /* never above the maximum */
        now_us += 3600ull * S;
        assert_int_equal(finish(&pace, &config, 429, 1000, "", now_us), config.backoff_max_us);
    }
    assert_why(&pace, now_us, "backing off after 429 until 03:10");
    int steps = 0;
    while (finish(&pace, &config, 200, 1000, "", now_us += 3600ull * S) > config.delay_min_us) {
        steps++;
    }
    assert_true(steps >= 3 && steps <= 8);
    /* 500 and 404 are about a page. */
    assert_int_equal(finish(&pace, &config, 500, 1000, "", now_us += 3600ull * S), config.delay_min_us);
    assert_int_equal(finish(&pace, &config, 404, 1000, "", now_us += 3600ull * S), config.delay_min_us);
    assert_int_equal(pace.bad_count, 0);
}

static void dead_after_failures_in_a_row(void **state) {
    (void)state;
    struct pace pace;
    pace_init(&pace);
    uint64_t now_us = 100 * S;
    uint64_t before_us = 0;
    for (uint32_t i = 1; i < pace_defaults.failures_max; i++) {
        uint64_t wait_us = finish(&pace, &pace_defaults, 0, 0, "", now_us);
        assert_true(wait_us > before_us && !pace_is_dead(&pace));
        assert_int_equal(pace_why(&pace, now_us), PACE_FAILURES);
        before_us = wait_us;
        now_us += 3600ull * S;
    }
    assert_int_equal(finish(&pace, &pace_defaults, 0, 0, "", now_us), UINT64_MAX);
    assert_true(pace_is_dead(&pace));
    assert_why(&pace, now_us, "given up after 5 failed connections");
    finish(&pace, &pace_defaults, 200, 1000, "", now_us + 1); /* of a transfer that was under way */
    assert_true(pace_is_dead(&pace));

    pace_init(&pace);
    for (int i = 0; i < 50; i++) { /* an answer in between starts over */
        now_us += 3600ull * S;
        finish(&pace, &pace_defaults, i % 4 == 3 ? 200 : 0, 1000, "", now_us);
        assert_false(pace_is_dead(&pace));
    }
}

/* Where nobody listens there is nobody to be patient with: once more after a moment, then no back-off at all.
 */
static void who_is_not_there_is_not_waited_for(void **state) {
    (void)state;
    struct pace pace;
    struct pace_answer refused = {.is_absent = true};
    struct pace_answer answered = {.status = 200, .duration_us = 1000};
    uint64_t now_us = 100 * S;
    pace_init(&pace);
    pace_finish(&pace, &pace_defaults, &refused, now_us, 0);
    assert_int_equal(pace_next_us(&pace) - now_us, pace_defaults.absent_us);
    assert_int_equal(pace_why(&pace, now_us), PACE_FAILURES);
    now_us = pace_next_us(&pace);
    pace_finish(&pace, &pace_defaults, &refused, now_us, 0);
    assert_int_equal(pace_next_us(&pace) - now_us, pace_defaults.delay_min_us);
    assert_int_equal(pace.bad_count, 0); /* nor are others at that host slowed down */
    for (uint32_t i = 2; i < pace_defaults.failures_max; i++) {
        assert_false(pace_is_dead(&pace));
        pace_finish(&pace, &pace_defaults, &refused, now_us += S, 0);
    }
    assert_true(pace_is_dead(&pace));
    pace_init(&pace);
    pace_finish(&pace, &pace_defaults, &answered, now_us += S, 0);
    refused.is_absent = false; /* it has answered before: it may come back */
    now_us += S;
    pace_finish(&pace, &pace_defaults, &refused, now_us, 0);
    assert_int_equal(pace_next_us(&pace) - now_us, pace_defaults.backoff_min_us);
}

static void everything_waits_for_robots(void **state) {
    (void)state;
    struct pace pace;
    pace_init(&pace);
    finish(&pace, &pace_defaults, 503, 1000, "", 100 * S);
    pace_wait_for_robots(&pace, &pace_defaults, 100 * S);
    assert_why(&pace, 100 * S, "robots.txt unreachable");
    assert_true(pace_next_us(&pace) > 100 * S);
    pace_init(&pace);
    pace_wait_for_robots(&pace, &pace_defaults, 100 * S);
    assert_int_equal(pace_next_us(&pace), 100 * S + pace_defaults.backoff_min_us);
    pace_got_robots(&pace);
    assert_int_equal(pace_why(&pace, 200 * S), PACE_READY);
}

/* A later answer never shortens what an earlier one asked for. */
static void waits_are_never_shortened(void **state) {
    (void)state;
    struct pace pace;
    pace_init(&pace);
    finish(&pace, &pace_defaults, 429, 1000, "600", 100 * S);
    finish(&pace, &pace_defaults, 200, 1000, "", 101 * S); /* another transfer that was under way */
    assert_int_equal(pace_next_us(&pace), 700ull * S);
    assert_int_equal(pace_why(&pace, 101 * S), PACE_RETRY_AFTER);
}

static void addresses_share_transfers_and_delay(void **state) {
    (void)state;
    struct pace_addresses addresses;
    struct pace_config config = pace_defaults;
    config.address_transfers_max = 2;
    assert_int_equal(pace_addresses_init(&addresses, 5), ERR_OK);
    struct address a = address_ipv4(10, 0, 0, 1, 0);
    struct address b = address_ipv4(10, 0, 0, 2, 0);
    uint64_t next_us = 0;
    assert_true(pace_address_start(&addresses, &config, a.ip, 100, &next_us));
    assert_false(pace_address_start(&addresses, &config, a.ip, 101, &next_us));
    assert_int_equal(next_us, 100 + config.address_delay_us);
    assert_true(pace_address_start(&addresses, &config, b.ip, 101, &next_us));
    assert_true(pace_address_start(&addresses, &config, a.ip, next_us, &next_us));
    assert_false(pace_address_start(&addresses, &config, a.ip, 10 * S, &next_us));
    assert_int_equal(next_us, UINT64_MAX);
    pace_address_end(&addresses, a.ip);
    assert_true(pace_address_start(&addresses, &config, a.ip, 10 * S, &next_us));
    /* --delay 0: no delay here either. */
    config.has_delay = true;
    config.address_transfers_max = 0;
    for (int i = 0; i < 10; i++) {
        assert_true(pace_address_start(&addresses, &config, b.ip, 20 * S, &next_us));
    }
    pace_addresses_done(&addresses);
}

static void the_table_of_addresses_is_bounded(void **state) {
    (void)state;
    struct pace_addresses addresses;
    assert_int_equal(pace_addresses_init(&addresses, 5), ERR_OK);
    uint64_t next_us;
    /* Idle ones are forgotten: it stays small. */
    for (uint32_t i = 0; i < 100000; i++) {
        struct address address = address_ipv4(10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i, 0);
        assert_true(pace_address_start(&addresses, &pace_defaults, address.ip, (uint64_t)i * S, &next_us));
        pace_address_end(&addresses, address.ip);
    }
    assert_true(addresses.map.count < 1000);
    /* Busy ones are not; above the bound they are let through. */
    for (uint32_t i = 0; i < 40000; i++) {
        struct address address = address_ipv4(11, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i, 0);
        assert_true(pace_address_start(&addresses, &pace_defaults, address.ip, 200000ull * S, &next_us));
    }
    assert_true(addresses.map.count <= PACE_ADDRESSES_MAX + PACE_ADDRESSES_MAX / 2 + 1);
    struct address unknown = address_ipv4(12, 0, 0, 1, 0);
    pace_address_end(&addresses, unknown.ip);
    pace_addresses_done(&addresses);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fresh_host_is_ready),
        cmocka_unit_test(slow_hosts_get_rest),
        cmocka_unit_test(the_users_delay_replaces_the_adaptive_one),
        cmocka_unit_test(crawl_delay_is_honoured_up_to_a_limit),
        cmocka_unit_test(retry_after_in_seconds_and_as_date),
        cmocka_unit_test(bad_answers_double_the_wait_and_good_ones_halve_it),
        cmocka_unit_test(dead_after_failures_in_a_row),
        cmocka_unit_test(who_is_not_there_is_not_waited_for),
        cmocka_unit_test(everything_waits_for_robots),
        cmocka_unit_test(waits_are_never_shortened),
        cmocka_unit_test(addresses_share_transfers_and_delay),
        cmocka_unit_test(the_table_of_addresses_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
