/*
 * utc - points in time, as microseconds since 1970 without leap seconds, and their four spellings.
 *
 *      14 digits   20260102030405                     CDX, replay URLs; 1 to 14 digits when read
 *      RFC 3339    2026-01-02T03:04:05.678901Z        WARC, JSON
 *      RFC 1123    Fri, 02 Jan 2026 03:04:05 GMT      HTTP, Memento
 *
 * Years 0001 to 9999 (proleptic Gregorian). No time zone database and no locale is involved. Writing cuts
 * what the spelling has no room for.
 */
#ifndef MNEMON_BASE_UTC_H
#define MNEMON_BASE_UTC_H

#include "base/bytes.h"

enum {
    UTC_DIGITS_SIZE = 15, /* each with its zero byte */
    UTC_RFC3339_SIZE = 28,
    UTC_RFC1123_SIZE = 30,
};

static const int64_t UTC_MIN_US = INT64_C(-62135596800) * 1000000;     /* 0001-01-01 00:00:00 */
static const int64_t UTC_MAX_US = INT64_C(253402300800) * 1000000 - 1; /* 9999-12-31 23:59:59.999999 */

struct utc {
    int32_t year;    /* 1 to 9999 */
    uint8_t month;   /* 1 to 12 */
    uint8_t day;     /* 1 to 31 */
    uint8_t weekday; /* 0 Sunday; written by utc_split(), ignored by utc_join() */
    uint8_t hour;
    uint8_t minute;
    uint8_t second;
    uint32_t microsecond;
};

/* time_us must lie in UTC_MIN_US … UTC_MAX_US, here and below. */
void utc_split(int64_t time_us, struct utc *ret_utc);

/* False if there is no such date or time of day. */
bool utc_join(const struct utc *utc, int64_t *ret_time_us);

/* Each ends out with a zero byte and returns it. */
const char *utc_format_digits(int64_t time_us, char out[UTC_DIGITS_SIZE]);
const char *utc_format_rfc3339(int64_t time_us, char out[UTC_RFC3339_SIZE]); /* fraction only if not zero */
const char *utc_format_rfc1123(int64_t time_us, char out[UTC_RFC1123_SIZE]);

/*
 * 1 to 14 digits. What is missing is filled up to the earliest such time, or to the latest if
 * wants_latest: "2024" begins 2024-01-01 00:00:00 and ends 2024-12-31 23:59:59. A single leading digit of
 * month, day … is filled likewise ("20241" is October to December when latest). False if no such time
 * exists.
 */
bool utc_parse_digits(struct bytes text, bool wants_latest, int64_t *ret_time_us);

/*
 * With any number of fraction digits (cut to microseconds), Z or a numeric offset; also the shortened forms
 * of ISO 8601 that WARC allows: "2026", "2026-01", "2026-01-02", "2026-01-02T03:04Z". A leap second (:60)
 * counts as the second before.
 */
bool utc_parse_rfc3339(struct bytes text, int64_t *ret_time_us);

/*
 * Any of the above and what other writers of archives have made of it: no Z ("2026-01-02T03:04:05"), digits
 * only ("20260102030405", with a fraction behind them too), other separators and missing zeros ("2026/1/2
 * 3:04:05 GMT"). Without an offset it is UTC.
 */
bool utc_parse_sloppy(struct bytes text, int64_t *ret_time_us);

/* As HTTP servers write dates: RFC 1123, RFC 850 or asctime. The day's name is not checked. */
bool utc_parse_http(struct bytes text, int64_t *ret_time_us);

#endif
