/* Does somebody really hold what he says? He is asked for a hash that only who has the payload can know. */
#include <sodium.h>

#include "node/copies/copies_state.h"

/* Any of our keys in the arc: the first behind a place in it that is drawn by lot. */
static bool draw_key(struct copies *copies, struct ring_id from, struct ring_id to, struct ringkey *ret_key) {
    uint8_t bytes[RING_ID_SIZE];
    size_t count = 0;
    randombytes_buf(bytes, sizeof bytes);
    struct ring_id drawn = ring_id_read(bytes);
    struct ring_id way = ring_id_distance(from, to);
    for (unsigned shift = 0; shift < 64 && way.high > 0 && drawn.high >= way.high; shift++) {
        drawn.high >>= 1;
    }
    struct ring_id start = {from.high + drawn.high, from.low};
    if (ring_id_is_between(from, start, to) &&
        copies_list(copies, start, to, NULL, ret_key, 1, &count) == ERR_OK && count > 0) {
        return true;
    }
    return copies_list(copies, from, to, NULL, ret_key, 1, &count) == ERR_OK && count > 0;
}

static enum err ask_for_proof(struct copies *copies, const struct peer *peer,
                              const struct copies_challenge *challenge,
                              const uint8_t expected[COPIES_PROOF_SIZE]) {
    struct err_detail detail = {0};
    buf_clear(&copies->question);
    copies_put_challenge(&copies->question, challenge);
    enum err err = peer_rpc_ask(copies->config.peer_rpc, peer, PEER_RPC_PROVE, buf_bytes(&copies->question),
                                COPIES_ASK_MS, &copies->answer, &detail);
    if (err == ERR_CORRUPT || err == ERR_NOT_FOUND) {
        return err;
    }
    if (err != ERR_OK) {
        return copies_err_of_others(err);
    }
    if (!bytes_equal(buf_bytes(&copies->answer), bytes_of(expected, COPIES_PROOF_SIZE))) {
        copies_blame(copies, peer, "does not hold what it says it holds");
        return ERR_MISMATCH;
    }
    return ERR_OK;
}

enum err copies_challenge_key(struct copies *copies, const struct peer *peer, const struct ringkey *key) {
    struct copies_challenge challenge = {.key = *key, .size = COPIES_PROVE_SIZE_MAX};
    struct bytes payload;
    uint8_t expected[COPIES_PROOF_SIZE];
    enum err err = copies_read_payload(copies, &copies->reading, key, &payload, NULL);
    if (err == ERR_CORRUPT) {
        copies_report_damage(copies, key);
    }
    if (err != ERR_OK) {
        return ERR_OK; /* who cannot know the answer does not ask */
    }
    randombytes_buf(challenge.nonce, sizeof challenge.nonce);
    uint64_t room = payload.size > COPIES_PROVE_SIZE_MAX ? payload.size - COPIES_PROVE_SIZE_MAX : 0;
    challenge.offset = room > 0 ? randombytes_uniform(room < UINT32_MAX ? (uint32_t)room : UINT32_MAX) : 0;
    copies_prove(&copies->reading.sha256, &challenge, payload, expected);
    err = ask_for_proof(copies, peer, &challenge, expected);
    pthread_mutex_lock(&copies->lock);
    copies->stat.challenged_count++;
    copies->stat.caught_count += err == ERR_MISMATCH || err == ERR_CORRUPT;
    pthread_mutex_unlock(&copies->lock);
    if (err == ERR_MISMATCH) {
        copies_note_false(copies, peer);
    }
    return err;
}

enum err copies_challenge_arc(struct copies *copies, const struct peer *peer, struct ring_id from,
                              struct ring_id to) {
    struct ringkey key;
    return draw_key(copies, from, to, &key) ? copies_challenge_key(copies, peer, &key) : ERR_OK;
}
