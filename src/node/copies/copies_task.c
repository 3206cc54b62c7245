/* What protocol/copies/copy_plan.h wants to be done; comparisons for protocol/copies/full_sync.h, too. */
#include <stdlib.h>

#include "node/copies/copies_state.h"

enum { FOUND_MAX = 8192 /* keys of one comparison; the next one goes on behind them */ };

enum err copies_err_of_others(enum err err) {
    bool is_kept = err == ERR_OK || err == ERR_NO_SPACE || err == ERR_TIMEOUT || err == ERR_UNREACHABLE ||
                   err == ERR_CLOSED || err == ERR_CANCELLED || err == ERR_BUSY;
    return is_kept ? err : ERR_REFUSED;
}

/* ---- comparison ---- */

struct comparison {
    struct copies *copies;
    const struct peer *peer;
    enum copies_aim aim;
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
    struct copies *copies = comparison->copies;
    if ((comparison->aim & COPIES_FETCH) == 0) {
        return;
    }
    comparison->need_count++;
    pthread_mutex_lock(&copies->lock);
    bool has_room = copies_want(copies, TRANSFER_ORDER_OWN, key, comparison->peer);
    pthread_mutex_unlock(&copies->lock);
    comparison->coming_count += has_room;
    if (!has_room) {
        note_refused(comparison, key);
    }
    comparison->is_cut = comparison->is_cut || comparison->need_count >= FOUND_MAX;
}

static void on_have(void *context, const struct ringkey *key) {
    struct comparison *comparison = context;
    if ((comparison->aim & COPIES_GIVE) == 0) {
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
    struct copies *copies = comparison->copies;
    enum err err = ERR_OK;
    size_t count = 0;
    for (size_t i = 0; i < comparison->haves_count && err == ERR_OK; i += count) {
        const struct ringkey *keys = comparison->haves + i;
        size_t left = comparison->haves_count - i;
        count = left < COPIES_KEYS_MAX ? left : COPIES_KEYS_MAX;
        err = copies_offer(copies, comparison->peer, keys, count);
        for (size_t j = 0; j < count && err == ERR_OK; j++) {
            if (copies->wishes[j] == COPIES_NOT_NOW) {
                note_refused(comparison, &keys[j]);
                return ERR_OK;
            }
            comparison->coming_count += copies->wishes[j] != COPIES_HAS;
        }
    }
    return err == ERR_INVALID ? err : copies_err_of_others(err);
}

/* One question and its answer. An empty *message: all is known. */
static enum err turn(struct comparison *comparison, const struct copy_plan_task *task,
                     struct bytes *message) {
    struct copies *copies = comparison->copies;
    struct err_detail detail = {0};
    buf_clear(&copies->question);
    copies_put_arc(&copies->question, task->from, task->to);
    buf_put(&copies->question, *message);
    enum err err = copies->question.err;
    if (err == ERR_OK) {
        err = copies_err_of_others(peer_rpc_ask(copies->config.peer_rpc, comparison->peer, PEER_RPC_COMPARE,
                                                buf_bytes(&copies->question), COPIES_ASK_MS, &copies->answer,
                                                &detail));
    }
    if (err != ERR_OK) {
        return err;
    }
    pthread_mutex_lock(&copies->keys_lock);
    err = reconcile_take(&comparison->reconcile, buf_bytes(&copies->answer), copies->message,
                         RECONCILE_MESSAGE_SIZE_MAX, message, &detail);
    pthread_mutex_unlock(&copies->keys_lock);
    if (err == ERR_INVALID || err == ERR_TRUNCATED || err == ERR_LIMIT) {
        copies_blame(copies, comparison->peer, "answers a comparison against the rules");
    }
    return err;
}

/* *ret_is_whole: the arc was looked at up to its end. */
static enum err compare(struct comparison *comparison, const struct copy_plan_task *task,
                        bool *ret_is_whole) {
    struct copies *copies = comparison->copies;
    struct reconcile_report report = {on_need, on_have, comparison};
    struct reconcile_arc arc;
    struct bytes message = {0};
    ring_id_write(task->from, arc.from);
    ring_id_write(task->to, arc.to);
    pthread_mutex_lock(&copies->keys_lock);
    struct ringkey_set set = keyset_set(copies->keyset);
    reconcile_init(&comparison->reconcile, &arc, &set, &report);
    if (task->has_rest) {
        reconcile_skip_to(&comparison->reconcile, &task->rest);
    }
    enum err err =
        reconcile_ask(&comparison->reconcile, copies->message, RECONCILE_MESSAGE_SIZE_MAX, &message, NULL);
    pthread_mutex_unlock(&copies->keys_lock);
    while (err == ERR_OK && message.size > 0 && !comparison->is_cut && !copies_is_stopping(copies)) {
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

struct copy_plan_outcome copies_compare(struct copies *copies, const struct copy_plan_task *task,
                                        enum copies_aim aim) {
    struct comparison comparison = {.copies = copies, .peer = &task->peer, .aim = aim};
    struct copy_plan_outcome outcome = {.err = ERR_MEMORY};
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

static struct copy_plan_outcome run_comparison(struct copies *copies, const struct copy_plan_task *task) {
    enum copies_aim aim = task->kind == COPY_PLAN_ASK ? COPIES_FETCH : COPIES_BOTH;
    struct copy_plan_outcome outcome = copies_compare(copies, task, aim);
    if (outcome.err == ERR_OK && copies_take_falsehood(copies, &task->peer)) {
        outcome.err = ERR_MISMATCH; /* of what he gave since the last time, something was false */
    }
    pthread_mutex_lock(&copies->lock);
    copies->stat.compared_count++;
    pthread_mutex_unlock(&copies->lock);
    return outcome;
}

/* What was ours until the ring changed: the primary of its first part gets what he lacks. */
static struct copy_plan_outcome run_hand_on(struct copies *copies, const struct copy_plan_task *task) {
    const struct copies_ring *ring = &copies->config.ring;
    struct copy_plan_outcome outcome = {.err = ERR_OK};
    struct copy_plan_task part = *task;
    struct holders_arc arc;
    enum err err = ring->find(ring->context, ring_id_add_power(task->from, 0), &arc);
    if (err != ERR_OK || arc.count == 0) {
        return (struct copy_plan_outcome){.err = err != ERR_OK ? err : ERR_NOT_FOUND};
    }
    bool is_partial = ring_id_is_between(task->from, arc.to, task->to);
    part.to = is_partial ? arc.to : task->to;
    if (arc.self_rank != 0) {
        part.peer = arc.peers[0];
        outcome = copies_compare(copies, &part, COPIES_GIVE);
    }
    outcome.is_partial = is_partial;
    outcome.reached = part.to;
    pthread_mutex_lock(&copies->lock);
    copies->stat.handed_on_count += outcome.missing_there_count;
    pthread_mutex_unlock(&copies->lock);
    return outcome;
}

void copies_run_task(struct copies *copies, const struct copy_plan_task *task) {
    struct copy_plan_outcome outcome = {.err = ERR_OK};
    switch (task->kind) {
    case COPY_PLAN_COMPARE:
    case COPY_PLAN_ASK:
        outcome = run_comparison(copies, task);
        break;
    case COPY_PLAN_CHALLENGE:
        outcome.err = copies_challenge_arc(copies, &task->peer, task->from, task->to);
        break;
    case COPY_PLAN_HAND_ON:
        outcome = run_hand_on(copies, task);
        break;
    case COPY_PLAN_RELEASE:
        copies_release(copies, task, &outcome);
        break;
    }
    pthread_mutex_lock(&copies->lock);
    copy_plan_done(copies->copy_plan, task, &outcome, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
}
