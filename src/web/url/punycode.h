/*
 * punycode - RFC 3492: code points to and from the ASCII form of a domain label, without its "xn--".
 *
 * Written here because libidn2 2.3.3 keeps its own behind limits (63 bytes a label) that browsers do not
 * have.
 */
#ifndef MNEMON_WEB_URL_PUNYCODE_H
#define MNEMON_WEB_URL_PUNYCODE_H

#include "base/buf.h"

/* Append the ASCII form. ERR_INVALID if the label is so long that its deltas overflow 32 bits. */
MUST_CHECK enum err punycode_encode(struct buf *out, const uint32_t *label, size_t count);

/*
 * Decode into label[], which has room for text.size code points: no text yields more. ERR_INVALID for what
 * is not punycode; digits are read in either case.
 */
MUST_CHECK enum err punycode_decode(struct bytes text, uint32_t *label, size_t *ret_count);

#endif
