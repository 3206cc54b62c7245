/*
 * handshake - what a stranger sends instead of each message of a handshake.
 *
 *      byte 0   which message is replaced: 0 HELLO, 1 ANSWER, 2 CONFIRM; or changed: 3, 4, 5
 *      rest     the message, or what is added to each of its bytes by exclusive or
 *
 * A HELLO may be anybody's. An ANSWER or a CONFIRM is accepted only as it was made.
 */
#include "net/handshake.h"

#include "fuzz.h"

struct sides {
    struct identity initiator;
    struct identity responder;
    struct handshake i;
    struct handshake r;
};

static void make(struct identity *identity, uint8_t seed_byte) {
    uint8_t seed[IDENTITY_SEED_SIZE] = {seed_byte};
    enum err err = identity_from_seed(identity, seed);
    ASSERT(err == ERR_OK);
}

/* The message that arrives: replaced or changed where it is the one that byte 0 names. True where it differs.
 */
static bool arrive(struct bytes sent, uint8_t which, const uint8_t *data, size_t size, uint8_t *out) {
    memcpy(out, sent.data, sent.size);
    if (size == 0 || data[0] % 3 != which) {
        return false;
    }
    for (size_t i = 0; i < sent.size; i++) {
        uint8_t byte = i + 1 < size ? data[i + 1] : 0;
        out[i] = data[0] % 6 < 3 ? byte : (uint8_t)(out[i] ^ byte);
    }
    return memcmp(out, sent.data, sent.size) != 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t secret_i[32] = {1};
    static const uint8_t secret_r[32] = {2};
    struct sides sides;
    struct handshake_result result;
    uint8_t message[HANDSHAKE_ANSWER_SIZE];
    struct bytes answer;
    struct bytes confirm;
    make(&sides.initiator, 1);
    make(&sides.responder, 2);
    bool is_changed = arrive(handshake_hello(&sides.i, secret_i), 0, data, size, message);
    if (handshake_answer(&sides.r, &sides.responder, secret_r, bytes_of(message, HANDSHAKE_HELLO_SIZE),
                         &answer) != ERR_OK) {
        ASSERT(is_changed);
        return 0;
    }
    is_changed |= arrive(answer, 1, data, size, message);
    enum err err = handshake_confirm(&sides.i, &sides.initiator, sides.responder.key,
                                     bytes_of(message, HANDSHAKE_ANSWER_SIZE), &result, &confirm);
    ASSERT((err == ERR_OK) == !is_changed);
    if (err != ERR_OK) {
        return 0;
    }
    is_changed = arrive(confirm, 2, data, size, message);
    err = handshake_accept(&sides.r, &sides.responder, bytes_of(message, HANDSHAKE_CONFIRM_SIZE), &result);
    ASSERT((err == ERR_OK) == !is_changed);
    ASSERT(err != ERR_OK || memcmp(result.peer, sides.initiator.key, PEER_KEY_SIZE) == 0);
    return 0;
}
