#include "protocol/group/member.h"

enum {
    IPV4_SIZE = 4,
    IPV6_SIZE = 16,
};

/* ---- addresses ---- */

void member_write_address(struct wire_writer *writer, const struct address *address) {
    ASSERT(address_is_possible(address));
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
    if (!address_is_possible(ret_address)) {
        wire_read_fail(reader, ERR_INVALID, "no address");
    } else if (is_ipv6 && address_is_ipv4(ret_address)) {
        wire_read_fail(reader, ERR_INVALID, "IPv4 in the form of IPv6");
    }
}

/* ---- members ---- */

bool member_is_possible(const struct peer *member) {
    return peer_has_key(member) && address_is_possible(&member->address);
}

void member_write(struct wire_writer *writer, const struct peer *member) {
    ASSERT(peer_has_key(member));
    member_write_address(writer, &member->address);
    wire_write_bytes(writer, bytes_of(member->key, PEER_KEY_SIZE));
}

void member_read(struct wire_reader *reader, struct peer *ret_member) {
    member_read_address(reader, &ret_member->address);
    wire_read_array(reader, ret_member->key, PEER_KEY_SIZE);
    if (reader->err == ERR_OK && !peer_has_key(ret_member)) {
        wire_read_fail(reader, ERR_INVALID, "key of zeros");
    }
}
