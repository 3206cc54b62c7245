/* mirror_driver_rates, mirror_limit: what people write, what the clock on the wall makes of it, what they
 * see. */
#include "clock-manual.h"
#include "node/mirror/mirror_driver_rates.h"

#include <stdlib.h>
#include <time.h>

#include "unit.h"

static const int64_t HOUR_US = INT64_C(3600) * 1000000;

static enum err read(const char *limit, const char *first, const char *second, struct mirror_limit *out,
                     struct err_detail *detail) {
    struct bytes items[2] = {bytes_of_string(first), bytes_of_string(second)};
    size_t count = second[0] != '\0' ? 2 : first[0] != '\0' ? 1 : 0;
    struct config_list list = {.items = items, .count = count};
    return mirror_driver_rates_read(bytes_of_string(limit), &list, out, detail);
}

static void limits_are_read(void **state) {
    (void)state;
    struct mirror_limit limit;
    assert_int_equal(read("1 MB", "", "", &limit, NULL), ERR_OK);
    assert_int_equal(limit.rate, 1000000);
    assert_int_equal(read("unlimited", "", "", &limit, NULL), ERR_OK);
    assert_true(limit.rate == MIRROR_LIMIT_NONE);
    assert_int_equal(read("no", "22:00-06:00 10 MB", "6:30-24:00 unlimited", &limit, NULL), ERR_OK);
    assert_int_equal(limit.rate, 0);
    assert_int_equal(limit.windows_count, 2);
    assert_int_equal(limit.windows[0].from_minute, 22 * 60);
    assert_int_equal(limit.windows[0].to_minute, 6 * 60);
    assert_int_equal(limit.windows[0].rate, 10000000);
    assert_int_equal(limit.windows[1].from_minute, 6 * 60 + 30);
    assert_int_equal(limit.windows[1].to_minute, 24 * 60);
    assert_true(limit.windows[1].rate == MIRROR_LIMIT_NONE);
}

static void mistakes_are_told(void **state) {
    (void)state;
    static const char *const windows[] = {
        "22:00",          "22:00-06:00",   "22:00-06:00 ",       "22-6 1 MB",       "22:00-06:60 1 MB",
        "24:01-1:00 no",  "-1:00-2:00 no", "22:00-22:00 1 MB",   "24:00-1:00 1 MB", "22:00-06:00 1",
        "22:0-06:00 1MB", "22:00-06:00-7", "22:00-06:00 1 MB/s", "a:00-b:00 1 MB",
    };
    struct mirror_limit limit;
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        struct err_detail detail = {0};
        assert_int_equal(read("1 MB", windows[i], "", &limit, &detail), ERR_INVALID);
        assert_true(detail.text[0] != '\0');
    }
    assert_int_equal(read("fast", "", "", &limit, NULL), ERR_INVALID);
    assert_int_equal(read("100 bytes", "", "", &limit, NULL), ERR_INVALID);
}

static void assert_shows(const struct mirror_limit *limit, const struct clock *clock, const char *text) {
    struct buf out;
    struct json json;
    buf_init(&out, 100);
    json_init(&json, &out);
    mirror_driver_rates_put(limit, clock_monotonic_us(clock), &json, NULL);
    buf_put_byte(&out, '\0');
    assert_string_equal((const char *)out.data, text);
    buf_done(&out);
}

static void a_clock_that_is_set_is_noticed(void **state) {
    (void)state;
    struct clock_manual manual;
    struct mirror_limit limit;
    const struct clock *clock = &manual.clock;
    clock_manual_init(&manual, 20 * HOUR_US); /* in UTC */
    clock_manual_advance(&manual, 30000000);
    assert_int_equal(read("unlimited", "22:00-23:00 1 MB", "23:00-06:00 no", &limit, NULL), ERR_OK);
    mirror_driver_rates_set_clock(&limit, clock); /* it is 21:00 and half a minute here */
    assert_shows(&limit, clock, "{\"limit\":null,\"until\":\"22:00\"}");
    clock_manual_advance(&manual, (uint64_t)HOUR_US);
    assert_shows(&limit, clock, "{\"limit\":1000000,\"until\":\"23:00\"}");
    manual.wall_now_us += 3 * HOUR_US;
    mirror_driver_rates_set_clock(&limit, clock);
    assert_shows(&limit, clock, "{\"limit\":0,\"until\":\"06:00\"}");
    assert_int_equal(mirror_limit_left(&limit, clock_monotonic_us(clock)), 0);
}

static void what_never_changes_is_said_so(void **state) {
    (void)state;
    struct clock_manual manual;
    struct mirror_limit limit;
    clock_manual_init(&manual, 20 * HOUR_US);
    assert_int_equal(read("no", "", "", &limit, NULL), ERR_OK);
    assert_shows(&limit, &manual.clock, "{\"limit\":0,\"until\":null}");
    assert_int_equal(read("1 MB", "1:00-2:00 1 MB", "", &limit, NULL), ERR_OK);
    mirror_driver_rates_set_clock(&limit, &manual.clock);
    assert_shows(&limit, &manual.clock, "{\"limit\":1000000,\"until\":null}");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_read),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(a_clock_that_is_set_is_noticed),
        cmocka_unit_test(what_never_changes_is_said_so),
    };
    setenv("TZ", "XYZ-1", 1); /* an hour ahead */
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
