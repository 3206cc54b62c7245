/*
 * percent - percent-encoding: which bytes each part of a URL must escape, encoding and decoding.
 *
 * The sets are those of the URL standard (https://url.spec.whatwg.org/#percent-encoded-bytes), one bit
 * each in a table of 256 bytes, so that "is there anything to do in this text?" is one lookup a byte.
 */
#ifndef MNEMON_WEB_URL_PERCENT_H
#define MNEMON_WEB_URL_PERCENT_H

#include "base/buf.h"

enum percent_set {
    PERCENT_CONTROL = 1 << 0, /* C0 controls, DEL and whatever is not ASCII: part of every set below */
    PERCENT_FRAGMENT = 1 << 1,
    PERCENT_QUERY = 1 << 2,
    PERCENT_SPECIAL_QUERY = 1 << 3,
    PERCENT_PATH = 1 << 4,
    PERCENT_USERINFO = 1 << 5,
    PERCENT_NOT_HOST = 1 << 6,   /* the forbidden host code points */
    PERCENT_NOT_DOMAIN = 1 << 7, /* the forbidden domain code points */
};

extern const uint8_t percent_table[256];

static inline bool percent_in_set(uint8_t byte, unsigned sets) {
    return (percent_table[byte] & sets) != 0;
}

/* Index of the first byte that is in one of the sets, or text.size. */
static inline size_t percent_find(struct bytes text, unsigned sets) {
    size_t i = 0;
    while (i < text.size && !percent_in_set(text.data[i], sets)) {
        i++;
    }
    return i;
}

/*
 * Append the text with the bytes of the set escaped. Well-formed UTF-8 is escaped byte by byte, anything
 * else becomes U+FFFD first, as if the text had gone through the UTF-8 decoder.
 */
enum err percent_put(struct buf *out, struct bytes text, enum percent_set set);

/* Append one byte as %XX, capital digits. */
enum err percent_put_byte(struct buf *out, uint8_t byte);

/* Append the text with every %XX turned into its byte. A '%' without two hex digits stays. */
enum err percent_put_decoded(struct buf *out, struct bytes text);

/* The value of "%XX" at the start of the slice; false if there is none. */
bool percent_decode(struct bytes text, uint8_t *ret_byte);

#endif
