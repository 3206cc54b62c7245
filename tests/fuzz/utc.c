/*
 * utc - any text against all readers of dates: what is read can be written and is read back.
 */
#include "base/utc.h"

#include "fuzz.h"

static const int64_t untouched_us = INT64_MIN; /* no time that exists */

static int64_t whole_seconds_us(int64_t time_us) {
    return time_us - ((time_us % 1000000) + 1000000) % 1000000;
}

static void check_time(int64_t time_us) {
    ASSERT(time_us >= UTC_MIN_US && time_us <= UTC_MAX_US);
    char digits[UTC_DIGITS_SIZE];
    char rfc3339[UTC_RFC3339_SIZE];
    char rfc1123[UTC_RFC1123_SIZE];
    int64_t again_us;
    ASSERT(utc_parse_rfc3339(bytes_of_string(utc_format_rfc3339(time_us, rfc3339)), &again_us));
    ASSERT(again_us == time_us);
    ASSERT(utc_parse_digits(bytes_of_string(utc_format_digits(time_us, digits)), false, &again_us));
    ASSERT(again_us == whole_seconds_us(time_us));
    ASSERT(utc_parse_http(bytes_of_string(utc_format_rfc1123(time_us, rfc1123)), &again_us));
    ASSERT(again_us == whole_seconds_us(time_us));
}

static void check_parser(bool (*parse)(struct bytes text, int64_t *ret_time_us), struct bytes text) {
    int64_t time_us = untouched_us;
    if (parse(text, &time_us)) {
        check_time(time_us);
    } else {
        ASSERT(time_us == untouched_us);
    }
}

static void check_digits(struct bytes text) {
    int64_t earliest_us = untouched_us;
    int64_t latest_us = untouched_us;
    bool has_earliest = utc_parse_digits(text, false, &earliest_us);
    bool has_latest = utc_parse_digits(text, true, &latest_us);
    ASSERT(has_earliest == has_latest);
    if (!has_earliest) {
        ASSERT(earliest_us == untouched_us && latest_us == untouched_us);
        return;
    }
    check_time(earliest_us);
    check_time(latest_us);
    char digits[UTC_DIGITS_SIZE];
    ASSERT(earliest_us <= latest_us);
    ASSERT(bytes_starts_with(bytes_of_string(utc_format_digits(earliest_us, digits)), text));
    ASSERT(bytes_starts_with(bytes_of_string(utc_format_digits(latest_us, digits)), text));
    /* One second further on either side no longer begins like the text. */
    ASSERT(earliest_us < UTC_MIN_US + 1000000 ||
           !bytes_starts_with(bytes_of_string(utc_format_digits(earliest_us - 1000000, digits)), text));
    ASSERT(latest_us > UTC_MAX_US - 1000000 ||
           !bytes_starts_with(bytes_of_string(utc_format_digits(latest_us + 1000000, digits)), text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bytes text = bytes_of(data, size);
    check_digits(text);
    check_parser(utc_parse_rfc3339, text);
    check_parser(utc_parse_http, text);
    return 0;
}
