#include "base/address.h"

#include <arpa/inet.h>
#include <stdio.h>

static const uint8_t ipv4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

struct address address_ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint16_t port) {
    struct address address = {.ip = {[12] = a, [13] = b, [14] = c, [15] = d}, .port = port};
    memcpy(address.ip, ipv4_prefix, sizeof ipv4_prefix);
    return address;
}

bool address_is_ipv4(const struct address *address) {
    return memcmp(address->ip, ipv4_prefix, sizeof ipv4_prefix) == 0;
}

bool address_is_loopback(const struct address *address) {
    static const uint8_t loopback[16] = {[15] = 1};
    return address_is_ipv4(address) ? address->ip[12] == 127
                                    : memcmp(address->ip, loopback, sizeof loopback) == 0;
}

bool address_is_possible(const struct address *address) {
    static const uint8_t unspecified[16] = {0};
    enum { IPV4_FIRST = 12, IPV4_MULTICAST = 224, IPV6_MULTICAST = 0xff };
    const uint8_t *ip = address->ip;
    if (address->port == 0) {
        return false;
    }
    if (address_is_ipv4(address)) {
        return ip[IPV4_FIRST] != 0 && ip[IPV4_FIRST] < IPV4_MULTICAST; /* above it only broadcast */
    }
    return ip[0] != IPV6_MULTICAST && memcmp(ip, unspecified, sizeof unspecified) != 0;
}

bool address_equal(const struct address *a, const struct address *b) {
    return a->port == b->port && memcmp(a->ip, b->ip, sizeof a->ip) == 0;
}

static bool parse_ip(struct bytes text, bool must_be_ipv6, struct address *address) {
    char string[INET6_ADDRSTRLEN + 1];
    if (text.size == 0 || text.size >= sizeof string || bytes_find_byte(text, '\0') < text.size) {
        return false; /* inet_pton() would stop at a zero byte and not see the rest */
    }
    memcpy(string, text.data, text.size);
    string[text.size] = '\0';
    if (!must_be_ipv6 && inet_pton(AF_INET, string, address->ip + 12) == 1) {
        memcpy(address->ip, ipv4_prefix, sizeof ipv4_prefix);
        return true;
    }
    return inet_pton(AF_INET6, string, address->ip) == 1;
}

bool address_parse(struct bytes text, uint16_t default_port, struct address *ret_address) {
    struct address address = {.port = default_port};
    struct bytes ip = text;
    struct bytes port = bytes_of(NULL, 0);
    bool in_brackets = text.size > 0 && text.data[0] == '[';
    bool has_port = false;
    if (in_brackets) {
        size_t close = bytes_find_byte(text, ']');
        if (close == text.size) {
            return false;
        }
        ip = bytes_slice(text, 1, close);
        struct bytes rest = bytes_skip(text, close + 1);
        if (rest.size > 0 && rest.data[0] != ':') {
            return false;
        }
        has_port = rest.size > 0;
        port = has_port ? bytes_skip(rest, 1) : port;
    } else {
        size_t colon = bytes_find_byte(text, ':');
        bool is_bare_ipv6 =
            colon < text.size && bytes_find_byte(bytes_skip(text, colon + 1), ':') < text.size - colon - 1;
        has_port = colon < text.size && !is_bare_ipv6;
        if (has_port) {
            ip = bytes_slice(text, 0, colon);
            port = bytes_skip(text, colon + 1);
        }
    }
    uint64_t number = default_port;
    if (has_port && (!bytes_to_u64(port, UINT16_MAX, &number) || number == 0)) {
        return false;
    }
    address.port = (uint16_t)number;
    if (!parse_ip(ip, in_brackets, &address)) {
        return false;
    }
    *ret_address = address;
    return true;
}

const char *address_format(const struct address *address, char out[ADDRESS_TEXT_SIZE_MAX]) {
    char ip[INET6_ADDRSTRLEN];
    if (address_is_ipv4(address)) {
        inet_ntop(AF_INET, address->ip + 12, ip, sizeof ip);
        snprintf(out, ADDRESS_TEXT_SIZE_MAX, "%s:%u", ip, address->port);
    } else {
        inet_ntop(AF_INET6, address->ip, ip, sizeof ip);
        snprintf(out, ADDRESS_TEXT_SIZE_MAX, "[%s]:%u", ip, address->port);
    }
    return out;
}
