/* What we left is handed on to those who have it now. */
#include <string.h>

#include "base/assert.h"
#include "protocol/copies/keeper_state.h"

static const uint64_t FIRST_US = 3 * 1000000;  /* until then its primary has compared it with us, mostly */
static const uint64_t SILENT_US = 5 * 1000000; /* who did not answer, the first time */

size_t keeper_left_count(const struct keeper *keeper) {
    return keeper->left_count;
}

static void drop(struct keeper *keeper, size_t index) {
    keeper->left_count--;
    memmove(&keeper->left[index], &keeper->left[index + 1],
            (keeper->left_count - index) * sizeof keeper->left[0]);
}

/* Is (from, to] in it? */
static bool holds(const struct keeper_left *left, struct ring_id from, struct ring_id to) {
    return ring_id_is_owned(left->from, to, left->to) &&
           (ring_id_equal(left->from, from) || ring_id_is_between(left->from, from, to));
}

/* One that has the range already, one that it continues, or a new one. NULL: no room. */
static struct keeper_left *place_for(struct keeper *keeper, struct ring_id from, struct ring_id to) {
    for (size_t i = 0; i < keeper->left_count; i++) {
        struct keeper_left *left = &keeper->left[i];
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
    if (keeper->left_count == KEEPER_LEFT_MAX) {
        return NULL; /* it becomes surplus, and is handed on as that */
    }
    struct keeper_left *left = &keeper->left[keeper->left_count++];
    *left = (struct keeper_left){.from = from, .to = to};
    return left;
}

void keeper_leave(struct keeper *keeper, struct ring_id from, struct ring_id to, uint64_t now_us) {
    struct keeper_left *left = place_for(keeper, from, to);
    if (left != NULL) {
        left->since_us = now_us;
        left->due_us = now_us + keeper_jitter(keeper, FIRST_US);
        left->silent_count = 0;
        keeper_pass_restart(&left->pass);
    }
}

uint64_t keeper_left_at(const struct keeper *keeper) {
    uint64_t at_us = UINT64_MAX;
    for (size_t i = 0; i < keeper->left_count && keeper->pieces_count > 0 && !keeper->is_handing_on; i++) {
        at_us = keeper->left[i].due_us < at_us ? keeper->left[i].due_us : at_us;
    }
    return at_us;
}

bool keeper_next_left(struct keeper *keeper, uint64_t now_us, struct keeper_task *ret_task) {
    for (size_t i = 0; i < keeper->left_count && keeper->pieces_count > 0 && !keeper->is_handing_on; i++) {
        struct keeper_left *left = &keeper->left[i];
        struct keeper_task task = {.kind = KEEPER_HAND_ON};
        bool is_over = now_us >= left->since_us + keeper->config.grace_us; /* then it is surplus */
        if (left->due_us > now_us && !is_over) {
            continue;
        }
        if (is_over || !keeper_find_unseen(keeper, left, &task.from, &task.to)) {
            drop(keeper, i--);
            continue;
        }
        if (!ring_id_equal(task.from, left->from)) {
            left->from = task.from; /* what is before it is done */
            keeper_pass_restart(&left->pass);
        }
        task.has_rest = left->pass.has_rest;
        task.rest = left->pass.rest;
        keeper->is_handing_on = true;
        *ret_task = task;
        return true;
    }
    return false;
}

/* Up to there he has it all. */
static void advance(struct keeper *keeper, size_t index, struct ring_id reached, uint64_t now_us) {
    struct keeper_left *left = &keeper->left[index];
    if (!ring_id_is_between(left->from, reached, left->to)) {
        drop(keeper, index);
        return;
    }
    left->from = reached;
    left->due_us = now_us;
    left->pass = (struct keeper_pass){0};
}

void keeper_take_left(struct keeper *keeper, const struct keeper_task *task,
                      const struct keeper_outcome *outcome, uint64_t now_us) {
    keeper->is_handing_on = false;
    for (size_t i = 0; i < keeper->left_count; i++) {
        struct keeper_left *left = &keeper->left[i];
        if (!ring_id_equal(left->from, task->from)) {
            continue;
        }
        if (outcome->err != ERR_OK) {
            uint64_t wait_us =
                keeper_doubled(SILENT_US, left->silent_count, keeper->config.compare_interval_us);
            left->silent_count += left->silent_count < UINT32_MAX;
            left->due_us = now_us + keeper_jitter(keeper, wait_us);
            keeper_pass_restart(&left->pass);
            return;
        }
        left->silent_count = 0;
        uint64_t wait_us;
        bool is_complete = keeper_pass_take(&left->pass, task, outcome, &wait_us);
        left->due_us = now_us + wait_us;
        if (is_complete) {
            advance(keeper, i, outcome->is_partial ? outcome->reached : task->to, now_us);
        }
        return;
    }
}
