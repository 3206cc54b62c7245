#include "web/url/percent.h"

#include "base/hex.h"
#include "base/utf8.h"

/* Names for the rows below; each includes the sets that the standard builds upon it. */
enum {
    HOST = PERCENT_NOT_HOST | PERCENT_NOT_DOMAIN,
    USERINFO = PERCENT_USERINFO,
    PATH = PERCENT_PATH | USERINFO,
    QUERY = PERCENT_QUERY | PERCENT_SPECIAL_QUERY | PATH,
    FRAGMENT = PERCENT_FRAGMENT,
    NOT_ASCII = PERCENT_CONTROL | FRAGMENT | QUERY,
    CONTROL = NOT_ASCII | PERCENT_NOT_DOMAIN,
};

const uint8_t percent_table[256] = {
    [0x00] = CONTROL | HOST,    [0x01 ... 0x08] = CONTROL,
    ['\t'] = CONTROL | HOST,    ['\n'] = CONTROL | HOST,
    [0x0b ... 0x0c] = CONTROL,  ['\r'] = CONTROL | HOST,
    [0x0e ... 0x1f] = CONTROL,  [' '] = FRAGMENT | QUERY | HOST,
    ['"'] = FRAGMENT | QUERY,   ['#'] = QUERY | HOST,
    ['%'] = PERCENT_NOT_DOMAIN, ['\''] = PERCENT_SPECIAL_QUERY,
    ['/'] = USERINFO | HOST,    [':'] = USERINFO | HOST,
    [';'] = USERINFO,           ['<'] = FRAGMENT | QUERY | HOST,
    ['='] = USERINFO,           ['>'] = FRAGMENT | QUERY | HOST,
    ['?'] = PATH | HOST,        ['@'] = USERINFO | HOST,
    ['['] = USERINFO | HOST,    ['\\'] = USERINFO | HOST,
    [']'] = USERINFO | HOST,    ['^'] = PATH | HOST,
    ['`'] = FRAGMENT | PATH,    ['{'] = PATH,
    ['|'] = USERINFO | HOST,    ['}'] = PATH,
    [0x7f] = CONTROL,           [0x80 ... 0xff] = NOT_ASCII,
};

enum err percent_put_byte(struct buf *out, uint8_t byte) {
    static const char digits[] = "0123456789ABCDEF";
    const char escape[] = {'%', digits[byte >> 4], digits[byte & 0x0f]};
    return buf_put(out, bytes_of(escape, sizeof escape));
}

/* The UTF-8 sequence at the start of the text, escaped; returns how many bytes of the text that was. */
static size_t put_sequence(struct buf *out, struct bytes text) {
    size_t length = utf8_length(text);
    if (length == 0) {
        buf_put(out, BYTES("%EF%BF%BD"));
        utf8_decode(text, &length);
        return length;
    }
    for (size_t i = 0; i < length; i++) {
        percent_put_byte(out, text.data[i]);
    }
    return length;
}

enum err percent_put(struct buf *out, struct bytes text, enum percent_set set) {
    while (text.size > 0) {
        size_t clean = percent_find(text, set);
        buf_put(out, bytes_slice(text, 0, clean));
        text = bytes_skip(text, clean);
        if (text.size > 0) {
            text = bytes_skip(text, put_sequence(out, text));
        }
    }
    return out->err;
}

bool percent_decode(struct bytes text, uint8_t *ret_byte) {
    if (text.size < 3 || text.data[0] != '%') {
        return false;
    }
    int high = hex_digit(text.data[1]);
    int low = hex_digit(text.data[2]);
    if (high < 0 || low < 0) {
        return false;
    }
    *ret_byte = (uint8_t)(high << 4 | low);
    return true;
}

enum err percent_put_decoded(struct buf *out, struct bytes text) {
    while (text.size > 0) {
        size_t clean = bytes_find_byte(text, '%');
        buf_put(out, bytes_slice(text, 0, clean));
        text = bytes_skip(text, clean);
        uint8_t byte = '%';
        if (text.size > 0) {
            text = bytes_skip(text, percent_decode(text, &byte) ? 3 : 1);
            buf_put_byte(out, byte);
        }
    }
    return out->err;
}
