#include "protocol/copies/primary_watch.h"

#include <string.h>

enum { LOST_MAX = 3 };
static const uint64_t MINUTE_US = 60 * 1000000;

void primary_watch_init(struct primary_watch *primary_watch, const struct primary_watch_config *config) {
    *primary_watch = (struct primary_watch){.config = *config};
    struct primary_watch_config *own = &primary_watch->config;
    own->challenge_interval_us =
        config->challenge_interval_us > 0 ? config->challenge_interval_us : 10 * MINUTE_US;
    own->silence_us = config->silence_us > 0 ? config->silence_us : 120 * MINUTE_US;
    own->bar_us = config->bar_us > 0 ? config->bar_us : 30 * MINUTE_US;
    prng_init(&primary_watch->prng, config->seed);
}

static const struct primary_watch_watched *watch_find(const struct primary_watch_watched *watched,
                                                      size_t count, const struct primary_watch_arc *arc) {
    for (size_t i = 0; i < count; i++) {
        if (peer_same_key(&watched[i].arc.primary, &arc->primary) &&
            ring_id_equal(watched[i].arc.to, arc->to)) {
            return &watched[i];
        }
    }
    return NULL;
}

void primary_watch_set(struct primary_watch *primary_watch, const struct primary_watch_arc *arcs,
                       size_t count, uint64_t now_us) {
    struct primary_watch_watched old[PRIMARY_WATCH_WATCHED_MAX];
    size_t old_count = primary_watch->count;
    memcpy(old, primary_watch->watched, sizeof old);
    primary_watch->count = count < PRIMARY_WATCH_WATCHED_MAX ? count : PRIMARY_WATCH_WATCHED_MAX;
    for (size_t i = 0; i < primary_watch->count; i++) {
        struct primary_watch_watched *watched = &primary_watch->watched[i];
        const struct primary_watch_watched *known = watch_find(old, old_count, &arcs[i]);
        if (known != NULL) {
            *watched = *known;
        } else {
            *watched = (struct primary_watch_watched){.heard_us = now_us};
            watched->challenge_us =
                now_us + prng_spread(&primary_watch->prng, primary_watch->config.challenge_interval_us);
        }
        watched->arc = arcs[i];
    }
}

void primary_watch_hear(struct primary_watch *primary_watch, const struct peer *peer, uint64_t now_us) {
    for (size_t i = 0; i < primary_watch->count; i++) {
        if (peer_same_key(&primary_watch->watched[i].arc.primary, peer)) {
            primary_watch->watched[i].heard_us = now_us;
        }
    }
}

/* Until then it need not be asked: it would change nothing. */
static void bar(struct primary_watch *primary_watch, struct primary_watch_watched *watched, uint64_t now_us) {
    watched->is_false = true;
    watched->lost_count = 0;
    watched->barred_until_us = now_us + primary_watch->config.bar_us;
    watched->challenge_us = watched->barred_until_us;
}

void primary_watch_accuse(struct primary_watch *primary_watch, const struct peer *peer, uint64_t now_us) {
    for (size_t i = 0; i < primary_watch->count; i++) {
        if (peer_same_key(&primary_watch->watched[i].arc.primary, peer)) {
            bar(primary_watch, &primary_watch->watched[i], now_us);
        }
    }
}

bool primary_watch_next(struct primary_watch *primary_watch, uint64_t now_us,
                        struct primary_watch_arc *ret_arc) {
    for (size_t i = 0; i < primary_watch->count; i++) {
        struct primary_watch_watched *watched = &primary_watch->watched[i];
        if (watched->challenge_us <= now_us) {
            watched->challenge_us =
                now_us + prng_spread(&primary_watch->prng, primary_watch->config.challenge_interval_us);
            *ret_arc = watched->arc;
            return true;
        }
    }
    return false;
}

void primary_watch_done(struct primary_watch *primary_watch, const struct peer *peer, enum err err,
                        uint64_t now_us) {
    for (size_t i = 0; i < primary_watch->count; i++) {
        struct primary_watch_watched *watched = &primary_watch->watched[i];
        if (!peer_same_key(&watched->arc.primary, peer)) {
            continue;
        }
        bool has_lost = err == ERR_NOT_FOUND || err == ERR_CORRUPT;
        watched->lost_count += has_lost;
        if (err == ERR_MISMATCH || watched->lost_count >= LOST_MAX) {
            bar(primary_watch, watched, now_us);
        } else if (err == ERR_OK) {
            watched->lost_count = 0;
            watched->is_false = watched->is_false && now_us < watched->barred_until_us;
        }
    }
}

static bool fails(const struct primary_watch *primary_watch, const struct primary_watch_watched *watched,
                  uint64_t now_us) {
    return watched->is_false || now_us >= watched->heard_us + primary_watch->config.silence_us;
}

bool primary_watch_fails(const struct primary_watch *primary_watch, const struct peer *peer,
                         uint64_t now_us) {
    for (size_t i = 0; i < primary_watch->count; i++) {
        if (peer_same_key(&primary_watch->watched[i].arc.primary, peer) &&
            fails(primary_watch, &primary_watch->watched[i], now_us)) {
            return true;
        }
    }
    return false;
}

uint64_t primary_watch_failing(const struct primary_watch *primary_watch, uint64_t now_us) {
    uint64_t failing = 0;
    for (size_t i = 0; i < primary_watch->count; i++) {
        failing |= (uint64_t)fails(primary_watch, &primary_watch->watched[i], now_us) << i;
    }
    return failing;
}
