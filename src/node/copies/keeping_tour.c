/*
 * Everything that the ring holds: one arc of others after the other is compared with one of its holders, and
 * what is missing here is wanted. What its primary lacks is offered to him, as any surplus is (see
 * keeping_release.c); the other holders are his to see to.
 */
#include <inttypes.h>

#include "node/copies/keeping_state.h"

void keeping_tour_init(struct keeping *keeping) {
    struct tour_config config = {
        .interval_us = keeping->config.compare_interval_us,
        .seed = keeping->config.seed,
    };
    tour_init(&keeping->tour, &config, keeping_now_us(keeping));
}

uint64_t keeping_tour_at(const struct keeping *keeping) {
    return keeping->config.keeps_everything ? tour_wake_at(&keeping->tour) : UINT64_MAX;
}

static bool is_due(struct keeping *keeping, struct ring_id *ret_place) {
    pthread_mutex_lock(&keeping->lock);
    bool is_due = keeping->stat.is_fed && keeping->wanted_count < KEEPING_WANTED_BUSY &&
                  keeping_now_us(keeping) >= keeping_tour_at(keeping);
    *ret_place = tour_place(&keeping->tour);
    pthread_mutex_unlock(&keeping->lock);
    return is_due;
}

static void postpone(struct keeping *keeping) {
    pthread_mutex_lock(&keeping->lock);
    tour_postpone(&keeping->tour, keeping_now_us(keeping));
    pthread_mutex_unlock(&keeping->lock);
}

/* What comes between the two is told: so first follow, then compare. */
static struct tour_outcome compare(struct keeping *keeping, const struct tour_stop *stop,
                                   const struct holders_arc *arc) {
    const struct peer *peer = &arc->peers[stop->index];
    struct keeper_task task = {.kind = KEEPER_COMPARE, .from = stop->from, .to = stop->to, .peer = *peer};
    struct tour_outcome outcome = {.err = ERR_REFUSED};
    bool is_told = arc->self_rank > 0; /* as every holder */
    outcome.is_deaf = !is_told && keeping_follow(keeping, &arc->peers[0]) != ERR_OK;
    if (!keeping_is_shunned(keeping, peer)) {
        struct keeper_outcome compared =
            keeping_compare(keeping, &task, stop->index == 0 ? KEEPING_BOTH : KEEPING_FETCH);
        outcome.err = compared.err;
        outcome.missing_count = compared.missing_here_count;
    }
    pthread_mutex_lock(&keeping->keys_lock);
    outcome.held_count = keyset_count(keeping->keyset);
    pthread_mutex_unlock(&keeping->keys_lock);
    return outcome;
}

bool keeping_tour(struct keeping *keeping) {
    const struct keeping_ring *ring = &keeping->config.ring;
    struct holders_arc arc;
    struct ring_id place;
    struct tour_stop stop;
    if (!is_due(keeping, &place)) {
        return false;
    }
    if (keeping_is_full(keeping) || ring->find(ring->context, place, &arc) != ERR_OK || arc.count == 0) {
        postpone(keeping);
        return true;
    }
    struct tour_arc found = {.to = arc.to, .count = arc.count, .self_rank = arc.self_rank};
    pthread_mutex_lock(&keeping->lock);
    bool has_stop = tour_choose(&keeping->tour, &found, keeping_now_us(keeping), &stop);
    pthread_mutex_unlock(&keeping->lock);
    if (has_stop) {
        struct tour_outcome outcome = compare(keeping, &stop, &arc);
        pthread_mutex_lock(&keeping->lock);
        tour_done(&keeping->tour, &stop, &outcome, keeping_now_us(keeping));
        keeping->stat.toured_count++;
        pthread_mutex_unlock(&keeping->lock);
    }
    return true;
}

bool keeping_has_everything(struct keeping *keeping) {
    pthread_mutex_lock(&keeping->lock);
    bool has_everything =
        keeping->config.keeps_everything && tour_is_current(&keeping->tour, keeping_now_us(keeping));
    pthread_mutex_unlock(&keeping->lock);
    return has_everything;
}

void keeping_tour_put_json(const struct keeping *keeping, struct buf *out) {
    const struct tour *tour = &keeping->tour;
    if (!keeping->config.keeps_everything) {
        buf_put_string(out, ",\"keep\":\"arc\"");
        return;
    }
    bool is_whole = tour_is_whole(tour, keeping_now_us(keeping));
    buf_put_format(out,
                   ",\"keep\":\"everything\",\"tour\":{\"rounds\":%" PRIu64 ",\"arcs\":%" PRIu64
                   ",\"missing\":%" PRIu64 ",\"silent\":%" PRIu64 ",\"done\":%" PRIu64 ",\"whole\":%s}",
                   tour->rounds_count, tour->last.stops_count, tour->last.missing_count,
                   tour->last.silent_count, tour->now.stops_count, is_whole ? "true" : "false");
}
