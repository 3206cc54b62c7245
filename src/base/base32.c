#include "base/base32.h"

char *base32_encode(struct bytes bytes, char *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    uint32_t bits = 0;
    unsigned bits_count = 0;
    size_t length = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        bits = bits << 8 | bytes.data[i];
        bits_count += 8;
        while (bits_count >= 5) {
            bits_count -= 5;
            out[length++] = digits[bits >> bits_count & 31];
        }
    }
    if (bits_count > 0) {
        out[length++] = digits[bits << (5 - bits_count) & 31];
    }
    out[length] = '\0';
    return out;
}

static int digit_value(uint8_t byte) {
    if (byte_is_alpha(byte)) {
        return byte_lower(byte) - 'a';
    }
    return byte >= '2' && byte <= '7' ? byte - '2' + 26 : -1;
}

bool base32_decode(struct bytes text, void *out, size_t size) {
    size_t padding = 0;
    while (text.size > 0 && text.data[text.size - 1] == '=') {
        text.size--;
        padding++;
    }
    if (text.size != base32_length(size) || (padding > 0 && (text.size + padding) % 8 != 0) || padding > 6) {
        return false;
    }
    uint8_t *bytes = out;
    uint32_t bits = 0;
    unsigned bits_count = 0;
    for (size_t i = 0; i < text.size; i++) {
        int value = digit_value(text.data[i]);
        if (value < 0) {
            return false;
        }
        bits = bits << 5 | (uint32_t)value;
        bits_count += 5;
        if (bits_count >= 8) {
            bits_count -= 8;
            *bytes++ = (uint8_t)(bits >> bits_count);
        }
    }
    return (bits & ((1u << bits_count) - 1)) == 0;
}
