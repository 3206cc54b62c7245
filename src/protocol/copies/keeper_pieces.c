/* The pieces of the own arcs and their members, as the ring changes. */
#include <string.h>

#include "base/assert.h"
#include "protocol/copies/keeper_state.h"

static const uint64_t AGAIN_US = 1000000; /* between two comparisons with one that comes and goes */

/* How far before the anchor the farthest place of (from, …] is. The whole ring is 2^128 - 1. */
static struct ring_id depth_of(struct ring_id from, struct ring_id anchor) {
    struct ring_id way = ring_id_distance(from, anchor);
    return (struct ring_id){way.high - (way.low == 0), way.low - 1};
}

static struct ring_id depth_of_end(const struct keeper_piece *piece) {
    return ring_id_distance(piece->to, piece->anchor);
}

struct keeper_piece *keeper_find_piece(const struct keeper *keeper, struct ring_id place) {
    for (size_t i = 0; i < keeper->pieces_count; i++) {
        if (ring_id_is_owned(keeper->pieces[i].from, place, keeper->pieces[i].to)) {
            return &keeper->pieces[i];
        }
    }
    return NULL;
}

static void drop_piece(struct keeper *keeper, size_t index) {
    keeper->pieces_count--;
    memmove(&keeper->pieces[index], &keeper->pieces[index + 1],
            (keeper->pieces_count - index) * sizeof keeper->pieces[0]);
}

/* ---- members ---- */

static struct keeper_node *find_node(struct keeper_piece *piece, const struct peer *peer) {
    for (size_t i = 0; i < piece->count; i++) {
        if (peer_equal(&piece->nodes[i].peer, peer)) {
            return &piece->nodes[i];
        }
    }
    return NULL;
}

/* Had it a copy when it was last seen? */
static bool had_copy(const struct keeper_node *node) {
    return node->is_chosen && node->compared_at_us > 0 && !node->is_full && !node->is_false;
}

static void add_away(struct keeper_piece *piece, const struct peer *peer, uint64_t now_us) {
    if (piece->count < KEEPER_MEMBERS_MAX && find_node(piece, peer) == NULL) {
        piece->nodes[piece->count++] = (struct keeper_node){.peer = *peer, .away_since_us = now_us};
    }
}

static bool is_in(const struct keeper_arc *arc, const struct peer *peer) {
    for (size_t i = 0; i < arc->count; i++) {
        if (peer_equal(&arc->peers[i], peer)) {
            return true;
        }
    }
    return false;
}

/* Is one that was listed so no more only because others who came before it fill the list? Then nobody who
 * followed it is listed either. Where one has gone, those behind it move up. */
static bool is_displaced(const struct keeper *keeper, const struct keeper_piece *old, size_t index,
                         const struct keeper_arc *arc) {
    bool is_displaced = arc->count + 1 >= keeper->config.copies + KEEPER_SPARES_MAX;
    for (size_t i = index + 1; i < old->count && is_displaced; i++) {
        is_displaced = !old->nodes[i].is_listed || !is_in(arc, &old->nodes[i].peer);
    }
    return is_displaced;
}

/* Those that are listed in their order, as far as they were known with what was known of them; then those
 * that have gone since and had a copy. */
static void set_nodes(const struct keeper *keeper, struct keeper_piece *piece, const struct keeper_arc *arc,
                      uint64_t now_us) {
    struct keeper_piece old = *piece;
    piece->count = 0;
    for (size_t i = 0; i < arc->count; i++) {
        const struct keeper_node *known = find_node(&old, &arc->peers[i]);
        struct keeper_node *node = &piece->nodes[piece->count++];
        *node = known != NULL ? *known : (struct keeper_node){.peer = arc->peers[i]};
        if (!node->is_listed) { /* new or back: at once, but not with every change of who comes and goes */
            node->compare_us = node->compared_at_us > 0 ? node->compared_at_us + AGAIN_US : 0;
            node->silent_count = 0;
            node->is_complete = false;
            keeper_pass_turn(&node->pass, &node->peer, piece->from, piece->to);
        }
        node->is_listed = true;
        node->away_since_us = 0;
    }
    for (size_t i = 0; i < old.count; i++) {
        struct keeper_node *node = &old.nodes[i];
        bool is_gone = had_copy(node) && !is_displaced(keeper, &old, i, arc);
        bool is_kept = node->away_since_us > 0 || is_gone;
        if (is_kept && piece->count < KEEPER_MEMBERS_MAX && find_node(piece, &node->peer) == NULL) {
            node->away_since_us = node->away_since_us > 0 ? node->away_since_us : now_us;
            node->is_listed = false;
            piece->nodes[piece->count++] = *node;
        }
    }
}

/* ---- who shall have a copy ---- */

static void drop_node(struct keeper_piece *piece, size_t index) {
    piece->count--;
    memmove(&piece->nodes[index], &piece->nodes[index + 1], (piece->count - index) * sizeof piece->nodes[0]);
}

static size_t count_away(const struct keeper_piece *piece, size_t *ret_oldest) {
    size_t count = 0;
    for (size_t i = 0; i < piece->count; i++) {
        const struct keeper_node *node = &piece->nodes[i];
        if (node->away_since_us > 0) {
            if (count == 0 || node->away_since_us < piece->nodes[*ret_oldest].away_since_us) {
                *ret_oldest = i;
            }
            count++;
        }
    }
    return count;
}

static size_t forget_away(const struct keeper *keeper, struct keeper_piece *piece, uint64_t now_us) {
    size_t oldest = 0;
    size_t count;
    while ((count = count_away(piece, &oldest)) > 0) {
        bool is_over = now_us >= piece->nodes[oldest].away_since_us + keeper->config.grace_us;
        if (!is_over && count <= keeper->config.copies / 3) {
            break;
        }
        drop_node(piece, oldest);
    }
    return count;
}

static void judge_repair(struct keeper_piece *piece, uint64_t now_us) {
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

void keeper_choose(struct keeper *keeper, struct keeper_piece *piece, uint64_t now_us) {
    size_t copies = 1 + forget_away(keeper, piece, now_us);
    for (size_t i = 0; i < piece->count; i++) {
        struct keeper_node *node = &piece->nodes[i];
        if (node->barred_until_us > 0 && now_us >= node->barred_until_us) {
            node->barred_until_us = 0;
            node->is_full = false;
            node->is_false = false;
            node->compare_us = 0;
        }
        if (node->away_since_us > 0) {
            continue;
        }
        bool is_chosen = node->barred_until_us == 0 && copies < keeper->config.copies;
        if (is_chosen && !node->is_chosen) {
            node->compare_us = 0;
            node->is_complete = false;
            keeper_pass_turn(&node->pass, &node->peer, piece->from, piece->to);
        }
        node->is_chosen = is_chosen;
        copies += is_chosen;
    }
    judge_repair(piece, now_us);
}

/* ---- arcs ---- */

static struct keeper_anchor *find_anchor(struct keeper *keeper, struct ring_id place) {
    for (size_t i = 0; i < keeper->anchors_count; i++) {
        if (ring_id_equal(keeper->anchors[i].place, place)) {
            return &keeper->anchors[i];
        }
    }
    return NULL;
}

static void restart_passes(struct keeper_piece *piece) {
    for (size_t i = 0; i < piece->count; i++) {
        keeper_pass_restart(&piece->nodes[i].pass);
    }
}

/* Cut what is no longer ours. Returns how many pieces are left of the arc; *ret_from: how far they reach. */
static size_t shrink(struct keeper *keeper, const struct keeper_arc *arc, uint64_t now_us,
                     struct ring_id *ret_from) {
    struct ring_id depth = depth_of(arc->from, arc->to);
    size_t count = 0;
    for (size_t i = 0; i < keeper->pieces_count; i++) {
        struct keeper_piece *piece = &keeper->pieces[i];
        if (!ring_id_equal(piece->anchor, arc->to)) {
            continue;
        }
        if (ring_id_compare(depth_of_end(piece), depth) > 0) {
            keeper_leave(keeper, piece->from, piece->to, now_us);
            drop_piece(keeper, i--);
            continue;
        }
        if (ring_id_compare(depth_of(piece->from, piece->anchor), depth) > 0) {
            keeper_leave(keeper, piece->from, arc->from, now_us);
            piece->from = arc->from;
            restart_passes(piece);
        }
        *ret_from = piece->from; /* the farthest is the last */
        count++;
    }
    return count;
}

/* Behind the last one of the same anchor. */
static struct keeper_piece *insert_piece(struct keeper *keeper, struct ring_id anchor) {
    if (keeper->pieces_count == keeper->config.pieces_max) {
        return NULL;
    }
    size_t index = keeper->pieces_count;
    while (index > 0 && !ring_id_equal(keeper->pieces[index - 1].anchor, anchor)) {
        index--;
    }
    index = index == 0 ? keeper->pieces_count : index;
    memmove(&keeper->pieces[index + 1], &keeper->pieces[index],
            (keeper->pieces_count - index) * sizeof keeper->pieces[0]);
    keeper->pieces_count++;
    keeper->pieces[index] = (struct keeper_piece){.anchor = anchor};
    return &keeper->pieces[index];
}

static void set_arc(struct keeper *keeper, const struct keeper_arc *arc, uint64_t now_us) {
    struct ring_id reach = arc->to;
    size_t count = shrink(keeper, arc, now_us, &reach);
    const struct keeper_anchor *before = find_anchor(keeper, arc->to);
    bool is_grown = count == 0 || ring_id_compare(depth_of(reach, arc->to), depth_of(arc->from, arc->to)) < 0;
    struct keeper_piece *piece = is_grown ? insert_piece(keeper, arc->to) : NULL;
    if (piece != NULL) {
        piece->from = arc->from;
        piece->to = count == 0 ? arc->to : reach;
        if (count > 0 && before != NULL && before->has_predecessor && !arc->is_guarding) {
            add_away(piece, &before->predecessor, now_us);
        }
    }
    for (size_t i = 0; i < keeper->pieces_count; i++) {
        if (ring_id_equal(keeper->pieces[i].anchor, arc->to)) {
            set_nodes(keeper, &keeper->pieces[i], arc, now_us);
            keeper_choose(keeper, &keeper->pieces[i], now_us);
        }
    }
}

/* ---- pieces that are alike again ---- */

static bool has_away(const struct keeper_piece *piece) {
    size_t oldest;
    return count_away(piece, &oldest) > 0;
}

static bool is_busy(const struct keeper_piece *piece) {
    for (size_t i = 0; i < piece->count; i++) {
        if (piece->nodes[i].is_busy) {
            return true;
        }
    }
    return false;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static void join_nodes(struct keeper_node *node, const struct keeper_node *other) {
    node->is_complete = node->is_complete && other->is_complete;
    node->compared_at_us = least(node->compared_at_us, other->compared_at_us);
    node->compare_us = least(node->compare_us, other->compare_us);
    node->missing_here_count += other->missing_here_count;
    node->missing_there_count += other->missing_there_count;
}

static void join_pieces(struct keeper *keeper) {
    for (size_t i = 0; i + 1 < keeper->pieces_count; i++) {
        struct keeper_piece *near = &keeper->pieces[i];
        struct keeper_piece *far = &keeper->pieces[i + 1];
        if (!ring_id_equal(near->anchor, far->anchor) || has_away(near) || has_away(far) || is_busy(near) ||
            is_busy(far)) {
            continue;
        }
        for (size_t j = 0; j < near->count; j++) {
            const struct keeper_node *other = find_node(far, &near->nodes[j].peer);
            if (other != NULL) {
                join_nodes(&near->nodes[j], other);
            }
        }
        near->from = far->from;
        restart_passes(near);
        drop_piece(keeper, i + 1);
        i--;
    }
}

void keeper_set_arcs(struct keeper *keeper, const struct keeper_arc *arcs, size_t count, uint64_t now_us) {
    ASSERT(count <= RING_VIRTUAL_MAX);
    for (size_t i = 0; i < keeper->pieces_count; i++) {
        bool is_ours = false;
        for (size_t j = 0; j < count && !is_ours; j++) {
            is_ours = ring_id_equal(keeper->pieces[i].anchor, arcs[j].to);
        }
        if (!is_ours) {
            keeper_leave(keeper, keeper->pieces[i].from, keeper->pieces[i].to, now_us);
            drop_piece(keeper, i--);
        }
    }
    for (size_t i = 0; i < count; i++) {
        set_arc(keeper, &arcs[i], now_us);
    }
    for (size_t i = 0; i < count; i++) {
        keeper->anchors[i] = (struct keeper_anchor){
            .place = arcs[i].to,
            .has_predecessor = arcs[i].has_predecessor,
            .predecessor = arcs[i].predecessor,
        };
    }
    keeper->anchors_count = count;
    join_pieces(keeper);
}

void keeper_refresh(struct keeper *keeper, uint64_t now_us) {
    for (size_t i = 0; i < keeper->pieces_count; i++) {
        keeper_choose(keeper, &keeper->pieces[i], now_us);
    }
    join_pieces(keeper);
}

void keeper_set_copies(struct keeper *keeper, uint32_t copies, uint64_t now_us) {
    ASSERT(copies > 0 && copies <= CHARTER_REPLICAS_MAX);
    keeper->config.copies = copies;
    keeper_refresh(keeper, now_us);
}
