/* socket_address - a struct address as the operating system wants it, and back. */
#ifndef MNEMON_NET_SOCKET_ADDRESS_H
#define MNEMON_NET_SOCKET_ADDRESS_H

#include <sys/socket.h>

#include "base/address.h"

/* An IPv4 address becomes AF_INET, every other AF_INET6. Returns out, as the functions of libuv take it. */
const struct sockaddr *socket_address_put(const struct address *address, struct sockaddr_storage *out);

/* For a socket of AF_INET6, which reaches IPv4 addresses in their mapped form only. */
const struct sockaddr *socket_address_put_mapped(const struct address *address, struct sockaddr_storage *out);

/* False if it is neither of the two; *ret_address untouched. */
bool socket_address_get(const struct sockaddr *from, struct address *ret_address);

enum { SOCKET_ADDRESS_NETWORK_SIZE = 16 };

/*
 * What one customer of a provider has, for limits: an IPv4 address, or the first 64 bits of an IPv6 address,
 * of which it varies the rest at will.
 */
void socket_address_network(const struct address *address, uint8_t out[SOCKET_ADDRESS_NETWORK_SIZE]);
bool socket_address_is_same_network(const struct address *a, const struct address *b);

#endif
