/* Does somebody really hold what he says? He is asked for a hash that only who has the payload can know. */
#include <sodium.h>

#include "node/copies/keeping_state.h"

/* Any of our keys in the arc: the first behind a place in it that is drawn by lot. */
static bool draw_key(struct keeping *keeping, struct ring_id from, struct ring_id to,
                     struct ringkey *ret_key) {
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
        keeping_list(keeping, start, to, NULL, ret_key, 1, &count) == ERR_OK && count > 0) {
        return true;
    }
    return keeping_list(keeping, from, to, NULL, ret_key, 1, &count) == ERR_OK && count > 0;
}

static enum err ask_for_proof(struct keeping *keeping, const struct peer *peer,
                              const struct keeping_challenge *challenge,
                              const uint8_t expected[KEEPING_PROOF_SIZE]) {
    struct err_detail detail = {0};
    buf_clear(&keeping->question);
    keeping_put_challenge(&keeping->question, challenge);
    enum err err = bulk_ask(keeping->config.bulk, peer, BULK_PROVE, buf_bytes(&keeping->question),
                            KEEPING_ASK_MS, &keeping->answer, &detail);
    if (err == ERR_CORRUPT || err == ERR_NOT_FOUND) {
        return err;
    }
    if (err != ERR_OK) {
        return keeping_err_of_others(err);
    }
    if (!bytes_equal(buf_bytes(&keeping->answer), bytes_of(expected, KEEPING_PROOF_SIZE))) {
        keeping_blame(keeping, peer, "does not hold what it says it holds");
        return ERR_MISMATCH;
    }
    return ERR_OK;
}

enum err keeping_challenge_key(struct keeping *keeping, const struct peer *peer, const struct ringkey *key) {
    struct keeping_challenge challenge = {.key = *key, .size = KEEPING_PROVE_SIZE_MAX};
    struct bytes payload;
    uint8_t expected[KEEPING_PROOF_SIZE];
    enum err err = keeping_read_payload(keeping, &keeping->reading, key, &payload, NULL);
    if (err == ERR_CORRUPT) {
        keeping_report_damage(keeping, key);
    }
    if (err != ERR_OK) {
        return ERR_OK; /* who cannot know the answer does not ask */
    }
    randombytes_buf(challenge.nonce, sizeof challenge.nonce);
    uint64_t room = payload.size > KEEPING_PROVE_SIZE_MAX ? payload.size - KEEPING_PROVE_SIZE_MAX : 0;
    challenge.offset = room > 0 ? randombytes_uniform(room < UINT32_MAX ? (uint32_t)room : UINT32_MAX) : 0;
    keeping_prove(&keeping->reading.sha256, &challenge, payload, expected);
    err = ask_for_proof(keeping, peer, &challenge, expected);
    pthread_mutex_lock(&keeping->lock);
    keeping->stat.challenged_count++;
    keeping->stat.caught_count += err == ERR_MISMATCH || err == ERR_CORRUPT;
    pthread_mutex_unlock(&keeping->lock);
    if (err == ERR_MISMATCH) {
        keeping_note_false(keeping, peer);
    }
    return err;
}

enum err keeping_challenge_arc(struct keeping *keeping, const struct peer *peer, struct ring_id from,
                               struct ring_id to) {
    struct ringkey key;
    return draw_key(keeping, from, to, &key) ? keeping_challenge_key(keeping, peer, &key) : ERR_OK;
}
