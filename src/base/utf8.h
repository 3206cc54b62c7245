/*
 * utf8 - decoding and encoding of code points, strict as RFC 3629: no surrogates, no overlong forms,
 * nothing above U+10FFFF.
 */
#ifndef MNEMON_BASE_UTF8_H
#define MNEMON_BASE_UTF8_H

#include "base/bytes.h"

enum { UTF8_REPLACEMENT = 0xfffd, UTF8_LENGTH_MAX = 4 };

/* Length of the well-formed sequence at the start of the slice, 1 to 4; 0 if there is none. */
size_t utf8_length(struct bytes text);

/*
 * The code point at the start of the slice, which must not be empty, and how many bytes it took. What is
 * not UTF-8 gives UTF8_REPLACEMENT; the length is then that of the longest ill-formed start, as the
 * WHATWG decoder takes it.
 */
uint32_t utf8_decode(struct bytes text, size_t *ret_length);

/* Write the code point, at most UTF8_LENGTH_MAX bytes, and return its length. */
size_t utf8_encode(uint32_t code_point, uint8_t out[UTF8_LENGTH_MAX]);

bool utf8_is_valid(struct bytes text);

#endif
