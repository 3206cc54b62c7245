#include "base/value.h"

#include "base/nearest.h"

struct unit {
    const char *name;
    uint64_t factor;
};

/* The first of each kind is the one that explanations name. */
static const struct unit size_units[] = {
    {"bytes", 1},
    {"byte", 1},
    {"B", 1},
    {"KB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", 1000000000000},
    {"KiB", UINT64_C(1) << 10},
    {"MiB", UINT64_C(1) << 20},
    {"GiB", UINT64_C(1) << 30},
    {"TiB", UINT64_C(1) << 40},
    {"K", UINT64_C(1) << 10},
    {"M", UINT64_C(1) << 20},
    {"G", UINT64_C(1) << 30},
    {"T", UINT64_C(1) << 40},
    {NULL, 0},
};

static const struct unit duration_units[] = {
    {"us", 1},       {"ms", 1000},      {"s", 1000000},     {"sec", 1000000},      {"min", 60000000},
    {"m", 60000000}, {"h", 3600000000}, {"d", 86400000000}, {"days", 86400000000}, {"day", 86400000000},
    {NULL, 0},
};

enum err value_read_number(struct bytes text, uint64_t min, uint64_t max, uint64_t *ret_number,
                           struct err_detail *detail) {
    uint64_t number;
    if (!bytes_to_u64(text, UINT64_MAX, &number)) {
        return err_set(detail, ERR_INVALID, "\"%.*s\" is not a whole number", BYTES_ARG(text));
    }
    if (number < min || number > max) {
        return err_set(detail, ERR_INVALID, "%.*s is not between %ju and %ju", BYTES_ARG(text),
                       (uintmax_t)min, (uintmax_t)max);
    }
    *ret_number = number;
    return ERR_OK;
}

enum err value_read_switch(struct bytes text, bool *ret_on, struct err_detail *detail) {
    if (bytes_equal_ignore_case(text, BYTES("yes")) || bytes_equal_ignore_case(text, BYTES("true"))) {
        *ret_on = true;
        return ERR_OK;
    }
    if (bytes_equal_ignore_case(text, BYTES("no")) || bytes_equal_ignore_case(text, BYTES("false"))) {
        *ret_on = false;
        return ERR_OK;
    }
    return err_set(detail, ERR_INVALID, "\"%.*s\" is neither yes nor no", BYTES_ARG(text));
}

enum err value_read_choice(struct bytes text, const char *const *choices, uint32_t *ret_index,
                           struct err_detail *detail) {
    struct nearest nearest;
    nearest_init(&nearest, text);
    for (uint32_t i = 0; choices[i] != NULL; i++) {
        if (bytes_equal(text, bytes_of_string(choices[i]))) {
            *ret_index = i;
            return ERR_OK;
        }
        nearest_offer(&nearest, choices[i]);
    }
    struct buf known;
    buf_init(&known, ERR_TEXT_SIZE_MAX);
    for (uint32_t i = 0; choices[i] != NULL; i++) {
        buf_put_format(&known, "%s%s", i > 0 ? ", " : "", choices[i]);
    }
    char hint[NEAREST_HINT_SIZE];
    enum err err = err_set(detail, ERR_INVALID, "\"%.*s\" is none of %.*s%s", BYTES_ARG(text),
                           BYTES_ARG(buf_bytes(&known)), nearest_hint(&nearest, "", hint));
    buf_done(&known);
    return err;
}

static const struct unit *find_unit(const struct unit *units, struct bytes name) {
    for (; units->name != NULL; units++) {
        if (bytes_equal_ignore_case(name, bytes_of_string(units->name))) {
            return units;
        }
    }
    return NULL;
}

/* Digits, perhaps a point and more digits, times factor; false on overflow or anything else. */
static bool scale(struct bytes number, uint64_t factor, uint64_t *ret_value) {
    size_t point = bytes_find_byte(number, '.');
    uint64_t whole;
    if (!bytes_to_u64(bytes_slice(number, 0, point), UINT64_MAX, &whole)) {
        return false;
    }
    uint64_t value;
    if (__builtin_mul_overflow(whole, factor, &value)) {
        return false;
    }
    if (point < number.size) {
        struct bytes digits = bytes_skip(number, point + 1);
        uint64_t fraction;
        if (digits.size > 6 || !bytes_to_u64(digits, UINT64_MAX, &fraction)) {
            return false;
        }
        uint64_t divisor = 1;
        for (size_t i = 0; i < digits.size; i++) {
            divisor *= 10;
        }
        uint64_t part = fraction * (factor / divisor) + fraction * (factor % divisor) / divisor;
        if (__builtin_add_overflow(value, part, &value)) {
            return false;
        }
    }
    *ret_value = value;
    return true;
}

static enum err read_with_unit(struct bytes text, const struct unit *units, const char *examples,
                               uint64_t *ret_value, struct err_detail *detail) {
    if (bytes_equal(text, BYTES("0"))) {
        *ret_value = 0;
        return ERR_OK;
    }
    size_t end = 0;
    while (end < text.size && (byte_is_digit(text.data[end]) || text.data[end] == '.')) {
        end++;
    }
    struct bytes name = bytes_trim(bytes_skip(text, end));
    const struct unit *unit = find_unit(units, name);
    if (end > 0 && name.size > 0 && unit == NULL) {
        return err_set(detail, ERR_INVALID, "\"%.*s\" is not a known unit (%s)", BYTES_ARG(name), examples);
    }
    if (unit == NULL || !scale(bytes_slice(text, 0, end), unit->factor, ret_value)) {
        return err_set(detail, ERR_INVALID, "\"%.*s\" is not a number with a unit (%s)", BYTES_ARG(text),
                       examples);
    }
    return ERR_OK;
}

enum err value_read_size(struct bytes text, uint64_t min, uint64_t max, uint64_t *ret_size,
                         struct err_detail *detail) {
    uint64_t size;
    enum err err = read_with_unit(text, size_units, "100 bytes, 64 KiB, 10 GB", &size, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (size < min || size > max) {
        return err_set(detail, ERR_INVALID, "\"%.*s\" is not between %ju and %ju bytes", BYTES_ARG(text),
                       (uintmax_t)min, (uintmax_t)max);
    }
    *ret_size = size;
    return ERR_OK;
}

enum err value_read_duration(struct bytes text, uint64_t min_us, uint64_t max_us, uint64_t *ret_us,
                             struct err_detail *detail) {
    uint64_t duration_us;
    enum err err = read_with_unit(text, duration_units, "250 ms, 5 s, 2 min, 1 h, 7 d", &duration_us, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (duration_us < min_us || duration_us > max_us) {
        return err_set(detail, ERR_INVALID, "\"%.*s\" is not between %ju and %ju ms", BYTES_ARG(text),
                       (uintmax_t)(min_us / 1000), (uintmax_t)(max_us / 1000));
    }
    *ret_us = duration_us;
    return ERR_OK;
}

void value_put_size(struct buf *buf, uint64_t size) {
    static const char *const names[] = {"KB", "MB", "GB", "TB", "PB", "EB"};
    if (size < 1000) {
        buf_put_format(buf, "%ju bytes", (uintmax_t)size);
        return;
    }
    size_t step = 0;
    uint64_t unit = 1000;
    while (size / unit >= 1000 && step < 5) {
        unit *= 1000;
        step++;
    }
    uint64_t tenths = size / (unit / 10);
    if (tenths < 1000) {
        buf_put_format(buf, "%ju.%ju %s", (uintmax_t)(tenths / 10), (uintmax_t)(tenths % 10), names[step]);
    } else {
        buf_put_format(buf, "%ju %s", (uintmax_t)(tenths / 10), names[step]);
    }
}

void value_put_duration(struct buf *buf, uint64_t duration_us) {
    uint64_t seconds = duration_us / 1000000;
    if (duration_us < 1000) {
        buf_put_format(buf, "%ju us", (uintmax_t)duration_us);
    } else if (seconds < 1) {
        buf_put_format(buf, "%ju ms", (uintmax_t)(duration_us / 1000));
    } else if (seconds < 60) {
        buf_put_format(buf, "%ju.%ju s", (uintmax_t)seconds, (uintmax_t)(duration_us / 100000 % 10));
    } else if (seconds < 3600) {
        buf_put_format(buf, "%ju:%02ju", (uintmax_t)(seconds / 60), (uintmax_t)(seconds % 60));
    } else if (seconds < 100 * 3600) {
        buf_put_format(buf, "%ju:%02ju:%02ju", (uintmax_t)(seconds / 3600), (uintmax_t)(seconds / 60 % 60),
                       (uintmax_t)(seconds % 60));
    } else {
        buf_put_format(buf, "%ju days", (uintmax_t)(seconds / 86400));
    }
}

void value_put_count(struct buf *buf, uint64_t count) {
    char digits[24];
    char text[32];
    size_t digits_count = 0;
    do {
        digits[digits_count++] = (char)('0' + count % 10);
        count /= 10;
    } while (count > 0);
    size_t size = 0;
    while (digits_count > 0) {
        text[size++] = digits[--digits_count];
        if (digits_count > 0 && digits_count % 3 == 0) {
            text[size++] = ',';
        }
    }
    buf_put(buf, bytes_of(text, size));
}

/* What stands between two braces. */
static bool value_put_form(struct buf *buf, struct bytes form, uint64_t value) {
    static const struct {
        const char *name;
        void (*put)(struct buf *buf, uint64_t value);
    } forms[] = {{"count", value_put_count}, {"size", value_put_size}, {"time", value_put_duration}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (bytes_equal(form, bytes_of_string(forms[i].name))) {
            forms[i].put(buf, value);
            return true;
        }
    }
    buf_put_string(buf, value == 1 ? "" : "s");
    return false;
}

void value_put_text(struct buf *buf, const char *text, const uint64_t *values, size_t values_count) {
    struct bytes rest = bytes_of_string(text);
    size_t next = 0;
    while (bytes_find_byte(rest, '{') < rest.size) {
        size_t open = bytes_find_byte(rest, '{');
        size_t close = bytes_find_byte(rest, '}');
        struct bytes form = bytes_slice(rest, open + 1, close);
        bool is_plural = bytes_equal(form, BYTES("s"));
        ASSERT(close < rest.size && (is_plural ? next > 0 : next < values_count));
        buf_put(buf, bytes_slice(rest, 0, open));
        bool is_value = value_put_form(buf, form, values[is_plural ? next - 1 : next]);
        ASSERT(is_value != is_plural);
        next += is_value;
        rest = bytes_skip(rest, close + 1);
    }
    ASSERT(next == values_count);
    buf_put(buf, rest);
}
