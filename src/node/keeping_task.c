/* What ring/keeper.h wants to be done: comparisons and challenges. Comparisons for ring/tour.h, too. */
#include <sodium.h>
#include <stdlib.h>

#include "node/keeping_state.h"

enum { FOUND_MAX = 8192 /* keys of one comparison; the rest is found by the next, when these have moved */ };

/* Whatever error he chose to answer with is no proof of anything. */
static enum err of_the_other_side(enum err err) {
    bool is_kept = err == ERR_OK || err == ERR_NO_SPACE || err == ERR_TIMEOUT || err == ERR_UNREACHABLE ||
                   err == ERR_CLOSED || err == ERR_CANCELLED || err == ERR_BUSY;
    return is_kept ? err : ERR_REFUSED;
}

/* ---- comparison ---- */

struct comparison {
    struct keeping *keeping;
    const struct peer *peer;
    struct reconcile reconcile;
    struct ringkey *haves; /* FOUND_MAX */
    size_t haves_count;
    size_t offered_count; /* of them */
    uint64_t need_count;
    uint64_t have_count;
    bool is_cut; /* there is more than we want to know at once */
};

static void on_need(void *context, const struct ringkey *key) {
    struct comparison *comparison = context;
    struct keeping *keeping = comparison->keeping;
    comparison->need_count++;
    pthread_mutex_lock(&keeping->lock);
    bool has_room = keeping_want(keeping, key, comparison->peer);
    pthread_mutex_unlock(&keeping->lock);
    comparison->is_cut = comparison->is_cut || !has_room || comparison->need_count >= FOUND_MAX;
}

static void on_have(void *context, const struct ringkey *key) {
    struct comparison *comparison = context;
    comparison->have_count++;
    if (comparison->haves_count < FOUND_MAX) {
        comparison->haves[comparison->haves_count++] = *key;
    } else {
        comparison->is_cut = true;
    }
}

static enum err offer_haves(struct comparison *comparison) {
    enum err err = ERR_OK;
    while (err == ERR_OK && comparison->offered_count < comparison->haves_count) {
        size_t left = comparison->haves_count - comparison->offered_count;
        size_t count = left < KEEPING_KEYS_MAX ? left : KEEPING_KEYS_MAX;
        err = keeping_offer(comparison->keeping, comparison->peer,
                            comparison->haves + comparison->offered_count, count);
        comparison->offered_count += count;
    }
    return err == ERR_INVALID ? err : of_the_other_side(err);
}

/* One question and its answer. An empty *message: all is known. */
static enum err turn(struct comparison *comparison, const struct keeper_task *task, struct bytes *message) {
    struct keeping *keeping = comparison->keeping;
    struct err_detail detail = {0};
    buf_clear(&keeping->question);
    keeping_put_arc(&keeping->question, task->from, task->to);
    buf_put(&keeping->question, *message);
    enum err err = keeping->question.err;
    if (err == ERR_OK) {
        err = of_the_other_side(bulk_ask(keeping->config.bulk, comparison->peer, BULK_COMPARE,
                                         buf_bytes(&keeping->question), KEEPING_ASK_MS, &keeping->answer,
                                         &detail));
    }
    if (err != ERR_OK) {
        return err;
    }
    pthread_mutex_lock(&keeping->keys_lock);
    err = reconcile_take(&comparison->reconcile, buf_bytes(&keeping->answer), keeping->message,
                         RECONCILE_MESSAGE_SIZE_MAX, message, &detail);
    pthread_mutex_unlock(&keeping->keys_lock);
    if (err == ERR_INVALID || err == ERR_TRUNCATED || err == ERR_LIMIT) {
        keeping_blame(keeping, comparison->peer, "answers a comparison against the rules");
    }
    return err;
}

static enum err compare(struct comparison *comparison, const struct keeper_task *task, bool offers) {
    struct keeping *keeping = comparison->keeping;
    struct reconcile_report report = {on_need, on_have, comparison};
    struct reconcile_arc arc;
    struct bytes message;
    ring_id_write(task->from, arc.from);
    ring_id_write(task->to, arc.to);
    pthread_mutex_lock(&keeping->keys_lock);
    struct ringkey_set set = keyset_set(keeping->keyset);
    reconcile_init(&comparison->reconcile, &arc, &set, &report);
    enum err err =
        reconcile_ask(&comparison->reconcile, keeping->message, RECONCILE_MESSAGE_SIZE_MAX, &message, NULL);
    pthread_mutex_unlock(&keeping->keys_lock);
    while (err == ERR_OK && message.size > 0 && !comparison->is_cut && !keeping_is_stopping(keeping)) {
        err = turn(comparison, task, &message);
    }
    enum err offered = err == ERR_OK && offers ? offer_haves(comparison) : ERR_OK;
    return err != ERR_OK ? err : offered;
}

struct keeper_outcome keeping_compare(struct keeping *keeping, const struct keeper_task *task, bool offers) {
    struct comparison comparison = {.keeping = keeping, .peer = &task->peer};
    struct keeper_outcome outcome = {.err = ERR_MEMORY};
    comparison.haves = malloc(FOUND_MAX * sizeof *comparison.haves);
    if (comparison.haves != NULL) {
        outcome.err = compare(&comparison, task, offers);
        outcome.missing_here_count = comparison.need_count;
        outcome.missing_there_count = comparison.have_count;
        free(comparison.haves);
    }
    return outcome;
}

static struct keeper_outcome run_comparison(struct keeping *keeping, const struct keeper_task *task) {
    struct keeper_outcome outcome = keeping_compare(keeping, task, true);
    if (outcome.err == ERR_OK && keeping_take_falsehood(keeping, &task->peer)) {
        outcome.err = ERR_MISMATCH; /* of what he gave since the last time, something was false */
    }
    pthread_mutex_lock(&keeping->lock);
    keeping->stat.compared_count++;
    pthread_mutex_unlock(&keeping->lock);
    return outcome;
}

/* ---- challenges ---- */

/* Any of our keys in the arc: the first behind a place in it that is drawn by lot. */
static bool draw_key(struct keeping *keeping, const struct keeper_task *task, struct ringkey *ret_key) {
    uint8_t bytes[RING_ID_SIZE];
    size_t count = 0;
    randombytes_buf(bytes, sizeof bytes);
    struct ring_id drawn = ring_id_read(bytes);
    struct ring_id way = ring_id_distance(task->from, task->to);
    for (unsigned shift = 0; shift < 64 && way.high > 0 && drawn.high >= way.high; shift++) {
        drawn.high >>= 1;
    }
    struct ring_id start = {task->from.high + drawn.high, task->from.low};
    if (ring_id_is_between(task->from, start, task->to) &&
        keeping_list(keeping, start, task->to, NULL, ret_key, 1, &count) == ERR_OK && count > 0) {
        return true;
    }
    return keeping_list(keeping, task->from, task->to, NULL, ret_key, 1, &count) == ERR_OK && count > 0;
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
        return of_the_other_side(err);
    }
    if (!bytes_equal(buf_bytes(&keeping->answer), bytes_of(expected, KEEPING_PROOF_SIZE))) {
        keeping_blame(keeping, peer, "does not hold what it says it holds");
        return ERR_MISMATCH;
    }
    return ERR_OK;
}

static struct keeper_outcome run_challenge(struct keeping *keeping, const struct keeper_task *task) {
    struct keeper_outcome outcome = {.err = ERR_OK};
    struct keeping_challenge challenge;
    struct bytes payload;
    uint8_t expected[KEEPING_PROOF_SIZE];
    if (!draw_key(keeping, task, &challenge.key)) {
        return outcome;
    }
    enum err err = keeping_read_payload(keeping, &keeping->reading, &challenge.key, &payload, NULL);
    if (err == ERR_CORRUPT) {
        keeping_report_damage(keeping, &challenge.key);
    }
    if (err != ERR_OK) {
        return outcome; /* who cannot know the answer does not ask */
    }
    randombytes_buf(challenge.nonce, sizeof challenge.nonce);
    bool is_large = payload.size > KEEPING_PROVE_SIZE_MAX;
    uint64_t room = is_large ? payload.size - KEEPING_PROVE_SIZE_MAX : 0;
    challenge.size = KEEPING_PROVE_SIZE_MAX;
    challenge.offset = room > 0 ? randombytes_uniform(room < UINT32_MAX ? (uint32_t)room : UINT32_MAX) : 0;
    keeping_prove(&keeping->reading.sha256, &challenge, payload, expected);
    outcome.err = ask_for_proof(keeping, &task->peer, &challenge, expected);
    bool is_caught = outcome.err == ERR_MISMATCH || outcome.err == ERR_CORRUPT;
    pthread_mutex_lock(&keeping->lock);
    keeping->stat.challenged_count++;
    keeping->stat.caught_count += is_caught;
    pthread_mutex_unlock(&keeping->lock);
    return outcome;
}

void keeping_run_task(struct keeping *keeping, const struct keeper_task *task) {
    struct keeper_outcome outcome = {.err = ERR_OK};
    switch (task->kind) {
    case KEEPER_COMPARE:
        outcome = run_comparison(keeping, task);
        break;
    case KEEPER_CHALLENGE:
        outcome = run_challenge(keeping, task);
        break;
    case KEEPER_RELEASE:
        keeping_release(keeping, task, &outcome);
        break;
    }
    pthread_mutex_lock(&keeping->lock);
    keeper_done(keeping->keeper, task, &outcome, keeping_now_us(keeping));
    pthread_mutex_unlock(&keeping->lock);
}
