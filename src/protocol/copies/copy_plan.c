#include "protocol/copies/copy_plan.h"

#include <string.h>

#include "base/assert.h"
#include "protocol/copies/copy_plan_state.h"
#include "protocol/copies/reconcile_arc.h"

/* Comparisons that follow one another: when the next one, and where it begins. */

static const uint64_t SOON_US =
    1000000; /* until the next comparison, at least, whatever is said to have changed */
static const uint64_t SILENT_US =
    5 * 1000000;                        /* until a node that did not answer is asked again, the first time */
static const uint64_t COMING_US = 1000; /* for each key that comes, before it is looked for again */
static const uint64_t COMING_US_MAX = 15 * 1000000;
static const uint64_t STUCK_US_MAX = 15 * 1000000; /* on to the rest, while nothing more is taken */
static const uint64_t IDLE_US_MAX = 60 * 1000000;  /* from the start, while it does not get less */

void copy_plan_pass_restart(struct copy_plan_pass *pass) {
    pass->has_rest = false;
    pass->is_turned = false;
    pass->here_count = 0;
    pass->there_count = 0;
}

void copy_plan_pass_turn(struct copy_plan_pass *pass, const struct peer *peer, struct ring_id from,
                         struct ring_id to) {
    struct ring_id way = ring_id_distance(from, to);
    bool is_circle = way.high == 0 && way.low == 0;
    uint64_t places = is_circle ? UINT64_MAX : way.high;
    uint64_t lot;
    memcpy(&lot, peer->key, sizeof lot);
    copy_plan_pass_restart(pass);
    if (places > 1) {
        struct ring_id place = {from.high + 1 + prng_mix(lot) % (places - 1), 0};
        pass->rest = (struct ringkey){0};
        ring_id_write(place, pass->rest.bytes);
        pass->has_rest = true;
        pass->is_turned = true;
        pass->is_owed = true;
    }
}

static bool is_further(const struct copy_plan_pass *pass, const struct copy_plan_task *task,
                       const struct ringkey *rest) {
    struct reconcile_arc arc;
    ring_id_write(task->from, arc.from);
    ring_id_write(task->to, arc.to);
    struct reconcile_position reached = reconcile_arc_position(&arc, rest);
    struct reconcile_position before =
        pass->has_rest ? reconcile_arc_position(&arc, &pass->rest) : reconcile_arc_start(&arc);
    return reconcile_position_compare(&reached, &before) > 0;
}

static void count_if(uint32_t *count, bool is_so) {
    *count = is_so ? *count + (*count < UINT32_MAX) : 0;
}

/* After a whole pass. */
static uint64_t pause_us(const struct copy_plan_pass *pass, const struct copy_plan_outcome *outcome) {
    uint64_t wait_us = retry_doubled_us(SOON_US, pass->idle_count, IDLE_US_MAX);
    uint64_t coming_us = outcome->coming_count * COMING_US;
    coming_us = coming_us < COMING_US_MAX ? coming_us : COMING_US_MAX;
    return coming_us > wait_us ? coming_us : wait_us;
}

/* A comparison of the task's arc went well. True: nothing is missing in all of the arc.
 * Else *ret_wait_us until the next one. */
static bool copy_plan_pass_take(struct copy_plan_pass *pass, const struct copy_plan_task *task,
                                const struct copy_plan_outcome *outcome, uint64_t *ret_wait_us) {
    bool is_stuck = outcome->is_capped && !is_further(pass, task, &outcome->rest);
    count_if(&pass->stuck_count, is_stuck);
    if (is_stuck) {
        *ret_wait_us = retry_doubled_us(SOON_US, pass->stuck_count - 1, STUCK_US_MAX);
        return false;
    }
    pass->here_count += outcome->missing_here_count;
    pass->there_count += outcome->missing_there_count;
    if (outcome->is_capped) {
        pass->has_rest = true;
        pass->rest = outcome->rest;
        *ret_wait_us = SOON_US;
        return false;
    }
    if (pass->is_turned) {
        copy_plan_pass_restart(pass);
        *ret_wait_us = 0;
        return false;
    }
    uint64_t missing = pass->here_count + pass->there_count;
    count_if(&pass->idle_count, missing > 0 && pass->last_count > 0 && missing >= pass->last_count);
    pass->last_count = missing;
    pass->is_owed = false;
    copy_plan_pass_restart(pass);
    *ret_wait_us = pause_us(pass, outcome);
    return missing == 0;
}

/* Arcs that we left are handed on to the nodes that have them now. */

static const uint64_t FIRST_US = 3 * 1000000; /* until then its primary has compared it with us, mostly */

static void plan_drop(struct copy_plan *copy_plan, size_t index) {
    copy_plan->left_count--;
    memmove(&copy_plan->left[index], &copy_plan->left[index + 1],
            (copy_plan->left_count - index) * sizeof copy_plan->left[0]);
}

/* Is (from, to] in it? */
static bool holds(const struct copy_plan_left *left, struct ring_id from, struct ring_id to) {
    return ring_id_is_owned(left->from, to, left->to) &&
           (ring_id_equal(left->from, from) || ring_id_is_between(left->from, from, to));
}

/* One that has the range already, one that it continues, or a new one. NULL: no room. */
static struct copy_plan_left *place_for(struct copy_plan *copy_plan, struct ring_id from, struct ring_id to) {
    for (size_t i = 0; i < copy_plan->left_count; i++) {
        struct copy_plan_left *left = &copy_plan->left[i];
        if (holds(left, from, to)) {
            return left;
        }
        if (ring_id_equal(left->to, from)) {
            left->to = to;
            return left;
        }
        if (ring_id_equal(left->from, to)) {
            left->from = from;
            return left;
        }
    }
    if (copy_plan->left_count == COPY_PLAN_LEFT_MAX) {
        return NULL; /* it becomes surplus, and is handed on as that */
    }
    struct copy_plan_left *left = &copy_plan->left[copy_plan->left_count++];
    *left = (struct copy_plan_left){.from = from, .to = to};
    return left;
}

void copy_plan_leave(struct copy_plan *copy_plan, struct ring_id from, struct ring_id to, uint64_t now_us) {
    struct copy_plan_left *left = place_for(copy_plan, from, to);
    if (left != NULL) {
        left->since_us = now_us;
        left->due_us = now_us + prng_spread(&copy_plan->prng, FIRST_US);
        left->silent_count = 0;
        copy_plan_pass_restart(&left->pass);
    }
}

static uint64_t copy_plan_left_at(const struct copy_plan *copy_plan) {
    uint64_t at_us = UINT64_MAX;
    for (size_t i = 0; i < copy_plan->left_count && copy_plan->pieces_count > 0 && !copy_plan->is_handing_on;
         i++) {
        at_us = copy_plan->left[i].due_us < at_us ? copy_plan->left[i].due_us : at_us;
    }
    return at_us;
}

static bool copy_plan_next_left(struct copy_plan *copy_plan, uint64_t now_us,
                                struct copy_plan_task *ret_task) {
    for (size_t i = 0; i < copy_plan->left_count && copy_plan->pieces_count > 0 && !copy_plan->is_handing_on;
         i++) {
        struct copy_plan_left *left = &copy_plan->left[i];
        struct copy_plan_task task = {.kind = COPY_PLAN_HAND_ON};
        bool is_over = now_us >= left->since_us + copy_plan->config.grace_us; /* then it is surplus */
        if (left->due_us > now_us && !is_over) {
            continue;
        }
        if (is_over || !copy_plan_find_unseen(copy_plan, left, &task.from, &task.to)) {
            plan_drop(copy_plan, i--);
            continue;
        }
        if (!ring_id_equal(task.from, left->from)) {
            left->from = task.from; /* what is before it is done */
            copy_plan_pass_restart(&left->pass);
        }
        task.has_rest = left->pass.has_rest;
        task.rest = left->pass.rest;
        copy_plan->is_handing_on = true;
        *ret_task = task;
        return true;
    }
    return false;
}

/* Up to there the node has everything. */
static void plan_advance(struct copy_plan *copy_plan, size_t index, struct ring_id reached, uint64_t now_us) {
    struct copy_plan_left *left = &copy_plan->left[index];
    if (!ring_id_is_between(left->from, reached, left->to)) {
        plan_drop(copy_plan, index);
        return;
    }
    left->from = reached;
    left->due_us = now_us;
    left->pass = (struct copy_plan_pass){0};
}

static void copy_plan_take_left(struct copy_plan *copy_plan, const struct copy_plan_task *task,
                                const struct copy_plan_outcome *outcome, uint64_t now_us) {
    copy_plan->is_handing_on = false;
    for (size_t i = 0; i < copy_plan->left_count; i++) {
        struct copy_plan_left *left = &copy_plan->left[i];
        if (!ring_id_equal(left->from, task->from)) {
            continue;
        }
        if (outcome->err != ERR_OK) {
            uint64_t wait_us =
                retry_doubled_us(SILENT_US, left->silent_count, copy_plan->config.compare_interval_us);
            left->silent_count += left->silent_count < UINT32_MAX;
            left->due_us = now_us + prng_spread(&copy_plan->prng, wait_us);
            copy_plan_pass_restart(&left->pass);
            return;
        }
        left->silent_count = 0;
        uint64_t wait_us;
        bool is_complete = copy_plan_pass_take(&left->pass, task, outcome, &wait_us);
        left->due_us = now_us + wait_us;
        if (is_complete) {
            plan_advance(copy_plan, i, outcome->is_partial ? outcome->reached : task->to, now_us);
        }
        return;
    }
}

static const uint64_t SECOND_US = 1000000;
static const uint64_t HEARD_US = 30 * 1000000; /* again, however often it asks us */
static const uint64_t RATE_WINDOW_US = 10 * 1000000;

enum { TURNS_MAX = 4 };
enum { LONG_PART = 8 /* of the interval: a repair that takes so long is a long one */ };
enum { LOST_MAX = 3 /* keys in a row that somebody says it has lost, after it said that it has them */ };

const char *const copy_plan_levels[] = {"whole", "fresh", "away", "low", NULL};

static uint64_t plan_or_default(uint64_t value, uint64_t fallback) {
    return value > 0 ? value : fallback;
}

static struct copy_plan_config plan_complete(const struct copy_plan_config *config) {
    return (struct copy_plan_config){
        .copies = (uint32_t)plan_or_default(config->copies, 6),
        .pieces_max = (uint32_t)plan_or_default(config->pieces_max, 64),
        .claims_max = (uint32_t)plan_or_default(config->claims_max, 512),
        .compare_interval_us = plan_or_default(config->compare_interval_us, 300 * SECOND_US),
        .challenge_interval_us = plan_or_default(config->challenge_interval_us, 600 * SECOND_US),
        .grace_us = plan_or_default(config->grace_us, 3600 * SECOND_US),
        .bar_us = plan_or_default(config->bar_us, 1800 * SECOND_US),
        .keeps_everything = config->keeps_everything,
        .seed = config->seed,
    };
}

size_t copy_plan_size(const struct copy_plan_config *config) {
    struct copy_plan_config full = plan_complete(config);
    return sizeof(struct copy_plan) + full.pieces_max * sizeof(struct copy_plan_piece) +
           full.claims_max * sizeof(struct copy_plan_claimed);
}

struct copy_plan *copy_plan_init(void *memory, const struct copy_plan_config *config, uint64_t now_us) {
    struct copy_plan *copy_plan = memory;
    memset(memory, 0, copy_plan_size(config));
    copy_plan->config = plan_complete(config);
    ASSERT(copy_plan->config.copies <= CHARTER_REPLICAS_MAX);
    copy_plan->pieces = (struct copy_plan_piece *)(copy_plan + 1);
    copy_plan->claims = (struct copy_plan_claimed *)(copy_plan->pieces + copy_plan->config.pieces_max);
    prng_init(&copy_plan->prng, copy_plan->config.seed);
    copy_plan->rate_since_us = now_us;
    copy_plan->release_us =
        now_us + copy_plan->config.grace_us; /* until then others may not have claimed yet */
    return copy_plan;
}

/* ---- what to do ---- */

bool copy_plan_is_open(const struct copy_plan *copy_plan, const struct peer *peer) {
    bool is_open = false;
    for (size_t i = 0; i < copy_plan->open_count && !is_open; i++) {
        is_open = peer_equal(&copy_plan->open[i], peer);
    }
    return is_open;
}

static void plan_close(struct copy_plan *copy_plan, const struct peer *peer) {
    for (size_t i = 0; i < copy_plan->open_count; i++) {
        if (peer_equal(&copy_plan->open[i], peer)) {
            copy_plan->open[i] = copy_plan->open[--copy_plan->open_count];
            return;
        }
    }
}

/* The nodes that follow the holders are asked only if a repair takes long. */
static bool may_work(const struct copy_plan *copy_plan, const struct copy_plan_piece *piece,
                     const struct copy_plan_node *node) {
    bool is_asked = piece->repairing_since_us > 0 && node->barred_until_us == 0;
    return (node->is_chosen || is_asked) && node->away_since_us == 0 &&
           !copy_plan_is_open(copy_plan, &node->peer);
}

/* When the node wants its next task; *ret_kind which. Of two that are due, a comparison comes first. */
static uint64_t due_of(const struct copy_plan *copy_plan, const struct copy_plan_piece *piece,
                       const struct copy_plan_node *node, enum copy_plan_task_kind *ret_kind) {
    if (!node->is_chosen) {
        uint64_t long_us = piece->repairing_since_us + copy_plan->config.compare_interval_us / LONG_PART;
        *ret_kind = COPY_PLAN_ASK;
        return node->compare_us > long_us ? node->compare_us : long_us;
    }
    bool is_challenge = node->is_complete && node->challenge_us < node->compare_us;
    *ret_kind = is_challenge ? COPY_PLAN_CHALLENGE : COPY_PLAN_COMPARE;
    return is_challenge ? node->challenge_us : node->compare_us;
}

static bool next_of_members(struct copy_plan *copy_plan, uint64_t now_us, struct copy_plan_task *ret_task) {
    struct copy_plan_node *best = NULL;
    uint64_t best_us = UINT64_MAX;
    for (size_t i = 0; i < copy_plan->pieces_count && copy_plan->open_count < COPY_PLAN_OPEN_MAX; i++) {
        struct copy_plan_piece *piece = &copy_plan->pieces[i];
        for (size_t j = 0; j < piece->count; j++) {
            enum copy_plan_task_kind kind;
            uint64_t due_us = due_of(copy_plan, piece, &piece->nodes[j], &kind);
            if (due_us <= now_us && due_us < best_us && may_work(copy_plan, piece, &piece->nodes[j])) {
                best = &piece->nodes[j];
                best_us = due_us;
                *ret_task = (struct copy_plan_task){.kind = kind,
                                                    .from = piece->from,
                                                    .to = piece->to,
                                                    .peer = best->peer,
                                                    .has_rest = best->pass.has_rest,
                                                    .rest = best->pass.rest};
            }
        }
    }
    if (best != NULL) {
        copy_plan->open[copy_plan->open_count++] = best->peer;
        bool is_begun = ret_task->kind == COPY_PLAN_COMPARE && !ret_task->has_rest;
        best->began_us = is_begun ? now_us : best->began_us;
    }
    return best != NULL;
}

static bool may_release(const struct copy_plan *copy_plan) {
    return copy_plan->pieces_count > 0 && !copy_plan->config.keeps_everything;
}

static bool next_release(struct copy_plan *copy_plan, uint64_t now_us, struct copy_plan_task *ret_task) {
    static const struct ring_id zero;
    if (copy_plan->is_releasing || !may_release(copy_plan) || now_us < copy_plan->release_us) {
        return false;
    }
    struct copy_plan_task task = {.kind = COPY_PLAN_RELEASE};
    uint64_t grace_us = copy_plan->config.grace_us;
    struct copy_plan_left rest = {.from = copy_plan->release_cursor,
                                  .to = {UINT64_MAX, UINT64_MAX},
                                  .since_us = now_us > grace_us ? now_us - grace_us : 0};
    if (!copy_plan_find_unseen(copy_plan, &rest, &task.from, &task.to)) {
        copy_plan->release_cursor = zero;
        copy_plan->release_us = now_us + prng_spread(&copy_plan->prng, copy_plan->config.compare_interval_us);
        return false;
    }
    copy_plan->is_releasing = true;
    *ret_task = task;
    return true;
}

bool copy_plan_next(struct copy_plan *copy_plan, uint64_t now_us, struct copy_plan_task *ret_task) {
    copy_plan_refresh(copy_plan, now_us);
    if (copy_plan->turns_count < TURNS_MAX && next_of_members(copy_plan, now_us, ret_task)) {
        copy_plan->turns_count++;
        return true;
    }
    copy_plan->turns_count = 0; /* if members always want something, the others get their turn too */
    return copy_plan_next_left(copy_plan, now_us, ret_task) || next_release(copy_plan, now_us, ret_task) ||
           next_of_members(copy_plan, now_us, ret_task);
}

static void note_earlier(uint64_t *at_us, uint64_t other_us) {
    *at_us = other_us < *at_us ? other_us : *at_us;
}

uint64_t copy_plan_wake_at(struct copy_plan *copy_plan, uint64_t now_us) {
    uint64_t at_us = UINT64_MAX;
    copy_plan_refresh(copy_plan, now_us);
    for (size_t i = 0; i < copy_plan->pieces_count; i++) {
        for (size_t j = 0; j < copy_plan->pieces[i].count; j++) {
            const struct copy_plan_node *node = &copy_plan->pieces[i].nodes[j];
            enum copy_plan_task_kind kind;
            if (may_work(copy_plan, &copy_plan->pieces[i], node)) {
                note_earlier(&at_us, due_of(copy_plan, &copy_plan->pieces[i], node, &kind));
            }
            if (node->away_since_us > 0) {
                note_earlier(&at_us, node->away_since_us + copy_plan->config.grace_us);
            }
            if (node->barred_until_us > 0) {
                note_earlier(&at_us, node->barred_until_us);
            }
        }
    }
    if (may_release(copy_plan) && !copy_plan->is_releasing) {
        note_earlier(&at_us, copy_plan->release_us);
    }
    note_earlier(&at_us, copy_plan_left_at(copy_plan));
    return at_us;
}

/* ---- how it went ---- */

static void bar(struct copy_plan *copy_plan, struct copy_plan_node *node, uint64_t now_us) {
    node->barred_until_us = now_us + copy_plan->config.bar_us;
    node->is_complete = false;
}

static void take_silence(struct copy_plan *copy_plan, struct copy_plan_node *node,
                         const struct copy_plan_task *task, uint64_t now_us) {
    uint64_t wait_us = retry_doubled_us(SILENT_US, node->silent_count, copy_plan->config.compare_interval_us);
    node->silent_count += node->silent_count < UINT32_MAX;
    node->silent_us = now_us;
    if (!node->is_complete) {
        copy_plan_pass_turn(&node->pass, &node->peer, task->from, task->to);
    }
    node->compare_us = now_us + prng_spread(&copy_plan->prng, wait_us);
    node->challenge_us = node->compare_us + 1;
}

/* What one piece learns of a node holds for all: nobody waits for the same silence thirty times. */
static void spread(struct copy_plan *copy_plan, const struct copy_plan_node *heard, bool is_silent) {
    for (size_t i = 0; i < copy_plan->pieces_count; i++) {
        for (size_t j = 0; j < copy_plan->pieces[i].count; j++) {
            struct copy_plan_node *node = &copy_plan->pieces[i].nodes[j];
            if (node == heard || !peer_equal(&node->peer, &heard->peer)) {
                continue;
            }
            if (is_silent && node->compare_us < heard->compare_us) {
                node->compare_us = heard->compare_us;
                node->challenge_us = heard->challenge_us;
            }
            if (!is_silent && node->silent_count > 0) {
                node->compare_us = 0;
            }
            node->silent_count = is_silent ? heard->silent_count : 0;
            node->silent_us = is_silent ? heard->silent_us : node->silent_us;
        }
    }
}

static bool is_fault(enum err err) {
    return err == ERR_INVALID || err == ERR_TRUNCATED || err == ERR_LIMIT || err == ERR_MISMATCH;
}

static void take_comparison(struct copy_plan *copy_plan, struct copy_plan_node *node,
                            const struct copy_plan_task *task, const struct copy_plan_outcome *outcome,
                            uint64_t now_us) {
    node->silent_count = 0;
    node->missing_here_count = node->pass.here_count + outcome->missing_here_count;
    node->missing_there_count = node->pass.there_count + outcome->missing_there_count;
    node->is_doubted = false;
    uint64_t wait_us;
    bool is_complete = copy_plan_pass_take(&node->pass, task, outcome, &wait_us);
    node->compared_at_us = now_us > 0 ? now_us : 1;
    if (!is_complete) {
        node->is_complete = false;
        node->compare_us = now_us + wait_us;
        return;
    }
    if (!node->is_complete) {
        node->is_complete = true;
        node->challenge_us = now_us + prng_spread(&copy_plan->prng, copy_plan->config.challenge_interval_us);
    }
    node->compare_us = now_us + prng_spread(&copy_plan->prng, copy_plan->config.compare_interval_us);
    bool is_proven = node->began_us > node->unproven_us;
    node->unproven_us = is_proven ? 0 : node->unproven_us;
    if (!is_proven || node->is_touched) {
        note_earlier(&node->compare_us, now_us + SOON_US);
    }
    node->is_touched = false;
}

/* It is no holder: whatever it lacks, nothing is known of a copy. */
static void take_asked(struct copy_plan *copy_plan, struct copy_plan_node *node,
                       const struct copy_plan_task *task, const struct copy_plan_outcome *outcome,
                       uint64_t now_us) {
    uint64_t wait_us;
    node->silent_count = 0;
    bool is_over = copy_plan_pass_take(&node->pass, task, outcome, &wait_us);
    wait_us = is_over ? prng_spread(&copy_plan->prng, copy_plan->config.compare_interval_us) : wait_us;
    node->compare_us =
        node->is_chosen ? now_us : now_us + wait_us; /* it may have become a holder meanwhile */
}

static void take_member_task(struct copy_plan *copy_plan, struct copy_plan_node *node,
                             const struct copy_plan_task *task, const struct copy_plan_outcome *outcome,
                             uint64_t now_us) {
    bool is_challenge = task->kind == COPY_PLAN_CHALLENGE;
    bool is_silent = false;
    bool has_lost = is_challenge && (outcome->err == ERR_CORRUPT || outcome->err == ERR_NOT_FOUND);
    if (outcome->err == ERR_NO_SPACE) {
        node->is_full = true;
        node->missing_there_count = outcome->missing_there_count;
        bar(copy_plan, node, now_us);
    } else if (has_lost && ++node->lost_count < LOST_MAX) {
        node->is_complete = false; /* it may be new here and still on its way to it */
        node->compare_us = now_us;
    } else if (has_lost || is_fault(outcome->err)) {
        node->failed_count += is_challenge;
        node->lost_count = 0;
        node->is_false = true;
        bar(copy_plan, node, now_us);
    } else if (outcome->err != ERR_OK) {
        take_silence(copy_plan, node, task, now_us);
        is_silent = true;
    } else if (is_challenge) {
        node->silent_count = 0;
        node->lost_count = 0;
        node->challenge_us = now_us + prng_spread(&copy_plan->prng, copy_plan->config.challenge_interval_us);
    } else if (task->kind == COPY_PLAN_ASK) {
        take_asked(copy_plan, node, task, outcome, now_us);
    } else {
        take_comparison(copy_plan, node, task, outcome, now_us);
    }
    spread(copy_plan, node, is_silent);
}

static void take_release(struct copy_plan *copy_plan, const struct copy_plan_task *task,
                         const struct copy_plan_outcome *outcome, uint64_t now_us) {
    copy_plan->is_releasing = false;
    if (outcome->err != ERR_OK) {
        copy_plan->release_us = now_us + prng_spread(&copy_plan->prng, copy_plan->config.compare_interval_us);
        return;
    }
    copy_plan->release_cursor = outcome->is_partial ? outcome->reached : task->to;
    copy_plan->release_us = now_us;
    if (!outcome->is_partial && ring_id_compare(task->to, (struct ring_id){UINT64_MAX, UINT64_MAX}) == 0) {
        copy_plan->release_cursor = (struct ring_id){0, 0};
        copy_plan->release_us = now_us + prng_spread(&copy_plan->prng, copy_plan->config.compare_interval_us);
    }
}

void copy_plan_done(struct copy_plan *copy_plan, const struct copy_plan_task *task,
                    const struct copy_plan_outcome *outcome, uint64_t now_us) {
    if (task->kind == COPY_PLAN_RELEASE) {
        take_release(copy_plan, task, outcome, now_us);
        return;
    }
    if (task->kind == COPY_PLAN_HAND_ON) {
        copy_plan_take_left(copy_plan, task, outcome, now_us);
        return;
    }
    plan_close(copy_plan, &task->peer);
    struct copy_plan_piece *piece = copy_plan_find_piece(copy_plan, task->to);
    for (size_t i = 0; piece != NULL && i < piece->count; i++) {
        if (peer_equal(&piece->nodes[i].peer, &task->peer)) {
            bool is_same = ring_id_equal(piece->from, task->from) && ring_id_equal(piece->to, task->to);
            take_member_task(copy_plan, &piece->nodes[i], task, outcome, now_us);
            if (!is_same) {
                piece->nodes[i].compare_us = now_us; /* the arc has changed meanwhile */
                piece->nodes[i].is_complete = false;
                copy_plan_pass_restart(&piece->nodes[i].pass);
            }
            copy_plan_choose(copy_plan, piece, now_us);
            return;
        }
    }
}

void copy_plan_touch(struct copy_plan *copy_plan, struct ring_id place, const struct peer *peer,
                     uint64_t now_us) {
    struct copy_plan_piece *piece = copy_plan_find_piece(copy_plan, place);
    for (size_t i = 0; piece != NULL && i < piece->count; i++) {
        struct copy_plan_node *node = &piece->nodes[i];
        if ((peer == NULL || peer_same_key(&node->peer, peer)) && node->silent_count == 0) {
            node->is_touched = copy_plan_is_open(copy_plan, &node->peer);
            uint64_t soon_us = node->compared_at_us + SOON_US; /* however often somebody says so */
            note_earlier(&node->compare_us, soon_us > now_us ? soon_us : now_us);
        }
    }
}

void copy_plan_unproven(struct copy_plan *copy_plan, struct ring_id place, const struct peer *peer,
                        uint64_t now_us) {
    struct copy_plan_piece *piece = copy_plan_find_piece(copy_plan, place);
    for (size_t i = 0; piece != NULL && i < piece->count; i++) {
        if (peer == NULL || peer_same_key(&piece->nodes[i].peer, peer)) {
            piece->nodes[i].unproven_us = now_us;
        }
    }
    copy_plan_touch(copy_plan, place, peer, now_us);
}

void copy_plan_hear(struct copy_plan *copy_plan, const struct peer *peer, uint64_t now_us) {
    for (size_t i = 0; i < copy_plan->pieces_count; i++) {
        for (size_t j = 0; j < copy_plan->pieces[i].count; j++) {
            struct copy_plan_node *node = &copy_plan->pieces[i].nodes[j];
            if (node->silent_count > 0 && peer_same_key(&node->peer, peer)) {
                uint64_t soon_us = node->silent_us + prng_spread(&copy_plan->prng, HEARD_US);
                note_earlier(&node->compare_us, soon_us > now_us ? soon_us : now_us);
            }
        }
    }
}

void copy_plan_moved(struct copy_plan *copy_plan, uint64_t keys_count, uint64_t now_us) {
    copy_plan->rate_count += keys_count;
    uint64_t passed_us = now_us - copy_plan->rate_since_us;
    if (passed_us < RATE_WINDOW_US) {
        return;
    }
    if (copy_plan->rate_count > 0) {
        uint64_t rate = copy_plan->rate_count * 1000 / (passed_us / SECOND_US);
        bool is_first = copy_plan->keys_per_1000_s == 0;
        copy_plan->keys_per_1000_s = is_first ? rate : (3 * copy_plan->keys_per_1000_s + rate) / 4;
    }
    copy_plan->rate_count = 0;
    copy_plan->rate_since_us = now_us;
}

/* ---- status ---- */

size_t copy_plan_pieces_count(const struct copy_plan *copy_plan) {
    return copy_plan->pieces_count;
}

bool copy_plan_find(const struct copy_plan *copy_plan, struct ring_id place, size_t *ret_index) {
    const struct copy_plan_piece *piece = copy_plan_find_piece(copy_plan, place);
    if (piece != NULL) {
        *ret_index = (size_t)(piece - copy_plan->pieces);
    }
    return piece != NULL;
}

void copy_plan_piece(const struct copy_plan *copy_plan, size_t index,
                     struct copy_plan_piece_status *ret_status) {
    ASSERT(index < copy_plan->pieces_count);
    const struct copy_plan_piece *piece = &copy_plan->pieces[index];
    struct copy_plan_piece_status status = {
        .from = piece->from,
        .to = piece->to,
        .copies_count = 1,
        .repairing_since_us = piece->repairing_since_us,
        .members_count = piece->count,
    };
    bool has_unproven = false;
    for (size_t i = 0; i < piece->count; i++) {
        const struct copy_plan_node *node = &piece->nodes[i];
        status.away_count += node->away_since_us > 0;
        status.copies_count += node->is_chosen && node->is_complete && node->away_since_us == 0;
        has_unproven = has_unproven || (node->is_chosen && node->unproven_us > 0);
        if (node->is_chosen && node->away_since_us == 0) {
            status.missing_count += node->missing_here_count + node->missing_there_count;
            status.is_doubted = status.is_doubted || node->is_doubted;
        }
    }
    uint32_t copies = copy_plan->config.copies;
    bool is_enough = status.copies_count >= copies;
    status.level = is_enough && !has_unproven                          ? COPY_PLAN_WHOLE
                   : is_enough                                         ? COPY_PLAN_FRESH
                   : status.copies_count + status.away_count >= copies ? COPY_PLAN_AWAY
                                                                       : COPY_PLAN_LOW;
    if (copy_plan->keys_per_1000_s > 0) {
        status.estimate_s =
            (status.missing_count * 1000 + copy_plan->keys_per_1000_s - 1) / copy_plan->keys_per_1000_s;
    }
    *ret_status = status;
}

void copy_plan_member(const struct copy_plan *copy_plan, size_t index, size_t member_index,
                      struct copy_plan_member_status *ret_status) {
    ASSERT(index < copy_plan->pieces_count && member_index < copy_plan->pieces[index].count);
    const struct copy_plan_node *node = &copy_plan->pieces[index].nodes[member_index];
    *ret_status = (struct copy_plan_member_status){
        .peer = node->peer,
        .is_away = node->away_since_us > 0,
        .is_full = node->is_full,
        .is_false = node->is_false,
        .is_spare = !node->is_chosen && node->barred_until_us == 0 && node->away_since_us == 0,
        .is_complete = node->is_complete,
        .is_unproven = node->unproven_us > 0,
        .compared_at_us = node->compared_at_us,
        .missing_here_count = node->missing_here_count,
        .missing_there_count = node->missing_there_count,
        .is_doubted = node->is_doubted,
        .silent_count = node->silent_count,
        .failed_count = node->failed_count,
    };
}
