/*
 * handshake - how two nodes open a stream: fresh keys, and each proves who it is. No I/O.
 *
 *      I -> R   HELLO     "mnemon" 's' version (8), ephemeral key of I (32)                        40 bytes
 *      R -> I   ANSWER    ephemeral key of R (32), sealed under k1: key of R (32), signature (64)  144 bytes
 *      I -> R   CONFIRM   sealed under k2: key of I (32), signature (64)                           112 bytes
 *
 * The pattern is SIGMA-I: dh is X25519 of the two ephemeral keys, and each side signs the whole transcript
 * with both names. k1, k2 and the keys of the data come from dh and the transcript by BLAKE2b. Both sides end
 * with the same keys or with none; whoever records everything and steals both nodes' keys later reads
 * nothing; the name of I is told only to a proved R. Exact formulas and golden vectors:
 * docs/protocol/transport.md.
 *
 * The caller draws ephemeral secrets at random and uses each once. Secrets are wiped by handshake_done(),
 * which the functions that end a handshake, well or not, have done already.
 */
#ifndef MNEMON_NET_HANDSHAKE_H
#define MNEMON_NET_HANDSHAKE_H

#include "net/identity.h"

enum {
    HANDSHAKE_VERSION = 1,
    HANDSHAKE_HELLO_SIZE = 40,
    HANDSHAKE_ANSWER_SIZE = 144,
    HANDSHAKE_CONFIRM_SIZE = 112,
    HANDSHAKE_SIZE = HANDSHAKE_HELLO_SIZE + HANDSHAKE_ANSWER_SIZE + HANDSHAKE_CONFIRM_SIZE,
};

struct handshake {
    uint8_t secret[32]; /* of our ephemeral key */
    uint8_t shared[32]; /* dh */
    uint8_t transcript[HANDSHAKE_SIZE];
};

/* What a handshake gives. */
struct handshake_result {
    uint8_t peer[PEER_KEY_SIZE];
    uint8_t sending[32];
    uint8_t receiving[32];
};

/* I: the HELLO. */
struct bytes handshake_hello(struct handshake *handshake, const uint8_t secret[32]);

/*
 * R: the ANSWER to HANDSHAKE_HELLO_SIZE bytes. ERR_INVALID if they are no HELLO, ERR_UNSUPPORTED if it
 * is one of another version.
 */
enum err handshake_answer(struct handshake *handshake, const struct identity *identity,
                          const uint8_t secret[32], struct bytes hello, struct bytes *ret_answer) MUST_CHECK;

/*
 * I: the CONFIRM to HANDSHAKE_ANSWER_SIZE bytes. ERR_INVALID if they are forged, ERR_MISMATCH if
 * somebody else than `expected` is there (zeros: anybody will do). The slice lives in *handshake.
 */
enum err handshake_confirm(struct handshake *handshake, const struct identity *identity,
                           const uint8_t expected[PEER_KEY_SIZE], struct bytes answer,
                           struct handshake_result *ret_result, struct bytes *ret_confirm) MUST_CHECK;

/* R: HANDSHAKE_CONFIRM_SIZE bytes came. ERR_INVALID if they are forged. */
enum err handshake_accept(struct handshake *handshake, const struct identity *identity, struct bytes confirm,
                          struct handshake_result *ret_result) MUST_CHECK;

void handshake_done(struct handshake *handshake);

#endif
