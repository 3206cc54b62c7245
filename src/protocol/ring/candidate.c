#include "protocol/ring/candidate.h"

#include "protocol/ring/state.h"

static struct ring_id way(const struct lookup *lookup, const struct lookup_candidate *candidate) {
    return candidate->is_behind ? ring_id_distance(lookup->key, candidate->vnode.id)
                                : ring_id_distance(candidate->vnode.id, lookup->key);
}

static unsigned leading_zeros(struct ring_id id) {
    if (id.high != 0) {
        return (unsigned)__builtin_clzll(id.high);
    }
    return id.low == 0 ? 128 : 64 + (unsigned)__builtin_clzll(id.low);
}

static uint32_t round_trip_us(const struct ring *ring, const struct lookup_candidate *candidate) {
    const struct table_entry *entry = table_find(&ring->table, candidate->vnode.id);
    return entry == NULL ? 0 : entry->rtt.smoothed_us;
}

/* Who may be the owner first; then nearest; of those within a factor of two the quicker. */
static bool is_better(const struct ring *ring, const struct lookup *lookup, const struct lookup_candidate *a,
                      const struct lookup_candidate *b) {
    if (a->is_blocked != b->is_blocked) {
        return b->is_blocked;
    }
    if (a->is_behind != b->is_behind) {
        return a->is_behind;
    }
    struct ring_id way_a = way(lookup, a);
    struct ring_id way_b = way(lookup, b);
    if (leading_zeros(way_a) == leading_zeros(way_b)) {
        uint32_t rtt_a = round_trip_us(ring, a);
        uint32_t rtt_b = round_trip_us(ring, b);
        if (rtt_a != 0 && rtt_b != 0 && rtt_a != rtt_b) {
            return rtt_a < rtt_b;
        }
    }
    return ring_id_compare(way_a, way_b) < 0;
}

/* Done and of no more use: it may be named and asked again, which is the lesser evil. */
static bool is_spent(const struct lookup_candidate *candidate) {
    return candidate->state == CANDIDATE_DONE && !candidate->is_behind;
}

/* Full: the farthest that is spent makes room, or the farthest that was not asked for a nearer one. */
static struct lookup_candidate *make_room(struct lookup *lookup, const struct lookup_candidate *added) {
    if (lookup->candidates_count < LOOKUP_CANDIDATES_MAX) {
        return &lookup->candidates[lookup->candidates_count++];
    }
    struct lookup_candidate *worst = NULL;
    for (unsigned i = 0; i < lookup->candidates_count; i++) {
        struct lookup_candidate *candidate = &lookup->candidates[i];
        if (candidate->state != CANDIDATE_NEW && !is_spent(candidate)) {
            continue;
        }
        bool is_farther = worst == NULL || ring_id_compare(way(lookup, candidate), way(lookup, worst)) > 0;
        bool is_worse =
            worst == NULL || (is_spent(candidate) == is_spent(worst) ? is_farther : is_spent(candidate));
        worst = is_worse ? candidate : worst;
    }
    bool is_nearer =
        worst != NULL && (is_spent(worst) || ring_id_compare(way(lookup, added), way(lookup, worst)) < 0);
    return is_nearer ? worst : NULL;
}

void candidate_add(struct ring *ring, struct lookup *lookup, const struct vnode *vnode, bool is_behind,
                   uint8_t hops_count) {
    if (vnode_is_padding(vnode) || ring_is_own(ring, vnode)) {
        return;
    }
    for (unsigned i = 0; i < lookup->candidates_count; i++) {
        struct lookup_candidate *candidate = &lookup->candidates[i];
        if (vnode_equal(&candidate->vnode, vnode)) {
            candidate->is_behind |= is_behind;
            return;
        }
    }
    const struct table_entry *entry = table_find(&ring->table, vnode->id);
    struct lookup_candidate added = {.vnode = *vnode, .hops_count = hops_count, .is_behind = is_behind};
    added.is_blocked = entry != NULL && table_is_blocked(entry, ring->now_us);
    struct lookup_candidate *room = make_room(lookup, &added);
    if (room != NULL) {
        *room = added;
    }
}

struct lookup_candidate *candidate_best(const struct ring *ring, struct lookup *lookup) {
    struct lookup_candidate *best = NULL;
    for (unsigned i = 0; i < lookup->candidates_count; i++) {
        struct lookup_candidate *candidate = &lookup->candidates[i];
        if (candidate->state == CANDIDATE_NEW && (best == NULL || is_better(ring, lookup, candidate, best))) {
            best = candidate;
        }
    }
    return best;
}

bool candidate_repeat(struct lookup *lookup) {
    bool is_any = false;
    for (unsigned i = 0; i < lookup->candidates_count; i++) {
        struct lookup_candidate *candidate = &lookup->candidates[i];
        bool is_silent = candidate->state == CANDIDATE_DONE && !candidate->has_answered;
        if (candidate->is_behind && is_silent && !candidate->is_blocked && !candidate->is_repeated) {
            candidate->is_repeated = true;
            candidate->state = CANDIDATE_NEW;
            is_any = true;
        }
    }
    return is_any;
}

bool candidate_is_in_doubt(const struct lookup *lookup) {
    for (unsigned i = 0; i < lookup->candidates_count; i++) {
        const struct lookup_candidate *candidate = &lookup->candidates[i];
        bool is_open = candidate->state == CANDIDATE_ASKED ||
                       (candidate->state == CANDIDATE_NEW && !candidate->is_blocked);
        if (is_open && candidate->is_behind &&
            (ring_id_equal(candidate->vnode.id, lookup->key) ||
             ring_id_is_between(lookup->key, candidate->vnode.id, lookup->found[0].id))) {
            return true;
        }
    }
    return false;
}
