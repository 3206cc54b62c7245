#include "base/peer.h"

enum peer_flag { PEER_IS_IPV6 = 1, PEER_HAS_KEY = 2, PEER_FLAGS_MAX = 3 };

enum { IPV4_SIZE = 4, IPV6_SIZE = 16 };

/* ---- addresses ---- */

static void peer_write_ip(struct wire_writer *writer, const struct address *address, size_t ip_size) {
    wire_write_bytes(writer, bytes_of(address->ip + IPV6_SIZE - ip_size, ip_size));
    wire_write_u16(writer, address->port);
}

static void peer_read_ip(struct wire_reader *reader, size_t ip_size, struct address *ret_address) {
    *ret_address = address_ipv4(0, 0, 0, 0, 0);
    wire_read_array(reader, ret_address->ip + IPV6_SIZE - ip_size, ip_size);
    ret_address->port = wire_read_u16(reader);
    wire_read_check(reader, ret_address->port != 0, "port 0");
}

void peer_write_short(struct wire_writer *writer, const struct address *address) {
    ASSERT(address->port != 0);
    peer_write_ip(writer, address, address_is_ipv4(address) ? IPV4_SIZE : IPV6_SIZE);
}

void peer_read_short(struct wire_reader *reader, bool is_ipv6, struct address *ret_address) {
    peer_read_ip(reader, is_ipv6 ? IPV6_SIZE : IPV4_SIZE, ret_address);
    wire_read_check(reader, !is_ipv6 || !address_is_ipv4(ret_address), "IPv4 in the form of IPv6");
}

static void peer_write_head(struct wire_writer *writer, enum peer_layout layout, unsigned flags,
                            const struct address *address) {
    if (layout == PEER_PLAIN) {
        peer_write_ip(writer, address, IPV6_SIZE);
        return;
    }
    wire_write_u8(writer, (uint8_t)(flags | (address_is_ipv4(address) ? 0u : PEER_IS_IPV6)));
    peer_write_short(writer, address);
}

/* Returns the flags. */
static unsigned peer_read_head(struct wire_reader *reader, enum peer_layout layout,
                               struct address *ret_address) {
    if (layout == PEER_PLAIN) {
        peer_read_ip(reader, IPV6_SIZE, ret_address);
        return 0;
    }
    unsigned flags = wire_read_u8_max(reader, layout == PEER_TAGGED ? PEER_FLAGS_MAX : PEER_IS_IPV6);
    peer_read_short(reader, (flags & PEER_IS_IPV6) != 0, ret_address);
    wire_read_check(reader, address_is_possible(ret_address), "no address");
    return flags;
}

void peer_write_address(struct wire_writer *writer, enum peer_layout layout, const struct address *address) {
    ASSERT(layout != PEER_TAGGED);
    peer_write_head(writer, layout, 0, address);
}

void peer_read_address(struct wire_reader *reader, enum peer_layout layout, struct address *ret_address) {
    ASSERT(layout != PEER_TAGGED);
    peer_read_head(reader, layout, ret_address);
}

/* ---- peers ---- */

static bool peer_writes_key(enum peer_layout layout, const struct peer *peer) {
    return layout != PEER_TAGGED || peer_has_key(peer);
}

size_t peer_size(enum peer_layout layout, const struct peer *peer) {
    bool is_short = layout != PEER_PLAIN && address_is_ipv4(&peer->address);
    return (layout == PEER_PLAIN ? 0u : 1u) + (is_short ? IPV4_SIZE : IPV6_SIZE) + sizeof peer->address.port +
           (peer_writes_key(layout, peer) ? PEER_KEY_SIZE : 0u);
}

void peer_write(struct wire_writer *writer, enum peer_layout layout, const struct peer *peer) {
    ASSERT(layout != PEER_MEMBER || peer_is_possible(peer));
    bool has_key = peer_writes_key(layout, peer);
    peer_write_head(writer, layout, layout == PEER_TAGGED && has_key ? PEER_HAS_KEY : 0u, &peer->address);
    if (has_key) {
        wire_write_bytes(writer, peer_key(peer));
    }
}

void peer_read_key(struct wire_reader *reader, uint8_t ret_key[PEER_KEY_SIZE]) {
    wire_read_array(reader, ret_key, PEER_KEY_SIZE);
    wire_read_check(reader, peer_key_is_known(ret_key), "key of zeros");
}

void peer_read(struct wire_reader *reader, enum peer_layout layout, struct peer *ret_peer) {
    unsigned flags = peer_read_head(reader, layout, &ret_peer->address);
    memset(ret_peer->key, 0, PEER_KEY_SIZE);
    if (layout == PEER_PLAIN) {
        wire_read_array(reader, ret_peer->key, PEER_KEY_SIZE);
    } else if (layout == PEER_MEMBER || (flags & PEER_HAS_KEY) != 0) {
        peer_read_key(reader, ret_peer->key);
    }
}

void peer_code(struct wire_coder *coder, enum peer_layout layout, struct peer *peer) {
    if (coder->reader != NULL) {
        peer_read(coder->reader, layout, peer);
    } else {
        peer_write(coder->writer, layout, peer);
    }
}
