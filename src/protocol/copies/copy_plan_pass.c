/* Comparisons that follow one another: when the next one, and where it begins. */
#include <string.h>

#include "protocol/copies/copy_plan_state.h"
#include "protocol/copies/reconcile_arc.h"

static const uint64_t SOON_US = 1000000; /* until the next one, at least */
static const uint64_t COMING_US = 1000;  /* for each key that comes, before it is looked for again */
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

bool copy_plan_pass_take(struct copy_plan_pass *pass, const struct copy_plan_task *task,
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
