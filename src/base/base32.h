/*
 * base32 - RFC 4648 with the upper-case alphabet, as the digests of WARC files are written (sha1:ABC…).
 *
 * Read in either case, with or without the padding, but only in the one form that encoding gives: unused
 * bits must be zero.
 */
#ifndef MNEMON_BASE_BASE32_H
#define MNEMON_BASE_BASE32_H

#include "base/bytes.h"

/* Digits for size bytes, without padding. */
static inline size_t base32_length(size_t size) {
    return (size * 8 + 4) / 5;
}

/* Writes base32_length() digits, no padding, and a zero byte. Returns out. */
char *base32_encode(struct bytes bytes, char *out);

/* Exactly size bytes. False otherwise; out may then hold part of it. */
bool base32_decode(struct bytes text, void *out, size_t size);

#endif
