#include "protocol/copies/full_sync.h"

enum { MUCH_PERCENT = 1 /* of what is here: so much is not just what is new since the last round */ };
static const uint64_t INTERVAL_US = UINT64_C(300) * 1000000;
static const uint64_t SOON_US = 1000000; /* the next round, while something is missing */
static const uint64_t STEP_US = 10000;   /* between two stops, at least: however many arcs there are */
static const struct ring_id LAST_PLACE = {UINT64_MAX, UINT64_MAX};

void full_sync_init(struct full_sync *full_sync, const struct full_sync_config *config, uint64_t now_us) {
    *full_sync =
        (struct full_sync){.config = *config, .position = LAST_PLACE, .stop_us = now_us, .began_us = now_us};
    full_sync->is_hurried = true;
    full_sync->config.interval_us = config->interval_us > 0 ? config->interval_us : INTERVAL_US;
    prng_init(&full_sync->prng, config->seed);
}

uint64_t full_sync_wake_at(const struct full_sync *full_sync) {
    return full_sync->stop_us;
}

struct ring_id full_sync_place(const struct full_sync *full_sync) {
    return ring_id_add_power(full_sync->position, 0);
}

/* Until the next stop: as long as makes the round last for the interval. */
static uint64_t pause_us(struct full_sync *full_sync) {
    uint64_t stops_count = full_sync->last.stops_count > 0 ? full_sync->last.stops_count : 1;
    uint64_t share_us = full_sync->is_hurried
                            ? 0
                            : prng_spread(&full_sync->prng, full_sync->config.interval_us / stops_count);
    return share_us > STEP_US ? share_us : STEP_US;
}

static uint64_t idle_pause_us(struct full_sync *full_sync) {
    uint64_t max_us = full_sync->config.interval_us;
    uint64_t pause = full_sync->idle_count < 16 ? SOON_US << full_sync->idle_count : max_us;
    return prng_spread(&full_sync->prng, pause < max_us ? pause : max_us);
}

static void sync_end_round(struct full_sync *full_sync, uint64_t now_us) {
    uint64_t took_us = now_us - full_sync->began_us;
    uint64_t interval_us = took_us > full_sync->config.interval_us ? took_us : full_sync->config.interval_us;
    bool has_grown = full_sync->now.held_count > full_sync->last.held_count;
    bool is_behind = full_sync->now.missing_count * 100 > full_sync->now.held_count * MUCH_PERCENT;
    full_sync->is_whole = full_sync->now.missing_count == 0 && full_sync->now.silent_count == 0;
    full_sync->is_hurried = is_behind || full_sync->now.silent_count > 0;
    full_sync->whole_until_us = now_us + 2 * interval_us;
    bool is_idle = full_sync->is_hurried && !(is_behind && has_grown);
    full_sync->idle_count = is_idle ? full_sync->idle_count + (full_sync->idle_count < UINT32_MAX) : 0;
    full_sync->rounds_count++;
    full_sync->last = full_sync->now;
    full_sync->now = (struct full_sync_count){.held_count = full_sync->last.held_count};
    full_sync->position = LAST_PLACE;
    full_sync->stop_us = now_us + (full_sync->is_hurried ? idle_pause_us(full_sync) : pause_us(full_sync));
    full_sync->began_us = full_sync->stop_us;
}

static void sync_go_on(struct full_sync *full_sync, const struct full_sync_stop *stop, uint64_t now_us,
                       uint64_t pause) {
    full_sync->tries_count = 0;
    if (stop->is_last) {
        sync_end_round(full_sync, now_us);
    } else {
        full_sync->position = stop->to;
        full_sync->stop_us = now_us + pause;
    }
}

bool full_sync_choose(struct full_sync *full_sync, const struct full_sync_arc *arc, uint64_t now_us,
                      struct full_sync_stop *ret_stop) {
    struct full_sync_stop stop = {.from = full_sync->position, .to = arc->to};
    struct ring_id place = full_sync_place(full_sync);
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
        sync_go_on(full_sync, &stop, now_us, 0);
        return false;
    }
    stop.index = (size_t)((full_sync->rounds_count + full_sync->tries_count) % stop.others_count);
    stop.index += arc->self_rank > 0 && stop.index >= (size_t)arc->self_rank;
    *ret_stop = stop;
    return true;
}

void full_sync_done(struct full_sync *full_sync, const struct full_sync_stop *stop,
                    const struct full_sync_outcome *outcome, uint64_t now_us) {
    full_sync->now.missing_count += outcome->missing_count;
    full_sync->now.held_count = outcome->held_count;
    if (outcome->err != ERR_OK && ++full_sync->tries_count < stop->others_count) {
        full_sync->stop_us = now_us + STEP_US;
        return;
    }
    full_sync->now.silent_count += outcome->err != ERR_OK;
    full_sync->now.deaf_count += outcome->is_deaf;
    full_sync->now.stops_count++;
    sync_go_on(full_sync, stop, now_us, pause_us(full_sync));
}

void full_sync_postpone(struct full_sync *full_sync, uint64_t now_us) {
    full_sync->stop_us = now_us + prng_spread(&full_sync->prng, full_sync->config.interval_us < 10 * SOON_US
                                                                    ? full_sync->config.interval_us
                                                                    : 10 * SOON_US);
}

void full_sync_doubt(struct full_sync *full_sync) {
    full_sync->is_whole = false;
}

bool full_sync_is_whole(const struct full_sync *full_sync, uint64_t now_us) {
    return full_sync->is_whole && now_us <= full_sync->whole_until_us;
}

bool full_sync_is_current(const struct full_sync *full_sync, uint64_t now_us) {
    return full_sync_is_whole(full_sync, now_us) && full_sync->last.deaf_count == 0;
}
