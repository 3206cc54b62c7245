/* http-limit: how often an address may; who is forgotten in a full table. */
#include "http/server/http_limit.h"

#include <stdlib.h>

#include "unit.h"

enum { SECOND = 1000000 };

static struct http_limit *make(uint64_t count, uint64_t burst) {
    struct http_limit *limit = malloc(sizeof *limit);
    assert_non_null(limit);
    http_limit_init(limit, count, SECOND, burst, 7);
    return limit;
}

static void drop(struct http_limit *limit) {
    http_limit_done(limit);
    free(limit);
}

static void a_burst_is_allowed_and_then_the_rate(void **state) {
    (void)state;
    struct http_limit *limit = make(10, 5);
    struct address address = address_ipv4(192, 0, 2, 1, 1);
    uint64_t now_us = 100 * SECOND;
    uint64_t wait_us = 1;
    for (int i = 0; i < 5; i++) {
        assert_true(http_limit_take(limit, &address, now_us, &wait_us));
        assert_int_equal(wait_us, 0);
    }
    assert_false(http_limit_is_open(limit, &address, now_us, &wait_us));
    assert_int_equal(wait_us, SECOND / 10);
    assert_false(http_limit_take(limit, &address, now_us + SECOND / 10 - 1, &wait_us));
    assert_int_equal(wait_us, 1);
    assert_true(http_limit_take(limit, &address, now_us + SECOND / 10, &wait_us));
    assert_false(http_limit_take(limit, &address, now_us + SECOND / 10, &wait_us));
    assert_int_equal(http_limit_refused_count(limit), 2);
    unsigned allowed = 0;
    for (uint64_t t = 0; t < 100; t++) { /* ten times too fast, for ten seconds after a rest */
        allowed += http_limit_take(limit, &address, now_us + 10 * SECOND + t * SECOND / 10, &wait_us);
    }
    assert_int_equal(allowed, 100);
    drop(limit);
}

static void asking_whether_counts_nothing(void **state) {
    (void)state;
    struct http_limit *limit = make(1, 1);
    struct address address = address_ipv4(192, 0, 2, 1, 1);
    uint64_t wait_us;
    for (int i = 0; i < 100; i++) {
        assert_true(http_limit_is_open(limit, &address, SECOND, &wait_us));
    }
    assert_true(http_limit_take(limit, &address, SECOND, &wait_us));
    assert_false(http_limit_is_open(limit, &address, SECOND, &wait_us));
    assert_int_equal(http_limit_refused_count(limit), 0);
    drop(limit);
}

static void addresses_do_not_share_but_an_ipv6_network_does(void **state) {
    (void)state;
    struct http_limit *limit = make(1, 1);
    struct address first = address_ipv4(192, 0, 2, 1, 1);
    struct address second = address_ipv4(192, 0, 2, 2, 1);
    struct address a;
    struct address b;
    struct address c;
    uint64_t wait_us;
    assert_true(address_parse(BYTES("[2001:db8:0:1::1]:1"), 1, &a));
    assert_true(address_parse(BYTES("[2001:db8:0:1:ffff::9]:2"), 1, &b));
    assert_true(address_parse(BYTES("[2001:db8:0:2::1]:1"), 1, &c));
    assert_true(http_limit_take(limit, &first, SECOND, &wait_us));
    assert_true(http_limit_take(limit, &second, SECOND, &wait_us));
    first.port = 9;
    assert_false(http_limit_take(limit, &first, SECOND, &wait_us));
    assert_true(http_limit_take(limit, &a, SECOND, &wait_us));
    assert_false(http_limit_take(limit, &b, SECOND, &wait_us));
    assert_true(http_limit_take(limit, &c, SECOND, &wait_us));
    drop(limit);
}

static void many_addresses_push_out_only_who_is_at_rest(void **state) {
    (void)state;
    struct http_limit *limit = make(1, 3600);
    struct address busy = address_ipv4(203, 0, 113, 9, 1);
    uint64_t now_us = 10000 * (uint64_t)SECOND;
    uint64_t wait_us;
    while (http_limit_take(limit, &busy, now_us, &wait_us)) {
    }
    for (uint32_t i = 0; i < 200000; i++) {
        struct address other = address_ipv4(10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i, 1);
        assert_true(http_limit_take(limit, &other, now_us, &wait_us));
    }
    assert_false(http_limit_take(limit, &busy, now_us, &wait_us));
    drop(limit);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_is_allowed_and_then_the_rate),
        cmocka_unit_test(asking_whether_counts_nothing),
        cmocka_unit_test(addresses_do_not_share_but_an_ipv6_network_does),
        cmocka_unit_test(many_addresses_push_out_only_who_is_at_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
