#include "store/access/access_line.h"

#include <jansson.h>

#include "base/utc.h"

enum { AGE_PART_MAX = 10000, MONTHS_PER_YEAR = 12, DAYS_PER_WEEK = 7, SECOND_US = 1000000 };

static const int64_t DAY_US = INT64_C(86400) * 1000000;

/* ---- the key ---- */

static bool access_line_is_of_hosts(struct bytes key) {
    return bytes_find_byte(key, ')') == key.size;
}

/* A star may stand at the end of hosts, where it says no more than the comma before it. */
static enum err access_line_read_key(struct access_line *line, struct bytes key, struct err_detail *detail) {
    if (bytes_find(key, BYTES("://")) < key.size) {
        return err_set(detail, ERR_INVALID, "the line begins with a URL; \"mnemon url URL\" tells its SURT");
    }
    line->is_exact = bytes_ends_with(key, BYTES("###"));
    if (line->is_exact) {
        key = bytes_slice(key, 0, key.size - 3);
    }
    if (bytes_equal(key, BYTES("*")) || bytes_equal(key, BYTES("*,"))) {
        key = bytes_of(key.data, 0);
    } else if (bytes_ends_with(key, BYTES(",*")) && access_line_is_of_hosts(key)) {
        key = bytes_slice(key, 0, key.size - 1);
    } else if (key.size == 0) {
        return err_set(detail, ERR_INVALID, "the line begins with no SURT");
    }
    if (line->is_exact && key.size == 0) {
        return err_set(detail, ERR_INVALID, "\"###\" needs a SURT before it");
    }
    line->key = key;
    return ERR_OK;
}

/* ---- the object ---- */

static struct bytes access_line_text_of(const json_t *value) {
    return json_is_string(value) ? bytes_of(json_string_value(value), json_string_length(value))
                                 : bytes_of(NULL, 0);
}

static enum err access_line_read_verdict(struct access_line *line, const json_t *value,
                                         struct err_detail *detail) {
    static const struct {
        struct bytes name;
        enum access_verdict verdict;
    } names[] = {
        {{(const uint8_t *)"allow", 5}, ACCESS_ALLOW},
        {{(const uint8_t *)"allow_ignore_embargo", 20}, ACCESS_ALLOW}, /* there are no embargoes */
        {{(const uint8_t *)"block", 5}, ACCESS_BLOCK},
        {{(const uint8_t *)"exclude", 7}, ACCESS_EXCLUDE},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (bytes_equal(names[i].name, access_line_text_of(value))) {
            line->verdict = names[i].verdict;
            return ERR_OK;
        }
    }
    return err_set(detail, ERR_INVALID, "\"access\" must be allow, block or exclude");
}

/* The seconds that a time names: one, or all of a year, a month … where it is short. */
struct access_span {
    int64_t first_us;
    int64_t last_us;
};

static bool access_line_read_digits(struct bytes text, struct access_span *out) {
    return utc_parse_digits(text, false, &out->first_us) && utc_parse_digits(text, true, &out->last_us);
}

/* "2026-01-02", "2026-01-02T03:04+01:00": as long as its digits, moved by its zone. */
static bool access_line_read_iso(struct bytes text, struct access_span *out) {
    char digits[UTC_DIGITS_SIZE];
    size_t count = 0;
    int64_t first_us;
    for (size_t i = 0; i < text.size && count < sizeof digits - 1; i++) {
        uint8_t byte = text.data[i];
        if (byte_is_digit(byte)) {
            digits[count++] = (char)byte;
        } else if (byte == '.' || byte == '+' || byte == 'Z' || (byte == '-' && i > 7)) {
            break;
        }
    }
    if (!utc_parse_rfc3339(text, &first_us) || !access_line_read_digits(bytes_of(digits, count), out)) {
        return false;
    }
    out->last_us += first_us - out->first_us;
    out->first_us = first_us;
    return true;
}

static enum err access_line_read_time(const json_t *value, struct access_span *ret_span,
                                      struct err_detail *detail, const char *name) {
    char digits[24];
    struct bytes text = access_line_text_of(value);
    if (json_is_integer(value)) { /* 2026 without quotes */
        int size = snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(value));
        text = bytes_of(digits, (size_t)size);
    }
    if (access_line_read_digits(text, ret_span) || access_line_read_iso(text, ret_span)) {
        return ERR_OK;
    }
    return err_set(detail, ERR_INVALID, "\"%s\" is no time; write 1 to 14 digits or 2026-01-02", name);
}

static enum err access_line_read_age(const json_t *value, struct access_age *age, struct err_detail *detail,
                                     const char *name) {
    const char *part_name;
    json_t *part;
    *age = (struct access_age){0};
    json_object_foreach((json_t *)(uintptr_t)value, part_name, part) {
        json_int_t count = json_is_integer(part) ? json_integer_value(part) : -1;
        if (count < 0 || count > AGE_PART_MAX) {
            return err_set(detail, ERR_INVALID, "\"%s\" of \"%s\" must be a number of 0 to %d", part_name,
                           name, AGE_PART_MAX);
        }
        if (strcmp(part_name, "years") == 0) {
            age->months += (uint32_t)count * MONTHS_PER_YEAR;
        } else if (strcmp(part_name, "months") == 0) {
            age->months += (uint32_t)count;
        } else if (strcmp(part_name, "weeks") == 0) {
            age->days += (uint32_t)count * DAYS_PER_WEEK;
        } else if (strcmp(part_name, "days") == 0) {
            age->days += (uint32_t)count;
        } else {
            return err_set(detail, ERR_INVALID, "\"%s\" has years, months, weeks and days, no \"%s\"", name,
                           part_name);
        }
    }
    return age->months + age->days > 0
               ? ERR_OK
               : err_set(detail, ERR_INVALID, "\"%s\" must be an object such as {\"years\": 1}", name);
}

static enum err access_line_read_period(struct access_period *period, const char *name, const json_t *value,
                                        struct err_detail *detail) {
    bool is_after = strcmp(name, "after") == 0;
    if (is_after || strcmp(name, "before") == 0) {
        struct access_span span = {0};
        enum err err = access_line_read_time(value, &span, detail, name);
        /* As pywb, both count from the end: "before 2020" has all of 2020 in it, "after 2020" nothing of it.
         * A whole time names one second, which is in neither. */
        int64_t behind_us = span.last_us + SECOND_US;
        if (err == ERR_OK && is_after) {
            period->from_us = behind_us;
        } else if (err == ERR_OK) {
            period->to_us = span.first_us == span.last_us ? span.first_us : behind_us;
        }
        return err;
    }
    bool is_newer = strcmp(name, "newer") == 0;
    period->has_newer = period->has_newer || is_newer;
    period->has_older = period->has_older || !is_newer;
    return access_line_read_age(value, is_newer ? &period->newer : &period->older, detail, name);
}

static bool access_line_is_in(const char *name, const char *const *names) {
    while (*names != NULL && strcmp(name, *names) != 0) {
        names++;
    }
    return *names != NULL;
}

static enum err access_line_read_member(struct access_line *line, const char *name, const json_t *value,
                                        struct err_detail *detail) {
    static const char *const of_time[] = {"before", "after", "newer", "older", NULL};
    static const char *const notes[] = {"url", "comment", NULL};
    if (strcmp(name, "access") == 0) {
        return access_line_read_verdict(line, value, detail);
    }
    if (access_line_is_in(name, of_time)) {
        line->has_period = true;
        return access_line_read_period(&line->period, name, value, detail);
    }
    if (strcmp(name, "user") == 0) {
        line->is_of_user = access_line_text_of(value).size > 0;
        return ERR_OK;
    }
    return access_line_is_in(name, notes)
               ? ERR_OK
               : err_set(detail, ERR_INVALID, "\"%.60s\" is not known here; notes may stand in \"comment\"",
                         name);
}

static enum err access_line_read_object(struct access_line *line, const json_t *object,
                                        struct err_detail *detail) {
    const char *name;
    json_t *value;
    if (json_object_get(object, "access") == NULL) {
        return err_set(detail, ERR_INVALID, "\"access\" is missing");
    }
    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        enum err err = access_line_read_member(line, name, value, detail);
        if (err != ERR_OK) {
            return err;
        }
    }
    return ERR_OK;
}

enum err access_line_parse(struct access_line *line, struct bytes text, struct err_detail *detail) {
    *line = (struct access_line){.period = {.from_us = INT64_MIN, .to_us = INT64_MAX}};
    struct bytes rest = bytes_trim(text);
    struct bytes key;
    struct bytes time;
    bytes_split(&rest, ' ', &key);
    if (!bytes_split(&rest, ' ', &time) || !bytes_equal(time, BYTES("-"))) {
        return err_set(detail, ERR_INVALID, "the SURT must be followed by \" - \" and a JSON object");
    }
    enum err err = access_line_read_key(line, key, detail);
    if (err != ERR_OK) {
        return err;
    }
    json_error_t error;
    json_t *object = json_loadb((const char *)rest.data, rest.size, JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(object)) {
        err = access_line_read_object(line, object, detail);
    } else {
        err =
            err_set(detail, ERR_INVALID, "no JSON object: %s", object == NULL ? error.text : "another value");
    }
    json_decref(object);
    return err;
}

/* ---- time ---- */

/* 31 May less three months is 28 February. */
static int64_t access_line_go_back(int64_t now_us, struct access_age age) {
    struct utc utc;
    utc_split(now_us, &utc);
    int64_t months = (int64_t)utc.year * MONTHS_PER_YEAR + utc.month - 1 - age.months;
    int64_t result = UTC_MIN_US;
    if (months >= MONTHS_PER_YEAR) {
        utc.year = (int32_t)(months / MONTHS_PER_YEAR);
        utc.month = (uint8_t)(months % MONTHS_PER_YEAR + 1);
        while (!utc_join(&utc, &result)) {
            utc.day--;
        }
    }
    int64_t days_us = (int64_t)age.days * DAY_US;
    return result - UTC_MIN_US < days_us ? UTC_MIN_US : result - days_us;
}

bool access_period_covers(const struct access_period *period, int64_t time_us, int64_t now_us) {
    return time_us >= period->from_us && time_us < period->to_us &&
           (!period->has_newer || time_us > access_line_go_back(now_us, period->newer)) &&
           (!period->has_older || time_us < access_line_go_back(now_us, period->older));
}
