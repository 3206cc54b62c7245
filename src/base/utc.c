#include "base/utc.h"

enum { SECONDS_PER_DAY = 86400, MICROSECONDS = 1000000 };

static const char month_names[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
static const char weekday_names[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

static bool is_leap_year(int32_t year) {
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static uint8_t days_of_month(int32_t year, uint8_t month) {
    static const uint8_t days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month == 2 && is_leap_year(year) ? 29 : days[month - 1];
}

/*
 * Days since 1970 of a date and back, by counting years from 1 March, so that the leap day comes last and a
 * 400-year era always has 146,097 days (the well-known algorithm of Howard Hinnant's date papers).
 */
static int64_t days_from_date(int32_t year, uint8_t month, uint8_t day) {
    int64_t shifted = month <= 2 ? year - 1 : year;
    int64_t era = (shifted >= 0 ? shifted : shifted - 399) / 400;
    int64_t year_of_era = shifted - era * 400;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static void date_from_days(int64_t days, struct utc *utc) {
    days += 719468; /* from 0000-03-01 to 1970-01-01 */
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153; /* 0 is March */
    utc->day = (uint8_t)(day_of_year - (153 * month + 2) / 5 + 1);
    utc->month = (uint8_t)(month < 10 ? month + 3 : month - 9);
    utc->year = (int32_t)(year_of_era + era * 400 + (utc->month <= 2 ? 1 : 0));
}

void utc_split(int64_t time_us, struct utc *ret_utc) {
    ASSERT(time_us >= UTC_MIN_US && time_us <= UTC_MAX_US);
    int64_t seconds = time_us / MICROSECONDS;
    int64_t fraction = time_us % MICROSECONDS;
    if (fraction < 0) {
        fraction += MICROSECONDS;
        seconds--;
    }
    int64_t days = seconds / SECONDS_PER_DAY;
    int64_t second_of_day = seconds % SECONDS_PER_DAY;
    if (second_of_day < 0) {
        second_of_day += SECONDS_PER_DAY;
        days--;
    }
    *ret_utc = (struct utc){
        .weekday = (uint8_t)(((days + 4) % 7 + 7) % 7), /* 1970-01-01 was a Thursday */
        .hour = (uint8_t)(second_of_day / 3600),
        .minute = (uint8_t)(second_of_day / 60 % 60),
        .second = (uint8_t)(second_of_day % 60),
        .microsecond = (uint32_t)fraction,
    };
    date_from_days(days, ret_utc);
}

bool utc_join(const struct utc *utc, int64_t *ret_time_us) {
    if (utc->year < 1 || utc->year > 9999 || utc->month < 1 || utc->month > 12 || utc->day < 1 ||
        utc->day > days_of_month(utc->year, utc->month)) {
        return false;
    }
    if (utc->hour > 23 || utc->minute > 59 || utc->second > 59 || utc->microsecond >= MICROSECONDS) {
        return false;
    }
    int64_t seconds = days_from_date(utc->year, utc->month, utc->day) * SECONDS_PER_DAY + utc->hour * 3600 +
                      utc->minute * 60 + utc->second;
    *ret_time_us = seconds * MICROSECONDS + utc->microsecond;
    return true;
}

static char *put_digits(char *out, uint32_t value, unsigned count) {
    for (unsigned i = count; i > 0; i--) {
        out[i - 1] = (char)('0' + value % 10);
        value /= 10;
    }
    return out + count;
}

static char *utc_put_text(char *out, const char *text) {
    size_t size = strlen(text);
    memcpy(out, text, size);
    return out + size;
}

const char *utc_format_digits(int64_t time_us, char out[UTC_DIGITS_SIZE]) {
    struct utc utc;
    utc_split(time_us, &utc);
    char *end = put_digits(out, (uint32_t)utc.year, 4);
    end = put_digits(end, utc.month, 2);
    end = put_digits(end, utc.day, 2);
    end = put_digits(end, utc.hour, 2);
    end = put_digits(end, utc.minute, 2);
    end = put_digits(end, utc.second, 2);
    *end = '\0';
    return out;
}

static char *put_time_of_day(char *end, const struct utc *utc) {
    end = put_digits(end, utc->hour, 2);
    *end++ = ':';
    end = put_digits(end, utc->minute, 2);
    *end++ = ':';
    return put_digits(end, utc->second, 2);
}

const char *utc_format_rfc3339(int64_t time_us, char out[UTC_RFC3339_SIZE]) {
    struct utc utc;
    utc_split(time_us, &utc);
    char *end = put_digits(out, (uint32_t)utc.year, 4);
    *end++ = '-';
    end = put_digits(end, utc.month, 2);
    *end++ = '-';
    end = put_digits(end, utc.day, 2);
    *end++ = 'T';
    end = put_time_of_day(end, &utc);
    if (utc.microsecond > 0) {
        *end++ = '.';
        end = put_digits(end, utc.microsecond, 6);
    }
    *end++ = 'Z';
    *end = '\0';
    return out;
}

const char *utc_format_rfc1123(int64_t time_us, char out[UTC_RFC1123_SIZE]) {
    struct utc utc;
    utc_split(time_us, &utc);
    char *end = utc_put_text(out, weekday_names[utc.weekday]);
    end = utc_put_text(end, ", ");
    end = put_digits(end, utc.day, 2);
    *end++ = ' ';
    end = utc_put_text(end, month_names[utc.month - 1]);
    *end++ = ' ';
    end = put_digits(end, (uint32_t)utc.year, 4);
    *end++ = ' ';
    end = put_time_of_day(end, &utc);
    end = utc_put_text(end, " GMT");
    *end = '\0';
    return out;
}

/* A cursor over text that is being read; the first mismatch sticks. */
struct scan {
    struct bytes rest;
    bool failed;
};

static uint8_t scan_peek(const struct scan *scan) {
    return scan->failed || scan->rest.size == 0 ? 0 : scan->rest.data[0];
}

static bool scan_accept(struct scan *scan, uint8_t byte) {
    if (scan_peek(scan) != byte || byte == 0) {
        return false;
    }
    scan->rest = bytes_skip(scan->rest, 1);
    return true;
}

static void scan_expect(struct scan *scan, uint8_t byte) {
    if (!scan_accept(scan, byte)) {
        scan->failed = true;
    }
}

/* Exactly count digits. */
static uint32_t scan_number(struct scan *scan, size_t count) {
    uint64_t value = 0;
    if (scan->failed || scan->rest.size < count ||
        !bytes_to_u64(bytes_slice(scan->rest, 0, count), UINT32_MAX, &value)) {
        scan->failed = true;
        return 0;
    }
    scan->rest = bytes_skip(scan->rest, count);
    return (uint32_t)value;
}

static bool scan_is_done(const struct scan *scan) {
    return !scan->failed && scan->rest.size == 0;
}

bool utc_parse_digits(struct bytes text, bool wants_latest, int64_t *ret_time_us) {
    if (text.size < 1 || text.size > 14) {
        return false;
    }
    /* The least and the greatest completion that can be told digit by digit; days are mended below. */
    uint8_t digits[14];
    memcpy(digits, wants_latest ? "99991231235959" : "00010101000000", 14);
    for (size_t i = 0; i < text.size; i++) {
        if (!byte_is_digit(text.data[i])) {
            return false;
        }
        digits[i] = text.data[i];
    }
    bool is_month_half = text.size == 5;
    bool is_day_half = text.size == 7;
    if (wants_latest) {
        digits[5] = is_month_half && digits[4] == '0' ? '9' : digits[5];
        digits[7] = is_day_half && digits[6] < '3' ? '9' : digits[7];
        digits[9] = text.size == 9 && digits[8] < '2' ? '9' : digits[9];
    } else {
        digits[3] = text.size < 4 && memcmp(digits, "000", 3) != 0 ? '0' : digits[3];
        digits[5] = is_month_half && digits[4] == '1' ? '0' : digits[5];
        digits[7] = is_day_half && digits[6] != '0' ? '0' : digits[7];
    }
    struct scan scan = {.rest = bytes_of(digits, sizeof digits)};
    struct utc utc = {.year = (int32_t)scan_number(&scan, 4)};
    utc.month = (uint8_t)scan_number(&scan, 2);
    utc.day = (uint8_t)scan_number(&scan, 2);
    utc.hour = (uint8_t)scan_number(&scan, 2);
    utc.minute = (uint8_t)scan_number(&scan, 2);
    utc.second = (uint8_t)scan_number(&scan, 2);
    bool day_is_ours = text.size < 8 && wants_latest && utc.month >= 1 && utc.month <= 12;
    if (day_is_ours && utc.day > days_of_month(utc.year, utc.month)) {
        utc.day = days_of_month(utc.year, utc.month);
        if (is_day_half && utc.day / 10 + '0' != text.data[6]) {
            return false; /* "2023023": February never reaches its thirties */
        }
    }
    return utc_join(&utc, ret_time_us);
}

static uint32_t scan_fraction(struct scan *scan) {
    uint32_t microseconds = 0;
    uint32_t unit = 100000;
    if (!byte_is_digit(scan_peek(scan))) {
        scan->failed = true;
    }
    while (byte_is_digit(scan_peek(scan))) {
        microseconds += (uint32_t)(scan_peek(scan) - '0') * unit;
        unit /= 10;
        scan->rest = bytes_skip(scan->rest, 1);
    }
    return microseconds;
}

/* "Z" or "+01:30", in seconds to the east. */
static int64_t scan_offset(struct scan *scan) {
    if (scan_accept(scan, 'Z') || scan_accept(scan, 'z')) {
        return 0;
    }
    bool is_west = scan_accept(scan, '-');
    if (!is_west) {
        scan_expect(scan, '+');
    }
    uint32_t hours = scan_number(scan, 2);
    scan_accept(scan, ':');
    uint32_t minutes = scan_number(scan, 2);
    if (hours > 23 || minutes > 59) {
        scan->failed = true;
    }
    int64_t seconds = (int64_t)hours * 3600 + (int64_t)minutes * 60;
    return is_west ? -seconds : seconds;
}

/* False if the seconds are left out. */
static bool scan_time_of_day(struct scan *scan, struct utc *utc) {
    utc->hour = (uint8_t)scan_number(scan, 2);
    scan_expect(scan, ':');
    utc->minute = (uint8_t)scan_number(scan, 2);
    if (!scan_accept(scan, ':')) {
        return false;
    }
    utc->second = (uint8_t)scan_number(scan, 2);
    if (utc->second == 60) {
        utc->second = 59;
    }
    return true;
}

bool utc_parse_rfc3339(struct bytes text, int64_t *ret_time_us) {
    struct scan scan = {.rest = text};
    struct utc utc = {.month = 1, .day = 1};
    int64_t offset_seconds = 0;
    utc.year = (int32_t)scan_number(&scan, 4);
    bool has_month = scan_accept(&scan, '-');
    if (has_month) {
        utc.month = (uint8_t)scan_number(&scan, 2);
    }
    bool has_day = has_month && scan_accept(&scan, '-');
    if (has_day) {
        utc.day = (uint8_t)scan_number(&scan, 2);
    }
    if (has_day && (scan_accept(&scan, 'T') || scan_accept(&scan, 't') || scan_accept(&scan, ' '))) {
        bool has_second = scan_time_of_day(&scan, &utc);
        if (has_second && scan_accept(&scan, '.')) {
            utc.microsecond = scan_fraction(&scan);
        }
        offset_seconds = scan_offset(&scan);
    }
    int64_t time_us;
    if (!scan_is_done(&scan) || !utc_join(&utc, &time_us)) {
        return false;
    }
    time_us -= offset_seconds * MICROSECONDS;
    if (time_us < UTC_MIN_US || time_us > UTC_MAX_US) {
        return false;
    }
    *ret_time_us = time_us;
    return true;
}

/* 1 to so many digits. */
static uint32_t scan_some(struct scan *scan, size_t digits_max) {
    size_t count = 0;
    while (count < digits_max && count < scan->rest.size && byte_is_digit(scan->rest.data[count])) {
        count++;
    }
    return scan_number(scan, count > 0 ? count : 1);
}

/* What may stand between two numbers of a date; at least one of them. */
static void scan_separators(struct scan *scan) {
    size_t count = 0;
    while (count < scan->rest.size && scan->rest.data[count] != '\0' &&
           strchr("-/:._Tt ", scan->rest.data[count]) != NULL) {
        count++;
    }
    scan->failed = scan->failed || count == 0;
    scan->rest = bytes_skip(scan->rest, count);
}

static bool scan_parts(struct bytes text, int64_t *ret_time_us) {
    static const char *const zones[] = {"", "Z", "z", "UTC", "utc", "GMT", "gmt", NULL};
    struct scan scan = {.rest = text};
    struct utc utc = {.year = (int32_t)scan_number(&scan, 4)};
    uint8_t *const parts[] = {&utc.month, &utc.day, &utc.hour, &utc.minute, &utc.second};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        scan_separators(&scan);
        *parts[i] = (uint8_t)scan_some(&scan, 2);
    }
    if (scan_accept(&scan, '.') || scan_accept(&scan, ',')) {
        utc.microsecond = scan_fraction(&scan);
    }
    utc.second = utc.second == 60 ? 59 : utc.second;
    return !scan.failed && bytes_is_one_of(bytes_trim(scan.rest), zones) && utc_join(&utc, ret_time_us);
}

bool utc_parse_sloppy(struct bytes text, int64_t *ret_time_us) {
    struct bytes digits = bytes_trim(text);
    size_t count = 0;
    while (count < digits.size && byte_is_digit(digits.data[count])) {
        count++;
    }
    bool is_number = count >= 8 && count == digits.size;
    return utc_parse_rfc3339(digits, ret_time_us) ||
           (is_number &&
            utc_parse_digits(bytes_slice(digits, 0, count < 14 ? count : 14), false, ret_time_us)) ||
           scan_parts(digits, ret_time_us);
}

static uint8_t scan_month(struct scan *scan) {
    for (uint8_t i = 0; !scan->failed && scan->rest.size >= 3 && i < 12; i++) {
        if (bytes_equal_ignore_case(bytes_slice(scan->rest, 0, 3), bytes_of(month_names[i], 3))) {
            scan->rest = bytes_skip(scan->rest, 3);
            return (uint8_t)(i + 1);
        }
    }
    scan->failed = true;
    return 0;
}

/* One or two digits; asctime pads with a space. */
static uint8_t scan_day(struct scan *scan) {
    scan_accept(scan, ' ');
    size_t count = scan->rest.size > 1 && byte_is_digit(scan->rest.data[1]) ? 2 : 1;
    return (uint8_t)scan_number(scan, count);
}

/* RFC 9110: two digits that seem more than 50 years ahead are of the last century. */
static int32_t widen_year(uint32_t two_digits) {
    return (int32_t)(two_digits < 70 ? 2000 + two_digits : 1900 + two_digits);
}

bool utc_parse_http(struct bytes text, int64_t *ret_time_us) {
    struct scan scan = {.rest = bytes_trim(text)};
    struct utc utc = {0};
    while (byte_is_alpha(scan_peek(&scan))) {
        scan.rest = bytes_skip(scan.rest, 1);
    }
    if (scan_accept(&scan, ',')) {
        scan_expect(&scan, ' ');
        utc.day = scan_day(&scan);
        bool is_rfc850 = scan_accept(&scan, '-');
        if (!is_rfc850) {
            scan_expect(&scan, ' ');
        }
        utc.month = scan_month(&scan);
        scan_expect(&scan, is_rfc850 ? '-' : ' ');
        bool has_four_digits = scan.rest.size > 2 && byte_is_digit(scan.rest.data[2]);
        utc.year = has_four_digits ? (int32_t)scan_number(&scan, 4) : widen_year(scan_number(&scan, 2));
        scan_expect(&scan, ' ');
        scan_time_of_day(&scan, &utc);
        scan_expect(&scan, ' ');
        bool is_utc = bytes_equal_ignore_case(scan.rest, BYTES("GMT")) ||
                      bytes_equal_ignore_case(scan.rest, BYTES("UTC"));
        return !scan.failed && is_utc && utc_join(&utc, ret_time_us);
    }
    scan_expect(&scan, ' ');
    utc.month = scan_month(&scan);
    scan_expect(&scan, ' ');
    utc.day = scan_day(&scan);
    scan_expect(&scan, ' ');
    scan_time_of_day(&scan, &utc);
    scan_expect(&scan, ' ');
    utc.year = (int32_t)scan_number(&scan, 4);
    return scan_is_done(&scan) && utc_join(&utc, ret_time_us);
}
