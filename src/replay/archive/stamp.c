#include "replay/archive/stamp.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/hex.h"

const char *stamp_format(struct stamp stamp, char out[STAMP_SIZE]) {
    utc_format_digits(stamp.time_us, out);
    if (stamp.id != 0) {
        snprintf(out + UTC_DIGITS_SIZE - 1, STAMP_SIZE - (UTC_DIGITS_SIZE - 1), "~%016" PRIx64, stamp.id);
    }
    return out;
}

uint64_t stamp_take_id(struct bytes *text) {
    uint64_t id = 0;
    if (text->size <= STAMP_ID_DIGITS || text->data[text->size - STAMP_ID_DIGITS - 1] != '~') {
        return 0;
    }
    for (size_t i = text->size - STAMP_ID_DIGITS; i < text->size; i++) {
        int digit = hex_digit(text->data[i]);
        if (digit < 0) {
            return 0;
        }
        id = id << 4 | (uint64_t)digit;
    }
    *text = bytes_slice(*text, 0, text->size - STAMP_ID_DIGITS - 1);
    return id;
}
