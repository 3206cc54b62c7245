#include "group/member.h"

enum {
    IPV4_OFFSET = 12, /* in the mapped form */
    IPV4_SIZE = 4,
    IPV6_SIZE = 16,
    IPV4_MULTICAST = 224, /* first byte; above it, nothing but broadcast */
};

/* ---- addresses ---- */

/* Whether we may talk to who is there, the driver knows. */
static bool can_be_reached(const struct address *address) {
    static const uint8_t unspecified[IPV6_SIZE] = {0};
    const uint8_t *ip = address->ip;
    if (address->port == 0) {
        return false;
    }
    if (address_is_ipv4(address)) {
        return ip[IPV4_OFFSET] != 0 && ip[IPV4_OFFSET] < IPV4_MULTICAST;
    }
    return ip[0] != 0xff && memcmp(ip, unspecified, IPV6_SIZE) != 0;
}

void member_write_address(struct wire_writer *writer, const struct address *address) {
    ASSERT(can_be_reached(address));
    bool is_ipv6 = !address_is_ipv4(address);
    size_t ip_size = is_ipv6 ? IPV6_SIZE : IPV4_SIZE;
    wire_write_bool(writer, is_ipv6);
    wire_write_bytes(writer, bytes_of(address->ip + IPV6_SIZE - ip_size, ip_size));
    wire_write_u16(writer, address->port);
}

void member_read_address(struct wire_reader *reader, struct address *ret_address) {
    bool is_ipv6 = wire_read_bool(reader);
    size_t ip_size = is_ipv6 ? IPV6_SIZE : IPV4_SIZE;
    *ret_address = address_ipv4(0, 0, 0, 0, 0);
    wire_read_array(reader, ret_address->ip + IPV6_SIZE - ip_size, ip_size);
    ret_address->port = wire_read_u16(reader);
    if (reader->err != ERR_OK) {
        return;
    }
    if (!can_be_reached(ret_address)) {
        wire_read_fail(reader, ERR_INVALID, "no address");
    } else if (is_ipv6 && address_is_ipv4(ret_address)) {
        wire_read_fail(reader, ERR_INVALID, "IPv4 in the form of IPv6");
    }
}

/* ---- members ---- */

static bool has_key(const struct peer *member) {
    static const uint8_t none[PEER_KEY_SIZE] = {0};
    return memcmp(member->key, none, PEER_KEY_SIZE) != 0;
}

bool member_is_possible(const struct peer *member) {
    return has_key(member) && can_be_reached(&member->address);
}

void member_write(struct wire_writer *writer, const struct peer *member) {
    ASSERT(has_key(member));
    member_write_address(writer, &member->address);
    wire_write_bytes(writer, bytes_of(member->key, PEER_KEY_SIZE));
}

void member_read(struct wire_reader *reader, struct peer *ret_member) {
    member_read_address(reader, &ret_member->address);
    wire_read_array(reader, ret_member->key, PEER_KEY_SIZE);
    if (reader->err == ERR_OK && !has_key(ret_member)) {
        wire_read_fail(reader, ERR_INVALID, "key of zeros");
    }
}
