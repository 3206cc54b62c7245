#include "net/handshake.h"

#include <sodium.h>

enum {
    ANSWER_OFFSET = HANDSHAKE_HELLO_SIZE,
    ANSWER_SEALED_OFFSET = ANSWER_OFFSET + 32,
    CONFIRM_OFFSET = ANSWER_OFFSET + HANDSHAKE_ANSWER_SIZE,
    HELLO_KEY_OFFSET = 8,
    PROOF_SIZE = PEER_KEY_SIZE + IDENTITY_SIGNATURE_SIZE,
};

_Static_assert(HANDSHAKE_CONFIRM_SIZE == PROOF_SIZE + crypto_aead_chacha20poly1305_ietf_ABYTES, "CONFIRM");
_Static_assert(HANDSHAKE_ANSWER_SIZE == 32 + HANDSHAKE_CONFIRM_SIZE, "ANSWER");

static const uint8_t magic[HELLO_KEY_OFFSET] = {'m', 'n', 'e', 'm', 'o', 'n', 's', HANDSHAKE_VERSION};
static const char answer_context[] = "stream answer";
static const char confirm_context[] = "stream confirm";

/* Keys are used for one message each, so the nonce may be constant. */
static const uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];

/* 64 bytes for a purpose, from dh and the transcript so far. */
static void derive(const struct handshake *handshake, const char *purpose, size_t transcript_size,
                   uint8_t out[64]) {
    crypto_generichash_state state;
    crypto_generichash_init(&state, handshake->shared, sizeof handshake->shared, 64);
    crypto_generichash_update(&state, (const uint8_t *)purpose, strlen(purpose));
    crypto_generichash_update(&state, handshake->transcript, transcript_size);
    crypto_generichash_final(&state, out, 64);
}

/* What is signed: the transcript so far, then the signer's key, then the other's (zeros in the ANSWER). */
struct claim {
    uint8_t bytes[CONFIRM_OFFSET + 2 * PEER_KEY_SIZE];
    size_t size;
};

static struct claim claim_of(const struct handshake *handshake, size_t transcript_size, const uint8_t *signer,
                             const uint8_t *other) {
    struct claim claim = {.size = transcript_size + 2 * PEER_KEY_SIZE};
    memcpy(claim.bytes, handshake->transcript, transcript_size);
    memcpy(claim.bytes + transcript_size, signer, PEER_KEY_SIZE);
    if (other != NULL) {
        memcpy(claim.bytes + transcript_size + PEER_KEY_SIZE, other, PEER_KEY_SIZE);
    }
    return claim;
}

static void write_proof(const struct identity *identity, const char *context, const struct claim *claim,
                        const uint8_t key[32], uint8_t *out) {
    uint8_t proof[PROOF_SIZE];
    memcpy(proof, identity->key, PEER_KEY_SIZE);
    identity_sign(identity, context, bytes_of(claim->bytes, claim->size), proof + PEER_KEY_SIZE);
    crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, proof, sizeof proof, NULL, 0, NULL, nonce, key);
}

static bool open_proof(const uint8_t *sealed, const uint8_t key[32], uint8_t out[PROOF_SIZE]) {
    return crypto_aead_chacha20poly1305_ietf_decrypt(out, NULL, NULL, sealed, HANDSHAKE_CONFIRM_SIZE, NULL, 0,
                                                     nonce, key) == 0;
}

static enum err handshake_fail(struct handshake *handshake, enum err err) {
    handshake_done(handshake);
    return err;
}

void handshake_done(struct handshake *handshake) {
    sodium_memzero(handshake->secret, sizeof handshake->secret);
    sodium_memzero(handshake->shared, sizeof handshake->shared);
}

struct bytes handshake_hello(struct handshake *handshake, const uint8_t secret[32]) {
    memcpy(handshake->secret, secret, 32);
    memcpy(handshake->transcript, magic, sizeof magic);
    crypto_scalarmult_base(handshake->transcript + HELLO_KEY_OFFSET, secret);
    return bytes_of(handshake->transcript, HANDSHAKE_HELLO_SIZE);
}

enum err handshake_answer(struct handshake *handshake, const struct identity *identity,
                          const uint8_t secret[32], struct bytes hello, struct bytes *ret_answer) {
    uint8_t keys[64];
    ASSERT(hello.size == HANDSHAKE_HELLO_SIZE);
    if (memcmp(hello.data, magic, sizeof magic - 1) != 0) {
        return ERR_INVALID;
    }
    if (hello.data[sizeof magic - 1] != HANDSHAKE_VERSION) {
        return ERR_UNSUPPORTED;
    }
    memcpy(handshake->transcript, hello.data, hello.size);
    memcpy(handshake->secret, secret, 32);
    crypto_scalarmult_base(handshake->transcript + ANSWER_OFFSET, secret);
    if (crypto_scalarmult(handshake->shared, secret, hello.data + HELLO_KEY_OFFSET) != 0) {
        return handshake_fail(handshake, ERR_INVALID);
    }
    derive(handshake, "mnemon stream 1 answer", ANSWER_SEALED_OFFSET, keys);
    struct claim claim = claim_of(handshake, ANSWER_SEALED_OFFSET, identity->key, NULL);
    write_proof(identity, answer_context, &claim, keys, handshake->transcript + ANSWER_SEALED_OFFSET);
    sodium_memzero(keys, sizeof keys);
    *ret_answer = bytes_of(handshake->transcript + ANSWER_OFFSET, HANDSHAKE_ANSWER_SIZE);
    return ERR_OK;
}

/* The keys of the data: the first half for what I sends. */
static void handshake_finish(struct handshake *handshake, const uint8_t peer[PEER_KEY_SIZE],
                             bool is_initiator, struct handshake_result *ret_result) {
    uint8_t keys[64];
    derive(handshake, "mnemon stream 1 data", HANDSHAKE_SIZE, keys);
    memcpy(ret_result->peer, peer, PEER_KEY_SIZE);
    memcpy(ret_result->sending, is_initiator ? keys : keys + 32, 32);
    memcpy(ret_result->receiving, is_initiator ? keys + 32 : keys, 32);
    sodium_memzero(keys, sizeof keys);
    handshake_done(handshake);
}

enum err handshake_confirm(struct handshake *handshake, const struct identity *identity,
                           const uint8_t expected[PEER_KEY_SIZE], struct bytes answer,
                           struct handshake_result *ret_result, struct bytes *ret_confirm) {
    uint8_t keys[64];
    uint8_t proof[PROOF_SIZE];
    ASSERT(answer.size == HANDSHAKE_ANSWER_SIZE);
    memcpy(handshake->transcript + ANSWER_OFFSET, answer.data, answer.size);
    if (crypto_scalarmult(handshake->shared, handshake->secret, answer.data) != 0) {
        return handshake_fail(handshake, ERR_INVALID);
    }
    derive(handshake, "mnemon stream 1 answer", ANSWER_SEALED_OFFSET, keys);
    if (!open_proof(handshake->transcript + ANSWER_SEALED_OFFSET, keys, proof)) {
        return handshake_fail(handshake, ERR_INVALID);
    }
    struct claim claim = claim_of(handshake, ANSWER_SEALED_OFFSET, proof, NULL);
    if (!identity_verify(proof, answer_context, bytes_of(claim.bytes, claim.size), proof + PEER_KEY_SIZE)) {
        return handshake_fail(handshake, ERR_INVALID);
    }
    if ((!sodium_is_zero(expected, PEER_KEY_SIZE) && memcmp(proof, expected, PEER_KEY_SIZE) != 0) ||
        memcmp(proof, identity->key, PEER_KEY_SIZE) == 0) {
        return handshake_fail(handshake, ERR_MISMATCH);
    }
    derive(handshake, "mnemon stream 1 confirm", CONFIRM_OFFSET, keys);
    claim = claim_of(handshake, CONFIRM_OFFSET, identity->key, proof);
    write_proof(identity, confirm_context, &claim, keys, handshake->transcript + CONFIRM_OFFSET);
    sodium_memzero(keys, sizeof keys);
    handshake_finish(handshake, proof, true, ret_result);
    *ret_confirm = bytes_of(handshake->transcript + CONFIRM_OFFSET, HANDSHAKE_CONFIRM_SIZE);
    return ERR_OK;
}

enum err handshake_accept(struct handshake *handshake, const struct identity *identity, struct bytes confirm,
                          struct handshake_result *ret_result) {
    uint8_t keys[64];
    uint8_t proof[PROOF_SIZE];
    ASSERT(confirm.size == HANDSHAKE_CONFIRM_SIZE);
    derive(handshake, "mnemon stream 1 confirm", CONFIRM_OFFSET, keys);
    memcpy(handshake->transcript + CONFIRM_OFFSET, confirm.data, confirm.size);
    if (!open_proof(confirm.data, keys, proof)) {
        return handshake_fail(handshake, ERR_INVALID);
    }
    struct claim claim = claim_of(handshake, CONFIRM_OFFSET, proof, identity->key);
    if (memcmp(proof, identity->key, PEER_KEY_SIZE) == 0 ||
        !identity_verify(proof, confirm_context, bytes_of(claim.bytes, claim.size), proof + PEER_KEY_SIZE)) {
        return handshake_fail(handshake, ERR_INVALID);
    }
    handshake_finish(handshake, proof, false, ret_result);
    return ERR_OK;
}
