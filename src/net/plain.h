/*
 * plain - the three datagrams that are not sealed, since one side does not know the other's key or version.
 *
 *      REFUSE   10 | reason (1) | echo (11) | newest version we speak (1) | our time, us (8)      22 bytes
 *      WHO      11 | cookie (16) | zeros (47)                                                     64 bytes
 *      HERE     12 | cookie (16) | key (32)                                                       49 bytes
 *
 * None is larger than what it answers: a REFUSE answers at least 60 bytes, a HERE a WHO. REFUSE has this
 * form in every version; its echo is bytes 33 to 43 of what it refuses. Nobody signs it: it changes nothing
 * but what is shown to people. The codec only; pure.
 */
#ifndef MNEMON_NET_PLAIN_H
#define MNEMON_NET_PLAIN_H

#include "base/wire.h"
#include "net/contacts.h"
#include "net/seal.h"

enum plain_kind { PLAIN_REFUSE = 0, PLAIN_WHO = 1, PLAIN_HERE = 2 };

enum { PLAIN_REFUSE_SIZE = 22, PLAIN_WHO_SIZE = 64, PLAIN_HERE_SIZE = 49, PLAIN_SIZE_MAX = 64 };

/* The values are on the wire. */
enum plain_reason { PLAIN_REASON_VERSION = 1, PLAIN_REASON_CLOCK = 2 };

struct plain_refuse {
    uint8_t reason; /* enum plain_reason; others come from later versions */
    uint8_t echo[SEAL_ECHO_SIZE];
    uint8_t version;
    uint64_t time_us;
};

struct plain_who {
    uint8_t cookie[CONTACT_COOKIE_SIZE];
};

struct plain_here {
    uint8_t cookie[CONTACT_COOKIE_SIZE];
    uint8_t key[PEER_KEY_SIZE];
};

/* out has room for PLAIN_SIZE_MAX; what was written is returned. */
struct bytes plain_write_refuse(const struct plain_refuse *refuse, uint8_t *out);
struct bytes plain_write_who(const struct plain_who *who, uint8_t *out);
struct bytes plain_write_here(const struct plain_here *here, uint8_t *out);

/* False if it is not exactly one of them. */
bool plain_read_refuse(struct bytes datagram, struct plain_refuse *ret_refuse);
bool plain_read_who(struct bytes datagram, struct plain_who *ret_who);
bool plain_read_here(struct bytes datagram, struct plain_here *ret_here);

/* "clock", "version", or "unknown". */
const char *plain_reason_name(uint8_t reason);

#endif
