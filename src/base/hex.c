#include "base/hex.h"

char *hex_encode(struct bytes bytes, char *out) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes.size; i++) {
        out[2 * i] = digits[bytes.data[i] >> 4];
        out[2 * i + 1] = digits[bytes.data[i] & 15];
    }
    out[2 * bytes.size] = '\0';
    return out;
}

int hex_digit(uint8_t byte) {
    if (byte_is_digit(byte)) {
        return byte - '0';
    }
    uint8_t lower = byte_lower(byte);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

bool hex_decode(struct bytes text, void *out, size_t size) {
    if (text.size != 2 * size) {
        return false;
    }
    uint8_t *bytes = out;
    for (size_t i = 0; i < size; i++) {
        int high = hex_digit(text.data[2 * i]);
        int low = hex_digit(text.data[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}
