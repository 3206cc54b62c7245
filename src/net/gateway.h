/*
 * gateway - the router of this machine: where packets go that are for nobody near.
 *
 * IPv4 only: of IPv6 there is nothing to be translated. From the table of the kernel, /proc/self/net/route.
 */
#ifndef MNEMON_NET_GATEWAY_H
#define MNEMON_NET_GATEWAY_H

#include "base/address.h"

/* The default route with the lowest metric in a table as the kernel writes it. False: it has none with a
 * router. Port 0. */
bool gateway_parse(struct bytes table, struct address *ret_gateway);

/* Likewise, of this machine. */
bool gateway_find(struct address *ret_gateway);

/* The address that this machine has towards another one. No packet leaves. False: there is no way. */
bool gateway_own_address(const struct address *to, struct address *ret_own);

#endif
