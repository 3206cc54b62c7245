/*
 * reach - which addresses anybody on the Internet may be contacted at.
 *
 * An archive fetches what strangers' pages name. So everything that means "here", "this network" or nothing
 * at all is refused: the entries of the IANA special-purpose address registries that are not globally
 * reachable, multicast, what is reserved, and IPv6 addresses that only wrap such an IPv4 address (mapped,
 * NAT64, 6to4). Of IPv6, only 2000::/3 is allocated for the public at all.
 */
#ifndef MNEMON_NET_REACH_H
#define MNEMON_NET_REACH_H

#include "base/address.h"

/* NULL if the address is a public one, else what it is: "a loopback address". The port does not count. */
const char *reach_refusal(const struct address *address);

#endif
