/*
 * Surplus: captures of positions that no primary has compared with us for the grace time. Each holder is
 * asked whether it has them, and for a proof; what a holder lacks is offered to it; what all R holders have
 * is given up here.
 *
 *      list ──> look up ──> each holder: confirm ──> read, prove ──> offer ──> remove ──> next arc, next list
 */
#include "protocol/copies/replicator_state.h"

enum { LISTS_MAX = 16 /* in one task */ };

static size_t release_wanted(const struct replicator *replicator) {
    return replicator->world.copies(replicator->world.ring);
}

static void release_end(struct replicator *replicator, struct errand_release *errand, enum err err,
                        uint64_t now_us) {
    const struct copy_plan_task *task = &errand->task;
    struct ring_id reached =
        errand->count > 0 ? replicator_place(&errand->keys[errand->count - 1]) : task->to;
    struct copy_plan_outcome outcome = {
        .err = err,
        .is_partial =
            err == ERR_OK && errand->count == REPLICATOR_LIST_COUNT && !ring_id_equal(reached, task->to),
        .reached = reached,
    };
    errand_end(&errand->errand);
    copy_plan_done(replicator->copy_plan, task, &outcome, now_us);
}

static void release_list(struct replicator *replicator, struct errand_release *errand, uint64_t now_us) {
    const struct copy_plan_task *task = &errand->task;
    bool is_first = errand->lists_count == 0;
    if (errand->lists_count == LISTS_MAX || (!is_first && errand->count < REPLICATOR_LIST_COUNT)) {
        release_end(replicator, errand, ERR_OK, now_us);
        return;
    }
    struct ringkey last = is_first ? (struct ringkey){0} : errand->keys[errand->count - 1];
    enum err err = replicator_list(replicator, task->from, task->to, is_first ? NULL : &last, errand->keys,
                                   REPLICATOR_LIST_COUNT, &errand->count);
    errand->lists_count++;
    errand->at = 0;
    if (err != ERR_OK || errand->count == 0) {
        release_end(replicator, errand, err, now_us);
        return;
    }
    errand->errand.state = ERRAND_LOOK_UP;
}

/* The keys of the next arc. */
static void release_go_on(struct replicator *replicator, struct errand_release *errand, uint64_t now_us) {
    errand->at += errand->group_count;
    if (errand->group_count == 0 || errand->at >= errand->count) {
        release_list(replicator, errand, now_us);
    } else {
        errand->errand.state = ERRAND_LOOK_UP;
    }
}

/* The next one that all holders have, or the next arc. */
static void release_remove(struct replicator *replicator, struct errand_release *errand, uint64_t now_us) {
    size_t wanted = release_wanted(replicator);
    bool may_go = errand->is_complete && !replicator->config.keeps_surplus;
    while (errand->removing < errand->group_count && errand->confirmed[errand->removing] < wanted) {
        errand->removing++;
    }
    if (may_go && errand->removing < errand->group_count) {
        errand->errand.state = ERRAND_REMOVE;
    } else if (errand->is_complete) {
        release_go_on(replicator, errand, now_us);
    } else {
        release_end(replicator, errand, ERR_BUSY, now_us); /* not all holders could be asked */
    }
}

static void release_ask(struct replicator *replicator, struct errand_release *errand, uint64_t now_us) {
    if (errand->holder < errand->arc.count) {
        errand->errand.peer = errand->arc.peers[errand->holder];
        errand->errand.state = ERRAND_CONFIRM;
    } else {
        errand->removing = 0;
        release_remove(replicator, errand, now_us);
    }
}

static void release_ask_next(struct replicator *replicator, struct errand_release *errand, uint64_t now_us) {
    errand->holder++;
    release_ask(replicator, errand, now_us);
}

static void release_take_arc(struct replicator *replicator, struct errand_release *errand,
                             const struct replicator_event *event) {
    size_t wanted = release_wanted(replicator);
    if (event->err != ERR_OK) {
        release_end(replicator, errand, event->err, event->now_us);
        return;
    }
    errand->arc = *event->arc;
    errand->group_count = 0;
    while (errand->at + errand->group_count < errand->count &&
           ring_id_is_owned(errand->arc.from,
                            replicator_place(&errand->keys[errand->at + errand->group_count]),
                            errand->arc.to)) {
        errand->group_count++;
    }
    errand->is_complete = true;
    memset(errand->confirmed, 0, sizeof errand->confirmed);
    if (errand->group_count == 0 || errand->arc.self_rank >= 0 || errand->arc.count < wanted || wanted == 0) {
        release_go_on(replicator, errand, event->now_us); /* no surplus: its primary has not been here yet */
        return;
    }
    errand->holder = 0;
    release_ask(replicator, errand, event->now_us);
}

/* What it has counts if it is believed; what it lacks is offered to it. */
static void release_judge(struct replicator *replicator, struct errand_release *errand, bool is_believed,
                          uint64_t now_us) {
    size_t missing_count = 0;
    errand->is_complete = errand->is_complete && is_believed;
    for (size_t i = 0; i < errand->group_count; i++) {
        errand->confirmed[i] = (uint8_t)(errand->confirmed[i] + (errand->has[i] && is_believed));
        missing_count += errand->has[i] == 0;
    }
    if (missing_count > 0) {
        errand->errand.state = ERRAND_OFFER;
    } else {
        release_ask_next(replicator, errand, now_us);
    }
}

/* Words are cheap: a holder must prove one of the captures that it says it has, drawn by lot. A node that was
 * found false lately is not believed at all. */
static void release_take_word(struct replicator *replicator, struct errand_release *errand,
                              const struct replicator_event *event) {
    struct err_detail detail = {0};
    size_t had[REPLICATOR_LIST_COUNT];
    size_t had_count = 0;
    enum err err = event->err;
    if (err == ERR_OK) {
        err = copies_read_bits(event->bytes, errand->group_count, 1, errand->has, &detail);
        if (err != ERR_OK) {
            replicator_blame(replicator, &errand->errand.peer, "confirms something else than it was asked");
        }
    }
    if (err != ERR_OK) {
        errand->is_complete = false;
        release_ask_next(replicator, errand, event->now_us);
        return;
    }
    for (size_t i = 0; i < errand->group_count; i++) {
        had[had_count] = i;
        had_count += errand->has[i] != 0;
    }
    if (replicator_is_false(replicator, &errand->errand.peer, event->now_us)) {
        release_judge(replicator, errand, false, event->now_us);
    } else if (had_count == 0) {
        release_judge(replicator, errand, true, event->now_us);
    } else {
        size_t drawn = had[replicator_draw_below(replicator, had_count)];
        errand->challenge.asked.key = errand->keys[errand->at + drawn];
        errand->errand.state = ERRAND_READ;
    }
}

void replicator_release_begin(struct replicator *replicator, const struct copy_plan_task *task,
                              uint64_t now_us) {
    struct errand_release *errand = &replicator->release;
    errand->task = *task;
    errand->lists_count = 0;
    errand->count = 0;
    errand_begin(&errand->errand, ERRAND_LOOK_UP);
    release_list(replicator, errand, now_us);
}

/* ---- actions and events ---- */

static void release_put_missing(struct replicator *replicator, const struct errand_release *errand,
                                struct replicator_action *action) {
    size_t count = 0;
    for (size_t i = 0; i < errand->group_count; i++) {
        if (errand->has[i] == 0) {
            replicator->offered[count++] = errand->keys[errand->at + i];
        }
    }
    replicator_put_keys(replicator, replicator->offered, count, action);
}

void replicator_release_action(struct replicator *replicator, struct errand_release *errand,
                               struct replicator_action *action) {
    action->kind = REPLICATOR_ASK;
    switch (errand->errand.state) {
    case ERRAND_LOOK_UP:
        action->kind = REPLICATOR_LOOK_UP;
        action->place = replicator_place(&errand->keys[errand->at]);
        break;
    case ERRAND_CONFIRM:
        action->service = REPLICATOR_CONFIRM;
        replicator_put_keys(replicator, &errand->keys[errand->at], errand->group_count, action);
        break;
    case ERRAND_READ:
        action->kind = REPLICATOR_READ_PAYLOAD;
        action->key = errand->challenge.asked.key;
        break;
    case ERRAND_PROVE:
        challenge_put(&errand->challenge, replicator, action);
        break;
    case ERRAND_OFFER:
        action->service = REPLICATOR_OFFER;
        release_put_missing(replicator, errand, action);
        break;
    default:
        action->kind = REPLICATOR_REMOVE;
        action->key = errand->keys[errand->at + errand->removing];
        break;
    }
}

static void release_take_wishes(struct replicator *replicator, struct errand_release *errand,
                                const struct replicator_event *event) {
    size_t count = 0;
    for (size_t i = 0; i < errand->group_count; i++) {
        count += errand->has[i] == 0;
    }
    enum err err = replicator_take_wishes(replicator, &errand->errand.peer, count, event);
    (void)err; /* the next round asks again */
    release_ask_next(replicator, errand, event->now_us);
}

void replicator_release_take(struct replicator *replicator, struct errand_release *errand,
                             const struct replicator_event *event) {
    switch (errand->errand.state) {
    case ERRAND_LOOK_UP:
        release_take_arc(replicator, errand, event);
        break;
    case ERRAND_CONFIRM:
        release_take_word(replicator, errand, event);
        break;
    case ERRAND_READ:
        if (challenge_make(replicator, &errand->challenge, event)) {
            errand->errand.state = ERRAND_PROVE;
        } else {
            release_judge(replicator, errand, true, event->now_us);
        }
        break;
    case ERRAND_PROVE: {
        enum err err = challenge_judge(replicator, &errand->challenge, &errand->errand.peer, event);
        release_judge(replicator, errand, err == ERR_OK, event->now_us);
        break;
    }
    case ERRAND_OFFER:
        release_take_wishes(replicator, errand, event);
        break;
    default:
        replicator->counts.released_count += event->err == ERR_OK;
        errand->removing++;
        release_remove(replicator, errand, event->now_us);
        break;
    }
}
