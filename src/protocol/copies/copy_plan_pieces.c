/* The pieces of the own arcs and their members, as the ring changes. */
#include <string.h>

#include "base/assert.h"
#include "protocol/copies/copy_plan_state.h"

/* Arcs that other primaries see to, and what nobody sees to. */

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
static struct copy_plan_claimed *pieces_make_room(struct copy_plan *copy_plan, uint64_t now_us) {
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
    claim = claim != NULL ? claim : pieces_make_room(copy_plan, now_us);
    if (claim != NULL) {
        *claim = (struct copy_plan_claimed){
            .primary = *primary, .from = from, .to = to, .at_us = now_us, .equal_us = equal_us};
    }
}

void copy_plan_doubt(struct copy_plan *copy_plan, struct ring_id place, const struct peer *peer) {
    struct copy_plan_piece *piece = copy_plan_find_piece(copy_plan, place);
    for (size_t i = 0; piece != NULL && i < piece->count; i++) {
        struct copy_plan_node *node = &piece->nodes[i];
        node->is_doubted = node->is_doubted || peer_same_key(&node->peer, peer);
    }
    for (size_t i = 0; i < copy_plan->claims_count; i++) {
        if (ring_id_is_owned(copy_plan->claims[i].from, place, copy_plan->claims[i].to)) {
            copy_plan->claims[i].equal_us = 0;
        }
    }
}

bool copy_plan_was_equal(const struct copy_plan *copy_plan, struct ring_id place, uint64_t since_us) {
    for (size_t i = 0; i < copy_plan->claims_count; i++) {
        const struct copy_plan_claimed *claim = &copy_plan->claims[i];
        if (claim->equal_us > since_us && ring_id_is_owned(claim->from, place, claim->to)) {
            return true;
        }
    }
    return false;
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
                                      !node->is_doubted && !node->pass.has_rest && !node->pass.is_owed);
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

static const uint64_t AGAIN_US = 1000000; /* between two comparisons with one that comes and goes */

/* How far before the anchor the farthest place of (from, …] is. The whole ring is 2^128 - 1. */
static struct ring_id depth_of(struct ring_id from, struct ring_id anchor) {
    struct ring_id way = ring_id_distance(from, anchor);
    return (struct ring_id){way.high - (way.low == 0), way.low - 1};
}

static struct ring_id depth_of_end(const struct copy_plan_piece *piece) {
    return ring_id_distance(piece->to, piece->anchor);
}

struct copy_plan_piece *copy_plan_find_piece(const struct copy_plan *copy_plan, struct ring_id place) {
    for (size_t i = 0; i < copy_plan->pieces_count; i++) {
        if (ring_id_is_owned(copy_plan->pieces[i].from, place, copy_plan->pieces[i].to)) {
            return &copy_plan->pieces[i];
        }
    }
    return NULL;
}

static void drop_piece(struct copy_plan *copy_plan, size_t index) {
    copy_plan->pieces_count--;
    memmove(&copy_plan->pieces[index], &copy_plan->pieces[index + 1],
            (copy_plan->pieces_count - index) * sizeof copy_plan->pieces[0]);
}

/* ---- members ---- */

static struct copy_plan_node *pieces_find_node(struct copy_plan_piece *piece, const struct peer *peer) {
    for (size_t i = 0; i < piece->count; i++) {
        if (peer_equal(&piece->nodes[i].peer, peer)) {
            return &piece->nodes[i];
        }
    }
    return NULL;
}

/* Had it a copy when it was last seen? */
static bool had_copy(const struct copy_plan_node *node) {
    return node->is_chosen && node->compared_at_us > 0 && !node->is_full && !node->is_false;
}

static void add_away(struct copy_plan_piece *piece, const struct peer *peer, uint64_t now_us) {
    if (piece->count < COPY_PLAN_MEMBERS_MAX && pieces_find_node(piece, peer) == NULL) {
        piece->nodes[piece->count++] = (struct copy_plan_node){.peer = *peer, .away_since_us = now_us};
    }
}

static bool is_in(const struct copy_plan_arc *arc, const struct peer *peer) {
    for (size_t i = 0; i < arc->count; i++) {
        if (peer_equal(&arc->peers[i], peer)) {
            return true;
        }
    }
    return false;
}

/* Is one that was listed so no more only because others who came before it fill the list? Then nobody who
 * followed it is listed either. If one has gone, those behind it move up. */
static bool is_displaced(const struct copy_plan *copy_plan, const struct copy_plan_piece *old, size_t index,
                         const struct copy_plan_arc *arc) {
    bool is_displaced = arc->count + 1 >= copy_plan->config.copies + COPY_PLAN_SPARES_MAX;
    for (size_t i = index + 1; i < old->count && is_displaced; i++) {
        is_displaced = !old->nodes[i].is_listed || !is_in(arc, &old->nodes[i].peer);
    }
    return is_displaced;
}

/* Those that are listed in their order, as far as they were known with what was known of them; then those
 * that have gone since and had a copy. */
static void set_nodes(const struct copy_plan *copy_plan, struct copy_plan_piece *piece,
                      const struct copy_plan_arc *arc, uint64_t now_us) {
    struct copy_plan_piece old = *piece;
    piece->count = 0;
    for (size_t i = 0; i < arc->count; i++) {
        const struct copy_plan_node *known = pieces_find_node(&old, &arc->peers[i]);
        struct copy_plan_node *node = &piece->nodes[piece->count++];
        *node = known != NULL ? *known : (struct copy_plan_node){.peer = arc->peers[i]};
        if (!node->is_listed) { /* new or back: at once, but not whenever some node comes or goes */
            node->compare_us = node->compared_at_us > 0 ? node->compared_at_us + AGAIN_US : 0;
            node->silent_count = 0;
            node->is_complete = false;
            copy_plan_pass_turn(&node->pass, &node->peer, piece->from, piece->to);
        }
        node->is_listed = true;
        node->away_since_us = 0;
    }
    for (size_t i = 0; i < old.count; i++) {
        struct copy_plan_node *node = &old.nodes[i];
        bool is_gone = had_copy(node) && !is_displaced(copy_plan, &old, i, arc);
        bool is_kept = node->away_since_us > 0 || is_gone;
        if (is_kept && piece->count < COPY_PLAN_MEMBERS_MAX && pieces_find_node(piece, &node->peer) == NULL) {
            node->away_since_us = node->away_since_us > 0 ? node->away_since_us : now_us;
            node->is_listed = false;
            piece->nodes[piece->count++] = *node;
        }
    }
}

/* ---- which nodes shall have a copy ---- */

static void drop_node(struct copy_plan_piece *piece, size_t index) {
    piece->count--;
    memmove(&piece->nodes[index], &piece->nodes[index + 1], (piece->count - index) * sizeof piece->nodes[0]);
}

static size_t count_away(const struct copy_plan_piece *piece, size_t *ret_oldest) {
    size_t count = 0;
    for (size_t i = 0; i < piece->count; i++) {
        const struct copy_plan_node *node = &piece->nodes[i];
        if (node->away_since_us > 0) {
            if (count == 0 || node->away_since_us < piece->nodes[*ret_oldest].away_since_us) {
                *ret_oldest = i;
            }
            count++;
        }
    }
    return count;
}

static size_t forget_away(const struct copy_plan *copy_plan, struct copy_plan_piece *piece, uint64_t now_us) {
    size_t oldest = 0;
    size_t count;
    while ((count = count_away(piece, &oldest)) > 0) {
        bool is_over = now_us >= piece->nodes[oldest].away_since_us + copy_plan->config.grace_us;
        if (!is_over && count <= copy_plan->config.copies / 3) {
            break;
        }
        drop_node(piece, oldest);
    }
    return count;
}

static void judge_repair(struct copy_plan_piece *piece, uint64_t now_us) {
    bool is_repairing = false;
    for (size_t i = 0; i < piece->count; i++) {
        is_repairing = is_repairing || (piece->nodes[i].is_chosen && piece->nodes[i].away_since_us == 0 &&
                                        !piece->nodes[i].is_complete);
    }
    if (!is_repairing) {
        piece->repairing_since_us = 0;
    } else if (piece->repairing_since_us == 0) {
        piece->repairing_since_us = now_us > 0 ? now_us : 1;
    }
}

void copy_plan_choose(struct copy_plan *copy_plan, struct copy_plan_piece *piece, uint64_t now_us) {
    size_t copies = 1 + forget_away(copy_plan, piece, now_us);
    for (size_t i = 0; i < piece->count; i++) {
        struct copy_plan_node *node = &piece->nodes[i];
        if (node->barred_until_us > 0 && now_us >= node->barred_until_us) {
            node->barred_until_us = 0;
            node->is_full = false;
            node->is_false = false;
            node->compare_us = 0;
        }
        if (node->away_since_us > 0) {
            continue;
        }
        bool is_chosen = node->barred_until_us == 0 && copies < copy_plan->config.copies;
        if (is_chosen && !node->is_chosen) {
            node->compare_us = 0;
            node->is_complete = false;
            copy_plan_pass_turn(&node->pass, &node->peer, piece->from, piece->to);
        }
        node->is_chosen = is_chosen;
        copies += is_chosen;
    }
    judge_repair(piece, now_us);
}

/* ---- arcs ---- */

static struct copy_plan_anchor *find_anchor(struct copy_plan *copy_plan, struct ring_id place) {
    for (size_t i = 0; i < copy_plan->anchors_count; i++) {
        if (ring_id_equal(copy_plan->anchors[i].place, place)) {
            return &copy_plan->anchors[i];
        }
    }
    return NULL;
}

static void restart_passes(struct copy_plan_piece *piece) {
    for (size_t i = 0; i < piece->count; i++) {
        copy_plan_pass_restart(&piece->nodes[i].pass);
    }
}

/* Cut what is no longer ours. Returns how many pieces are left of the arc; *ret_from: how far they reach. */
static size_t shrink(struct copy_plan *copy_plan, const struct copy_plan_arc *arc, uint64_t now_us,
                     struct ring_id *ret_from) {
    struct ring_id depth = depth_of(arc->from, arc->to);
    size_t count = 0;
    for (size_t i = 0; i < copy_plan->pieces_count; i++) {
        struct copy_plan_piece *piece = &copy_plan->pieces[i];
        if (!ring_id_equal(piece->anchor, arc->to)) {
            continue;
        }
        if (ring_id_compare(depth_of_end(piece), depth) > 0) {
            copy_plan_leave(copy_plan, piece->from, piece->to, now_us);
            drop_piece(copy_plan, i--);
            continue;
        }
        if (ring_id_compare(depth_of(piece->from, piece->anchor), depth) > 0) {
            copy_plan_leave(copy_plan, piece->from, arc->from, now_us);
            piece->from = arc->from;
            restart_passes(piece);
        }
        *ret_from = piece->from; /* the farthest is the last */
        count++;
    }
    return count;
}

/* Behind the last one of the same anchor. */
static struct copy_plan_piece *insert_piece(struct copy_plan *copy_plan, struct ring_id anchor) {
    if (copy_plan->pieces_count == copy_plan->config.pieces_max) {
        return NULL;
    }
    size_t index = copy_plan->pieces_count;
    while (index > 0 && !ring_id_equal(copy_plan->pieces[index - 1].anchor, anchor)) {
        index--;
    }
    index = index == 0 ? copy_plan->pieces_count : index;
    memmove(&copy_plan->pieces[index + 1], &copy_plan->pieces[index],
            (copy_plan->pieces_count - index) * sizeof copy_plan->pieces[0]);
    copy_plan->pieces_count++;
    copy_plan->pieces[index] = (struct copy_plan_piece){.anchor = anchor};
    return &copy_plan->pieces[index];
}

static void set_arc(struct copy_plan *copy_plan, const struct copy_plan_arc *arc, uint64_t now_us) {
    struct ring_id reach = arc->to;
    size_t count = shrink(copy_plan, arc, now_us, &reach);
    const struct copy_plan_anchor *before = find_anchor(copy_plan, arc->to);
    bool is_grown = count == 0 || ring_id_compare(depth_of(reach, arc->to), depth_of(arc->from, arc->to)) < 0;
    struct copy_plan_piece *piece = is_grown ? insert_piece(copy_plan, arc->to) : NULL;
    if (piece != NULL) {
        piece->from = arc->from;
        piece->to = count == 0 ? arc->to : reach;
        if (count > 0 && before != NULL && before->has_predecessor && !arc->is_guarding) {
            add_away(piece, &before->predecessor, now_us);
        }
    }
    for (size_t i = 0; i < copy_plan->pieces_count; i++) {
        if (ring_id_equal(copy_plan->pieces[i].anchor, arc->to)) {
            set_nodes(copy_plan, &copy_plan->pieces[i], arc, now_us);
            copy_plan_choose(copy_plan, &copy_plan->pieces[i], now_us);
        }
    }
}

/* ---- pieces that are alike again ---- */

static bool has_away(const struct copy_plan_piece *piece) {
    size_t oldest;
    return count_away(piece, &oldest) > 0;
}

static bool is_busy(const struct copy_plan *copy_plan, const struct copy_plan_piece *piece) {
    for (size_t i = 0; i < piece->count; i++) {
        if (copy_plan_is_open(copy_plan, &piece->nodes[i].peer)) {
            return true;
        }
    }
    return false;
}

static uint64_t pieces_least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static void join_nodes(struct copy_plan_node *node, const struct copy_plan_node *other) {
    node->is_complete = node->is_complete && other->is_complete;
    node->compared_at_us = pieces_least(node->compared_at_us, other->compared_at_us);
    node->compare_us = pieces_least(node->compare_us, other->compare_us);
    node->missing_here_count += other->missing_here_count;
    node->missing_there_count += other->missing_there_count;
    node->is_doubted = node->is_doubted || other->is_doubted;
    bool is_newer = other->unproven_us > node->unproven_us;
    node->unproven_us = is_newer ? other->unproven_us : node->unproven_us;
}

static void join_pieces(struct copy_plan *copy_plan) {
    for (size_t i = 0; i + 1 < copy_plan->pieces_count; i++) {
        struct copy_plan_piece *near = &copy_plan->pieces[i];
        struct copy_plan_piece *far = &copy_plan->pieces[i + 1];
        if (!ring_id_equal(near->anchor, far->anchor) || has_away(near) || has_away(far) ||
            is_busy(copy_plan, near) || is_busy(copy_plan, far)) {
            continue;
        }
        for (size_t j = 0; j < near->count; j++) {
            const struct copy_plan_node *other = pieces_find_node(far, &near->nodes[j].peer);
            if (other != NULL) {
                join_nodes(&near->nodes[j], other);
            }
        }
        near->from = far->from;
        restart_passes(near);
        drop_piece(copy_plan, i + 1);
        i--;
    }
}

void copy_plan_set_arcs(struct copy_plan *copy_plan, const struct copy_plan_arc *arcs, size_t count,
                        uint64_t now_us) {
    ASSERT(count <= RING_VIRTUAL_MAX);
    for (size_t i = 0; i < copy_plan->pieces_count; i++) {
        bool is_ours = false;
        for (size_t j = 0; j < count && !is_ours; j++) {
            is_ours = ring_id_equal(copy_plan->pieces[i].anchor, arcs[j].to);
        }
        if (!is_ours) {
            copy_plan_leave(copy_plan, copy_plan->pieces[i].from, copy_plan->pieces[i].to, now_us);
            drop_piece(copy_plan, i--);
        }
    }
    for (size_t i = 0; i < count; i++) {
        set_arc(copy_plan, &arcs[i], now_us);
    }
    for (size_t i = 0; i < count; i++) {
        copy_plan->anchors[i] = (struct copy_plan_anchor){
            .place = arcs[i].to,
            .has_predecessor = arcs[i].has_predecessor,
            .predecessor = arcs[i].predecessor,
        };
    }
    copy_plan->anchors_count = count;
    join_pieces(copy_plan);
}

void copy_plan_refresh(struct copy_plan *copy_plan, uint64_t now_us) {
    for (size_t i = 0; i < copy_plan->pieces_count; i++) {
        copy_plan_choose(copy_plan, &copy_plan->pieces[i], now_us);
    }
    join_pieces(copy_plan);
}

void copy_plan_set_copies(struct copy_plan *copy_plan, uint32_t copies, uint64_t now_us) {
    ASSERT(copies > 0 && copies <= CHARTER_REPLICAS_MAX);
    copy_plan->config.copies = copies;
    copy_plan_refresh(copy_plan, now_us);
}
