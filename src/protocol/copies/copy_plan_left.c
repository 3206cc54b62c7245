/* What we left is handed on to those who have it now. */
#include <string.h>

#include "base/assert.h"
#include "protocol/copies/copy_plan_state.h"

static const uint64_t FIRST_US = 3 * 1000000;  /* until then its primary has compared it with us, mostly */
static const uint64_t SILENT_US = 5 * 1000000; /* who did not answer, the first time */

size_t copy_plan_left_count(const struct copy_plan *copy_plan) {
    return copy_plan->left_count;
}

static void drop(struct copy_plan *copy_plan, size_t index) {
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

uint64_t copy_plan_left_at(const struct copy_plan *copy_plan) {
    uint64_t at_us = UINT64_MAX;
    for (size_t i = 0; i < copy_plan->left_count && copy_plan->pieces_count > 0 && !copy_plan->is_handing_on;
         i++) {
        at_us = copy_plan->left[i].due_us < at_us ? copy_plan->left[i].due_us : at_us;
    }
    return at_us;
}

bool copy_plan_next_left(struct copy_plan *copy_plan, uint64_t now_us, struct copy_plan_task *ret_task) {
    for (size_t i = 0; i < copy_plan->left_count && copy_plan->pieces_count > 0 && !copy_plan->is_handing_on;
         i++) {
        struct copy_plan_left *left = &copy_plan->left[i];
        struct copy_plan_task task = {.kind = COPY_PLAN_HAND_ON};
        bool is_over = now_us >= left->since_us + copy_plan->config.grace_us; /* then it is surplus */
        if (left->due_us > now_us && !is_over) {
            continue;
        }
        if (is_over || !copy_plan_find_unseen(copy_plan, left, &task.from, &task.to)) {
            drop(copy_plan, i--);
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

/* Up to there he has it all. */
static void advance(struct copy_plan *copy_plan, size_t index, struct ring_id reached, uint64_t now_us) {
    struct copy_plan_left *left = &copy_plan->left[index];
    if (!ring_id_is_between(left->from, reached, left->to)) {
        drop(copy_plan, index);
        return;
    }
    left->from = reached;
    left->due_us = now_us;
    left->pass = (struct copy_plan_pass){0};
}

void copy_plan_take_left(struct copy_plan *copy_plan, const struct copy_plan_task *task,
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
            advance(copy_plan, i, outcome->is_partial ? outcome->reached : task->to, now_us);
        }
        return;
    }
}
