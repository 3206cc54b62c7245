/*
 * Everything that the ring holds: one arc of others after the other is compared with one of its holders, and
 * what is missing here is wanted. What its primary lacks is offered to him, as any surplus is (see
 * copies_release.c); the other holders are his to see to.
 */
#include <inttypes.h>

#include "base/json.h"
#include "node/copies/copies_state.h"

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
    pthread_mutex_lock(&copies->lock);
    bool is_due = copies->stat.is_fed && copies->wanted_count < COPIES_WANTED_BUSY &&
                  copies_now_us(copies) >= copies_full_sync_at(copies);
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
static struct full_sync_outcome compare(struct copies *copies, const struct full_sync_stop *stop,
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
    const struct copies_ring *ring = &copies->config.ring;
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
        struct full_sync_outcome outcome = compare(copies, &stop, &arc);
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
    const struct full_sync *full_sync = &copies->full_sync;
    json_text(json, "keep", copies->config.keeps_everything ? "everything" : "arc");
    if (copies->config.keeps_everything) {
        json_open(json, "tour");
        JSON_COUNTS(json, {"rounds", full_sync->rounds_count}, {"arcs", full_sync->last.stops_count},
                    {"missing", full_sync->last.missing_count}, {"silent", full_sync->last.silent_count},
                    {"done", full_sync->now.stops_count});
        json_bool(json, "whole", full_sync_is_whole(full_sync, copies_now_us(copies)));
        json_close(json);
    }
}
