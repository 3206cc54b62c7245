/*
 * even - which of the 32 places of its address a node takes, so that the nodes of a small ring own even
 * parts.
 *
 * IDs come from addresses, so nobody can choose them; but a node chooses which row of indices it takes, and
 * in a small ring every node knows all the others. So each can compute what any choice leads to.
 *
 *      undecided   a node that comes has one place, of an index by which others know it
 *      plan        when all tables agree, each node computes from the table alone which rows those that are
 *                  undecided should take. All compute the same, so nobody plans against another
 *      decided     some time later, each of them takes its row. It holds nearly nothing by then
 *
 * The rows of nodes that have decided stay as they are, with one exception: if a node is more than an eighth
 * off its part after a later one has come, or has gone for good, the one node whose move helps most moves.
 * It waits long for that, keeps as many places as it can, and does so at most MOVES_MAX times for each change
 * of the nodes; so this ends, whatever others do.
 *
 * A first try had nodes choose one after the other when they were members, each time when all tables agreed
 * again: five nodes that were started together moved all their places up to eleven times within 40 s, two of
 * them at once now and then, and what had been copied meanwhile was in the wrong place.
 *
 * How many places: as many as make a list name several nodes, up to twice as many where this is more even.
 * The number also says how large a part a node wants: half the places, half the part. Nodes of older
 * versions, and those whose number or first index was set, stay as they are and are reckoned with.
 *
 * In Chord nobody knows all places: there a node takes the least number, and keeps the places it has. All of
 * this is done only while all members know rows: retreat.c.
 */
#include "protocol/ring/ring_state.h"

enum {
    UNIT_MAX = 8,
    SWEEPS_MAX = 4,
    MOVES_MAX = 2,
    SLACK_SHARE = 8,      /* an eighth above or below its part is good enough … */
    GOOD_SHARE = 11,      /* … and an eleventh so good that fewer changes count for more */
    GAIN_SHARE = 3,       /* a move lessens the whole fault by a third */
    SHARE_BITS = 32,      /* shares are computed in units of 2^-32 */
    FAULT_UNIT_BITS = 22, /* and the powers of faults in units of 2^-10, at most 16 */
    FAULT_UNITS_MAX = 1 << 14,
    WEIGHT_ONE = 64,
    LAYOUT_NODES_MAX = SMALL_NODES_MAX + 1,
};

/* In shares of a round of stabilizing, or in rounds. */
enum {
    DECIDE_SHARE = 10,
    FRESH_ROUNDS = 6, /* since it decided; what it holds is soon copied elsewhere */
    FRESH_MOVE_SHARE = 2,
    MOVE_ROUNDS = 12,
    MOVE_RANK_ROUNDS = 3,
    UNDECIDED_ROUNDS = 2, /* whoever is undecided for longer is not waited for */
};

/* Every node with all that it could choose; we are the first. */
struct layout {
    uint64_t ids[LAYOUT_NODES_MAX][RING_VIRTUAL_MAX]; /* their upper halves */
    struct even_row rows[LAYOUT_NODES_MAX];           /* as they are */
    struct even_row plan[LAYOUT_NODES_MAX];           /* as they should be; count 0: not yet placed */
    struct address addresses[LAYOUT_NODES_MAX];
    unsigned count;
    unsigned unit; /* the least places of a whole part */
};

struct point {
    uint64_t id;
    unsigned node;
};

/* In order. */
struct points {
    struct point points[CIRCLE_VNODES_MAX];
    unsigned count;
};

/* How far the nodes are from their parts. */
struct fault {
    uint64_t powers; /* the fourth powers of all: the worst count most */
    uint64_t worst;  /* of one, in units of 2^-32 of its part */
};

static const uint64_t EVEN_PART = UINT64_C(1) << SHARE_BITS;

/* ---- undecided or not ---- */

uint8_t ring_unit_of(uint8_t list_size) {
    unsigned unit = list_size / 2;
    return (uint8_t)(unit < 1 ? 1 : unit > UNIT_MAX ? UNIT_MAX : unit);
}

void even_begin(struct ring_config *config) {
    config->first_index = EVEN_UNDECIDED_FIRST;
    config->vnodes_count = 1;
}

bool even_is_undecided(struct even_row row) {
    return row.count == 1 && row.first >= EVEN_UNDECIDED_FIRST && row.first < EVEN_UNDECIDED_END;
}

struct even_row even_own_row(const struct ring *ring) {
    return (struct even_row){ring->config.first_index, ring->config.vnodes_count};
}

static bool is_undecided(const struct ring *ring) {
    return ring->config.is_even && even_is_undecided(even_own_row(ring));
}

void even_init(struct even *even, const struct ring_config *config) {
    uint8_t unit = ring_unit_of(config->list_size);
    bool is_less = config->even_wanted > 0 && config->even_wanted < unit;
    *even = (struct even){.wanted = is_less ? config->even_wanted : unit, .moves_left = MOVES_MAX};
}

/* ---- what a choice leads to ---- */

static void layout_add(struct layout *layout, struct sha256 *sha256, const struct vnode *first,
                       uint8_t vnodes_count) {
    unsigned node = layout->count++;
    layout->rows[node] = (struct even_row){first->index, vnodes_count};
    layout->addresses[node] = first->peer.address;
    for (unsigned i = 0; i < RING_VIRTUAL_MAX; i++) {
        layout->ids[node][i] = ring_id_of_node(sha256, &first->peer.address, (uint8_t)i).high;
    }
}

/* If half of the nodes have fewer places than we would take, we take as few: they are of an older version. */
static void layout_measure(struct layout *layout, unsigned unit) {
    unsigned fewer_count = 0;
    unsigned most = 1; /* of those that have fewer */
    for (unsigned i = 0; i < layout->count; i++) {
        unsigned count = layout->rows[i].count;
        bool is_fewer = count < unit && !even_is_undecided(layout->rows[i]);
        fewer_count += is_fewer;
        most = is_fewer && count > most ? count : most;
    }
    layout->unit = 2 * fewer_count >= layout->count ? most : unit;
}

static void layout_of(const struct ring *ring, struct layout *layout) {
    struct sha256 sha256 = ring->sha256;
    layout->count = 0;
    layout_add(layout, &sha256, &ring->vnodes[0].self, ring->config.vnodes_count);
    for (uint32_t i = 0; i < ring->small.nodes_count; i++) {
        layout_add(layout, &sha256, &ring->small.nodes[i].first, ring->small.nodes[i].vnodes_count);
    }
    layout_measure(layout, ring_unit_of(ring->config.list_size));
    memcpy(layout->plan, layout->rows, sizeof layout->plan);
}

static uint64_t layout_weight(const struct layout *layout, struct even_row row) {
    if (even_is_undecided(row)) {
        return WEIGHT_ONE;
    }
    uint64_t whole = row.count / layout->unit;
    return whole > 0 ? WEIGHT_ONE * whole : WEIGHT_ONE * (uint64_t)row.count / layout->unit;
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
                           struct even_row row) {
    for (unsigned i = 0; i < row.count; i++) {
        points_add(points, layout->ids[node][row.first + i], node);
    }
}

/* The plan without the row of one node. */
static void points_of_others(const struct layout *layout, unsigned node, struct points *points) {
    points->count = 0;
    for (unsigned i = 0; i < layout->count; i++) {
        if (i != node) {
            points_add_row(points, layout, i, layout->plan[i]);
        }
    }
}

/* Of the nodes that have a row in the plan, and this one. */
static struct fault fault_with(const struct layout *layout, const struct points *others, unsigned node,
                               struct even_row row) {
    struct points all;
    uint64_t shares[LAYOUT_NODES_MAX] = {0};
    uint64_t weights[LAYOUT_NODES_MAX] = {0};
    uint64_t weight_sum = 0;
    struct fault fault = {0};
    all.count = others->count;
    memcpy(all.points, others->points, others->count * sizeof *all.points);
    points_add_row(&all, layout, node, row);
    uint64_t before = all.points[all.count - 1].id;
    for (unsigned i = 0; i < all.count; i++) {
        shares[all.points[i].node] += all.points[i].id - before;
        before = all.points[i].id;
    }
    for (unsigned i = 0; i < layout->count; i++) {
        struct even_row his = i == node ? row : layout->plan[i];
        weights[i] = his.count == 0 ? 0 : layout_weight(layout, his);
        weight_sum += weights[i];
    }
    for (unsigned i = 0; i < layout->count; i++) {
        if (weights[i] == 0) {
            continue;
        }
        uint64_t part = (shares[i] >> SHARE_BITS) * weight_sum / weights[i];
        uint64_t off = part > EVEN_PART ? part - EVEN_PART : EVEN_PART - part;
        fault.worst = off > fault.worst ? off : fault.worst;
        uint64_t unit = off >> FAULT_UNIT_BITS < FAULT_UNITS_MAX ? off >> FAULT_UNIT_BITS : FAULT_UNITS_MAX;
        fault.powers += unit * unit * unit * unit;
    }
    return fault;
}

static struct fault fault_now(const struct layout *layout) {
    struct points others;
    points_of_others(layout, 0, &others);
    return fault_with(layout, &others, 0, layout->plan[0]);
}

/* ---- which rows there are ---- */

static bool do_rows_meet(struct even_row a, struct even_row b) {
    return a.first < b.first + b.count && b.first < a.first + a.count;
}

/* Nodes behind one address share its indices: those of others, now and planned, are theirs. */
static bool is_row_free(const struct layout *layout, unsigned node, struct even_row row) {
    for (unsigned i = 0; i < layout->count; i++) {
        if (i != node && taken_is_one_host(&layout->addresses[i], &layout->addresses[node]) &&
            (do_rows_meet(row, layout->rows[i]) || do_rows_meet(row, layout->plan[i]))) {
            return false;
        }
    }
    return true;
}

static unsigned rows_shared(struct even_row a, struct even_row b) {
    unsigned from = a.first > b.first ? a.first : b.first;
    unsigned a_end = (unsigned)a.first + a.count;
    unsigned b_end = (unsigned)b.first + b.count;
    unsigned to = a_end < b_end ? a_end : b_end;
    return to > from ? to - from : 0;
}

/* How much a choice changes: places that are new, and places that are given up. */
static unsigned row_cost(struct even_row now, struct even_row row) {
    unsigned shared = even_is_undecided(now) ? 0 : rows_shared(now, row);
    unsigned given_up = even_is_undecided(now) ? 0 : now.count - shared;
    return row.count - shared + given_up;
}

struct choice {
    struct even_row row; /* count 0: none */
    struct fault fault;
    unsigned cost;
};

static bool is_preferred(const struct choice *choice, const struct choice *to) {
    bool is_good = choice->fault.worst <= EVEN_PART / GOOD_SHARE;
    bool is_other_good = to->row.count > 0 && to->fault.worst <= EVEN_PART / GOOD_SHARE;
    if (to->row.count == 0 || is_good != is_other_good) {
        return to->row.count == 0 || is_good;
    }
    if (is_good && choice->cost != to->cost) {
        return choice->cost < to->cost;
    }
    return choice->fault.powers < to->fault.powers;
}

/* The best row of `least` to `most` places; fewer if there is no room behind its address. */
static struct choice best_choice(const struct layout *layout, unsigned node, unsigned least, unsigned most) {
    struct points others;
    struct choice best = {0};
    points_of_others(layout, node, &others);
    for (unsigned count = most; count >= 1 && (count >= least || best.row.count == 0); count--) {
        for (unsigned first = 0; first + count <= RING_VIRTUAL_MAX; first++) {
            struct even_row row = {(uint8_t)first, (uint8_t)count};
            if (even_is_undecided(row) || !is_row_free(layout, node, row)) {
                continue;
            }
            struct choice choice = {row, fault_with(layout, &others, node, row),
                                    row_cost(layout->rows[node], row)};
            best = is_preferred(&choice, &best) ? choice : best;
        }
    }
    return best;
}

static struct choice choice_of(const struct layout *layout, unsigned node) {
    unsigned count = layout->rows[node].count;
    bool is_whole = even_is_undecided(layout->rows[node]) || count >= layout->unit;
    unsigned weight = is_whole && !even_is_undecided(layout->rows[node]) ? count / layout->unit : 1;
    unsigned least = is_whole ? weight * layout->unit : count;
    unsigned most = is_whole ? (weight + 1) * layout->unit - 1 : count;
    most = most < RING_VIRTUAL_MAX ? most : RING_VIRTUAL_MAX;
    return best_choice(layout, node, least, most);
}

/* ---- the plan for those that are undecided ---- */

static int address_order(const struct address *a, const struct address *b) {
    int order = memcmp(a->ip, b->ip, sizeof a->ip);
    return order != 0 ? order : (a->port > b->port) - (a->port < b->port);
}

/* Those that are undecided, by address: on all nodes the same order. */
static unsigned undecided_nodes(const struct layout *layout, unsigned nodes[LAYOUT_NODES_MAX]) {
    unsigned count = 0;
    for (unsigned i = 0; i < layout->count; i++) {
        if (!even_is_undecided(layout->rows[i])) {
            continue;
        }
        unsigned at = count++;
        while (at > 0 && address_order(&layout->addresses[i], &layout->addresses[nodes[at - 1]]) < 0) {
            nodes[at] = nodes[at - 1];
            at--;
        }
        nodes[at] = i;
    }
    return count;
}

static bool same_row(struct even_row a, struct even_row b) {
    return a.first == b.first && a.count == b.count;
}

/* One after the other, and then each again as the others are by now. */
static void layout_place(struct layout *layout) {
    unsigned nodes[LAYOUT_NODES_MAX];
    unsigned count = undecided_nodes(layout, nodes);
    for (unsigned i = 0; i < count; i++) {
        layout->plan[nodes[i]].count = 0;
    }
    bool has_changed = true;
    for (unsigned sweep = 0; sweep < SWEEPS_MAX && has_changed; sweep++) {
        has_changed = false;
        for (unsigned i = 0; i < count; i++) {
            struct choice choice = choice_of(layout, nodes[i]);
            if (choice.row.count > 0 && !same_row(choice.row, layout->plan[nodes[i]])) {
                layout->plan[nodes[i]] = choice.row;
                has_changed = true;
            }
        }
    }
}

/* ---- a move ---- */

/* How many nodes would help more by moving; of those that help alike, the smaller address is first. */
static unsigned even_rank(const struct layout *layout, const struct choice *own, const struct fault *now) {
    unsigned rank = 0;
    for (unsigned i = 1; i < layout->count; i++) {
        struct choice choice = choice_of(layout, i);
        bool is_before = address_order(&layout->addresses[i], &layout->addresses[0]) < 0;
        rank += choice.row.count > 0 && choice.fault.powers < now->powers &&
                (is_preferred(&choice, own) || (!is_preferred(own, &choice) && is_before));
    }
    return rank;
}

static bool is_fresh(const struct ring *ring) {
    const struct even *even = &ring->even;
    return even->decided_at_us > 0 &&
           ring->now_us - even->decided_at_us < FRESH_ROUNDS * ring->config.stabilize_us;
}

static void plan_move(struct ring *ring, const struct layout *layout) {
    struct even *even = &ring->even;
    struct fault now = fault_now(layout);
    if (now.worst <= EVEN_PART / SLACK_SHARE || even->moves_left == 0) {
        return;
    }
    struct choice choice = choice_of(layout, 0);
    if (choice.row.count == 0 || choice.fault.powers > now.powers - now.powers / GAIN_SHARE) {
        return;
    }
    uint64_t rank = even_rank(layout, &choice, &now);
    uint64_t round_us = ring->config.stabilize_us;
    even->row = choice.row;
    even->is_move = true;
    even->act_at_us = is_fresh(ring) ? ring->now_us + (1 + rank) * round_us / FRESH_MOVE_SHARE
                                     : ring->now_us + (MOVE_ROUNDS + rank * MOVE_RANK_ROUNDS) * round_us;
    uint64_t back_by_us = even->lost_at_us + ring->config.even_loss_us;
    if (even->lost_at_us > 0 && back_by_us > even->act_at_us) { /* it may come back */
        even->act_at_us = back_by_us + rank * MOVE_RANK_ROUNDS * round_us;
    }
}

/* ---- the plan ---- */

static void remember_plan(struct ring *ring, const struct layout *layout) {
    for (uint32_t i = 0; i < ring->small.nodes_count; i++) {
        ring->small.nodes[i].planned = layout->plan[i + 1];
    }
}

/* Tables that never agree, because one node keeps changing what it says, do not keep us from choosing. */
static bool is_overdue(const struct ring *ring) {
    return is_undecided(ring) &&
           ring->now_us - ring->even.met_at_us > UNDECIDED_ROUNDS * ring->config.stabilize_us;
}

static void plan_choice(struct ring *ring, struct layout *layout) {
    struct even *even = &ring->even;
    layout_place(layout);
    even->row = layout->plan[0];
    if (even->wanted < layout->unit && even->wanted < even->row.count) {
        even->row.count = even->wanted;
    }
    if (even->row.count > 0) { /* else no place is free behind our address */
        uint64_t wait_us = is_overdue(ring) ? 0 : ring->config.stabilize_us / DECIDE_SHARE;
        even->act_at_us = ring->now_us + wait_us;
    }
}

static void even_plan(struct ring *ring) {
    struct even *even = &ring->even;
    struct layout layout;
    layout_of(ring, &layout);
    even->is_planned = true;
    even->is_move = false;
    even->act_at_us = STEP_NEVER_US; /* until the table changes */
    if (is_undecided(ring)) {
        plan_choice(ring, &layout);
    } else {
        plan_move(ring, &layout);
    }
    remember_plan(ring, &layout);
}

/* Have the others only done what was planned? */
static bool is_as_planned(const struct ring *ring) {
    for (uint32_t i = 0; i < ring->small.nodes_count; i++) {
        const struct small_node *node = &ring->small.nodes[i];
        struct even_row row = {node->first.index, node->vnodes_count};
        if (!same_row(row, node->planned) && !even_is_undecided(row)) {
            return false;
        }
    }
    return true;
}

void even_unsettle(struct ring *ring, enum even_change change) {
    struct even *even = &ring->even;
    even->changed_at_us = ring->now_us;
    if (change != EVEN_ROW) {
        even->moves_left = MOVES_MAX;
        even->is_planned = false;
    }
    if (change == EVEN_LOSS) {
        even->lost_at_us = ring->now_us;
    }
    if (!is_undecided(ring) || !is_as_planned(ring)) {
        even->is_planned = false;
    }
}

/* ---- what follows ---- */

static void even_tell(struct ring *ring) {
    uint8_t row[2] = {ring->config.first_index, ring->config.vnodes_count};
    outbox_notice(ring->out, RING_MOVED, bytes_of(row, sizeof row));
}

static bool row_has(struct even_row row, unsigned index) {
    return index >= row.first && index < (unsigned)row.first + row.count;
}

/* Places that we have and keep stay as they are, with all that was announced of them. */
static void even_take(struct ring *ring, struct even_row row) {
    struct even_row old = even_own_row(ring);
    for (unsigned i = 0; i < old.count; i++) {
        if (!row_has(row, old.first + i)) {
            holders_withdraw(ring, i);
        }
    }
    bool is_upwards = row.first > old.first; /* nothing is overwritten that is still needed */
    for (unsigned step = 0; step < row.count; step++) {
        unsigned i = is_upwards ? step : row.count - 1u - step;
        if (row_has(old, row.first + i)) {
            ring->vnodes[i] = ring->vnodes[row.first + i - old.first];
        }
    }
    ring->config.first_index = row.first;
    ring->config.vnodes_count = row.count;
    for (unsigned i = 0; i < row.count; i++) {
        if (!row_has(old, row.first + i)) {
            ring_name_vnode(ring, i);
        }
    }
    even_tell(ring);
}

void even_take_one(struct ring *ring, unsigned from, unsigned end) {
    struct layout layout;
    struct even_row row = {(uint8_t)from, 1};
    layout_of(ring, &layout);
    while (row.first < end && !is_row_free(&layout, 0, row)) {
        row.first++;
    }
    row.first = row.first < end ? row.first : (uint8_t)from; /* taken.c finds another one */
    ring->even.is_planned = false;
    ring->even.is_move = false;
    ring->even.met_at_us = ring->now_us;
    even_take(ring, row);
    small_changed(ring);
}

static void even_act(struct ring *ring) {
    struct even *even = &ring->even;
    even->is_planned = false;
    if (even->is_move) {
        even->moves_left--;
    } else {
        even->decided_at_us = ring->now_us;
    }
    even->is_move = false;
    even_take(ring, even->row);
    small_changed(ring);
}

/* ---- another number of places ---- */

static void drop_last(struct ring *ring, unsigned count) {
    for (unsigned i = count; i < ring->config.vnodes_count; i++) {
        holders_withdraw(ring, i);
        query_close_vnode(ring, i);
    }
    ring->config.vnodes_count = (uint8_t)count;
}

/* In Chord the last places are given up, or the next ones behind them taken, if they are free: taken.c. */
static void resize_in_chord(struct ring *ring, unsigned count) {
    unsigned before_count = ring->config.vnodes_count;
    unsigned room = RING_VIRTUAL_MAX - ring->config.first_index;
    count = count < room ? count : room;
    if (count < before_count) {
        drop_last(ring, count);
    }
    ring->config.vnodes_count = (uint8_t)count;
    for (unsigned i = before_count; i < count; i++) {
        ring_name_vnode(ring, i);
        ring->vnodes[i].join_at_us = ring->now_us;
    }
    if (count != before_count) {
        even_tell(ring);
    }
}

void even_resize_in_chord(struct ring *ring, unsigned count) {
    if (ring->config.is_even && ring->config.vnodes_count != count) {
        resize_in_chord(ring, count);
    }
}

void even_meet_chord(struct ring *ring) {
    if (is_undecided(ring)) {
        even_take_one(ring, 0, EVEN_UNDECIDED_FIRST);
        ring->even.is_for_chord = true;
    }
}

void even_enter_chord(struct ring *ring) {
    bool is_new = is_undecided(ring) || ring->even.is_for_chord;
    ring->even.is_for_chord = false;
    if (is_new && !retreat_is_on(ring)) {
        ring->even.decided_at_us = ring->now_us;
        resize_in_chord(ring, ring->even.wanted);
    }
}

/* In a small ring: the row ends earlier, or begins earlier or ends later, wherever there is room. */
static void resize_in_small(struct ring *ring, unsigned count) {
    struct layout layout;
    struct even_row row = even_own_row(ring);
    layout_of(ring, &layout);
    unsigned least = count < row.count ? count : row.count;
    struct choice best = best_choice(&layout, 0, count, count);
    unsigned first = row.first + count <= RING_VIRTUAL_MAX ? row.first : RING_VIRTUAL_MAX - count;
    struct even_row near = {(uint8_t)first, (uint8_t)count};
    if (best.row.count == 0) {
        return;
    }
    bool is_near_free =
        !even_is_undecided(near) && is_row_free(&layout, 0, near) && rows_shared(row, near) == least;
    even_take(ring, is_near_free ? near : best.row);
    small_changed(ring);
}

void even_resize(struct ring *ring, uint64_t count) {
    unsigned unit = ring_unit_of(ring->config.list_size);
    if (!ring->config.is_even || count == 0 || count > unit) {
        return;
    }
    unsigned now_count = ring->config.vnodes_count;
    bool is_whole_already = count == unit && now_count >= unit;
    ring->even.wanted = (uint8_t)count;
    if (is_undecided(ring) || retreat_is_on(ring) || is_whole_already || now_count == count) {
        return;
    }
    if (ring->mode == MODE_CHORD) {
        resize_in_chord(ring, (unsigned)count);
    } else if (ring->mode == MODE_SMALL && !ring->small.is_moving) {
        resize_in_small(ring, (unsigned)count);
    }
}

/* ---- time ---- */

static bool is_anybody_undecided(const struct ring *ring) {
    bool is_any = is_undecided(ring);
    for (uint32_t i = 0; i < ring->small.nodes_count; i++) {
        const struct small_node *node = &ring->small.nodes[i];
        is_any |= even_is_undecided((struct even_row){node->first.index, node->vnodes_count});
    }
    return is_any;
}

bool even_is_waiting(const struct ring *ring) {
    return is_anybody_undecided(ring) && !retreat_is_needed(ring) &&
           ring->now_us - ring->even.changed_at_us < UNDECIDED_ROUNDS * ring->config.stabilize_us;
}

bool ring_is_settled(const struct ring *ring) {
    bool is_alone = ring->mode == MODE_SMALL && ring->small.nodes_count == 0;
    return ring->mode == MODE_CHORD || is_alone || (ring->mode == MODE_SMALL && !is_undecided(ring));
}

void even_tick(struct ring *ring) {
    struct even *even = &ring->even;
    if (!ring->config.is_even || ring->mode != MODE_SMALL || ring->small.is_moving ||
        ring->small.nodes_count == 0) {
        even->met_at_us = 0;
        return;
    }
    if (ring->config.is_even_chosen && even->lost_at_us == 0) {
        even->lost_at_us = ring->now_us; /* others may have been restarted with us, and are on their way */
    }
    if (even->is_for_chord) { /* it is a small ring after all */
        even->is_for_chord = false;
        even_take_one(ring, EVEN_UNDECIDED_FIRST, EVEN_UNDECIDED_END);
    }
    if (retreat_is_needed(ring)) {
        even->met_at_us = ring->now_us; /* nobody has kept us from choosing but those who do not know rows */
        even->is_planned = false;
        outbox_wake_at(ring->out, ring->now_us + ring->config.stabilize_us);
        return;
    }
    even->met_at_us = even->met_at_us == 0 ? ring->now_us : even->met_at_us;
    if (!even->is_planned && (small_do_agree(ring) || is_overdue(ring))) {
        even_plan(ring);
    }
    if (!even->is_planned) {
        return; /* an answer brings us back here */
    }
    if (ring->now_us >= even->act_at_us) {
        even_act(ring);
        return;
    }
    outbox_wake_at(ring->out, even->act_at_us);
}
