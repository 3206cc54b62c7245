#include "crawl/rules/pattern_posix.h"

/* The larger bound of "{n}", "{n,}" or "{n,m}" behind the brace; 1 if it is something else. *ret_end: behind
 * the closing brace, or `at` if it is no repetition. */
static uint64_t posix_repetitions(struct bytes text, size_t at, size_t *ret_end) {
    enum { LARGE = 1 << 20 };
    uint64_t largest = 0;
    uint64_t bound = 0;
    size_t i = at;
    *ret_end = at;
    while (i < text.size && (byte_is_digit(text.data[i]) || (text.data[i] == ',' && i > at))) {
        bound = text.data[i] == ',' ? 0 : bound * 10 + (uint64_t)(text.data[i] - '0');
        bound = bound < LARGE ? bound : LARGE;
        largest = bound > largest ? bound : largest;
        i++;
    }
    if (i > at && i < text.size && text.data[i] == '}') {
        *ret_end = i + 1;
    }
    return largest > 1 ? largest : 1;
}

/* A bracket expression that begins at `at`, with its '\' doubled. Returns where it ends; where the text does
 * if it has no end, which the compiler then says. */
static size_t posix_put_brackets(struct bytes text, size_t at, struct buf *out) {
    size_t i = at;
    buf_put_byte(out, text.data[i++]);
    if (i < text.size && text.data[i] == '^') {
        buf_put_byte(out, text.data[i++]);
    }
    bool is_first = true;
    while (i < text.size && (text.data[i] != ']' || is_first)) {
        uint8_t byte = text.data[i];
        uint8_t kind = i + 1 < text.size ? text.data[i + 1] : 0;
        if (byte == '[' && (kind == ':' || kind == '.' || kind == '=')) { /* [:alpha:] */
            size_t end = i + 2;
            while (end + 1 < text.size && !(text.data[end] == kind && text.data[end + 1] == ']')) {
                end++;
            }
            end = end + 2 < text.size ? end + 2 : text.size;
            buf_put(out, bytes_slice(text, i, end));
            i = end;
        } else {
            if (byte == '\\' || byte == '[') { /* which PCRE2 may take for a sign */
                buf_put_byte(out, '\\');
            }
            buf_put_byte(out, byte);
            i++;
        }
        is_first = false;
    }
    if (i < text.size) {
        buf_put_byte(out, text.data[i++]);
    }
    return i;
}

/* What follows a '\'. */
static enum err posix_put_escape(uint8_t byte, size_t at, struct buf *out, struct err_detail *detail) {
    if (byte_is_digit(byte) && byte != '0') {
        return err_set_at(detail, ERR_INVALID, at, "back references are not supported");
    }
    switch (byte) {
    case '<':
        buf_put_string(out, "\\b(?=\\w)");
        break;
    case '>':
        buf_put_string(out, "\\b(?<=\\w)");
        break;
    case '`':
        buf_put_string(out, "\\A");
        break;
    case '\'':
        buf_put_string(out, "\\z");
        break;
    case 'w':
    case 'W':
    case 's':
    case 'S':
    case 'b':
    case 'B':
        buf_put_byte(out, '\\');
        buf_put_byte(out, byte);
        break;
    default:
        if (!byte_is_alnum(byte)) {
            buf_put_byte(out, '\\');
        }
        buf_put_byte(out, byte);
    }
    return ERR_OK;
}

/* A sign that repeats what is before it: where it ends, or `at` if it is none. *product grows by its bound.
 */
static size_t posix_repetition_end(struct bytes text, size_t at, uint64_t *product) {
    uint8_t byte = text.data[at];
    if (byte == '*' || byte == '+' || byte == '?') {
        return at + 1;
    }
    if (byte != '{') {
        return at;
    }
    size_t end;
    uint64_t bound = posix_repetitions(text, at + 1, &end);
    if (end == at + 1) {
        return at; /* a brace */
    }
    *product *= bound;
    return end;
}

enum err pattern_posix_put(struct bytes text, struct buf *out, struct err_detail *detail) {
    uint64_t product = 1;
    bool is_repeated = false; /* what was put last */
    size_t i = 0;
    while (i < text.size) {
        uint8_t byte = text.data[i];
        size_t end = posix_repetition_end(text, i, &product);
        if (product > PATTERN_POSIX_REPETITIONS_MAX) {
            return err_set_at(detail, ERR_INVALID, i, "its repetitions are more than %d together",
                              PATTERN_POSIX_REPETITIONS_MAX);
        }
        if (end > i) {
            if (is_repeated) {
                return err_set_at(detail, ERR_INVALID, i, "one repetition right behind another");
            }
            if (i > 0 && text.data[i - 1] == '(' && (i < 2 || text.data[i - 2] != '\\')) {
                return err_set_at(detail, ERR_INVALID, i, "a parenthesis that begins with a repetition");
            }
            buf_put(out, bytes_slice(text, i, end));
            is_repeated = true;
            i = end;
            continue;
        }
        is_repeated = false;
        if (byte == '[') {
            i = posix_put_brackets(text, i, out);
        } else if (byte == '\\' && i + 1 < text.size) {
            enum err err = posix_put_escape(text.data[i + 1], i, out, detail);
            if (err != ERR_OK) {
                return err;
            }
            i += 2;
        } else {
            if (byte == '{') {
                buf_put_byte(out, '\\');
            }
            buf_put_byte(out, byte);
            i++;
        }
    }
    return out->err == ERR_OK ? ERR_OK : err_set(detail, out->err, "%s", err_text(out->err));
}
