/*
 * seal - one datagram, encrypted and authenticated by two nodes' own keys, without a handshake.
 *
 *      0        1                 33          40       44                  44 + n     60 + n
 *      | v · k  | sender's key    | counter   | salt   | n bytes, encrypted | tag      |
 *        1        32                7           4                             16         = 60 bytes of
 * overhead
 *
 * Keys. The Ed25519 keys of both give a shared secret by X25519; BLAKE2b over it and both public keys gives
 * one key for each direction. Cipher: ChaCha20-Poly1305 (RFC 8439), the first 44 bytes as additional data.
 *
 * Nonces. counter (56 bits) and salt (32 bits) and a zero byte. A key must never see one twice:
 * - In a life, the counter is the wall clock in microseconds, or one more than the last if the clock has
 *   not moved on: it rises strictly, and a node sends fewer than a million datagrams a second.
 * - A direction has its own key, so what the other side counts does not matter.
 * - A restart, or a clock that was set back while running by more than SEAL_CLOCK_BACK_US_MAX, begins a life
 *   with a salt drawn at random. Lives whose times do not overlap differ in the counter. Two that overlap,
 *   since the clock was set back between them, repeat a nonce only if their salts are equal (one in 2^32)
 *   and both sent to the same peer in the very same microsecond.
 *
 * What is not hidden: who sends, when, and how much. There is no forward secrecy: whoever steals a node's key
 * can read what was recorded. Bulk goes over stream.h, which has it. docs/protocol/transport.md, decision
 * 0010. Replays are sessions.h's business. Pure, but for the salt.
 */
#ifndef MNEMON_NET_SEAL_H
#define MNEMON_NET_SEAL_H

#include "net/identity.h"

enum {
    SEAL_VERSION = 1,
    SEAL_HEAD_SIZE = 44,
    SEAL_TAG_SIZE = 16,
    SEAL_OVERHEAD = SEAL_HEAD_SIZE + SEAL_TAG_SIZE,
    SEAL_KINDS_COUNT = 16,
    SEAL_ECHO_OFFSET = 33, /* counter and salt: what a refusal repeats, in this and every later version */
    SEAL_ECHO_SIZE = 11,
};
static const uint64_t SEAL_COUNTER_MAX = (UINT64_C(1) << 56) - 1;
static const uint64_t SEAL_CLOCK_BACK_US_MAX = 1000000;

struct seal_head {
    uint8_t version; /* 0 to 15 */
    uint8_t kind;    /* 0 to 15 */
    uint8_t sender[PEER_KEY_SIZE];
    uint64_t counter;
    uint32_t salt;
};

/* The two keys with one peer. */
struct seal_keys {
    uint8_t sending[32];
    uint8_t receiving[32];
};

/* One life of a sender. */
struct seal_life {
    uint64_t counter; /* the last one used */
    uint32_t salt;
};

/* ERR_INVALID if the peer's key is no point of the curve's main group, or our own. Costs some 50 us. */
enum err seal_keys_make(const struct identity *identity, const uint8_t peer[PEER_KEY_SIZE],
                        struct seal_keys *ret_keys) MUST_CHECK;

void seal_life_begin(struct seal_life *life, int64_t wall_us);

/* The counter of the next datagram, life->counter afterwards. May begin a new life. */
void seal_life_next(struct seal_life *life, int64_t wall_us);

/* Writes SEAL_OVERHEAD + payload.size bytes to out and returns how many. */
size_t seal_write(const uint8_t key[32], const struct seal_head *head, struct bytes payload, uint8_t *out);

/* False if it is too short for a head and a tag. Any version: the caller looks. */
bool seal_read_head(struct bytes datagram, struct seal_head *ret_head);

/* Decrypts into out, which has room for datagram.size - SEAL_OVERHEAD. False if it was not sealed so. */
bool seal_read(const uint8_t key[32], struct bytes datagram, uint8_t *out, struct bytes *ret_payload);

#endif
