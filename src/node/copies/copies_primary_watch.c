/* Those before us, as protocol/copies/primary_watch.h judges them. */
#include "node/copies/copies_state.h"

enum {
    GRACE_S = 3600,
    COMPARE_S = 300,
    INTERVALS = 20 /* that a primary may miss: a busy one compares late */
};
static const uint64_t SECOND_US = 1000000;

uint64_t copies_grace_us(const struct copies *copies) {
    return copies->config.grace_us > 0 ? copies->config.grace_us : GRACE_S * SECOND_US;
}

static uint64_t silence_us(const struct copies *copies) {
    uint64_t compare_us = copies->config.compare_interval_us;
    uint64_t many_us = INTERVALS * (compare_us > 0 ? compare_us : COMPARE_S * SECOND_US);
    uint64_t long_us = 2 * copies_grace_us(copies);
    return long_us > many_us ? long_us : many_us;
}

void copies_primary_watch_init(struct copies *copies) {
    struct primary_watch_config primary_watch = {
        .challenge_interval_us = copies->config.challenge_interval_us,
        .silence_us = silence_us(copies),
        .bar_us = copies_grace_us(copies) / 2,
        .seed = copies->config.seed,
    };
    primary_watch_init(&copies->primary_watch, &primary_watch);
}

/* ---- the ring ---- */

/* Who is primary of the arc that ends where ours begins. False: we are it ourselves, or nobody knows. */
static bool find_before(struct copies *copies, struct ring_id from, const struct peer *self,
                        struct primary_watch_arc *ret_arc) {
    const struct copies_ring *ring = &copies->config.ring;
    struct holders_arc arc;
    if (!ring->know(ring->context, from, &arc) || arc.count == 0 || !ring_id_equal(arc.to, from) ||
        address_equal(&arc.peers[0].address, &self->address)) {
        return false;
    }
    *ret_arc = (struct primary_watch_arc){.primary = arc.peers[0], .from = arc.from, .to = arc.to};
    return true;
}

static bool fails(struct copies *copies, const struct peer *peer) {
    pthread_mutex_lock(&copies->lock);
    bool is_failing = primary_watch_fails(&copies->primary_watch, peer, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
    return is_failing;
}

/* Once around there is nobody left to whom it could be given. */
void copies_primary_watch_reach(struct copies *copies, const struct peer *self, struct copy_plan_arc *arc,
                                struct copies_watch *watch) {
    const struct copies_ring *ring = &copies->config.ring;
    struct primary_watch_arc before;
    size_t wanted = ring->copies(ring->context);
    arc->has_predecessor = find_before(copies, arc->from, self, &before);
    for (size_t depth = 1; depth < wanted && arc->has_predecessor; depth++) {
        if (watch->count < PRIMARY_WATCH_WATCHED_MAX) {
            watch->arcs[watch->count++] = before;
        }
        if (!fails(copies, &before.primary) || ring_id_is_owned(before.from, arc->to, before.to) ||
            ring_id_equal(before.from, arc->to)) {
            break;
        }
        arc->is_guarding = true;
        arc->from = before.from;
        arc->has_predecessor = find_before(copies, arc->from, self, &before);
    }
    arc->predecessor = arc->has_predecessor ? before.primary : (struct peer){0};
}

uint64_t copies_primary_watch_failing(struct copies *copies) {
    pthread_mutex_lock(&copies->lock);
    uint64_t failing = primary_watch_failing(&copies->primary_watch, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
    return failing;
}

void copies_primary_watch_run(struct copies *copies) {
    struct primary_watch_arc arc;
    pthread_mutex_lock(&copies->lock);
    bool is_due =
        copies->stat.is_fed && primary_watch_next(&copies->primary_watch, copies_now_us(copies), &arc);
    pthread_mutex_unlock(&copies->lock);
    if (!is_due) {
        return;
    }
    enum err err = copies_challenge_arc(copies, &arc.primary, arc.from, arc.to);
    pthread_mutex_lock(&copies->lock);
    primary_watch_done(&copies->primary_watch, &arc.primary, err, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
}
