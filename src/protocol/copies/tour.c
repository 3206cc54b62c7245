#include "protocol/copies/tour.h"

enum { MUCH_PERCENT = 1 /* of what is here: so much is not just what is new since the last round */ };
static const uint64_t INTERVAL_US = UINT64_C(300) * 1000000;
static const uint64_t SOON_US = 1000000; /* the next round, while something is missing */
static const uint64_t STEP_US = 10000;   /* between two stops, at least: however many arcs there are */
static const struct ring_id LAST_PLACE = {UINT64_MAX, UINT64_MAX};

void tour_init(struct tour *tour, const struct tour_config *config, uint64_t now_us) {
    *tour = (struct tour){.config = *config, .position = LAST_PLACE, .stop_us = now_us, .began_us = now_us};
    tour->is_hurried = true;
    tour->config.interval_us = config->interval_us > 0 ? config->interval_us : INTERVAL_US;
    prng_init(&tour->prng, config->seed);
}

uint64_t tour_wake_at(const struct tour *tour) {
    return tour->stop_us;
}

struct ring_id tour_place(const struct tour *tour) {
    return ring_id_add_power(tour->position, 0);
}

/* Between three and five quarters of it. */
static uint64_t jitter(struct tour *tour, uint64_t interval_us) {
    return interval_us * 3 / 4 + prng_below(&tour->prng, interval_us / 2 + 1);
}

/* Until the next stop: as long as makes the round last for the interval. */
static uint64_t pause_us(struct tour *tour) {
    uint64_t stops_count = tour->last.stops_count > 0 ? tour->last.stops_count : 1;
    uint64_t share_us = tour->is_hurried ? 0 : jitter(tour, tour->config.interval_us / stops_count);
    return share_us > STEP_US ? share_us : STEP_US;
}

static uint64_t idle_pause_us(struct tour *tour) {
    uint64_t max_us = tour->config.interval_us;
    uint64_t pause = tour->idle_count < 16 ? SOON_US << tour->idle_count : max_us;
    return jitter(tour, pause < max_us ? pause : max_us);
}

static void end_round(struct tour *tour, uint64_t now_us) {
    uint64_t took_us = now_us - tour->began_us;
    uint64_t interval_us = took_us > tour->config.interval_us ? took_us : tour->config.interval_us;
    bool has_grown = tour->now.held_count > tour->last.held_count;
    bool is_behind = tour->now.missing_count * 100 > tour->now.held_count * MUCH_PERCENT;
    tour->is_whole = tour->now.missing_count == 0 && tour->now.silent_count == 0;
    tour->is_hurried = is_behind || tour->now.silent_count > 0;
    tour->whole_until_us = now_us + 2 * interval_us;
    bool is_idle = tour->is_hurried && !(is_behind && has_grown);
    tour->idle_count = is_idle ? tour->idle_count + (tour->idle_count < UINT32_MAX) : 0;
    tour->rounds_count++;
    tour->last = tour->now;
    tour->now = (struct tour_count){.held_count = tour->last.held_count};
    tour->position = LAST_PLACE;
    tour->stop_us = now_us + (tour->is_hurried ? idle_pause_us(tour) : pause_us(tour));
    tour->began_us = tour->stop_us;
}

static void go_on(struct tour *tour, const struct tour_stop *stop, uint64_t now_us, uint64_t pause) {
    tour->tries_count = 0;
    if (stop->is_last) {
        end_round(tour, now_us);
    } else {
        tour->position = stop->to;
        tour->stop_us = now_us + pause;
    }
}

bool tour_choose(struct tour *tour, const struct tour_arc *arc, uint64_t now_us, struct tour_stop *ret_stop) {
    struct tour_stop stop = {.from = tour->position, .to = arc->to};
    struct ring_id place = tour_place(tour);
    stop.is_last = ring_id_compare(arc->to, place) < 0 || ring_id_equal(arc->to, LAST_PLACE);
    if (stop.is_last) {
        stop.to = LAST_PLACE; /* what is behind zero is the next round's first */
    }
    if (ring_id_equal(stop.from, stop.to)) { /* all of the ring: half of it is an arc that can be compared */
        stop.to = (struct ring_id){UINT64_MAX / 2, UINT64_MAX};
        stop.is_last = false;
    }
    stop.others_count = arc->count - (arc->self_rank >= 0);
    if (arc->self_rank == 0 || stop.others_count == 0) {
        go_on(tour, &stop, now_us, 0);
        return false;
    }
    stop.index = (size_t)((tour->rounds_count + tour->tries_count) % stop.others_count);
    stop.index += arc->self_rank > 0 && stop.index >= (size_t)arc->self_rank;
    *ret_stop = stop;
    return true;
}

void tour_done(struct tour *tour, const struct tour_stop *stop, const struct tour_outcome *outcome,
               uint64_t now_us) {
    tour->now.missing_count += outcome->missing_count;
    tour->now.held_count = outcome->held_count;
    if (outcome->err != ERR_OK && ++tour->tries_count < stop->others_count) {
        tour->stop_us = now_us + STEP_US;
        return;
    }
    tour->now.silent_count += outcome->err != ERR_OK;
    tour->now.deaf_count += outcome->is_deaf;
    tour->now.stops_count++;
    go_on(tour, stop, now_us, pause_us(tour));
}

void tour_postpone(struct tour *tour, uint64_t now_us) {
    tour->stop_us = now_us + jitter(tour, tour->config.interval_us < 10 * SOON_US ? tour->config.interval_us
                                                                                  : 10 * SOON_US);
}

void tour_doubt(struct tour *tour) {
    tour->is_whole = false;
}

bool tour_is_whole(const struct tour *tour, uint64_t now_us) {
    return tour->is_whole && now_us <= tour->whole_until_us;
}

bool tour_is_current(const struct tour *tour, uint64_t now_us) {
    return tour_is_whole(tour, now_us) && tour->last.deaf_count == 0;
}
