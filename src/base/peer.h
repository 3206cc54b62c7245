/*
 * peer - another node: where it is reached, and the public key that what it sends is checked with.
 *
 * The address decides a node's place in the ring, the key whether it is a member; neither follows from the
 * other.
 */
#ifndef MNEMON_BASE_PEER_H
#define MNEMON_BASE_PEER_H

#include "base/address.h"

enum { PEER_KEY_SIZE = 32 };

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

static inline bool peer_equal(const struct peer *a, const struct peer *b) {
    return address_equal(&a->address, &b->address) && memcmp(a->key, b->key, PEER_KEY_SIZE) == 0;
}

#endif
