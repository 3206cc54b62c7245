/*
 * peer - another node: where it is reached, and the public key that what it sends is checked with.
 *
 * The address decides a node's place in the ring, the key whether it is a member; neither follows from the
 * other. On the wire and on disk a peer has one of three layouts:
 *
 *      PEER_TAGGED   flags u8: 1 IPv6, 2 key │ ip 4 or 16 │ port u16 │ key 32, if the flag says so
 *      PEER_MEMBER   bool: IPv6              │ ip 4 or 16 │ port u16 │ key 32
 *      PEER_PLAIN                              ip 16      │ port u16 │ key 32, zeros if it is not known
 *
 * A reader refuses port 0 and, in the first two, IPv4 in the form of IPv6, addresses that nobody can be at
 * and a key of zeros.
 */
#ifndef MNEMON_BASE_PEER_H
#define MNEMON_BASE_PEER_H

#include "base/address.h"
#include "base/wire.h"

enum {
    PEER_KEY_SIZE = 32,
    PEER_ADDRESS_SIZE_MAX = 1 + 16 + 2,
    PEER_SIZE_MAX = PEER_ADDRESS_SIZE_MAX + PEER_KEY_SIZE,
};

struct peer {
    struct address address;
    uint8_t key[PEER_KEY_SIZE]; /* Ed25519 */
};

/* A key of zeros stands for "whoever is at that address". */
static inline bool peer_key_is_known(const uint8_t key[PEER_KEY_SIZE]) {
    static const uint8_t none[PEER_KEY_SIZE] = {0};
    return memcmp(key, none, PEER_KEY_SIZE) != 0;
}

static inline bool peer_has_key(const struct peer *peer) {
    return peer_key_is_known(peer->key);
}

static inline struct bytes peer_key(const struct peer *peer) {
    return bytes_of(peer->key, PEER_KEY_SIZE);
}

static inline bool peer_key_equal(const uint8_t a[PEER_KEY_SIZE], const uint8_t b[PEER_KEY_SIZE]) {
    return memcmp(a, b, PEER_KEY_SIZE) == 0;
}

/* The same node, whatever address it has. */
static inline bool peer_same_key(const struct peer *a, const struct peer *b) {
    return peer_key_equal(a->key, b->key);
}

static inline bool peer_equal(const struct peer *a, const struct peer *b) {
    return address_equal(&a->address, &b->address) && peer_same_key(a, b);
}

/* Can a node be there, and is its key known? */
static inline bool peer_is_possible(const struct peer *peer) {
    return peer_has_key(peer) && address_is_possible(&peer->address);
}

/* ---- codec ---- */

enum peer_layout { PEER_TAGGED, PEER_MEMBER, PEER_PLAIN };

void peer_write(struct wire_writer *writer, enum peer_layout layout, const struct peer *peer);
void peer_read(struct wire_reader *reader, enum peer_layout layout, struct peer *ret_peer);

void peer_code(struct wire_coder *coder, enum peer_layout layout, struct peer *peer);

/* How many bytes peer_write() writes. */
size_t peer_size(enum peer_layout layout, const struct peer *peer);

/* PEER_MEMBER and PEER_PLAIN without their key. */
void peer_write_address(struct wire_writer *writer, enum peer_layout layout, const struct address *address);
void peer_read_address(struct wire_reader *reader, enum peer_layout layout, struct address *ret_address);

/* For a layout of the caller's own that says elsewhere whether it is IPv6: ip and port, in the short form.
 * Refuses port 0 and IPv4 in the form of IPv6. */
void peer_write_short(struct wire_writer *writer, const struct address *address);
void peer_read_short(struct wire_reader *reader, bool is_ipv6, struct address *ret_address);

/* Refuses zeros. */
void peer_read_key(struct wire_reader *reader, uint8_t ret_key[PEER_KEY_SIZE]);

#endif
