/* What a keeper's tasks do in a small ring: as node/copies/copies_compare.c and node/copies/copies_release.c.
 */
#include "base/assert.h"
#include "sim/experiments/copies_model.h"

enum {
    COMPARE_ASKS_COUNT = 3,   /* questions of a comparison that finds something */
    RELEASE_COUNT = 4096,     /* keys that one task looks at */
    SILENCE_ASKS_COUNT = 100, /* as long as somebody who does not answer is waited for */
};

static uint32_t index_of(const struct peer *peer) {
    return peer->address.ip[15];
}

/* A capture's key as the plan knows it: nothing but its position. */
static struct ringkey key_of(const struct copies_model *world, uint32_t capture) {
    struct ringkey key = {0};
    ring_id_write(world->places[capture], key.bytes);
    return key;
}

bool copies_model_task_want(struct copies_model *world, uint32_t node, uint32_t capture, uint32_t source) {
    struct copies_model_node *wanting = &world->nodes[node];
    if (wanting->waits[capture] && !world->config.is_patient) {
        return true;
    }
    if (wanting->wanted_count == COPIES_MODEL_WANTED_MAX) {
        return false;
    }
    uint32_t index = (wanting->wanted_first + wanting->wanted_count++) % COPIES_MODEL_WANTED_MAX;
    wanting->waits[capture] = 1;
    wanting->wanted[index] = (struct copies_model_wanted){.capture = capture, .source = (uint8_t)source};
    copies_model_wake(world, node, world->now_us);
    return true;
}

/* ---- comparisons ---- */

/* (from, to] with another node, in the order of the places; *outcome: what was found and taken. */
static void compare(struct copies_model *world, uint32_t node, uint32_t other,
                    const struct copy_plan_task *task, struct copy_plan_outcome *outcome) {
    bool fetches = task->kind != COPY_PLAN_HAND_ON;
    bool gives = task->kind != COPY_PLAN_ASK;
    struct copies_model_node *here = &world->nodes[node];
    struct copies_model_node *there = &world->nodes[other];
    struct ring_id start = task->from;
    if (task->has_rest) {
        struct ring_id rest = ring_id_read(task->rest.bytes);
        start = (struct ring_id){rest.high - (rest.low == 0), rest.low - 1};
    }
    uint32_t capture = copies_model_behind(world, start);
    for (uint32_t i = 0;
         i < world->captures_count && ring_id_is_owned(start, world->places[capture], task->to);
         i++, capture = (capture + 1) % world->captures_count) {
        bool is_here = here->has[capture];
        if (is_here == there->has[capture] || !(is_here ? gives : fetches)) {
            continue;
        }
        uint64_t *count = is_here ? &outcome->missing_there_count : &outcome->missing_here_count;
        bool is_taken =
            *count < COPIES_MODEL_FOUND_MAX &&
            copies_model_task_want(world, is_here ? other : node, capture, is_here ? node : other);
        bool is_seen = is_taken || (world->config.is_patient && *count < COPIES_MODEL_FOUND_MAX);
        *count += is_seen;
        outcome->coming_count += is_taken && !world->config.is_patient;
        world->counts.offered_count += is_here && is_taken;
        if (!is_seen) {
            outcome->is_capped = true;
            outcome->rest = key_of(world, capture);
            break;
        }
    }
    world->counts.compared_count++;
    world->counts.capped_count += outcome->is_capped;
    outcome->is_capped = outcome->is_capped && !world->config.is_patient;
}

static void run_comparison(struct copies_model *world, uint32_t node, struct copy_plan_outcome *outcome) {
    const struct copy_plan_task *task = &world->nodes[node].task;
    uint32_t other = index_of(&task->peer);
    if (!copies_model_reaches(world, node, other)) {
        outcome->err = ERR_TIMEOUT;
        return;
    }
    compare(world, node, other, task, outcome);
    bool is_equal = outcome->missing_here_count + outcome->missing_there_count == 0 && !task->has_rest;
    if (copies_model_primary(world, other, task->to) == node) {
        copy_plan_claim(world->nodes[other].copy_plan, &world->nodes[node].peer, task->from, task->to,
                        is_equal, world->now_us);
    }
    copy_plan_hear(world->nodes[other].copy_plan, &world->nodes[node].peer, world->now_us);
}

/* ---- what is not ours ---- */

static void hand_on(struct copies_model *world, uint32_t node, struct copy_plan_outcome *outcome) {
    struct copy_plan_task part = world->nodes[node].task;
    uint32_t primary = copies_model_primary(world, node, ring_id_add_power(part.from, 0));
    struct ring_id end = world->nodes[primary].place;
    if (world->config.is_patient) {
        return;
    }
    outcome->is_partial = ring_id_is_between(part.from, end, part.to);
    part.to = outcome->is_partial ? end : part.to;
    outcome->reached = part.to;
    if (primary != node && !copies_model_reaches(world, node, primary)) {
        outcome->err = ERR_TIMEOUT;
    } else if (primary != node) {
        compare(world, node, primary, &part, outcome);
        world->counts.handed_count += outcome->missing_there_count;
    }
}

/* Offered to the holders that lack it. */
static void offer_surplus(struct copies_model *world, uint32_t node, uint32_t capture, enum err *err) {
    uint32_t holder = copies_model_primary(world, node, world->places[capture]);
    for (uint32_t i = 0; i < world->config.copies; i++, holder = copies_model_next(world, node, holder)) {
        if (holder == node) {
            continue;
        }
        if (!copies_model_reaches(world, node, holder)) {
            *err = ERR_BUSY;
        } else if (!world->nodes[holder].has[capture]) {
            (void)copies_model_task_want(world, holder, capture, node);
        }
    }
}

static void release(struct copies_model *world, uint32_t node, struct copy_plan_outcome *outcome) {
    const struct copy_plan_task *task = &world->nodes[node].task;
    uint32_t capture = copies_model_behind(world, task->from);
    uint32_t looked_count = 0;
    for (uint32_t i = 0; i < world->captures_count; i++, capture = (capture + 1) % world->captures_count) {
        struct ring_id place = world->places[capture];
        if (!ring_id_is_owned(task->from, place, task->to) || looked_count == RELEASE_COUNT) {
            break;
        }
        if (world->nodes[node].has[capture] && !copies_model_holds(world, node, node, place)) {
            offer_surplus(world, node, capture, &outcome->err);
            looked_count++;
            outcome->reached = place;
        }
    }
    outcome->is_partial = looked_count == RELEASE_COUNT && !ring_id_equal(outcome->reached, task->to);
}

/* ---- tasks ---- */

uint64_t copies_model_task_cost_us(const struct copies_model *world, uint32_t node,
                                   const struct copy_plan_task *task) {
    uint64_t asks_count = COMPARE_ASKS_COUNT;
    if (task->kind == COPY_PLAN_CHALLENGE) {
        asks_count = 1;
    } else if ((task->kind == COPY_PLAN_COMPARE || task->kind == COPY_PLAN_ASK) &&
               !copies_model_reaches(world, node, index_of(&task->peer))) {
        asks_count = SILENCE_ASKS_COUNT;
    }
    return asks_count * world->config.ask_us;
}

void copies_model_task_finish(struct copies_model *world, uint32_t node) {
    struct copies_model_node *own = &world->nodes[node];
    struct copy_plan_outcome outcome = {.err = ERR_OK};
    switch (own->task.kind) {
    case COPY_PLAN_COMPARE:
    case COPY_PLAN_ASK:
        run_comparison(world, node, &outcome);
        break;
    case COPY_PLAN_CHALLENGE:
        break;
    case COPY_PLAN_HAND_ON:
        hand_on(world, node, &outcome);
        break;
    case COPY_PLAN_RELEASE:
        release(world, node, &outcome);
        break;
    }
    copy_plan_done(own->copy_plan, &own->task, &outcome, world->now_us);
}
