/*
 * address - where a peer is reached: an IP address and a port.
 *
 * IPv4 is kept in its mapped IPv6 form (::ffff:a.b.c.d), so that equal peers compare equal byte by byte.
 */
#ifndef MNEMON_BASE_ADDRESS_H
#define MNEMON_BASE_ADDRESS_H

#include "base/bytes.h"

enum { ADDRESS_TEXT_SIZE_MAX = 56 }; /* "[" 45 of IPv6 "]:65535" and a zero byte, rounded up */

struct address {
    uint8_t ip[16]; /* network order */
    uint16_t port;  /* host order */
};

struct address address_ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint16_t port);

bool address_is_ipv4(const struct address *address);
bool address_is_loopback(const struct address *address); /* 127.0.0.0/8, ::1: only this machine */

/* Can a peer be there: has it a port, and is it none of the addresses of many or of nobody? Whether we may
 * talk to it, others know. */
bool address_is_possible(const struct address *address);
bool address_equal(const struct address *a, const struct address *b);

/*
 * "127.0.0.2:7070", "[::1]:7070"; with default_port "127.0.0.2", "[::1]", "::1". Numbers only: names are
 * for DNS. False if it is none of these, *ret_address untouched.
 */
bool address_parse(struct bytes text, uint16_t default_port, struct address *ret_address);

/* With the port, as address_parse() reads it, ended by a zero byte. Returns out. */
const char *address_format(const struct address *address, char out[ADDRESS_TEXT_SIZE_MAX]);

#endif
