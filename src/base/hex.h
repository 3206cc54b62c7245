/* hex - bytes as lower-case hexadecimal digits; read in either case. */
#ifndef MNEMON_BASE_HEX_H
#define MNEMON_BASE_HEX_H

#include "base/bytes.h"

/* Writes 2 * bytes.size digits and a zero byte. Returns out. */
char *hex_encode(struct bytes bytes, char *out);

/* Exactly size bytes from exactly 2 * size digits. False otherwise; out may then hold part of it. */
bool hex_decode(struct bytes text, void *out, size_t size);

/* 0 to 15, or -1. */
int hex_digit(uint8_t byte);

#endif
