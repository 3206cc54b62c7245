#include "web/url/punycode.h"

/* The parameters of RFC 3492, section 5. */
enum {
    BASE = 36,
    THRESHOLD_MIN = 1,
    THRESHOLD_MAX = 26,
    SKEW = 38,
    DAMP = 700,
    INITIAL_BIAS = 72,
    INITIAL_CODE_POINT = 0x80,
    CODE_POINT_MAX = 0x10ffff,
};

static uint32_t adapt_bias(uint32_t delta, size_t count, bool is_first) {
    delta /= is_first ? DAMP : 2;
    delta += delta / (uint32_t)count;
    uint32_t k = 0;
    while (delta > (BASE - THRESHOLD_MIN) * THRESHOLD_MAX / 2) {
        delta /= BASE - THRESHOLD_MIN;
        k += BASE;
    }
    return k + (BASE - THRESHOLD_MIN + 1) * delta / (delta + SKEW);
}

static uint32_t threshold(uint32_t k, uint32_t bias) {
    if (k <= bias + THRESHOLD_MIN) {
        return THRESHOLD_MIN;
    }
    return k >= bias + THRESHOLD_MAX ? THRESHOLD_MAX : k - bias;
}

static void put_digit(struct buf *out, uint32_t digit) {
    buf_put_byte(out, (uint8_t)(digit < 26 ? 'a' + digit : '0' + digit - 26));
}

/* A number of variable length, least significant digit first. */
static void put_delta(struct buf *out, uint32_t delta, uint32_t bias) {
    for (uint32_t k = BASE;; k += BASE) {
        uint32_t t = threshold(k, bias);
        if (delta < t) {
            put_digit(out, delta);
            return;
        }
        put_digit(out, t + (delta - t) % (BASE - t));
        delta = (delta - t) / (BASE - t);
    }
}

/* The smallest code point of the label that is not below `from`. */
static uint32_t next_code_point(const uint32_t *label, size_t count, uint32_t from) {
    uint32_t next = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        if (label[i] >= from && label[i] < next) {
            next = label[i];
        }
    }
    return next;
}

enum err punycode_encode(struct buf *out, const uint32_t *label, size_t count) {
    size_t basic_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (label[i] < INITIAL_CODE_POINT) {
            buf_put_byte(out, (uint8_t)label[i]);
            basic_count++;
        }
    }
    if (basic_count > 0) {
        buf_put_byte(out, '-');
    }
    uint32_t code_point = INITIAL_CODE_POINT;
    uint32_t delta = 0;
    uint32_t bias = INITIAL_BIAS;
    for (size_t handled = basic_count; handled < count;) {
        uint32_t next = next_code_point(label, count, code_point);
        if ((uint64_t)delta + (uint64_t)(next - code_point) * (handled + 1) > UINT32_MAX - count) {
            return ERR_INVALID;
        }
        delta += (next - code_point) * (uint32_t)(handled + 1);
        code_point = next;
        for (size_t i = 0; i < count; i++) {
            if (label[i] < code_point) {
                delta++;
            } else if (label[i] == code_point) {
                put_delta(out, delta, bias);
                bias = adapt_bias(delta, handled + 1, handled == basic_count);
                delta = 0;
                handled++;
            }
        }
        delta++;
        code_point++;
    }
    return out->err;
}

static uint32_t digit_value(uint8_t byte) {
    if (byte_is_digit(byte)) {
        return byte - '0' + 26u;
    }
    return byte_is_alpha(byte) ? byte_lower(byte) - 'a' : BASE;
}

/* Cut one number off *text. */
static bool take_delta(struct bytes *text, uint32_t bias, uint32_t *ret_delta) {
    uint64_t delta = 0;
    uint64_t weight = 1;
    for (uint32_t k = BASE; text->size > 0; k += BASE) {
        uint32_t digit = digit_value(text->data[0]);
        *text = bytes_skip(*text, 1);
        delta += digit * weight;
        if (digit == BASE || delta > INT32_MAX) {
            return false;
        }
        uint32_t t = threshold(k, bias);
        if (digit < t) {
            *ret_delta = (uint32_t)delta;
            return true;
        }
        weight *= BASE - t;
        if (weight > INT32_MAX) {
            return false;
        }
    }
    return false;
}

/* What stands before the last '-' is ASCII as it is; the rest are deltas. */
static bool take_basic(struct bytes *text, uint32_t *label, size_t *ret_count) {
    size_t basic_count = text->size;
    while (basic_count > 0 && text->data[basic_count - 1] != '-') {
        basic_count--;
    }
    if (basic_count == 0) {
        *ret_count = 0;
        return true;
    }
    basic_count--;
    for (size_t i = 0; i < basic_count; i++) {
        if (text->data[i] >= INITIAL_CODE_POINT) {
            return false;
        }
        label[i] = text->data[i];
    }
    *text = bytes_skip(*text, basic_count + 1);
    *ret_count = basic_count;
    return true;
}

enum err punycode_decode(struct bytes text, uint32_t *label, size_t *ret_count) {
    size_t count;
    if (!take_basic(&text, label, &count)) {
        return ERR_INVALID;
    }
    uint64_t code_point = INITIAL_CODE_POINT;
    uint64_t position = 0;
    uint32_t bias = INITIAL_BIAS;
    bool is_first = true;
    while (text.size > 0) {
        uint32_t delta;
        if (!take_delta(&text, bias, &delta)) {
            return ERR_INVALID;
        }
        position += delta;
        code_point += position / (count + 1);
        position %= count + 1;
        if (code_point > CODE_POINT_MAX || (code_point >= 0xd800 && code_point <= 0xdfff)) {
            return ERR_INVALID;
        }
        memmove(label + position + 1, label + position, (count - position) * sizeof *label);
        label[position] = (uint32_t)code_point;
        count++;
        position++;
        bias = adapt_bias(delta, count, is_first);
        is_first = false;
    }
    *ret_count = count;
    return ERR_OK;
}
