#include "net/reach.h"

struct range {
    uint8_t prefix[8]; /* of IPv4 only the first 4 */
    uint8_t bits;
    const char *what;
};

/* https://www.iana.org/assignments/iana-ipv4-special-registry, and class D and E */
static const struct range ipv4_ranges[] = {
    {{0}, 8, "an address of \"this network\""},
    {{10}, 8, "a private address"},
    {{100, 64}, 10, "an address behind a carrier's NAT"},
    {{127}, 8, "a loopback address"},
    {{169, 254}, 16, "a link-local address"},
    {{172, 16}, 12, "a private address"},
    {{192, 0, 0}, 24, "an address of IETF protocols"},
    {{192, 0, 2}, 24, "an address for documentation"},
    {{192, 88, 99}, 24, "a 6to4 relay address"},
    {{192, 168}, 16, "a private address"},
    {{198, 18}, 15, "an address for benchmarks"},
    {{198, 51, 100}, 24, "an address for documentation"},
    {{203, 0, 113}, 24, "an address for documentation"},
    {{224}, 4, "a multicast address"},
    {{240}, 4, "a reserved address"},
};

/*
 * https://www.iana.org/assignments/iana-ipv6-special-registry. The few assignments inside 2001::/23 that are
 * reachable (anycast for port control and the like) have no web servers.
 */
static const struct range ipv6_ranges[] = {
    {{0x20, 0x01, 0x00, 0x00}, 32, "a Teredo address"},
    {{0x20, 0x01, 0x00, 0x00}, 23, "an address of IETF protocols"},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, "an address for documentation"},
    {{0x3f, 0xff, 0x00}, 20, "an address for documentation"},
    {{0xfc}, 7, "a private address"},
    {{0xfe, 0x80}, 10, "a link-local address"},
    {{0xfe, 0xc0}, 10, "a site-local address"},
    {{0xff}, 8, "a multicast address"},
};

static const uint8_t nat64_prefix[12] = {0x00, 0x64, 0xff, 0x9b}; /* 64:ff9b::/96 */
static const uint8_t loopback[16] = {[15] = 1};
static const uint8_t unspecified[16];

static bool has_prefix(const uint8_t *ip, const struct range *range) {
    size_t whole = range->bits / 8;
    unsigned rest = range->bits % 8;
    unsigned mask = 0xff00u >> rest & 0xffu;
    return memcmp(ip, range->prefix, whole) == 0 &&
           (rest == 0 || (ip[whole] & mask) == (range->prefix[whole] & mask));
}

static const char *reach_find(const uint8_t *ip, const struct range *ranges, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (has_prefix(ip, &ranges[i])) {
            return ranges[i].what;
        }
    }
    return NULL;
}

static const char *ipv4_refusal(const uint8_t ip[4]) {
    return reach_find(ip, ipv4_ranges, sizeof ipv4_ranges / sizeof ipv4_ranges[0]);
}

const char *reach_refusal(const struct address *address) {
    const uint8_t *ip = address->ip;
    if (address_is_ipv4(address)) {
        return ipv4_refusal(ip + 12);
    }
    if (memcmp(ip, nat64_prefix, sizeof nat64_prefix) == 0) {
        return ipv4_refusal(ip + 12);
    }
    if (ip[0] == 0x20 && ip[1] == 0x02) {
        return ipv4_refusal(ip + 2); /* 6to4 */
    }
    if (memcmp(ip, loopback, sizeof loopback) == 0) {
        return "a loopback address";
    }
    if (memcmp(ip, unspecified, sizeof unspecified) == 0) {
        return "the unspecified address";
    }
    const char *what = reach_find(ip, ipv6_ranges, sizeof ipv6_ranges / sizeof ipv6_ranges[0]);
    bool is_allocated = (ip[0] & 0xe0) == 0x20; /* 2000::/3 */
    return what != NULL || is_allocated ? what : "an address outside the public range of IPv6";
}
