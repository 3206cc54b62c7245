/* Arcs that other primaries see to, and what nobody sees to. */
#include "protocol/copies/copy_plan_state.h"

static struct copy_plan_claimed *find_claim(struct copy_plan *copy_plan, const struct peer *primary,
                                            struct ring_id to) {
    for (size_t i = 0; i < copy_plan->claims_count; i++) {
        if (peer_same_key(&copy_plan->claims[i].primary, primary) &&
            ring_id_equal(copy_plan->claims[i].to, to)) {
            return &copy_plan->claims[i];
        }
    }
    return NULL;
}

/* A new one, or the place of one that is over. */
static struct copy_plan_claimed *make_room(struct copy_plan *copy_plan, uint64_t now_us) {
    if (copy_plan->claims_count < copy_plan->config.claims_max) {
        return &copy_plan->claims[copy_plan->claims_count++];
    }
    for (size_t i = 0; i < copy_plan->claims_count; i++) {
        if (now_us > copy_plan->claims[i].at_us + copy_plan->config.grace_us) {
            return &copy_plan->claims[i];
        }
    }
    return NULL;
}

void copy_plan_claim(struct copy_plan *copy_plan, const struct peer *primary, struct ring_id from,
                     struct ring_id to, bool is_equal, uint64_t now_us) {
    struct copy_plan_claimed *claim = find_claim(copy_plan, primary, to);
    bool is_same = claim != NULL && ring_id_equal(claim->from, from);
    uint64_t equal_us = is_equal ? now_us : is_same ? claim->equal_us : 0;
    claim = claim != NULL ? claim : make_room(copy_plan, now_us);
    if (claim != NULL) {
        *claim = (struct copy_plan_claimed){
            .primary = *primary, .from = from, .to = to, .at_us = now_us, .equal_us = equal_us};
    }
}

void copy_plan_doubt(struct copy_plan *copy_plan, struct ring_id place, const struct peer *peer) {
    struct copy_plan_piece *piece = copy_plan_find_piece(copy_plan, place);
    for (size_t i = 0; piece != NULL && i < piece->count; i++) {
        struct copy_plan_node *node = &piece->nodes[i];
        if (peer_same_key(&node->peer, peer) && node->missing_here_count == 0) {
            node->missing_here_count = 1;
        }
    }
    for (size_t i = 0; i < copy_plan->claims_count; i++) {
        if (ring_id_is_owned(copy_plan->claims[i].from, place, copy_plan->claims[i].to)) {
            copy_plan->claims[i].equal_us = 0;
        }
    }
}

size_t copy_plan_claims_count(const struct copy_plan *copy_plan) {
    return copy_plan->claims_count;
}

static bool is_within(const struct copy_plan_claimed *claim, struct ring_id from, struct ring_id place) {
    return ring_id_equal(claim->from, from) || ring_id_is_owned(from, claim->from, place);
}

bool copy_plan_is_compared(const struct copy_plan *copy_plan, struct ring_id place,
                           const struct peer *primary, struct ring_id from, uint64_t now_us) {
    const struct copy_plan_piece *piece = copy_plan_find_piece(copy_plan, place);
    if (piece != NULL) {
        bool is_compared = true;
        for (size_t i = 0; i < piece->count && is_compared; i++) {
            const struct copy_plan_node *node = &piece->nodes[i];
            bool counts = node->is_chosen && node->away_since_us == 0 && node->silent_count == 0;
            is_compared = !counts || (node->compared_at_us > 0 && node->missing_here_count == 0 &&
                                      !node->pass.has_rest && !node->pass.is_owed);
        }
        return is_compared;
    }
    for (size_t i = 0; i < copy_plan->claims_count; i++) {
        const struct copy_plan_claimed *claim = &copy_plan->claims[i];
        if (claim->equal_us > 0 && now_us <= claim->equal_us + 2 * copy_plan->config.compare_interval_us &&
            ring_id_is_owned(claim->from, place, claim->to) && peer_same_key(&claim->primary, primary) &&
            is_within(claim, from, place)) {
            return true;
        }
    }
    return false;
}

/* ---- gaps ---- */

/* The own pieces, then the claims that were made since then. */
static bool seen_to(const struct copy_plan *copy_plan, size_t index, uint64_t since_us,
                    struct ring_id *ret_from, struct ring_id *ret_to) {
    if (index < copy_plan->pieces_count) {
        *ret_from = copy_plan->pieces[index].from;
        *ret_to = copy_plan->pieces[index].to;
        return true;
    }
    const struct copy_plan_claimed *claim = &copy_plan->claims[index - copy_plan->pieces_count];
    *ret_from = claim->from;
    *ret_to = claim->to;
    return claim->at_us >= since_us;
}

bool copy_plan_find_gap(const struct copy_plan *copy_plan, struct ring_id behind, uint64_t now_us,
                        struct ring_id *ret_from, struct ring_id *ret_to) {
    static const struct ring_id last = {UINT64_MAX, UINT64_MAX};
    size_t count = copy_plan->pieces_count + copy_plan->claims_count;
    uint64_t since_us = now_us > copy_plan->config.grace_us ? now_us - copy_plan->config.grace_us : 0;
    struct ring_id position = behind;
    struct ring_id end = last;
    struct ring_id from;
    struct ring_id to;
    for (size_t i = 0; i < count; i++) {
        struct ring_id next = ring_id_add_power(position, 0);
        if (!seen_to(copy_plan, i, since_us, &from, &to) || !ring_id_is_owned(from, next, to)) {
            continue;
        }
        if (ring_id_compare(to, position) <= 0 || ring_id_equal(to, last)) {
            return false; /* to the end of the circle */
        }
        position = to;
        i = SIZE_MAX; /* from the first one again: each turn passes an arc for good */
    }
    for (size_t i = 0; i < count; i++) {
        if (seen_to(copy_plan, i, since_us, &from, &to) && ring_id_compare(from, position) > 0 &&
            ring_id_compare(from, end) < 0) {
            end = from;
        }
    }
    *ret_from = position;
    *ret_to = end;
    return ring_id_compare(position, end) < 0;
}

bool copy_plan_find_unseen(const struct copy_plan *copy_plan, const struct copy_plan_left *left,
                           struct ring_id *ret_from, struct ring_id *ret_to) {
    size_t count = copy_plan->pieces_count + copy_plan->claims_count;
    struct ring_id position = left->from;
    struct ring_id end = left->to;
    struct ring_id from;
    struct ring_id to;
    for (size_t i = 0; i < count; i++) {
        struct ring_id next = ring_id_add_power(position, 0);
        if (!seen_to(copy_plan, i, left->since_us, &from, &to) || !ring_id_is_owned(from, next, to)) {
            continue;
        }
        if (!ring_id_is_between(position, to, left->to)) {
            return false; /* to its end */
        }
        position = to;
        i = SIZE_MAX; /* from the first one again */
    }
    for (size_t i = 0; i < count; i++) {
        if (seen_to(copy_plan, i, left->since_us, &from, &to) && ring_id_is_between(position, from, end)) {
            end = from;
        }
    }
    *ret_from = position;
    *ret_to = end;
    return true;
}
