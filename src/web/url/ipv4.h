/*
 * ipv4 - IPv4 addresses as URLs write them: one to four numbers, decimal, octal (017) or hexadecimal
 * (0x0f), the last one filling all bytes that are left. Rules: https://url.spec.whatwg.org/#ipv4-parser
 */
#ifndef MNEMON_WEB_URL_IPV4_H
#define MNEMON_WEB_URL_IPV4_H

#include "base/buf.h"

/* Whether a domain must be an IPv4 address, because its last label is a number: "a.0x1." is, "1.a" is not. */
bool ipv4_ends_in_number(struct bytes domain);

/* The address, host byte order. On failure *ret_reason says why in English; both may not be NULL. */
MUST_CHECK enum err ipv4_parse(struct bytes text, uint32_t *ret_address, const char **ret_reason);

/* Append "127.0.0.1". */
enum err ipv4_put(struct buf *out, uint32_t address);

#endif
