/*
 * balance - the places of a small ring are chosen so that each node owns its part of the keys.
 *
 * IDs come from addresses, so nobody can choose them; but of the 32 that an address has, a node chooses which
 * row of indices it takes. In a small ring everybody knows everybody, so each can compute what any choice
 * would lead to. A node that owns more or less than it should, or sees one that does, looks for the row that
 * brings all nodes nearest to their parts, in proportion to their numbers of places:
 *
 *      a newcomer, which holds nothing yet     as soon as all tables agree
 *      another node                            some seconds later, in the order of how much each would help,
 *                                              so that one moves at a time; and after a loss only when the
 *                                              lost one had time to come back: a restart moves nothing
 *
 * It moves only if that helps by a good bit, so this ends. With places that nobody chose, five nodes of eight
 * places own between half and one and a half times their part; with this rule they are within 15 %
 * (mnemon sim ring-balance).
 *
 * Nodes behind one address share its indices: each takes fewer the more there are, so that one more node
 * finds room. In Chord nobody knows all places; there a node keeps those it has.
 */
#include "protocol/ring/ring_state.h"

enum {
    NEWCOMER_ROUNDS = 6,
    CALM_TURNS = 2, /* without a change, before a node that holds something moves */
    TURNS_PER_ROUND = 5,
    SLACK_SHARE = 10,     /* a tenth above or below its part is good enough */
    PAIR_SLACK_SHARE = 8, /* an eighth, before two nodes move for it */
    GAIN_SHARE = 32,      /* and a move must help by that much of the whole fault */
    SHARE_BITS = 32,      /* shares are computed in units of 2^-32 */
    FAULT_UNIT_BITS = 22, /* and the powers of faults in units of 2^-10, at most 16 */
    FAULT_UNITS_MAX = 1 << 14,
    LAYOUT_NODES_MAX = SMALL_NODES_MAX + 1,
    PAIR_NODES_MAX = 8, /* more nodes have more choice, and all pairs of them would take long */
};

/* A row of indices. */
struct row {
    uint8_t first;
    uint8_t count;
};

/* Every node with all that it could choose; we are the first. */
struct layout {
    uint64_t ids[LAYOUT_NODES_MAX][RING_VIRTUAL_MAX]; /* their upper halves */
    struct row rows[LAYOUT_NODES_MAX];
    struct address addresses[LAYOUT_NODES_MAX];
    unsigned count;
};

struct point {
    uint64_t id;
    unsigned node;
};

/* The places of all but one node, in order. */
struct points {
    struct point points[CIRCLE_VNODES_MAX];
    unsigned count;
};

/* How far the nodes are from their parts. */
struct fault {
    uint64_t powers; /* the fourth powers of all: the worst count most */
    uint64_t worst;  /* of one, in units of 2^-32 of its part */
};

void balance_init(struct balance *balance, const struct ring_config *config) {
    *balance = (struct balance){.wanted = config->vnodes_count};
}

void balance_unsettle(struct ring *ring, bool is_loss) {
    ring->balance.changed_at_us = ring->now_us;
    ring->balance.is_planned = false;
    if (is_loss) {
        ring->balance.lost_at_us = ring->now_us;
    }
}

/* ---- what a choice leads to ---- */

static void layout_add(struct layout *layout, struct sha256 *sha256, const struct vnode *first,
                       uint8_t vnodes_count) {
    unsigned node = layout->count++;
    layout->rows[node] = (struct row){first->index, vnodes_count};
    layout->addresses[node] = first->peer.address;
    for (unsigned i = 0; i < RING_VIRTUAL_MAX; i++) {
        layout->ids[node][i] = ring_id_of_node(sha256, &first->peer.address, (uint8_t)i).high;
    }
}

static void layout_of(const struct ring *ring, struct layout *layout) {
    struct sha256 sha256 = ring->sha256;
    layout->count = 0;
    layout_add(layout, &sha256, &ring->vnodes[0].self, ring->config.vnodes_count);
    for (uint32_t i = 0; i < ring->small.nodes_count; i++) {
        layout_add(layout, &sha256, &ring->small.nodes[i].first, ring->small.nodes[i].vnodes_count);
    }
}

static void points_add(struct points *points, uint64_t id, unsigned node) {
    unsigned at = points->count++;
    while (at > 0 && id < points->points[at - 1].id) {
        points->points[at] = points->points[at - 1];
        at--;
    }
    points->points[at] = (struct point){id, node};
}

static void points_add_row(struct points *points, const struct layout *layout, unsigned node,
                           struct row row) {
    for (unsigned i = 0; i < row.count; i++) {
        points_add(points, layout->ids[node][row.first + i], node);
    }
}

static struct fault fault_of(const struct points *points, const struct layout *layout, unsigned node,
                             struct row row) {
    uint64_t shares[LAYOUT_NODES_MAX] = {0};
    uint64_t vnodes_count = 0;
    uint64_t before = points->points[points->count - 1].id;
    struct fault fault = {0};
    for (unsigned i = 0; i < points->count; i++) {
        shares[points->points[i].node] += points->points[i].id - before;
        before = points->points[i].id;
    }
    for (unsigned i = 0; i < layout->count; i++) {
        vnodes_count += i == node ? row.count : layout->rows[i].count;
    }
    for (unsigned i = 0; i < layout->count; i++) {
        uint64_t count = i == node ? row.count : layout->rows[i].count;
        uint64_t one = UINT64_C(1) << SHARE_BITS;
        uint64_t part = (shares[i] >> SHARE_BITS) * vnodes_count / count;
        uint64_t off = part > one ? part - one : one - part;
        fault.worst = off > fault.worst ? off : fault.worst;
        uint64_t unit = off >> FAULT_UNIT_BITS < FAULT_UNITS_MAX ? off >> FAULT_UNIT_BITS : FAULT_UNITS_MAX;
        fault.powers += unit * unit * unit * unit;
    }
    return fault;
}

static struct fault fault_with(const struct layout *layout, const struct points *others, unsigned node,
                               struct row row) {
    struct points all;
    all.count = others->count;
    memcpy(all.points, others->points, others->count * sizeof *all.points);
    points_add_row(&all, layout, node, row);
    return fault_of(&all, layout, node, row);
}

static void points_of_others(const struct layout *layout, unsigned node, struct points *points) {
    points->count = 0;
    for (unsigned i = 0; i < layout->count; i++) {
        if (i != node) {
            points_add_row(points, layout, i, layout->rows[i]);
        }
    }
}

/* ---- which rows there are ---- */

static bool is_row_free(const struct layout *layout, unsigned node, struct row row) {
    for (unsigned i = 0; i < layout->count; i++) {
        const struct row *other = &layout->rows[i];
        if (i != node && taken_is_one_host(&layout->addresses[i], &layout->addresses[node]) &&
            row.first < other->first + other->count && other->first < row.first + row.count) {
            return false;
        }
    }
    return true;
}

/* As many as are wanted, but so few that one more node behind our address finds some. */
static uint8_t balance_target(const struct ring *ring, const struct layout *layout) {
    unsigned behind_count = 0;
    for (unsigned i = 0; i < layout->count; i++) {
        behind_count += taken_is_one_host(&layout->addresses[i], &layout->addresses[0]);
    }
    unsigned share = RING_VIRTUAL_MAX / (behind_count + 1);
    share = share > 0 ? share : 1;
    return share < ring->balance.wanted ? (uint8_t)share : ring->balance.wanted;
}

/* The best row of so many places; count 0: none is free. */
static struct row best_row(const struct layout *layout, unsigned node, uint8_t count,
                           struct fault *ret_fault) {
    struct points others;
    struct row best = {0};
    points_of_others(layout, node, &others);
    for (unsigned first = 0; first + count <= RING_VIRTUAL_MAX; first++) {
        struct row row = {(uint8_t)first, count};
        if (!is_row_free(layout, node, row)) {
            continue;
        }
        struct fault fault = fault_with(layout, &others, node, row);
        if (best.count == 0 || fault.powers < ret_fault->powers) {
            best = row;
            *ret_fault = fault;
        }
    }
    return best;
}

/* ---- the plan ---- */

static bool is_better(uint64_t fault, uint64_t than) {
    return fault < than - than / GAIN_SHARE;
}

/* How many nodes would help more by moving; of those that help alike, the smaller address is first. */
static unsigned balance_rank(const struct layout *layout, const struct fault *own) {
    unsigned rank = 0;
    for (unsigned i = 1; i < layout->count; i++) {
        struct fault fault = {0};
        if (best_row(layout, i, layout->rows[i].count, &fault).count == 0) {
            continue;
        }
        bool is_before =
            memcmp(layout->addresses[i].ip, layout->addresses[0].ip, sizeof layout->addresses[i].ip) < 0;
        rank += fault.powers < own->powers || (fault.powers == own->powers && is_before);
    }
    return rank;
}

/*
 * No node can better it alone: the row from which another one, by moving next, brings it furthest. It does so
 * by itself then. ret_fault: what both lead to.
 */
static struct row best_row_of_pair(struct layout *layout, struct fault *ret_fault) {
    struct row own = layout->rows[0];
    struct row best = {0};
    for (unsigned first = 0; first + own.count <= RING_VIRTUAL_MAX; first++) {
        layout->rows[0] = (struct row){(uint8_t)first, own.count};
        for (unsigned i = 1; i < layout->count && is_row_free(layout, 0, layout->rows[0]); i++) {
            struct fault fault = {0};
            if (best_row(layout, i, layout->rows[i].count, &fault).count > 0 &&
                (best.count == 0 || fault.powers < ret_fault->powers)) {
                best = layout->rows[0];
                *ret_fault = fault;
            }
        }
    }
    layout->rows[0] = own;
    return best;
}

static unsigned address_rank(const struct layout *layout) {
    unsigned rank = 0;
    for (unsigned i = 1; i < layout->count; i++) {
        rank += memcmp(&layout->addresses[i], &layout->addresses[0], sizeof layout->addresses[i]) < 0;
    }
    return rank;
}

static bool is_newcomer(const struct ring *ring) {
    return !ring->config.is_settled &&
           ring->now_us - ring->balance.joined_at_us < NEWCOMER_ROUNDS * ring->config.stabilize_us;
}

/* When it is our turn, unless somebody who was lost may come back. */
static void plan_move(struct ring *ring, struct row row, uint64_t turns) {
    struct balance *balance = &ring->balance;
    balance->first = row.first;
    balance->count = row.count;
    balance->move_at_us = ring->now_us + ring_jitter(ring, ring->config.stabilize_us / TURNS_PER_ROUND / 2) +
                          turns * ring->config.stabilize_us / TURNS_PER_ROUND;
    uint64_t back_by_us = balance->lost_at_us + ring->config.balance_us;
    if (balance->lost_at_us > 0 && back_by_us > balance->move_at_us) {
        balance->move_at_us = back_by_us;
        balance->is_delayed = true;
    }
}

/* Once for each number of nodes: should the other one never move, this would go on for ever. */
static void plan_pair(struct ring *ring, struct layout *layout, const struct fault *now) {
    struct balance *balance = &ring->balance;
    struct fault fault = {0};
    if (layout->count > PAIR_NODES_MAX || balance->paired_nodes_count == layout->count) {
        return;
    }
    struct row row = best_row_of_pair(layout, &fault);
    if (row.count > 0 && is_better(fault.powers, now->powers)) {
        plan_move(ring, row, CALM_TURNS + layout->count + 2 * address_rank(layout));
        balance->is_pair = true;
    }
}

/* Where to, and when. */
static void balance_plan(struct ring *ring) {
    struct balance *balance = &ring->balance;
    struct layout layout;
    struct points others;
    struct fault fault = {0};
    layout_of(ring, &layout);
    points_of_others(&layout, 0, &others);
    struct fault now = fault_with(&layout, &others, 0, layout.rows[0]);
    struct row row = {0};
    for (uint8_t count = balance_target(ring, &layout); count > 0 && row.count == 0; count--) {
        row = best_row(&layout, 0, count, &fault);
    }
    balance->is_planned = true;
    balance->is_pair = false;
    balance->is_delayed = false;
    balance->move_at_us = STEP_NEVER_US; /* until the table changes */
    bool is_other_count = row.count > 0 && row.count != layout.rows[0].count;
    bool is_uneven = now.worst > (UINT64_C(1) << SHARE_BITS) / SLACK_SHARE;
    if (is_other_count || (is_uneven && row.count > 0 && is_better(fault.powers, now.powers))) {
        plan_move(ring, row, is_newcomer(ring) ? 0 : CALM_TURNS + balance_rank(&layout, &fault));
    } else if (now.worst > (UINT64_C(1) << SHARE_BITS) / PAIR_SLACK_SHARE) {
        plan_pair(ring, &layout, &now);
    }
}

static void balance_tell(struct ring *ring) {
    uint8_t row[2] = {ring->config.first_index, ring->config.vnodes_count};
    outbox_notice(ring->out, RING_MOVED, bytes_of(row, sizeof row));
}

static void balance_move(struct ring *ring) {
    if (ring->balance.is_pair) {
        ring->balance.paired_nodes_count = ring->small.nodes_count + 1;
    }
    holders_withdraw(ring);
    ring->config.first_index = ring->balance.first;
    ring->config.vnodes_count = ring->balance.count;
    ring_name_vnodes(ring);
    small_changed(ring);
    small_hurry(ring);
    balance_tell(ring);
}

/* ---- another number of places ---- */

/* In Chord the last places are given up, or the next ones behind them taken, if they are free: taken.c. */
static void resize_in_chord(struct ring *ring, uint8_t vnodes_count) {
    uint8_t before_count = ring->config.vnodes_count;
    unsigned room = RING_VIRTUAL_MAX - ring->config.first_index;
    vnodes_count = vnodes_count < room ? vnodes_count : (uint8_t)room;
    for (unsigned i = vnodes_count; i < before_count; i++) {
        holders_withdraw_one(ring, i);
        query_close_vnode(ring, i);
    }
    ring->config.vnodes_count = vnodes_count;
    for (unsigned i = before_count; i < vnodes_count; i++) {
        ring_name_vnode(ring, i);
        ring->vnodes[i].join_at_us = ring->now_us;
    }
    if (vnodes_count != before_count) {
        balance_tell(ring);
    }
}

void balance_resize(struct ring *ring, uint64_t vnodes_count) {
    if (ring->config.balance_us == 0 || ring->config.is_first_fixed || vnodes_count == 0 ||
        vnodes_count > ring->config.vnodes_max) {
        return;
    }
    ring->balance.wanted = (uint8_t)vnodes_count;
    ring->balance.is_planned = false;
    if (ring->mode == MODE_CHORD) {
        resize_in_chord(ring, (uint8_t)vnodes_count);
    }
}

bool ring_is_settled(const struct ring *ring) {
    bool is_balanced = ring->config.balance_us > 0 && !ring->config.is_first_fixed;
    const struct balance *balance = &ring->balance;
    return ring->mode == MODE_CHORD ||
           (ring->mode == MODE_SMALL &&
            (!is_balanced || ring->small.nodes_count == 0 ||
             (balance->is_planned && (balance->move_at_us == STEP_NEVER_US || balance->is_delayed))));
}

void balance_tick(struct ring *ring) {
    struct balance *balance = &ring->balance;
    if (ring->config.balance_us == 0 || ring->config.is_first_fixed || ring->mode != MODE_SMALL) {
        balance->joined_at_us = ring->now_us;
        return;
    }
    if (ring->config.is_settled && balance->lost_at_us == 0) {
        balance->lost_at_us = ring->now_us; /* others may have been restarted with us, and are on their way */
    }
    if (ring->small.is_moving || ring->small.nodes_count == 0 || !small_do_agree(ring)) {
        return; /* an answer brings us back here */
    }
    if (!balance->is_planned) {
        balance_plan(ring);
    }
    if (ring->now_us >= balance->move_at_us) {
        balance_move(ring);
        return;
    }
    outbox_wake_at(ring->out, balance->move_at_us);
}
