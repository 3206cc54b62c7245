#include "net/seal.h"

#include <sodium.h>

enum { NONCE_SIZE = crypto_aead_chacha20poly1305_ietf_NPUBBYTES, COUNTER_OFFSET = 33, SALT_OFFSET = 40 };

_Static_assert(SALT_OFFSET + 4 == SEAL_HEAD_SIZE, "the salt ends the head");
_Static_assert(NONCE_SIZE == SEAL_ECHO_SIZE + 1, "a nonce is counter, salt and a zero byte");
_Static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == SEAL_TAG_SIZE, "the cipher's tag");
_Static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES == 32, "the cipher's key");

enum err seal_keys_make(const struct identity *identity, const uint8_t peer[PEER_KEY_SIZE],
                        struct seal_keys *ret_keys) {
    static const char label[] = "mnemon seal 1";
    uint8_t exchange_key[PEER_KEY_SIZE];
    uint8_t shared[32];
    uint8_t both[64];
    int order = memcmp(identity->key, peer, PEER_KEY_SIZE);
    if (order == 0 || crypto_sign_ed25519_pk_to_curve25519(exchange_key, peer) != 0 ||
        crypto_scalarmult(shared, identity->exchange_secret, exchange_key) != 0) {
        return ERR_INVALID;
    }
    crypto_generichash_state state;
    crypto_generichash_init(&state, shared, sizeof shared, sizeof both);
    crypto_generichash_update(&state, (const uint8_t *)label, sizeof label - 1);
    crypto_generichash_update(&state, order < 0 ? identity->key : peer, PEER_KEY_SIZE);
    crypto_generichash_update(&state, order < 0 ? peer : identity->key, PEER_KEY_SIZE);
    crypto_generichash_final(&state, both, sizeof both);
    memcpy(ret_keys->sending, order < 0 ? both : both + 32, 32);
    memcpy(ret_keys->receiving, order < 0 ? both + 32 : both, 32);
    sodium_memzero(shared, sizeof shared);
    sodium_memzero(both, sizeof both);
    return ERR_OK;
}

/* Times before 1970 and after the year 4253 count as the ends. */
static uint64_t counter_of(int64_t wall_us) {
    uint64_t counter = wall_us > 0 ? (uint64_t)wall_us : 0;
    return counter < SEAL_COUNTER_MAX ? counter : SEAL_COUNTER_MAX;
}

void seal_life_begin(struct seal_life *life, int64_t wall_us) {
    life->counter = counter_of(wall_us);
    life->salt = randombytes_random();
}

void seal_life_next(struct seal_life *life, int64_t wall_us) {
    uint64_t now = counter_of(wall_us);
    if (now > life->counter) {
        life->counter = now;
    } else if (life->counter - now > SEAL_CLOCK_BACK_US_MAX || life->counter == SEAL_COUNTER_MAX) {
        seal_life_begin(life, wall_us);
    } else {
        life->counter++;
    }
}

static void nonce_of(const uint8_t *head, uint8_t nonce[NONCE_SIZE]) {
    memcpy(nonce, head + SEAL_ECHO_OFFSET, SEAL_ECHO_SIZE);
    nonce[NONCE_SIZE - 1] = 0;
}

size_t seal_write(const uint8_t key[32], const struct seal_head *head, struct bytes payload, uint8_t *out) {
    uint8_t nonce[NONCE_SIZE];
    ASSERT(head->version < 16 && head->kind < SEAL_KINDS_COUNT && head->counter <= SEAL_COUNTER_MAX);
    out[0] = (uint8_t)(head->version << 4 | head->kind);
    memcpy(out + 1, head->sender, PEER_KEY_SIZE);
    for (size_t i = 0; i < 7; i++) {
        out[COUNTER_OFFSET + i] = (uint8_t)(head->counter >> (8 * i));
    }
    for (size_t i = 0; i < 4; i++) {
        out[SALT_OFFSET + i] = (uint8_t)(head->salt >> (8 * i));
    }
    nonce_of(out, nonce);
    crypto_aead_chacha20poly1305_ietf_encrypt(out + SEAL_HEAD_SIZE, NULL, payload.data, payload.size, out,
                                              SEAL_HEAD_SIZE, NULL, nonce, key);
    return SEAL_OVERHEAD + payload.size;
}

bool seal_read_head(struct bytes datagram, struct seal_head *ret_head) {
    if (datagram.size < SEAL_OVERHEAD) {
        return false;
    }
    const uint8_t *data = datagram.data;
    ret_head->version = data[0] >> 4;
    ret_head->kind = data[0] & 15;
    memcpy(ret_head->sender, data + 1, PEER_KEY_SIZE);
    ret_head->counter = 0;
    for (size_t i = 0; i < 7; i++) {
        ret_head->counter |= (uint64_t)data[COUNTER_OFFSET + i] << (8 * i);
    }
    ret_head->salt = 0;
    for (size_t i = 0; i < 4; i++) {
        ret_head->salt |= (uint32_t)data[SALT_OFFSET + i] << (8 * i);
    }
    return true;
}

bool seal_read(const uint8_t key[32], struct bytes datagram, uint8_t *out, struct bytes *ret_payload) {
    uint8_t nonce[NONCE_SIZE];
    if (datagram.size < SEAL_OVERHEAD) {
        return false;
    }
    nonce_of(datagram.data, nonce);
    if (crypto_aead_chacha20poly1305_ietf_decrypt(out, NULL, NULL, datagram.data + SEAL_HEAD_SIZE,
                                                  datagram.size - SEAL_HEAD_SIZE, datagram.data,
                                                  SEAL_HEAD_SIZE, nonce, key) != 0) {
        return false;
    }
    *ret_payload = bytes_of(out, datagram.size - SEAL_OVERHEAD);
    return true;
}
