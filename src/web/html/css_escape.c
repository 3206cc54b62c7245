#include "web/html/css_escape.h"

#include "base/hex.h"
#include "base/utf8.h"
#include "web/html/css.h"

enum { DIGITS_MAX = 6 };

enum { NAME = 1, SPACE = 2, NEWLINE = 4 };

/* A zero byte counts as U+FFFD, which may be in names like all that is not ASCII. */
static const uint8_t classes[256] = {
    ['\0'] = NAME,
    ['\t'] = SPACE,
    ['\n'] = SPACE | NEWLINE,
    ['\f'] = SPACE | NEWLINE,
    ['\r'] = SPACE | NEWLINE,
    [' '] = SPACE,
    ['-'] = NAME,
    ['_'] = NAME,
    ['0' ... '9'] = NAME,
    ['A' ... 'Z'] = NAME,
    ['a' ... 'z'] = NAME,
    [0x80 ... 0xff] = NAME,
};

bool css_is_newline(uint8_t byte) {
    return (classes[byte] & NEWLINE) != 0;
}

bool css_is_space(uint8_t byte) {
    return (classes[byte] & SPACE) != 0;
}

bool css_is_name(uint8_t byte) {
    return (classes[byte] & NAME) != 0;
}

/* Line ends are one character, CR LF too. */
static size_t space_size(struct bytes text, bool is_last) {
    if (text.size == 0) {
        return is_last ? 0 : CSS_INCOMPLETE;
    }
    if (text.data[0] == '\r') {
        if (text.size == 1) {
            return is_last ? 1 : CSS_INCOMPLETE;
        }
        return text.data[1] == '\n' ? 2 : 1;
    }
    return css_is_space(text.data[0]) ? 1 : 0;
}

size_t css_escape_size(struct bytes text, bool is_last) {
    if (text.size == 1) {
        return is_last ? 1 : CSS_INCOMPLETE;
    }
    if (css_is_newline(text.data[1])) {
        return 0;
    }
    size_t size = 1;
    while (size < text.size && size <= DIGITS_MAX && hex_digit(text.data[size]) >= 0) {
        size++;
    }
    if (size == 1) {
        return 2; /* any other character; the rest of one that is not ASCII is a name by itself */
    }
    if (size == text.size && size <= DIGITS_MAX) {
        return is_last ? size : CSS_INCOMPLETE;
    }
    size_t space = space_size(bytes_skip(text, size), is_last);
    return space == CSS_INCOMPLETE ? CSS_INCOMPLETE : size + space;
}

size_t css_name_size(struct bytes text, bool is_last) {
    size_t at = 0;
    for (;;) {
        while (at < text.size && css_is_name(text.data[at])) {
            at++;
        }
        if (at == text.size) {
            return is_last ? at : CSS_INCOMPLETE;
        }
        if (text.data[at] != '\\') {
            return at;
        }
        size_t escape = css_escape_size(bytes_skip(text, at), is_last);
        if (escape == 0 || escape == CSS_INCOMPLETE) {
            return escape == 0 ? at : CSS_INCOMPLETE;
        }
        at += escape;
    }
}

/* text starts with '\'. Returns how much of it was dealt with. */
static size_t put_escape(struct buf *out, struct bytes text) {
    size_t size = css_escape_size(text, true);
    if (size == 0) {
        return 1 + space_size(bytes_skip(text, 1), true); /* a line of a string goes on in the next */
    }
    if (size == 1) {
        return 1; /* the end of the input */
    }
    if (hex_digit(text.data[1]) < 0) {
        buf_put(out, text.data[1] == '\0' ? BYTES("\xef\xbf\xbd") : bytes_slice(text, 1, 2));
        return 2;
    }
    uint32_t code_point = 0;
    for (size_t i = 1; i < size && hex_digit(text.data[i]) >= 0; i++) {
        code_point = code_point << 4 | (uint32_t)hex_digit(text.data[i]);
    }
    if (code_point == 0 || code_point > 0x10ffff || (code_point >= 0xd800 && code_point <= 0xdfff)) {
        code_point = UTF8_REPLACEMENT;
    }
    uint8_t encoded[UTF8_LENGTH_MAX];
    size_t encoded_size = utf8_encode(code_point, encoded);
    buf_put(out, bytes_of(encoded, encoded_size));
    return size;
}

enum err css_decode(struct buf *out, struct bytes value) {
    for (size_t at = 0; at < value.size;) {
        size_t end = at;
        while (end < value.size && value.data[end] != '\\' && value.data[end] != '\0') {
            end++;
        }
        buf_put(out, bytes_slice(value, at, end));
        at = end;
        if (at < value.size && value.data[at] == '\0') {
            buf_put(out, BYTES("\xef\xbf\xbd"));
            at++;
        } else if (at < value.size) {
            at += put_escape(out, bytes_skip(value, at));
        }
    }
    return out->err;
}

/* The ASCII character at the start of the name, in lower case, or 0 where it is none. */
static uint8_t character_at(struct bytes name, size_t *ret_size) {
    *ret_size = 1;
    if (name.data[0] != '\\') {
        return byte_lower(name.data[0]);
    }
    *ret_size = css_escape_size(name, true);
    if (*ret_size < 2 || hex_digit(name.data[1]) < 0) {
        return *ret_size < 2 ? 0 : byte_lower(name.data[1]);
    }
    uint32_t code_point = 0;
    for (size_t i = 1; i < *ret_size && hex_digit(name.data[i]) >= 0; i++) {
        code_point = code_point << 4 | (uint32_t)hex_digit(name.data[i]);
    }
    return code_point < 0x80 ? byte_lower((uint8_t)code_point) : 0;
}

bool css_name_equals(struct bytes name, struct bytes word) {
    while (name.size > 0 && word.size > 0) {
        size_t size;
        if (character_at(name, &size) != word.data[0]) {
            return false;
        }
        name = bytes_skip(name, size);
        word = bytes_skip(word, 1);
    }
    return name.size == 0 && word.size == 0;
}
