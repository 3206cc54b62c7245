/*
 * upnp_text - what a router says by UPnP, read: answers to a search, its description, answers to actions.
 *
 * Texts in, structs out; no I/O. The XML is parsed by libminiupnpc; here is what may be done with what comes
 * of it: no host but the router's own is ever named, and nothing goes back to it that could end a header or
 * an element (tests/fuzz/upnp.c).
 */
#ifndef MNEMON_NET_UPNP_TEXT_H
#define MNEMON_NET_UPNP_TEXT_H

#include "base/address.h"

enum {
    UPNP_TEXT_SIZE_MAX = 64 << 10,
    UPNP_URL_SIZE_MAX = 256,
    UPNP_SERVICE_SIZE_MAX = 128,
    UPNP_SERVICES_MAX = 2, /* one for each kind of line, of which one is connected */
    UPNP_VALUE_SIZE_MAX = 64,
};

struct upnp_service {
    char url[UPNP_URL_SIZE_MAX]; /* of control */
    char name[UPNP_SERVICE_SIZE_MAX];
};

struct upnp {
    struct upnp_service services[UPNP_SERVICES_MAX];
    size_t services_count;
};

/* The LOCATION of an answer to a search. False: it is none, or not at the router's address. */
bool upnp_read_answer(struct bytes datagram, const struct address *gateway, char ret_url[UPNP_URL_SIZE_MAX]);

/* The services of a description that was fetched from there. False: none that could map a port. */
bool upnp_read_description(struct bytes text, const struct address *gateway, const char *url,
                           struct upnp *ret_upnp);

/* The value of an element of an answer to an action. False: there is none, or it is too long. */
bool upnp_read_value(struct bytes text, const char *name, char ret_value[UPNP_VALUE_SIZE_MAX]);

/* Whatever the ports are. */
bool upnp_same_host(const struct address *a, const struct address *b);

#endif
