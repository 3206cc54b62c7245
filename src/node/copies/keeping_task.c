/* What protocol/copies/keeper.h wants to be done; comparisons for protocol/copies/tour.h, too. */
#include <stdlib.h>

#include "node/copies/keeping_state.h"

enum { FOUND_MAX = 8192 /* keys of one comparison; the next one goes on behind them */ };

enum err keeping_err_of_others(enum err err) {
    bool is_kept = err == ERR_OK || err == ERR_NO_SPACE || err == ERR_TIMEOUT || err == ERR_UNREACHABLE ||
                   err == ERR_CLOSED || err == ERR_CANCELLED || err == ERR_BUSY;
    return is_kept ? err : ERR_REFUSED;
}

/* ---- comparison ---- */

struct comparison {
    struct keeping *keeping;
    const struct peer *peer;
    enum keeping_aim aim;
    struct reconcile reconcile;
    struct ringkey *haves; /* FOUND_MAX */
    size_t haves_count;
    uint64_t need_count;
    uint64_t have_count;
    uint64_t coming_count;
    bool is_cut;                     /* there is more than we want to know at once */
    bool is_refused;                 /* there was no room for something, here or there */
    struct reconcile_position first; /* of it */
};

static void note_refused(struct comparison *comparison, const struct ringkey *key) {
    struct reconcile_position position = reconcile_arc_position(&comparison->reconcile.arc, key);
    if (!comparison->is_refused || reconcile_position_compare(&position, &comparison->first) < 0) {
        comparison->first = position;
    }
    comparison->is_refused = true;
    comparison->is_cut = true;
}

static void on_need(void *context, const struct ringkey *key) {
    struct comparison *comparison = context;
    struct keeping *keeping = comparison->keeping;
    if ((comparison->aim & KEEPING_FETCH) == 0) {
        return;
    }
    comparison->need_count++;
    pthread_mutex_lock(&keeping->lock);
    bool has_room = keeping_want(keeping, TURNS_OWN, key, comparison->peer);
    pthread_mutex_unlock(&keeping->lock);
    comparison->coming_count += has_room;
    if (!has_room) {
        note_refused(comparison, key);
    }
    comparison->is_cut = comparison->is_cut || comparison->need_count >= FOUND_MAX;
}

static void on_have(void *context, const struct ringkey *key) {
    struct comparison *comparison = context;
    if ((comparison->aim & KEEPING_GIVE) == 0) {
        return;
    }
    comparison->have_count++;
    if (comparison->haves_count < FOUND_MAX) {
        comparison->haves[comparison->haves_count++] = *key;
    } else {
        note_refused(comparison, key);
    }
    comparison->is_cut = comparison->is_cut || comparison->have_count >= FOUND_MAX;
}

/* Until he has no room for more. */
static enum err offer_haves(struct comparison *comparison) {
    struct keeping *keeping = comparison->keeping;
    enum err err = ERR_OK;
    size_t count = 0;
    for (size_t i = 0; i < comparison->haves_count && err == ERR_OK; i += count) {
        const struct ringkey *keys = comparison->haves + i;
        size_t left = comparison->haves_count - i;
        count = left < KEEPING_KEYS_MAX ? left : KEEPING_KEYS_MAX;
        err = keeping_offer(keeping, comparison->peer, keys, count);
        for (size_t j = 0; j < count && err == ERR_OK; j++) {
            if (keeping->wishes[j] == KEEPING_NOT_NOW) {
                note_refused(comparison, &keys[j]);
                return ERR_OK;
            }
            comparison->coming_count += keeping->wishes[j] != KEEPING_HAS;
        }
    }
    return err == ERR_INVALID ? err : keeping_err_of_others(err);
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
        err = keeping_err_of_others(bulk_ask(keeping->config.bulk, comparison->peer, BULK_COMPARE,
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

/* *ret_is_whole: the arc was looked at up to its end. */
static enum err compare(struct comparison *comparison, const struct keeper_task *task, bool *ret_is_whole) {
    struct keeping *keeping = comparison->keeping;
    struct reconcile_report report = {on_need, on_have, comparison};
    struct reconcile_arc arc;
    struct bytes message = {0};
    ring_id_write(task->from, arc.from);
    ring_id_write(task->to, arc.to);
    pthread_mutex_lock(&keeping->keys_lock);
    struct ringkey_set set = keyset_set(keeping->keyset);
    reconcile_init(&comparison->reconcile, &arc, &set, &report);
    if (task->has_rest) {
        reconcile_skip_to(&comparison->reconcile, &task->rest);
    }
    enum err err =
        reconcile_ask(&comparison->reconcile, keeping->message, RECONCILE_MESSAGE_SIZE_MAX, &message, NULL);
    pthread_mutex_unlock(&keeping->keys_lock);
    while (err == ERR_OK && message.size > 0 && !comparison->is_cut && !keeping_is_stopping(keeping)) {
        err = turn(comparison, task, &message);
    }
    *ret_is_whole = message.size == 0;
    return err == ERR_OK ? offer_haves(comparison) : err;
}

/* Where the next comparison shall begin: behind what is settled, and nothing that was refused. */
static struct ringkey rest_of(const struct comparison *comparison, bool is_whole) {
    const struct reconcile_position *settled = &comparison->reconcile.settled;
    bool is_refused =
        comparison->is_refused && (is_whole || reconcile_position_compare(&comparison->first, settled) < 0);
    return reconcile_position_key(is_refused ? &comparison->first : settled);
}

struct keeper_outcome keeping_compare(struct keeping *keeping, const struct keeper_task *task,
                                      enum keeping_aim aim) {
    struct comparison comparison = {.keeping = keeping, .peer = &task->peer, .aim = aim};
    struct keeper_outcome outcome = {.err = ERR_MEMORY};
    bool is_whole = false;
    comparison.haves = malloc(FOUND_MAX * sizeof *comparison.haves);
    if (comparison.haves != NULL) {
        outcome.err = compare(&comparison, task, &is_whole);
        outcome.missing_here_count = comparison.need_count;
        outcome.missing_there_count = comparison.have_count;
        outcome.coming_count = comparison.coming_count;
        outcome.is_capped = outcome.err == ERR_OK && (!is_whole || comparison.is_refused);
        outcome.rest = rest_of(&comparison, is_whole);
        free(comparison.haves);
    }
    return outcome;
}

static struct keeper_outcome run_comparison(struct keeping *keeping, const struct keeper_task *task) {
    enum keeping_aim aim = task->kind == KEEPER_ASK ? KEEPING_FETCH : KEEPING_BOTH;
    struct keeper_outcome outcome = keeping_compare(keeping, task, aim);
    if (outcome.err == ERR_OK && keeping_take_falsehood(keeping, &task->peer)) {
        outcome.err = ERR_MISMATCH; /* of what he gave since the last time, something was false */
    }
    pthread_mutex_lock(&keeping->lock);
    keeping->stat.compared_count++;
    pthread_mutex_unlock(&keeping->lock);
    return outcome;
}

/* What was ours until the ring changed: the primary of its first part gets what he lacks. */
static struct keeper_outcome run_hand_on(struct keeping *keeping, const struct keeper_task *task) {
    const struct keeping_ring *ring = &keeping->config.ring;
    struct keeper_outcome outcome = {.err = ERR_OK};
    struct keeper_task part = *task;
    struct holders_arc arc;
    enum err err = ring->find(ring->context, ring_id_add_power(task->from, 0), &arc);
    if (err != ERR_OK || arc.count == 0) {
        return (struct keeper_outcome){.err = err != ERR_OK ? err : ERR_NOT_FOUND};
    }
    bool is_partial = ring_id_is_between(task->from, arc.to, task->to);
    part.to = is_partial ? arc.to : task->to;
    if (arc.self_rank != 0) {
        part.peer = arc.peers[0];
        outcome = keeping_compare(keeping, &part, KEEPING_GIVE);
    }
    outcome.is_partial = is_partial;
    outcome.reached = part.to;
    pthread_mutex_lock(&keeping->lock);
    keeping->stat.handed_on_count += outcome.missing_there_count;
    pthread_mutex_unlock(&keeping->lock);
    return outcome;
}

void keeping_run_task(struct keeping *keeping, const struct keeper_task *task) {
    struct keeper_outcome outcome = {.err = ERR_OK};
    switch (task->kind) {
    case KEEPER_COMPARE:
    case KEEPER_ASK:
        outcome = run_comparison(keeping, task);
        break;
    case KEEPER_CHALLENGE:
        outcome.err = keeping_challenge_arc(keeping, &task->peer, task->from, task->to);
        break;
    case KEEPER_HAND_ON:
        outcome = run_hand_on(keeping, task);
        break;
    case KEEPER_RELEASE:
        keeping_release(keeping, task, &outcome);
        break;
    }
    pthread_mutex_lock(&keeping->lock);
    keeper_done(keeping->keeper, task, &outcome, keeping_now_us(keeping));
    pthread_mutex_unlock(&keeping->lock);
}
