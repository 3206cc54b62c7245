/* Comparisons with other holders: of our arcs, of arcs that were ours, and of all arcs if this node keeps
 * everything; and challenges, which find out whether a node holds what it says it holds. */
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>

#include "base/json.h"
#include "node/copies/copies_state.h"

/* ---- challenges: a hash that only a node with the payload can know ---- */

/* Whatever error the other side chose to answer with is no proof of anything. */
static enum err copies_err_of_others(enum err err) {
    bool is_kept = err == ERR_OK || err == ERR_NO_SPACE || err == ERR_TIMEOUT || err == ERR_UNREACHABLE ||
                   err == ERR_CLOSED || err == ERR_CANCELLED || err == ERR_BUSY;
    return is_kept ? err : ERR_REFUSED;
}

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
        return ERR_OK; /* without the answer there is no question */
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

/* With a key of ours in (from, to], drawn by lot. */
static enum err copies_challenge_arc(struct copies *copies, const struct peer *peer, struct ring_id from,
                                     struct ring_id to) {
    struct ringkey key;
    return draw_key(copies, from, to, &key) ? copies_challenge_key(copies, peer, &key) : ERR_OK;
}

/* ---- the primaries before us, as protocol/copies/primary_watch.h judges them ---- */

enum {
    GRACE_S = 3600,
    COMPARE_S = 300,
    INTERVALS = 20 /* that a primary may miss: a busy one compares late */
};
static const uint64_t SECOND_US = 1000000;

uint64_t copies_grace_us(const struct copies *copies) {
    return copies->config.grace_us > 0 ? copies->config.grace_us : GRACE_S * SECOND_US;
}

static uint64_t silence_us(const struct copies *copies) {
    uint64_t compare_us = copies->config.compare_interval_us;
    uint64_t many_us = INTERVALS * (compare_us > 0 ? compare_us : COMPARE_S * SECOND_US);
    uint64_t long_us = 2 * copies_grace_us(copies);
    return long_us > many_us ? long_us : many_us;
}

void copies_primary_watch_init(struct copies *copies) {
    struct primary_watch_config primary_watch = {
        .challenge_interval_us = copies->config.challenge_interval_us,
        .silence_us = silence_us(copies),
        .bar_us = copies_grace_us(copies) / 2,
        .seed = copies->config.seed,
    };
    primary_watch_init(&copies->primary_watch, &primary_watch);
}

/* The arc that ends where ours begins, and its primary. False: that is this node, or it is not known. */
static bool find_before(struct copies *copies, struct ring_id from, const struct peer *self,
                        struct primary_watch_arc *ret_arc) {
    const struct holders_source *ring = &copies->config.ring;
    struct holders_arc arc;
    if (!ring->know(ring->context, from, &arc) || arc.count == 0 || !ring_id_equal(arc.to, from) ||
        address_equal(&arc.peers[0].address, &self->address)) {
        return false;
    }
    *ret_arc = (struct primary_watch_arc){.primary = arc.peers[0], .from = arc.from, .to = arc.to};
    return true;
}

static bool fails(struct copies *copies, const struct peer *peer) {
    pthread_mutex_lock(&copies->lock);
    bool is_failing = primary_watch_fails(&copies->primary_watch, peer, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
    return is_failing;
}

/* Once around the ring, nobody is left who could take it. */
void copies_primary_watch_reach(struct copies *copies, const struct peer *self, struct copy_plan_arc *arc,
                                struct copies_watch *watch) {
    const struct holders_source *ring = &copies->config.ring;
    struct primary_watch_arc before;
    size_t wanted = ring->copies(ring->context);
    arc->has_predecessor = find_before(copies, arc->from, self, &before);
    for (size_t depth = 1; depth < wanted && arc->has_predecessor; depth++) {
        if (watch->count < PRIMARY_WATCH_WATCHED_MAX) {
            watch->arcs[watch->count++] = before;
        }
        if (!fails(copies, &before.primary) || ring_id_is_owned(before.from, arc->to, before.to) ||
            ring_id_equal(before.from, arc->to)) {
            break;
        }
        arc->is_guarding = true;
        arc->from = before.from;
        arc->has_predecessor = find_before(copies, arc->from, self, &before);
    }
    arc->predecessor = arc->has_predecessor ? before.primary : (struct peer){0};
}

uint64_t copies_primary_watch_failing(struct copies *copies) {
    pthread_mutex_lock(&copies->lock);
    uint64_t failing = primary_watch_failing(&copies->primary_watch, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
    return failing;
}

void copies_primary_watch_run(struct copies *copies) {
    struct primary_watch_arc arc;
    pthread_mutex_lock(&copies->lock);
    bool is_due =
        copies->stat.is_fed && primary_watch_next(&copies->primary_watch, copies_now_us(copies), &arc);
    pthread_mutex_unlock(&copies->lock);
    if (!is_due) {
        return;
    }
    enum err err = copies_challenge_arc(copies, &arc.primary, arc.from, arc.to);
    pthread_mutex_lock(&copies->lock);
    primary_watch_done(&copies->primary_watch, &arc.primary, err, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
}

/* What protocol/copies/copy_plan.h wants to be done; comparisons for protocol/copies/full_sync.h, too. */

enum { FOUND_MAX = 8192 /* keys of one comparison; the next one goes on behind them */ };

/* ---- comparison ---- */

/* What follows from a comparison: what is missing here is wanted, what is missing there is offered. */
enum copies_aim { COPIES_FETCH = 1, COPIES_GIVE = 2, COPIES_BOTH = 3 };

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
    pthread_mutex_lock(&copies->lock);
    bool is_deleted = copies_is_deleted(copies, key);
    pthread_mutex_unlock(&copies->lock);
    if (is_deleted) {
        return; /* the other node has not heard of it */
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

/* Until the other node has no room for more. */
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
static enum err compare_arc_of(struct comparison *comparison, const struct copy_plan_task *task,
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

/* The arc of the task with its peer. Only what is aimed at counts as missing. */
static struct copy_plan_outcome copies_compare(struct copies *copies, const struct copy_plan_task *task,
                                               enum copies_aim aim) {
    struct comparison comparison = {.copies = copies, .peer = &task->peer, .aim = aim};
    struct copy_plan_outcome outcome = {.err = ERR_MEMORY};
    bool is_whole = false;
    comparison.haves = malloc(FOUND_MAX * sizeof *comparison.haves);
    if (comparison.haves != NULL) {
        outcome.err = compare_arc_of(&comparison, task, &is_whole);
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
        outcome.err = ERR_MISMATCH; /* something that the node gave since the last time was false */
    }
    copies_count(copies, &copies->stat.compared_count, 1);
    return outcome;
}

/* What was ours until the ring changed: the primary of its first part gets what it lacks. */
static struct copy_plan_outcome run_hand_on(struct copies *copies, const struct copy_plan_task *task) {
    const struct holders_source *ring = &copies->config.ring;
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
    copies_count(copies, &copies->stat.handed_on_count, outcome.missing_there_count);
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

/*
 * ---- everything that the ring holds ----
 *
 * One arc of other nodes after the other is compared with one of its holders, and what is missing here is
 * wanted. What its primary lacks is offered to the primary, as any surplus is (copies_release.c); the primary
 * sees to the other holders.
 */

void copies_full_sync_init(struct copies *copies) {
    struct full_sync_config config = {
        .interval_us = copies->config.compare_interval_us,
        .seed = copies->config.seed,
    };
    full_sync_init(&copies->full_sync, &config, copies_now_us(copies));
}

uint64_t copies_full_sync_at(const struct copies *copies) {
    return copies->config.keeps_everything ? full_sync_wake_at(&copies->full_sync) : UINT64_MAX;
}

static bool is_due(struct copies *copies, struct ring_id *ret_place) {
    bool is_busy = copies_wanted_count(copies) >= COPIES_WANTED_BUSY;
    pthread_mutex_lock(&copies->lock);
    bool is_due = copies->stat.is_fed && !is_busy && copies_now_us(copies) >= copies_full_sync_at(copies);
    *ret_place = full_sync_place(&copies->full_sync);
    pthread_mutex_unlock(&copies->lock);
    return is_due;
}

static void postpone(struct copies *copies) {
    pthread_mutex_lock(&copies->lock);
    full_sync_postpone(&copies->full_sync, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
}

/* What comes between the two is told: so first follow, then compare. */
static struct full_sync_outcome sync_with(struct copies *copies, const struct full_sync_stop *stop,
                                          const struct holders_arc *arc) {
    const struct peer *peer = &arc->peers[stop->index];
    struct copy_plan_task task = {
        .kind = COPY_PLAN_COMPARE, .from = stop->from, .to = stop->to, .peer = *peer};
    struct full_sync_outcome outcome = {.err = ERR_REFUSED};
    bool is_told = arc->self_rank > 0; /* as every holder */
    outcome.is_deaf = !is_told && copies_follow(copies, &arc->peers[0]) != ERR_OK;
    if (!copies_is_shunned(copies, peer)) {
        struct copy_plan_outcome compared =
            copies_compare(copies, &task, stop->index == 0 ? COPIES_BOTH : COPIES_FETCH);
        outcome.err = compared.err;
        outcome.missing_count = compared.missing_here_count;
    }
    pthread_mutex_lock(&copies->keys_lock);
    outcome.held_count = keyset_count(copies->keyset);
    pthread_mutex_unlock(&copies->keys_lock);
    return outcome;
}

bool copies_full_sync(struct copies *copies) {
    const struct holders_source *ring = &copies->config.ring;
    struct holders_arc arc;
    struct ring_id place;
    struct full_sync_stop stop;
    if (!is_due(copies, &place)) {
        return false;
    }
    if (copies_is_full(copies) || ring->find(ring->context, place, &arc) != ERR_OK || arc.count == 0) {
        postpone(copies);
        return true;
    }
    struct full_sync_arc found = {.to = arc.to, .count = arc.count, .self_rank = arc.self_rank};
    pthread_mutex_lock(&copies->lock);
    bool has_stop = full_sync_choose(&copies->full_sync, &found, copies_now_us(copies), &stop);
    pthread_mutex_unlock(&copies->lock);
    if (has_stop) {
        struct full_sync_outcome outcome = sync_with(copies, &stop, &arc);
        pthread_mutex_lock(&copies->lock);
        full_sync_done(&copies->full_sync, &stop, &outcome, copies_now_us(copies));
        copies->stat.toured_count++;
        pthread_mutex_unlock(&copies->lock);
    }
    return true;
}

bool copies_has_everything(struct copies *copies) {
    pthread_mutex_lock(&copies->lock);
    bool has_everything =
        copies->config.keeps_everything && full_sync_is_current(&copies->full_sync, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
    return has_everything;
}

void copies_full_sync_put_json(const struct copies *copies, struct json *json) {
    static const char *const names[] = {"full_sync", "tour"}; /* now and in 0.1 */
    const struct full_sync *full_sync = &copies->full_sync;
    json_text(json, "keep", copies->config.keeps_everything ? "everything" : "arc");
    for (size_t i = 0; copies->config.keeps_everything && i < sizeof names / sizeof *names; i++) {
        json_open(json, names[i]);
        JSON_COUNTS(json, {"rounds", full_sync->rounds_count}, {"arcs", full_sync->last.stops_count},
                    {"missing", full_sync->last.missing_count}, {"silent", full_sync->last.silent_count},
                    {"done", full_sync->now.stops_count});
        json_bool(json, "whole", full_sync_is_whole(full_sync, copies_now_us(copies)));
        json_close(json);
    }
}

void copies_touch_all(struct copies *copies, const struct peer *peer) {
    pthread_mutex_lock(&copies->lock);
    for (size_t i = 0; i < copy_plan_pieces_count(copies->copy_plan); i++) {
        struct copy_plan_piece_status piece;
        copy_plan_piece(copies->copy_plan, i, &piece);
        copy_plan_touch(copies->copy_plan, piece.to, peer, copies_now_us(copies));
    }
    pthread_mutex_unlock(&copies->lock);
}
