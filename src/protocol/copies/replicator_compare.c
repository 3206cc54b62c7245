/* Errands: comparisons with other holders, of our arcs, of arcs that were ours, and of all arcs if this node
 * keeps everything; and challenges, which find out whether a node holds what it says it holds. */
#include "base/assert.h"
#include "protocol/copies/replicator_state.h"

enum comparison_want replicator_compare_want(void *context, const struct ringkey *key,
                                             const struct peer *peer) {
    struct replicator *replicator = context;
    if (replicator_is_deleted(replicator, key)) {
        return COMPARISON_UNWANTED; /* the other node has not heard of it */
    }
    return replicator_want(replicator, TRANSFER_ORDER_OWN, key, peer) ? COMPARISON_COMING
                                                                      : COMPARISON_NO_ROOM;
}

void replicator_touch_all(struct replicator *replicator, const struct peer *peer, uint64_t now_us) {
    for (size_t i = 0; i < copy_plan_pieces_count(replicator->copy_plan); i++) {
        struct copy_plan_piece_status piece;
        copy_plan_piece(replicator->copy_plan, i, &piece);
        copy_plan_touch(replicator->copy_plan, piece.to, peer, now_us);
    }
}

/* ---- which may begin ---- */

static struct errand_comparison *compare_free(const struct replicator *replicator) {
    for (size_t i = 0; i < replicator->config.comparisons_max; i++) {
        if (replicator->comparisons[i].errand.state == ERRAND_FREE) {
            return &replicator->comparisons[i];
        }
    }
    return NULL;
}

static struct errand_challenge *challenge_free(const struct replicator *replicator) {
    for (size_t i = 0; i < REPLICATOR_CHALLENGES_MAX; i++) {
        if (replicator->challenges[i].errand.state == ERRAND_FREE) {
            return (struct errand_challenge *)&replicator->challenges[i];
        }
    }
    return NULL;
}

static bool compare_may_begin(const struct replicator *replicator) {
    return replicator->is_fed && replicator_wanted_count(replicator) < REPLICATOR_WANTED_BUSY &&
           compare_free(replicator) != NULL;
}

bool replicator_may_begin_task(const struct replicator *replicator) {
    return replicator->may_offer && compare_may_begin(replicator) && challenge_free(replicator) != NULL;
}

bool replicator_may_begin_sync(const struct replicator *replicator) {
    return replicator->config.keeps_everything && !replicator->is_syncing && compare_may_begin(replicator);
}

bool replicator_may_begin_watch(const struct replicator *replicator) {
    return replicator->is_fed && !replicator->is_watching && challenge_free(replicator) != NULL;
}

/* ---- comparisons: the end ---- */

static void compare_end(struct replicator *replicator, struct errand_comparison *errand, enum err err,
                        uint64_t now_us) {
    struct copy_plan_outcome outcome = comparison_outcome(&errand->comparison, err);
    if (err == ERR_OK && outcome.missing_there_count == 0) {
        custody_hurry(replicator->custody, &errand->errand.peer, now_us); /* it has what we wait for */
    }
    errand_end(&errand->errand);
    if (errand->purpose == ERRAND_SYNC) {
        const struct replicator_world *world = &replicator->world;
        struct full_sync_outcome stop = {.err = err,
                                         .missing_count = outcome.missing_here_count,
                                         .held_count = world->count(world->disk),
                                         .is_deaf = errand->is_deaf};
        full_sync_done(&replicator->full_sync, &errand->stop, &stop, now_us);
        replicator->is_syncing = false;
        replicator->counts.synced_count++;
        return;
    }
    if (errand->purpose == ERRAND_HAND_ON) {
        outcome.is_partial = errand->is_partial;
        outcome.reached = errand->comparison.to;
        replicator->counts.handed_on_count += outcome.missing_there_count;
    } else {
        if (err == ERR_OK && replicator_take_falsehood(replicator, &errand->task.peer)) {
            outcome.err = ERR_MISMATCH; /* something that the node gave since the last time was false */
        }
        replicator->counts.compared_count++;
    }
    copy_plan_done(replicator->copy_plan, &errand->task, &outcome, now_us);
}

/* ---- comparisons: turn by turn ---- */

static void compare_go_on(struct replicator *replicator, struct errand_comparison *errand, uint64_t now_us) {
    const struct ringkey *keys;
    if (comparison_has_turn(&errand->comparison)) {
        errand->errand.state = ERRAND_COMPARE;
    } else if (comparison_offer(&errand->comparison, &keys) > 0) {
        errand->errand.state = ERRAND_OFFER;
    } else {
        compare_end(replicator, errand, ERR_OK, now_us);
    }
}

static void compare_begin(struct replicator *replicator, struct errand_comparison *errand,
                          struct ring_id from, struct ring_id to, const struct peer *peer,
                          enum comparison_aim aim, uint64_t now_us) {
    const struct ringkey *rest = errand->task.has_rest ? &errand->task.rest : NULL;
    errand->errand.peer = *peer;
    enum err err = comparison_begin(&errand->comparison, &replicator->world.keys, from, to, rest, peer, aim);
    if (err == ERR_OK) {
        compare_go_on(replicator, errand, now_us);
    } else {
        compare_end(replicator, errand, err, now_us);
    }
}

static void compare_take_turn(struct replicator *replicator, struct errand_comparison *errand,
                              const struct replicator_event *event) {
    enum err err = replicator_err_of_others(event->err);
    if (err == ERR_OK) {
        err = comparison_take(&errand->comparison, event->bytes);
        if (err == ERR_INVALID || err == ERR_TRUNCATED || err == ERR_LIMIT) {
            replicator_blame(replicator, &errand->errand.peer, "answers a comparison against the rules");
        }
    }
    if (err == ERR_OK) {
        compare_go_on(replicator, errand, event->now_us);
    } else {
        compare_end(replicator, errand, err, event->now_us);
    }
}

static void compare_take_wishes(struct replicator *replicator, struct errand_comparison *errand,
                                const struct replicator_event *event) {
    const struct ringkey *keys;
    size_t count = comparison_offer(&errand->comparison, &keys);
    enum err err = replicator_take_wishes(replicator, &errand->errand.peer, count, event);
    if (err != ERR_OK) {
        bool is_false = err == ERR_INVALID && event->err == ERR_OK;
        compare_end(replicator, errand, is_false ? err : replicator_err_of_others(err), event->now_us);
        return;
    }
    comparison_take_wishes(&errand->comparison, replicator->wishes, count);
    compare_go_on(replicator, errand, event->now_us);
}

/* ---- what was ours until the ring changed: the primary of its first part gets what it lacks ---- */

static void hand_on_take_arc(struct replicator *replicator, struct errand_comparison *errand,
                             const struct replicator_event *event) {
    const struct copy_plan_task *task = &errand->task;
    const struct holders_arc *arc = event->arc;
    if (event->err != ERR_OK || arc->count == 0) {
        struct copy_plan_outcome outcome = {.err = event->err != ERR_OK ? event->err : ERR_NOT_FOUND};
        errand_end(&errand->errand);
        copy_plan_done(replicator->copy_plan, task, &outcome, event->now_us);
        return;
    }
    errand->is_partial = ring_id_is_between(task->from, arc->to, task->to);
    struct ring_id to = errand->is_partial ? arc->to : task->to;
    if (arc->self_rank == 0) {
        struct copy_plan_outcome outcome = {.err = ERR_OK, .is_partial = errand->is_partial, .reached = to};
        errand_end(&errand->errand);
        copy_plan_done(replicator->copy_plan, task, &outcome, event->now_us);
        return;
    }
    compare_begin(replicator, errand, task->from, to, &arc->peers[0], COMPARISON_GIVE, event->now_us);
}

/*
 * ---- everything that the ring holds ----
 *
 * One arc of other nodes after the other is compared with one of its holders, and what is missing here is
 * wanted. What its primary lacks is offered to the primary, as any surplus is (replicator_release.c); the
 * primary sees to the other holders.
 */

static void sync_compare(struct replicator *replicator, struct errand_comparison *errand, uint64_t now_us) {
    if (replicator_is_shunned(replicator, &errand->stop_peer, now_us)) {
        errand->comparison.need_count = 0;
        compare_end(replicator, errand, ERR_REFUSED, now_us);
        return;
    }
    compare_begin(replicator, errand, errand->stop.from, errand->stop.to, &errand->stop_peer,
                  errand->stop.index == 0 ? COMPARISON_BOTH : COMPARISON_FETCH, now_us);
}

/* What comes between the two is told: so first follow, then compare. */
static void sync_take_arc(struct replicator *replicator, struct errand_comparison *errand,
                          const struct replicator_event *event) {
    const struct holders_arc *arc = event->arc;
    bool has_arc = event->err == ERR_OK && arc->count > 0;
    struct full_sync_arc found = {0};
    if (has_arc) {
        found = (struct full_sync_arc){.to = arc->to, .count = arc->count, .self_rank = arc->self_rank};
    } else {
        full_sync_postpone(&replicator->full_sync, event->now_us);
    }
    if (!has_arc || !full_sync_choose(&replicator->full_sync, &found, event->now_us, &errand->stop)) {
        replicator->is_syncing = false;
        errand_end(&errand->errand);
        return;
    }
    errand->stop_peer = arc->peers[errand->stop.index];
    bool is_told = arc->self_rank > 0; /* as every holder */
    errand->is_deaf = !is_told && replicator_is_shunned(replicator, &arc->peers[0], event->now_us);
    if (is_told || errand->is_deaf) {
        sync_compare(replicator, errand, event->now_us);
        return;
    }
    errand->errand.peer = arc->peers[0];
    errand->errand.state = ERRAND_FOLLOW;
}

static void sync_take_follow(struct replicator *replicator, struct errand_comparison *errand,
                             const struct replicator_event *event) {
    enum err err = event->err;
    if (err != ERR_OK && err != ERR_BUSY && err != ERR_UNSUPPORTED) {
        replicator_shun(replicator, &errand->errand.peer,
                        event->now_us); /* the next stop does not wait again */
    }
    errand->is_deaf = err != ERR_OK;
    sync_compare(replicator, errand, event->now_us);
}

void replicator_begin_sync(struct replicator *replicator, uint64_t now_us) {
    if (!replicator_may_begin_sync(replicator) || now_us < full_sync_wake_at(&replicator->full_sync)) {
        return;
    }
    if (replicator_look_at_disk(replicator)) {
        full_sync_postpone(&replicator->full_sync, now_us);
        return;
    }
    struct errand_comparison *errand = compare_free(replicator);
    errand->purpose = ERRAND_SYNC;
    errand->task = (struct copy_plan_task){.kind = COPY_PLAN_COMPARE};
    replicator->is_syncing = true;
    errand_begin(&errand->errand, ERRAND_LOOK_UP);
}

/* ---- comparisons: actions and events ---- */

void replicator_compare_action(struct replicator *replicator, struct errand_comparison *errand,
                               struct replicator_action *action) {
    const struct comparison *comparison = &errand->comparison;
    const struct ringkey *keys;
    struct wire_writer writer;
    action->kind = REPLICATOR_ASK;
    switch (errand->errand.state) {
    case ERRAND_LOOK_UP:
        action->kind = REPLICATOR_LOOK_UP;
        action->place = errand->purpose == ERRAND_SYNC ? full_sync_place(&replicator->full_sync)
                                                       : ring_id_add_power(errand->task.from, 0);
        break;
    case ERRAND_FOLLOW:
        action->service = REPLICATOR_FOLLOW;
        break;
    case ERRAND_OFFER:
        action->service = REPLICATOR_OFFER;
        size_t count = comparison_offer(comparison, &keys);
        replicator_put_keys(replicator, keys, count, action);
        break;
    default:
        action->service = REPLICATOR_COMPARE;
        wire_writer_init(&writer, replicator->message, COPIES_COMPARE_HEAD_SIZE + comparison->message_size);
        copies_put_arc(&writer, comparison->from, comparison->to);
        wire_write_bytes(&writer, comparison->message);
        action->question = wire_writer_bytes(&writer);
        break;
    }
}

void replicator_compare_take(struct replicator *replicator, struct errand_comparison *errand,
                             const struct replicator_event *event) {
    switch (errand->errand.state) {
    case ERRAND_LOOK_UP:
        if (errand->purpose == ERRAND_SYNC) {
            sync_take_arc(replicator, errand, event);
        } else {
            hand_on_take_arc(replicator, errand, event);
        }
        break;
    case ERRAND_FOLLOW:
        sync_take_follow(replicator, errand, event);
        break;
    case ERRAND_OFFER:
        compare_take_wishes(replicator, errand, event);
        break;
    default:
        compare_take_turn(replicator, errand, event);
        break;
    }
}

/* ---- challenges ---- */

/* Any of our keys in the arc: the first behind a place in it that is drawn by lot. */
static bool challenge_draw(struct replicator *replicator, struct ring_id from, struct ring_id to,
                           struct ringkey *ret_key) {
    uint8_t bytes[SHA256_SIZE];
    size_t count = 0;
    replicator_draw(replicator, bytes);
    struct ring_id drawn = ring_id_read(bytes);
    struct ring_id way = ring_id_distance(from, to);
    for (unsigned shift = 0; shift < 64 && way.high > 0 && drawn.high >= way.high; shift++) {
        drawn.high >>= 1;
    }
    struct ring_id start = {from.high + drawn.high, from.low};
    if (ring_id_is_between(from, start, to) &&
        replicator_list(replicator, start, to, NULL, ret_key, 1, &count) == ERR_OK && count > 0) {
        return true;
    }
    return replicator_list(replicator, from, to, NULL, ret_key, 1, &count) == ERR_OK && count > 0;
}

bool challenge_make(struct replicator *replicator, struct challenge *challenge,
                    const struct replicator_event *event) {
    uint8_t drawn[SHA256_SIZE];
    if (event->err == ERR_CORRUPT) {
        replicator_report_damage(replicator, &challenge->asked.key);
    }
    if (event->err != ERR_OK) {
        return false; /* without the answer there is no question */
    }
    size_t size = event->bytes.size;
    replicator_draw(replicator, drawn);
    _Static_assert((int)COPIES_NONCE_SIZE == (int)SHA256_SIZE, "a nonce is one lot");
    memcpy(challenge->asked.nonce, drawn, COPIES_NONCE_SIZE);
    challenge->asked.size = COPIES_PROVE_SIZE_MAX;
    challenge->asked.offset =
        size > COPIES_PROVE_SIZE_MAX ? replicator_draw_below(replicator, size - COPIES_PROVE_SIZE_MAX) : 0;
    copies_prove(&replicator->sha256, &challenge->asked, event->bytes, challenge->expected);
    return true;
}

void challenge_put(const struct challenge *challenge, struct replicator *replicator,
                   struct replicator_action *action) {
    struct wire_writer writer;
    action->kind = REPLICATOR_ASK;
    action->service = REPLICATOR_PROVE;
    wire_writer_init(&writer, replicator->message,
                     COPIES_NONCE_SIZE + RINGKEY_SIZE + 2 * WIRE_VARINT_SIZE_MAX);
    copies_put_challenge(&writer, &challenge->asked);
    action->question = wire_writer_bytes(&writer);
}

enum err challenge_judge(struct replicator *replicator, const struct challenge *challenge,
                         const struct peer *peer, const struct replicator_event *event) {
    enum err err = event->err;
    if (err == ERR_OK && !bytes_equal(event->bytes, bytes_of(challenge->expected, COPIES_PROOF_SIZE))) {
        replicator_blame(replicator, peer, "does not hold what it says it holds");
        err = ERR_MISMATCH;
    } else if (err != ERR_OK && err != ERR_CORRUPT && err != ERR_NOT_FOUND) {
        err = replicator_err_of_others(err);
    }
    proofs_note(&replicator->proofs, peer, err, event->now_us);
    replicator->counts.challenged_count++;
    replicator->counts.caught_count += err == ERR_MISMATCH || err == ERR_CORRUPT;
    if (err == ERR_MISMATCH) {
        replicator_note_false(replicator, peer, event->now_us);
    }
    return err;
}

static void challenge_end(struct replicator *replicator, struct errand_challenge *errand, enum err err,
                          uint64_t now_us) {
    errand_end(&errand->errand);
    if (errand->purpose == ERRAND_WATCH) {
        primary_watch_done(&replicator->primary_watch, &errand->errand.peer, err, now_us);
        replicator->is_watching = false;
        return;
    }
    struct copy_plan_outcome outcome = {.err = err};
    copy_plan_done(replicator->copy_plan, &errand->task, &outcome, now_us);
}

static void challenge_begin(struct replicator *replicator, enum errand_purpose purpose,
                            const struct copy_plan_task *task, uint64_t now_us) {
    struct errand_challenge *errand = challenge_free(replicator);
    ASSERT(errand != NULL);
    errand->purpose = purpose;
    errand->task = *task;
    errand->errand.peer = task->peer;
    errand_begin(&errand->errand, ERRAND_READ);
    if (!challenge_draw(replicator, task->from, task->to, &errand->challenge.asked.key)) {
        challenge_end(replicator, errand, ERR_OK, now_us);
    }
}

void replicator_begin_watch(struct replicator *replicator, uint64_t now_us) {
    struct primary_watch_arc arc;
    while (replicator_may_begin_watch(replicator) &&
           primary_watch_next(&replicator->primary_watch, now_us, &arc)) {
        struct copy_plan_task task = {
            .kind = COPY_PLAN_CHALLENGE, .from = arc.from, .to = arc.to, .peer = arc.primary};
        replicator->is_watching = true;
        challenge_begin(replicator, ERRAND_WATCH, &task, now_us);
    }
}

void replicator_challenge_action(struct replicator *replicator, struct errand_challenge *errand,
                                 struct replicator_action *action) {
    if (errand->errand.state == ERRAND_PROVE) {
        challenge_put(&errand->challenge, replicator, action);
    } else {
        action->kind = REPLICATOR_READ_PAYLOAD;
        action->key = errand->challenge.asked.key;
    }
}

void replicator_challenge_take(struct replicator *replicator, struct errand_challenge *errand,
                               const struct replicator_event *event) {
    if (errand->errand.state == ERRAND_PROVE) {
        enum err err = challenge_judge(replicator, &errand->challenge, &errand->errand.peer, event);
        challenge_end(replicator, errand, err, event->now_us);
    } else if (challenge_make(replicator, &errand->challenge, event)) {
        errand->errand.state = ERRAND_PROVE;
    } else {
        challenge_end(replicator, errand, ERR_OK, event->now_us);
    }
}

/* ---- what the plan wants to be done ---- */

void replicator_begin_task(struct replicator *replicator, const struct copy_plan_task *task,
                           uint64_t now_us) {
    struct errand_comparison *errand = compare_free(replicator);
    ASSERT(errand != NULL);
    switch (task->kind) {
    case COPY_PLAN_COMPARE:
    case COPY_PLAN_ASK:
        errand->purpose = ERRAND_PLAN;
        errand->task = *task;
        errand_begin(&errand->errand, ERRAND_COMPARE);
        compare_begin(replicator, errand, task->from, task->to, &task->peer,
                      task->kind == COPY_PLAN_ASK ? COMPARISON_FETCH : COMPARISON_BOTH, now_us);
        break;
    case COPY_PLAN_HAND_ON:
        errand->purpose = ERRAND_HAND_ON;
        errand->task = *task;
        errand_begin(&errand->errand, ERRAND_LOOK_UP);
        break;
    case COPY_PLAN_CHALLENGE:
        challenge_begin(replicator, ERRAND_PLAN, task, now_us);
        break;
    case COPY_PLAN_RELEASE:
        replicator_release_begin(replicator, task, now_us);
        break;
    }
}
