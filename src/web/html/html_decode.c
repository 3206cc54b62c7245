#include "web/html/html_decode.h"

#include "base/hex.h"
#include "base/utf8.h"
#include "web/html/entities.h"

enum { CODE_POINT_MAX = 0x10ffff };

/* Bytes that decoding may have to change, by the flags that make it so. */
enum { LINE_END = 16 };
static const uint8_t changes[256] = {
    ['\0'] = HTML_DECODE_NUL,
    ['\r'] = LINE_END,
    ['&'] = HTML_DECODE_REFERENCES | HTML_DECODE_VALUE,
    ['A' ... 'Z'] = HTML_DECODE_LOWER,
};

static size_t find_change(struct bytes text, size_t from, unsigned decoding) {
    while (from < text.size && (changes[text.data[from]] & decoding) == 0) {
        from++;
    }
    return from;
}

bool html_is_plain(struct bytes text, unsigned decoding) {
    unsigned flags = (decoding & ~(unsigned)HTML_DECODE_LOWER) | LINE_END;
    return find_change(text, 0, flags) == text.size;
}

/* What numbers from 0x80 to 0x9f mean: windows-1252; 0 if the number stays. */
static const uint16_t c1_replacements[32] = {
    0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017d, 0,      0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178,
};

static uint32_t code_point_of_number(uint32_t number) {
    if (number == 0 || number > CODE_POINT_MAX || (number >= 0xd800 && number <= 0xdfff)) {
        return UTF8_REPLACEMENT;
    }
    if (number >= 0x80 && number <= 0x9f && c1_replacements[number - 0x80] != 0) {
        return c1_replacements[number - 0x80];
    }
    return number;
}

/* text starts with "&#". Returns how much of it is the reference, 0 if there is none. */
static size_t decode_put_number(struct buf *out, struct bytes text) {
    bool is_hex = text.size > 2 && byte_lower(text.data[2]) == 'x';
    uint32_t base = is_hex ? 16 : 10;
    size_t from = is_hex ? 3 : 2;
    size_t at = from;
    uint32_t number = 0;
    for (int digit; at < text.size && (digit = hex_digit(text.data[at])) >= 0 && digit < (int)base; at++) {
        number = number > CODE_POINT_MAX ? number : number * base + (uint32_t)digit;
    }
    if (at == from || at > HTML_REFERENCE_SIZE_MAX) {
        return 0;
    }
    uint8_t encoded[UTF8_LENGTH_MAX];
    size_t size = utf8_encode(code_point_of_number(number), encoded);
    buf_put(out, bytes_of(encoded, size));
    return at + (at < text.size && text.data[at] == ';' ? 1 : 0);
}

/* text starts with '&'. Returns how much of it is the reference, 0 if there is none. */
static size_t put_reference(struct buf *out, struct bytes text, unsigned decoding) {
    if (text.size > 1 && text.data[1] == '#') {
        return decode_put_number(out, text);
    }
    struct bytes value;
    size_t size = entities_find(bytes_skip(text, 1), &value);
    if (size == 0) {
        return 0;
    }
    size++; /* the '&' */
    bool is_bare = text.data[size - 1] != ';';
    bool goes_on = size < text.size && (text.data[size] == '=' || byte_is_alnum(text.data[size]));
    if (is_bare && goes_on && (decoding & HTML_DECODE_VALUE) != 0) {
        return 0; /* "?a=1&copy=2" in a value */
    }
    buf_put(out, value);
    return size;
}

/* The byte at text[at] may have to change. Returns how much of the text was dealt with. */
static size_t put_change(struct buf *out, struct bytes text, size_t at, unsigned decoding) {
    uint8_t byte = text.data[at];
    if (byte == '\r') {
        buf_put_byte(out, '\n');
        return at + 1 < text.size && text.data[at + 1] == '\n' ? 2 : 1;
    }
    if (byte == '\0') {
        buf_put(out, BYTES("\xef\xbf\xbd"));
        return 1;
    }
    size_t size = byte == '&' ? put_reference(out, bytes_skip(text, at), decoding) : 0;
    if (size == 0) {
        buf_put_byte(out, byte_lower(byte));
        size = 1;
    }
    return size;
}

enum err html_decode(struct buf *out, struct bytes text, unsigned decoding) {
    decoding |= LINE_END;
    for (size_t at = 0; at < text.size;) {
        size_t change = find_change(text, at, decoding);
        buf_put(out, bytes_slice(text, at, change));
        at = change;
        if (at < text.size) {
            at += put_change(out, text, at, decoding);
        }
    }
    return out->err;
}
