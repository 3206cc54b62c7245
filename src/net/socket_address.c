#include "net/socket_address.h"

#include <netinet/in.h>

const struct sockaddr *socket_address_put(const struct address *address, struct sockaddr_storage *out) {
    if (!address_is_ipv4(address)) {
        return socket_address_put_mapped(address, out);
    }
    struct sockaddr_in *name = (struct sockaddr_in *)(void *)out;
    memset(out, 0, sizeof *out);
    name->sin_family = AF_INET;
    name->sin_port = htons(address->port);
    memcpy(&name->sin_addr, address->ip + 12, 4);
    return (const struct sockaddr *)out;
}

const struct sockaddr *socket_address_put_mapped(const struct address *address,
                                                 struct sockaddr_storage *out) {
    struct sockaddr_in6 *name = (struct sockaddr_in6 *)(void *)out;
    memset(out, 0, sizeof *out);
    name->sin6_family = AF_INET6;
    name->sin6_port = htons(address->port);
    memcpy(&name->sin6_addr, address->ip, 16);
    return (const struct sockaddr *)out;
}

bool socket_address_get(const struct sockaddr *from, struct address *ret_address) {
    if (from->sa_family == AF_INET) {
        const struct sockaddr_in *name = (const struct sockaddr_in *)(const void *)from;
        uint8_t ip[4];
        memcpy(ip, &name->sin_addr, sizeof ip);
        *ret_address = address_ipv4(ip[0], ip[1], ip[2], ip[3], ntohs(name->sin_port));
        return true;
    }
    if (from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *name = (const struct sockaddr_in6 *)(const void *)from;
        memcpy(ret_address->ip, &name->sin6_addr, sizeof ret_address->ip);
        ret_address->port = ntohs(name->sin6_port);
        return true;
    }
    return false;
}

void socket_address_network(const struct address *address, uint8_t out[SOCKET_ADDRESS_NETWORK_SIZE]) {
    memcpy(out, address->ip, SOCKET_ADDRESS_NETWORK_SIZE);
    if (!address_is_ipv4(address)) {
        memset(out + 8, 0, 8);
    }
}

bool socket_address_is_same_network(const struct address *a, const struct address *b) {
    uint8_t network_a[SOCKET_ADDRESS_NETWORK_SIZE];
    uint8_t network_b[SOCKET_ADDRESS_NETWORK_SIZE];
    socket_address_network(a, network_a);
    socket_address_network(b, network_b);
    return memcmp(network_a, network_b, sizeof network_a) == 0;
}
