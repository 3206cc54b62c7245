#include "base/utf8.h"

/* How many bytes a lead byte announces and which second bytes may follow it (table 3-7 of Unicode). */
struct lead {
    uint8_t length;
    uint8_t second_min;
    uint8_t second_max;
};

static struct lead lead_of(uint8_t byte) {
    if (byte < 0x80) {
        return (struct lead){1, 0, 0};
    }
    if (byte >= 0xc2 && byte <= 0xdf) {
        return (struct lead){2, 0x80, 0xbf};
    }
    if (byte >= 0xe0 && byte <= 0xef) {
        return (struct lead){3, byte == 0xe0 ? 0xa0 : 0x80, byte == 0xed ? 0x9f : 0xbf};
    }
    if (byte >= 0xf0 && byte <= 0xf4) {
        return (struct lead){4, byte == 0xf0 ? 0x90 : 0x80, byte == 0xf4 ? 0x8f : 0xbf};
    }
    return (struct lead){0, 0, 0};
}

/* Bytes of the sequence that are well-formed; *ret_whole says whether it is complete. */
static size_t utf8_scan(struct bytes text, bool *ret_whole) {
    *ret_whole = false;
    if (text.size == 0) {
        return 0;
    }
    struct lead lead = lead_of(text.data[0]);
    if (lead.length <= 1) {
        *ret_whole = lead.length == 1;
        return 1;
    }
    size_t i = 1;
    uint8_t min = lead.second_min;
    uint8_t max = lead.second_max;
    while (i < lead.length && i < text.size && text.data[i] >= min && text.data[i] <= max) {
        min = 0x80;
        max = 0xbf;
        i++;
    }
    *ret_whole = i == lead.length;
    return i;
}

size_t utf8_length(struct bytes text) {
    bool whole;
    size_t length = utf8_scan(text, &whole);
    return whole ? length : 0;
}

uint32_t utf8_decode(struct bytes text, size_t *ret_length) {
    ASSERT(text.size > 0);
    bool whole;
    *ret_length = utf8_scan(text, &whole);
    if (!whole) {
        return UTF8_REPLACEMENT;
    }
    const uint8_t *byte = text.data;
    switch (*ret_length) {
    case 1:
        return byte[0];
    case 2:
        return (byte[0] & 0x1fu) << 6 | (byte[1] & 0x3fu);
    case 3:
        return (byte[0] & 0x0fu) << 12 | (byte[1] & 0x3fu) << 6 | (byte[2] & 0x3fu);
    default:
        return (byte[0] & 0x07u) << 18 | (byte[1] & 0x3fu) << 12 | (byte[2] & 0x3fu) << 6 | (byte[3] & 0x3fu);
    }
}

size_t utf8_encode(uint32_t code_point, uint8_t out[UTF8_LENGTH_MAX]) {
    ASSERT(code_point <= 0x10ffff && (code_point < 0xd800 || code_point > 0xdfff));
    if (code_point < 0x80) {
        out[0] = (uint8_t)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        out[0] = (uint8_t)(0xc0 | code_point >> 6);
        out[1] = (uint8_t)(0x80 | (code_point & 0x3f));
        return 2;
    }
    if (code_point < 0x10000) {
        out[0] = (uint8_t)(0xe0 | code_point >> 12);
        out[1] = (uint8_t)(0x80 | (code_point >> 6 & 0x3f));
        out[2] = (uint8_t)(0x80 | (code_point & 0x3f));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | code_point >> 18);
    out[1] = (uint8_t)(0x80 | (code_point >> 12 & 0x3f));
    out[2] = (uint8_t)(0x80 | (code_point >> 6 & 0x3f));
    out[3] = (uint8_t)(0x80 | (code_point & 0x3f));
    return 4;
}

bool utf8_is_valid(struct bytes text) {
    while (text.size > 0) {
        size_t length = utf8_length(text);
        if (length == 0) {
            return false;
        }
        text = bytes_skip(text, length);
    }
    return true;
}
