#include "base/utc.h"

#include <time.h>

#include "aborts.h"
#include "base/prng.h"
#include "unit.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const int64_t second_us = 1000000;
static const int64_t day_us = INT64_C(86400000000);

static void assert_rfc3339(int64_t time_us, const char *expected) {
    char text[UTC_RFC3339_SIZE];
    assert_string_equal(utc_format_rfc3339(time_us, text), expected);
}

static int64_t random_time_us(struct prng *prng) {
    return UTC_MIN_US + (int64_t)prng_below(prng, (uint64_t)(UTC_MAX_US - UTC_MIN_US) + 1);
}

/* Counted forward by the rules of the calendar alone, without the arithmetic of utc.c. */
static void every_day_from_0001_to_9999_is_split_and_joined(void **state) {
    (void)state;
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t time_us = UTC_MIN_US;
    unsigned weekday = 1; /* 0001-01-01 was a Monday */
    for (int32_t year = 1; year <= 9999; year++) {
        bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        for (uint8_t month = 1; month <= 12; month++) {
            uint8_t last = (uint8_t)(days[month - 1] + (month == 2 && is_leap));
            for (uint8_t day = 1; day <= last; day++) {
                struct utc utc;
                utc_split(time_us, &utc);
                if (utc.year != year || utc.month != month || utc.day != day || utc.weekday != weekday) {
                    fail_msg("%d-%u-%u was split into %d-%u-%u", year, month, day, utc.year, utc.month,
                             utc.day);
                }
                int64_t joined_us;
                if (!utc_join(&utc, &joined_us) || joined_us != time_us) {
                    fail_msg("%d-%u-%u was not joined", year, month, day);
                }
                time_us += day_us;
                weekday = (weekday + 1) % 7;
            }
            struct utc past = {.year = year, .month = month, .day = (uint8_t)(last + 1)};
            int64_t joined_us;
            assert_false(utc_join(&past, &joined_us));
        }
    }
    assert_int_equal(time_us, UTC_MAX_US + 1);
}

static void agrees_with_the_c_library_on_random_times(void **state) {
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (unsigned i = 0; i < 100000; i++) {
        int64_t time_us = random_time_us(&prng);
        struct utc utc;
        utc_split(time_us, &utc);
        int64_t micro = ((time_us % second_us) + second_us) % second_us;
        time_t seconds = (time_t)((time_us - micro) / second_us);
        struct tm tm;
        assert_non_null(gmtime_r(&seconds, &tm));
        assert_int_equal(utc.year, tm.tm_year + 1900);
        assert_int_equal(utc.month, tm.tm_mon + 1);
        assert_int_equal(utc.day, tm.tm_mday);
        assert_int_equal(utc.weekday, tm.tm_wday);
        assert_int_equal(utc.hour, tm.tm_hour);
        assert_int_equal(utc.minute, tm.tm_min);
        assert_int_equal(utc.second, tm.tm_sec);
        assert_int_equal(utc.microsecond, micro);
        int64_t joined_us;
        assert_true(utc_join(&utc, &joined_us));
        assert_int_equal(joined_us, (int64_t)timegm(&tm) * second_us + micro);
    }
}

static void joins_no_time_that_does_not_exist(void **state) {
    (void)state;
    static const struct utc wrong[] = {
        {.year = 0, .month = 1, .day = 1},
        {.year = -1, .month = 1, .day = 1},
        {.year = 10000, .month = 1, .day = 1},
        {.year = 2026, .month = 0, .day = 1},
        {.year = 2026, .month = 13, .day = 1},
        {.year = 2026, .month = 1, .day = 0},
        {.year = 1900, .month = 2, .day = 29},
        {.year = 2026, .month = 1, .day = 1, .hour = 24},
        {.year = 2026, .month = 1, .day = 1, .minute = 60},
        {.year = 2026, .month = 1, .day = 1, .second = 60},
        {.year = 2026, .month = 1, .day = 1, .microsecond = 1000000},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        int64_t time_us = 42;
        assert_false(utc_join(&wrong[i], &time_us));
        assert_int_equal(time_us, 42);
    }
    static const struct utc leap_day = {.year = 2000, .month = 2, .day = 29};
    int64_t time_us;
    assert_true(utc_join(&leap_day, &time_us));
    assert_rfc3339(time_us, "2000-02-29T00:00:00Z");
}

static void writes_each_spelling(void **state) {
    (void)state;
    static const struct {
        int64_t time_us;
        const char *digits;
        const char *rfc3339;
        const char *rfc1123;
    } rows[] = {
        {0, "19700101000000", "1970-01-01T00:00:00Z", "Thu, 01 Jan 1970 00:00:00 GMT"},
        {-1, "19691231235959", "1969-12-31T23:59:59.999999Z", "Wed, 31 Dec 1969 23:59:59 GMT"},
        {1, "19700101000000", "1970-01-01T00:00:00.000001Z", "Thu, 01 Jan 1970 00:00:00 GMT"},
        {INT64_C(1767323045678901), "20260102030405", "2026-01-02T03:04:05.678901Z",
         "Fri, 02 Jan 2026 03:04:05 GMT"},
        {INT64_C(784111777000000), "19941106084937", "1994-11-06T08:49:37Z", "Sun, 06 Nov 1994 08:49:37 GMT"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char digits[UTC_DIGITS_SIZE];
        char rfc1123[UTC_RFC1123_SIZE];
        assert_string_equal(utc_format_digits(rows[i].time_us, digits), rows[i].digits);
        assert_rfc3339(rows[i].time_us, rows[i].rfc3339);
        assert_string_equal(utc_format_rfc1123(rows[i].time_us, rfc1123), rows[i].rfc1123);
    }
    char text[UTC_RFC1123_SIZE];
    assert_string_equal(utc_format_rfc1123(UTC_MIN_US, text), "Mon, 01 Jan 0001 00:00:00 GMT");
    assert_string_equal(utc_format_rfc1123(UTC_MAX_US, text), "Fri, 31 Dec 9999 23:59:59 GMT");
}

static int64_t whole_seconds_us(int64_t time_us) {
    return time_us - ((time_us % second_us) + second_us) % second_us;
}

static void every_spelling_is_read_back(void **state) {
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (unsigned i = 0; i < 50000; i++) {
        int64_t time_us = i == 0 ? UTC_MIN_US : i == 1 ? UTC_MAX_US : random_time_us(&prng);
        char digits[UTC_DIGITS_SIZE];
        char rfc3339[UTC_RFC3339_SIZE];
        char rfc1123[UTC_RFC1123_SIZE];
        int64_t read_us;
        assert_true(utc_parse_rfc3339(bytes_of_string(utc_format_rfc3339(time_us, rfc3339)), &read_us));
        assert_int_equal(read_us, time_us);
        assert_true(utc_parse_digits(bytes_of_string(utc_format_digits(time_us, digits)), false, &read_us));
        assert_int_equal(read_us, whole_seconds_us(time_us));
        assert_true(utc_parse_digits(bytes_of_string(digits), true, &read_us));
        assert_int_equal(read_us, whole_seconds_us(time_us));
        assert_true(utc_parse_http(bytes_of_string(utc_format_rfc1123(time_us, rfc1123)), &read_us));
        assert_int_equal(read_us, whole_seconds_us(time_us));
    }
}

static void fills_up_partial_digits_to_the_earliest_and_latest(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *earliest;
        const char *latest;
    } rows[] = {
        {"2", "2000-01-01T00:00:00Z", "2999-12-31T23:59:59Z"},
        {"0", "0001-01-01T00:00:00Z", "0999-12-31T23:59:59Z"},
        {"00", "0001-01-01T00:00:00Z", "0099-12-31T23:59:59Z"},
        {"000", "0001-01-01T00:00:00Z", "0009-12-31T23:59:59Z"},
        {"001", "0010-01-01T00:00:00Z", "0019-12-31T23:59:59Z"},
        {"9", "9000-01-01T00:00:00Z", "9999-12-31T23:59:59Z"},
        {"20", "2000-01-01T00:00:00Z", "2099-12-31T23:59:59Z"},
        {"202", "2020-01-01T00:00:00Z", "2029-12-31T23:59:59Z"},
        {"2024", "2024-01-01T00:00:00Z", "2024-12-31T23:59:59Z"},
        {"20240", "2024-01-01T00:00:00Z", "2024-09-30T23:59:59Z"},
        {"20241", "2024-10-01T00:00:00Z", "2024-12-31T23:59:59Z"},
        {"202402", "2024-02-01T00:00:00Z", "2024-02-29T23:59:59Z"},
        {"202302", "2023-02-01T00:00:00Z", "2023-02-28T23:59:59Z"},
        {"202404", "2024-04-01T00:00:00Z", "2024-04-30T23:59:59Z"},
        {"2024020", "2024-02-01T00:00:00Z", "2024-02-09T23:59:59Z"},
        {"2024021", "2024-02-10T00:00:00Z", "2024-02-19T23:59:59Z"},
        {"2024022", "2024-02-20T00:00:00Z", "2024-02-29T23:59:59Z"},
        {"2023022", "2023-02-20T00:00:00Z", "2023-02-28T23:59:59Z"},
        {"2024043", "2024-04-30T00:00:00Z", "2024-04-30T23:59:59Z"},
        {"2024123", "2024-12-30T00:00:00Z", "2024-12-31T23:59:59Z"},
        {"20240229", "2024-02-29T00:00:00Z", "2024-02-29T23:59:59Z"},
        {"202402290", "2024-02-29T00:00:00Z", "2024-02-29T09:59:59Z"},
        {"202402291", "2024-02-29T10:00:00Z", "2024-02-29T19:59:59Z"},
        {"202402292", "2024-02-29T20:00:00Z", "2024-02-29T23:59:59Z"},
        {"2024022923", "2024-02-29T23:00:00Z", "2024-02-29T23:59:59Z"},
        {"20240229235", "2024-02-29T23:50:00Z", "2024-02-29T23:59:59Z"},
        {"202402292301", "2024-02-29T23:01:00Z", "2024-02-29T23:01:59Z"},
        {"2024022923010", "2024-02-29T23:01:00Z", "2024-02-29T23:01:09Z"},
        {"20240229230105", "2024-02-29T23:01:05Z", "2024-02-29T23:01:05Z"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int64_t earliest_us;
        int64_t latest_us;
        assert_true(utc_parse_digits(bytes_of_string(rows[i].text), false, &earliest_us));
        assert_true(utc_parse_digits(bytes_of_string(rows[i].text), true, &latest_us));
        assert_rfc3339(earliest_us, rows[i].earliest);
        assert_rfc3339(latest_us, rows[i].latest);
    }
}

/* The definition itself: the least and the greatest time whose 14 digits begin like the text. */
static void partial_digits_of_a_month_agree_with_a_search_over_its_days(void **state) {
    (void)state;
    for (unsigned number = 2023000; number < 2025000; number++) {
        char prefix[8];
        snprintf(prefix, sizeof prefix, "%u", number);
        int64_t first_us = 0;
        int64_t last_us = 0;
        bool exists = false;
        for (int64_t days = 19358; days < 20089; days++) { /* 2023-01-01 up to 2024-12-31 */
            char digits[UTC_DIGITS_SIZE];
            if (strncmp(utc_format_digits(days * day_us, digits), prefix, 7) == 0) {
                first_us = exists ? first_us : days * day_us;
                last_us = (days + 1) * day_us - second_us;
                exists = true;
            }
        }
        int64_t time_us;
        assert_int_equal(utc_parse_digits(bytes_of(prefix, 7), false, &time_us), exists);
        assert_true(!exists || time_us == first_us);
        assert_int_equal(utc_parse_digits(bytes_of(prefix, 7), true, &time_us), exists);
        assert_true(!exists || time_us == last_us);
    }
}

static void refuses_digits_of_no_time(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "",
        "0000",
        "00000101000000",
        "20242",
        "2024000",
        "202400",
        "202413",
        "2024014",
        "2023023",
        "2024023",
        "20230229",
        "19000229",
        "20240132",
        "20240431",
        "20240100",
        "202401013",
        "2024010124",
        "20240101006",
        "202401010060",
        "2024010100006",
        "20240101000060",
        "202401010000000",
        "2024-01",
        "2024 ",
        " 2024",
        "2024a",
        "-1",
        "+2024",
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        for (int wants_latest = 0; wants_latest <= 1; wants_latest++) {
            int64_t time_us = 42;
            if (utc_parse_digits(bytes_of_string(wrong[i]), wants_latest, &time_us)) {
                fail_msg("\"%s\" was read", wrong[i]);
            }
            assert_int_equal(time_us, 42);
        }
    }
    int64_t time_us;
    assert_false(utc_parse_digits(bytes_of(NULL, 0), true, &time_us));
}

typedef bool (*parser)(struct bytes text, int64_t *ret_time_us);

struct spelling {
    const char *text;
    const char *rfc3339;
};

static void assert_parses(parser parse, const struct spelling *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int64_t time_us;
        if (!parse(bytes_of_string(rows[i].text), &time_us)) {
            fail_msg("\"%s\" was refused", rows[i].text);
        }
        assert_rfc3339(time_us, rows[i].rfc3339);
    }
}

static void assert_refuses(parser parse, const char *const *texts, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int64_t time_us = 42;
        if (parse(bytes_of_string(texts[i]), &time_us)) {
            fail_msg("\"%s\" was read", texts[i]);
        }
        assert_int_equal(time_us, 42);
    }
    int64_t time_us;
    assert_false(parse(bytes_of(NULL, 0), &time_us));
    assert_false(parse(BYTES("\0\0\0\0"), &time_us));
}

static void reads_rfc3339_with_fractions_offsets_and_short_forms(void **state) {
    (void)state;
    static const struct spelling rows[] = {
        {"2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"},
        {"2026-01-02t03:04:05z", "2026-01-02T03:04:05Z"},
        {"2026-01-02 03:04:05Z", "2026-01-02T03:04:05Z"},
        {"2026-01-02T03:04:05.6Z", "2026-01-02T03:04:05.600000Z"},
        {"2026-01-02T03:04:05.000001Z", "2026-01-02T03:04:05.000001Z"},
        {"2026-01-02T03:04:05.123456789012345678901234567890Z", "2026-01-02T03:04:05.123456Z"},
        {"2026-01-02T03:04:05.9999999Z", "2026-01-02T03:04:05.999999Z"},
        {"2026-01-02T03:04:05+01:30", "2026-01-02T01:34:05Z"},
        {"2026-01-02T03:04:05-01:30", "2026-01-02T04:34:05Z"},
        {"2026-01-02T03:04:05-00:00", "2026-01-02T03:04:05Z"},
        {"2026-01-02T03:04:05.5+0130", "2026-01-02T01:34:05.500000Z"},
        {"2026-12-31T23:59:59-23:59", "2027-01-01T23:58:59Z"},
        {"2016-12-31T23:59:60Z", "2016-12-31T23:59:59Z"},
        {"2016-12-31T23:59:60.5Z", "2016-12-31T23:59:59.500000Z"},
        {"2026", "2026-01-01T00:00:00Z"},
        {"2026-03", "2026-03-01T00:00:00Z"},
        {"2026-03-04", "2026-03-04T00:00:00Z"},
        {"2026-03-04T05:06Z", "2026-03-04T05:06:00Z"},
        {"2026-03-04T05:06+02:00", "2026-03-04T03:06:00Z"},
        {"0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"},
        {"0001-01-01T01:00:00+01:00", "0001-01-01T00:00:00Z"},
        {"9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"},
    };
    static const char *const wrong[] = {
        "",
        "2026-01-02T03:04:05",
        "2026-01-02T03:04:05ZZ",
        "2026-01-02T03:04:05 Z",
        "2026-01-02T03:04:05.Z",
        "2026-01-02T03:04:05,5Z",
        "2026-01-02T03:04.5Z", /* of a minute: not 500 ms */
        "2026-01-02T03Z",
        "2026-01-02T03:04:5Z",
        "2026-01-02T3:04:05Z",
        "2026-01-02T24:00:00Z",
        "2026-01-02T03:60:00Z",
        "2026-01-02T03:04:61Z",
        "2026-01-02T03:04:05+24:00",
        "2026-01-02T03:04:05+01:60",
        "2026-01-02T03:04:05+01",
        "2026-01-02T03:04:05+1:00",
        "2026-01-02T",
        "2026-01T03:04Z", /* a time of day needs a day */
        "2026T03:04Z",
        "2026Z",
        "2026-",
        "2026-1-2",
        "2026-01-",
        "2026-13-01",
        "2026-02-29",
        "2026-00-01",
        "0000-01-01",
        "20260102",
        "26-01-02",
        "12026-01-02",
        "+2026-01-02",
        " 2026-01-02",
        "2026-01-02 ",
        "0001-01-01T00:00:00+00:01", /* before the first time */
        "9999-12-31T23:59:59-00:01", /* behind the last */
    };
    assert_parses(utc_parse_rfc3339, rows, COUNT_OF(rows));
    assert_refuses(utc_parse_rfc3339, wrong, COUNT_OF(wrong));
}

static void reads_the_three_spellings_of_http(void **state) {
    (void)state;
    static const struct spelling rows[] = {
        {"Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z"},
        {"Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37Z"},
        {"Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:37Z"},
        {"Sun Nov 16 08:49:37 1994", "1994-11-16T08:49:37Z"},
        {"  Sun, 06 Nov 1994 08:49:37 GMT\r\n", "1994-11-06T08:49:37Z"},
        {"sun, 06 nov 1994 08:49:37 gmt", "1994-11-06T08:49:37Z"},
        {"Sun, 06 Nov 1994 08:49:37 UTC", "1994-11-06T08:49:37Z"},
        {"Sun, 6 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z"},
        {"Mon, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z"}, /* it was a Sunday */
        {"Sun, 06-Nov-1994 08:49:37 GMT", "1994-11-06T08:49:37Z"},
        {"Sun, 06 Nov 94 08:49:37 GMT", "1994-11-06T08:49:37Z"},
        {"Friday, 31-Dec-69 23:59:59 GMT", "2069-12-31T23:59:59Z"},
        {"Thursday, 01-Jan-70 00:00:00 GMT", "1970-01-01T00:00:00Z"},
        {"Sat, 31 Dec 2016 23:59:60 GMT", "2016-12-31T23:59:59Z"},
        {"Thu, 29 Feb 2024 00:00:00 GMT", "2024-02-29T00:00:00Z"},
    };
    static const char *const wrong[] = {
        "",
        "0",
        "-1",
        "never",
        "Sun",
        "Sun,",
        "Sun, ",
        "Sun, 06 Nov 1994",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 Nov 1994 08:49:37 GMT x",
        "Sun, 06 Nov 1994 08:49:37GMT",
        "Sun,06 Nov 1994 08:49:37 GMT",
        "Sun, 06-Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov-1994 08:49:37 GMT",
        "Sun, 06 Nob 1994 08:49:37 GMT",
        "Sun, 06 No",
        "Sun, 006 Nov 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Wed, 29 Feb 2023 00:00:00 GMT",
        "Sun, 06 Nov 199 08:49:37 GMT",
        "Sun, 06 Nov 19940 08:49:37 GMT",
        "Sun, 06 Nov 0000 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun Nov  6 08:49:37 94",
        "Sun Nov  6 08:49:37 1994 GMT",
        "Sun Nov   6 08:49:37 1994",
        "Nov  6 08:49:37 1994",
        "06 Nov 1994 08:49:37 GMT",
    };
    assert_parses(utc_parse_http, rows, COUNT_OF(rows));
    assert_refuses(utc_parse_http, wrong, COUNT_OF(wrong));
}

static void split_time(void *time_us) {
    struct utc utc;
    utc_split(*(const int64_t *)time_us, &utc);
}

static void aborts_outside_the_years_1_to_9999(void **state) {
    (void)state;
    int64_t wrong[] = {UTC_MIN_US - 1, UTC_MAX_US + 1, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_true(aborts(split_time, &wrong[i], "time_us >= UTC_MIN_US"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_day_from_0001_to_9999_is_split_and_joined),
        cmocka_unit_test(agrees_with_the_c_library_on_random_times),
        cmocka_unit_test(joins_no_time_that_does_not_exist),
        cmocka_unit_test(writes_each_spelling),
        cmocka_unit_test(every_spelling_is_read_back),
        cmocka_unit_test(fills_up_partial_digits_to_the_earliest_and_latest),
        cmocka_unit_test(partial_digits_of_a_month_agree_with_a_search_over_its_days),
        cmocka_unit_test(refuses_digits_of_no_time),
        cmocka_unit_test(reads_rfc3339_with_fractions_offsets_and_short_forms),
        cmocka_unit_test(reads_the_three_spellings_of_http),
        cmocka_unit_test(aborts_outside_the_years_1_to_9999),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
