/*
 * ipv6 - IPv6 addresses of URLs, without their brackets.
 *
 * Rules: https://url.spec.whatwg.org/#concept-ipv6-parser; written as RFC 5952 says: lower case, no leading
 * zeros, the first longest run of two or more zero pieces becomes "::".
 */
#ifndef MNEMON_WEB_URL_IPV6_H
#define MNEMON_WEB_URL_IPV6_H

#include "base/buf.h"

enum { IPV6_PIECES = 8 };

/* The eight pieces. On failure *ret_reason says why in English. */
MUST_CHECK enum err ipv6_parse(struct bytes text, uint16_t ret_pieces[IPV6_PIECES], const char **ret_reason);

/* Append "2001:db8::1". */
enum err ipv6_put(struct buf *out, const uint16_t pieces[IPV6_PIECES]);

#endif
