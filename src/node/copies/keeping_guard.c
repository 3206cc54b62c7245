/* Those before us, as protocol/copies/guard.h judges them. */
#include "node/copies/keeping_state.h"

enum {
    GRACE_S = 3600,
    COMPARE_S = 300,
    INTERVALS = 20 /* that a primary may miss: a busy one compares late */
};
static const uint64_t SECOND_US = 1000000;

uint64_t keeping_grace_us(const struct keeping *keeping) {
    return keeping->config.grace_us > 0 ? keeping->config.grace_us : GRACE_S * SECOND_US;
}

static uint64_t silence_us(const struct keeping *keeping) {
    uint64_t compare_us = keeping->config.compare_interval_us;
    uint64_t many_us = INTERVALS * (compare_us > 0 ? compare_us : COMPARE_S * SECOND_US);
    uint64_t long_us = 2 * keeping_grace_us(keeping);
    return long_us > many_us ? long_us : many_us;
}

void keeping_guard_init(struct keeping *keeping) {
    struct guard_config guard = {
        .challenge_interval_us = keeping->config.challenge_interval_us,
        .silence_us = silence_us(keeping),
        .bar_us = keeping_grace_us(keeping) / 2,
        .seed = keeping->config.seed,
    };
    guard_init(&keeping->guard, &guard);
}

/* ---- the ring ---- */

/* Who is primary of the arc that ends where ours begins. False: we are it ourselves, or nobody knows. */
static bool find_before(struct keeping *keeping, struct ring_id from, const struct peer *self,
                        struct guard_arc *ret_arc) {
    const struct keeping_ring *ring = &keeping->config.ring;
    struct holders_arc arc;
    if (!ring->know(ring->context, from, &arc) || arc.count == 0 || !ring_id_equal(arc.to, from) ||
        address_equal(&arc.peers[0].address, &self->address)) {
        return false;
    }
    *ret_arc = (struct guard_arc){.primary = arc.peers[0], .from = arc.from, .to = arc.to};
    return true;
}

static bool fails(struct keeping *keeping, const struct peer *peer) {
    pthread_mutex_lock(&keeping->lock);
    bool is_failing = guard_fails(&keeping->guard, peer, keeping_now_us(keeping));
    pthread_mutex_unlock(&keeping->lock);
    return is_failing;
}

/* Once around there is nobody left to whom it could be given. */
void keeping_guard_reach(struct keeping *keeping, const struct peer *self, struct keeper_arc *arc,
                         struct keeping_watch *watch) {
    const struct keeping_ring *ring = &keeping->config.ring;
    struct guard_arc before;
    size_t copies = ring->copies(ring->context);
    arc->has_predecessor = find_before(keeping, arc->from, self, &before);
    for (size_t depth = 1; depth < copies && arc->has_predecessor; depth++) {
        if (watch->count < GUARD_WATCHED_MAX) {
            watch->arcs[watch->count++] = before;
        }
        if (!fails(keeping, &before.primary) || ring_id_is_owned(before.from, arc->to, before.to) ||
            ring_id_equal(before.from, arc->to)) {
            break;
        }
        arc->is_guarding = true;
        arc->from = before.from;
        arc->has_predecessor = find_before(keeping, arc->from, self, &before);
    }
    arc->predecessor = arc->has_predecessor ? before.primary : (struct peer){0};
}

uint64_t keeping_guard_failing(struct keeping *keeping) {
    pthread_mutex_lock(&keeping->lock);
    uint64_t failing = guard_failing(&keeping->guard, keeping_now_us(keeping));
    pthread_mutex_unlock(&keeping->lock);
    return failing;
}

void keeping_guard_run(struct keeping *keeping) {
    struct guard_arc arc;
    pthread_mutex_lock(&keeping->lock);
    bool is_due = keeping->stat.is_fed && guard_next(&keeping->guard, keeping_now_us(keeping), &arc);
    pthread_mutex_unlock(&keeping->lock);
    if (!is_due) {
        return;
    }
    enum err err = keeping_challenge_arc(keeping, &arc.primary, arc.from, arc.to);
    pthread_mutex_lock(&keeping->lock);
    guard_done(&keeping->guard, &arc.primary, err, keeping_now_us(keeping));
    pthread_mutex_unlock(&keeping->lock);
}
