#include "protocol/copies/guard.h"

#include <string.h>

enum { LOST_MAX = 3 };
static const uint64_t MINUTE_US = 60 * 1000000;

/* Between three and five quarters of it. */
static uint64_t jitter(struct guard *guard, uint64_t interval_us) {
    return interval_us * 3 / 4 + prng_below(&guard->prng, interval_us / 2 + 1);
}

static bool is_same(const struct peer *a, const struct peer *b) {
    return memcmp(a->key, b->key, PEER_KEY_SIZE) == 0;
}

void guard_init(struct guard *guard, const struct guard_config *config) {
    *guard = (struct guard){.config = *config};
    struct guard_config *own = &guard->config;
    own->challenge_interval_us =
        config->challenge_interval_us > 0 ? config->challenge_interval_us : 10 * MINUTE_US;
    own->silence_us = config->silence_us > 0 ? config->silence_us : 120 * MINUTE_US;
    own->bar_us = config->bar_us > 0 ? config->bar_us : 30 * MINUTE_US;
    prng_init(&guard->prng, config->seed);
}

static const struct guard_watched *find(const struct guard_watched *watched, size_t count,
                                        const struct guard_arc *arc) {
    for (size_t i = 0; i < count; i++) {
        if (is_same(&watched[i].arc.primary, &arc->primary) && ring_id_equal(watched[i].arc.to, arc->to)) {
            return &watched[i];
        }
    }
    return NULL;
}

void guard_set(struct guard *guard, const struct guard_arc *arcs, size_t count, uint64_t now_us) {
    struct guard_watched old[GUARD_WATCHED_MAX];
    size_t old_count = guard->count;
    memcpy(old, guard->watched, sizeof old);
    guard->count = count < GUARD_WATCHED_MAX ? count : GUARD_WATCHED_MAX;
    for (size_t i = 0; i < guard->count; i++) {
        struct guard_watched *watched = &guard->watched[i];
        const struct guard_watched *known = find(old, old_count, &arcs[i]);
        if (known != NULL) {
            *watched = *known;
        } else {
            *watched = (struct guard_watched){.heard_us = now_us};
            watched->challenge_us = now_us + jitter(guard, guard->config.challenge_interval_us);
        }
        watched->arc = arcs[i];
    }
}

void guard_hear(struct guard *guard, const struct peer *peer, uint64_t now_us) {
    for (size_t i = 0; i < guard->count; i++) {
        if (is_same(&guard->watched[i].arc.primary, peer)) {
            guard->watched[i].heard_us = now_us;
        }
    }
}

/* Until then he need not be asked: it would change nothing. */
static void bar(struct guard *guard, struct guard_watched *watched, uint64_t now_us) {
    watched->is_false = true;
    watched->lost_count = 0;
    watched->barred_until_us = now_us + guard->config.bar_us;
    watched->challenge_us = watched->barred_until_us;
}

void guard_accuse(struct guard *guard, const struct peer *peer, uint64_t now_us) {
    for (size_t i = 0; i < guard->count; i++) {
        if (is_same(&guard->watched[i].arc.primary, peer)) {
            bar(guard, &guard->watched[i], now_us);
        }
    }
}

bool guard_next(struct guard *guard, uint64_t now_us, struct guard_arc *ret_arc) {
    for (size_t i = 0; i < guard->count; i++) {
        struct guard_watched *watched = &guard->watched[i];
        if (watched->challenge_us <= now_us) {
            watched->challenge_us = now_us + jitter(guard, guard->config.challenge_interval_us);
            *ret_arc = watched->arc;
            return true;
        }
    }
    return false;
}

void guard_done(struct guard *guard, const struct peer *peer, enum err err, uint64_t now_us) {
    for (size_t i = 0; i < guard->count; i++) {
        struct guard_watched *watched = &guard->watched[i];
        if (!is_same(&watched->arc.primary, peer)) {
            continue;
        }
        bool has_lost = err == ERR_NOT_FOUND || err == ERR_CORRUPT;
        watched->lost_count += has_lost;
        if (err == ERR_MISMATCH || watched->lost_count >= LOST_MAX) {
            bar(guard, watched, now_us);
        } else if (err == ERR_OK) {
            watched->lost_count = 0;
            watched->is_false = watched->is_false && now_us < watched->barred_until_us;
        }
    }
}

static bool fails(const struct guard *guard, const struct guard_watched *watched, uint64_t now_us) {
    return watched->is_false || now_us >= watched->heard_us + guard->config.silence_us;
}

bool guard_fails(const struct guard *guard, const struct peer *peer, uint64_t now_us) {
    for (size_t i = 0; i < guard->count; i++) {
        if (is_same(&guard->watched[i].arc.primary, peer) && fails(guard, &guard->watched[i], now_us)) {
            return true;
        }
    }
    return false;
}

uint64_t guard_failing(const struct guard *guard, uint64_t now_us) {
    uint64_t failing = 0;
    for (size_t i = 0; i < guard->count; i++) {
        failing |= (uint64_t)fails(guard, &guard->watched[i], now_us) << i;
    }
    return failing;
}
