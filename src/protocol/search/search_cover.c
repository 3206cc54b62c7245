#include "protocol/search/search_cover.h"

#include "base/assert.h"

const char *search_cover_reason_text(enum search_cover_reason reason) {
    static const char *const texts[SEARCH_COVER_REASONS_COUNT] = {
        [SEARCH_COVER_NO_REASON] = "was not asked",
        [SEARCH_COVER_UNABLE] = "has no search over the ring",
        [SEARCH_COVER_UNKNOWN] = "has not said yet whether it can search the ring",
        [SEARCH_COVER_SILENT] = "does not answer",
        [SEARCH_COVER_BUSY] = "is busy",
        [SEARCH_COVER_FALSE] = "gives a false answer",
        [SEARCH_COVER_NOT_NOW] = "cannot search now",
        [SEARCH_COVER_UNASKED] = "is beyond the number of nodes that are asked",
    };
    ASSERT(reason < SEARCH_COVER_REASONS_COUNT);
    return texts[reason];
}

void search_cover_init(struct search_cover *cover, const struct search_cover_config *config) {
    *cover = (struct search_cover){
        .nodes = config->nodes,
        .nodes_max = config->nodes_max < UINT16_MAX ? config->nodes_max : UINT16_MAX,
        .arcs = config->arcs,
        .arcs_max = config->arcs_max,
        .weights = config->weights,
    };
    prng_init(&cover->prng, config->seed);
}

/* By its key: an address may be one of two. If the key is not known yet, by its address. */
static bool is_same(const struct peer *a, const struct peer *b) {
    return peer_same_key(a, b) && (peer_has_key(a) || address_equal(&a->address, &b->address));
}

size_t search_cover_find(const struct search_cover *cover, const struct peer *peer) {
    size_t i = 0;
    while (i < cover->nodes_count && !is_same(&cover->nodes[i].peer, peer)) {
        i++;
    }
    return i;
}

/* Arcs that follow each other have most of their holders in common. */
static size_t find_near(const struct search_cover *cover, const struct peer *peer) {
    const struct search_cover_arc *before =
        cover->arcs_count > 1 ? &cover->arcs[cover->arcs_count - 2] : NULL;
    for (size_t i = 0; before != NULL && i < before->holders_count; i++) {
        if (is_same(&cover->nodes[before->holders[i]].peer, peer)) {
            return before->holders[i];
        }
    }
    return search_cover_find(cover, peer);
}

void search_cover_add(struct search_cover *cover, const struct holders_arc *arc) {
    if (cover->arcs_count == cover->arcs_max) {
        return;
    }
    struct search_cover_arc *added = &cover->arcs[cover->arcs_count++];
    *added = (struct search_cover_arc){.from = arc->from, .to = arc->to};
    for (size_t i = 0; i < arc->count && i < SEARCH_COVER_HOLDERS_MAX; i++) {
        size_t node = find_near(cover, &arc->peers[i]);
        if (node == cover->nodes_count && cover->nodes_count < cover->nodes_max) {
            cover->nodes[cover->nodes_count++] = (struct search_cover_node){.peer = arc->peers[i]};
        }
        if (node < cover->nodes_count) {
            added->holders[added->holders_count++] = (uint16_t)node;
        }
    }
}

/* ---- shares ---- */

static double to_share(struct ring_id way) {
    return (double)way.high / 18446744073709551616.0;
}

static double arc_share(const struct search_cover_arc *arc) {
    bool is_circle = ring_id_equal(arc->from, arc->to);
    return is_circle ? 1 : to_share(ring_id_distance(arc->from, arc->to));
}

static void clear_weights(struct search_cover *cover) {
    for (size_t i = 0; i < cover->nodes_count; i++) {
        cover->weights[i] = 0;
    }
}

/* For each of its holders. */
static void weigh_arc(struct search_cover *cover, const struct search_cover_arc *arc) {
    for (size_t i = 0; i < arc->holders_count; i++) {
        cover->weights[arc->holders[i]] += arc_share(arc) + 1e-12; /* an arc of no width is one, too */
    }
}

/* ---- whom to ask ---- */

/* Does it need one more answer? Not if it is whole, or somebody is being waited for. */
static bool arc_is_open(const struct search_cover *cover, const struct search_cover_arc *arc) {
    bool is_open = arc->state != SEARCH_COVER_WHOLE;
    for (size_t i = 0; is_open && i < arc->holders_count; i++) {
        is_open = cover->nodes[arc->holders[i]].state != SEARCH_COVER_ASKED;
    }
    return is_open;
}

bool search_cover_choose(struct search_cover *cover, size_t *ret_node) {
    double best = 0;
    uint64_t ties_count = 0;
    clear_weights(cover);
    for (size_t i = 0; i < cover->arcs_count; i++) {
        if (arc_is_open(cover, &cover->arcs[i])) {
            weigh_arc(cover, &cover->arcs[i]);
        }
    }
    for (size_t i = 0; i < cover->nodes_count; i++) {
        double weight = cover->nodes[i].state == SEARCH_COVER_IDLE ? cover->weights[i] : 0;
        if (weight <= 0 || weight < best) {
            continue;
        }
        ties_count = weight > best ? 1 : ties_count + 1;
        best = weight;
        if (prng_below(&cover->prng, ties_count) == 0) {
            *ret_node = i;
        }
    }
    if (best > 0) {
        cover->nodes[*ret_node].state = SEARCH_COVER_ASKED;
    }
    return best > 0;
}

/* ---- what came of it ---- */

void search_cover_fail(struct search_cover *cover, size_t node, enum search_cover_reason reason) {
    cover->nodes[node].state = SEARCH_COVER_FAILED;
    cover->nodes[node].reason = reason;
}

void search_cover_wait(struct search_cover *cover, size_t node) {
    if (cover->nodes[node].state == SEARCH_COVER_ASKED) {
        cover->nodes[node].state = SEARCH_COVER_WAITED;
    }
}

static bool holds(const struct search_cover_arc *arc, size_t node) {
    for (size_t i = 0; i < arc->holders_count; i++) {
        if (arc->holders[i] == node) {
            return true;
        }
    }
    return false;
}

/* Is all of the arc within the other? */
static bool is_inside(const struct search_cover_arc *arc, const struct search_code_arc *outer) {
    bool begins =
        ring_id_equal(arc->from, outer->from) ||
        (ring_id_is_owned(outer->from, arc->from, outer->to) && !ring_id_equal(arc->from, outer->to));
    struct ring_id to_end = ring_id_distance(arc->from, arc->to);
    struct ring_id to_outer_end = ring_id_distance(arc->from, outer->to);
    bool outer_is_circle = ring_id_equal(outer->from, outer->to);
    bool is_circle = ring_id_equal(arc->from, arc->to);
    return outer_is_circle || (begins && !is_circle && ring_id_compare(to_end, to_outer_end) <= 0);
}

static enum search_cover_arc_state state_of(const struct search_code_head *head) {
    return head->left_count == 0 && !head->lacks_volumes ? SEARCH_COVER_WHOLE : SEARCH_COVER_BEHIND;
}

static void raise(struct search_cover_arc *arc, enum search_cover_arc_state state) {
    arc->state = arc->state < state ? state : arc->state;
}

/* It answered: what it holds is at least behind. Of what it does not hold, nobody believes anything. */
static void begin_take(struct search_cover *cover, size_t node, const struct search_code_head *head) {
    cover->nodes[node].state = SEARCH_COVER_ANSWERED;
    cover->nodes[node].left_count = head->left_count;
    cover->nodes[node].lacks_volumes = head->lacks_volumes;
    for (size_t i = 0; i < cover->arcs_count; i++) {
        if (holds(&cover->arcs[i], node)) {
            raise(&cover->arcs[i], head->has_everything ? state_of(head) : SEARCH_COVER_BEHIND);
        }
    }
}

static void take_arc(struct search_cover *cover, size_t node, const struct search_code_head *head,
                     const struct search_code_arc *outer) {
    for (size_t i = 0; i < cover->arcs_count; i++) {
        struct search_cover_arc *arc = &cover->arcs[i];
        if (arc->state != SEARCH_COVER_WHOLE && holds(arc, node) && is_inside(arc, outer)) {
            raise(arc, state_of(head));
        }
    }
}

void search_cover_take(struct search_cover *cover, size_t node, struct bytes answer) {
    struct search_code_reader reader;
    struct search_code_head head;
    struct search_code_arc arc;
    if (!search_code_read_head(&reader, answer, &head)) {
        search_cover_fail(cover, node, SEARCH_COVER_FALSE);
        return;
    }
    begin_take(cover, node, &head);
    while (search_code_next_arc(&reader, &arc)) {
        take_arc(cover, node, &head, &arc);
    }
}

void search_cover_take_own(struct search_cover *cover, size_t node, const struct search_code_head *head,
                           const struct search_code_arc *arcs) {
    begin_take(cover, node, head);
    for (uint32_t i = 0; i < head->arcs_count; i++) {
        take_arc(cover, node, head, &arcs[i]);
    }
    for (size_t i = 0; head->has_everything && i < cover->arcs_count; i++) {
        raise(&cover->arcs[i], state_of(head));
    }
}

/* ---- for people ---- */

static bool was_asked(enum search_cover_reason reason) {
    return reason != SEARCH_COVER_UNABLE && reason != SEARCH_COVER_UNKNOWN && reason != SEARCH_COVER_UNASKED;
}

void search_cover_sum(const struct search_cover *cover, struct search_cover_sum *ret_sum) {
    struct search_cover_sum sum = {.arcs_count = cover->arcs_count};
    for (size_t i = 0; i < cover->arcs_count; i++) {
        const struct search_cover_arc *arc = &cover->arcs[i];
        double share = arc_share(arc);
        sum.whole += arc->state == SEARCH_COVER_WHOLE ? share : 0;
        sum.behind += arc->state == SEARCH_COVER_BEHIND ? share : 0;
        sum.whole_count += arc->state == SEARCH_COVER_WHOLE;
        sum.behind_count += arc->state == SEARCH_COVER_BEHIND;
        sum.missing_count += arc->state == SEARCH_COVER_MISSING;
    }
    sum.missing = sum.missing_count > 0 ? 1 - sum.whole - sum.behind : 0;
    sum.missing = sum.missing > 0 ? sum.missing : 0;
    for (size_t i = 0; i < cover->nodes_count; i++) {
        enum search_cover_node_state state = cover->nodes[i].state;
        bool is_asked =
            state == SEARCH_COVER_FAILED ? was_asked(cover->nodes[i].reason) : state != SEARCH_COVER_IDLE;
        sum.asked_count += is_asked;
        sum.answered_count += state == SEARCH_COVER_ANSWERED;
    }
    *ret_sum = sum;
}

void search_cover_weigh(struct search_cover *cover, enum search_cover_arc_state state) {
    clear_weights(cover);
    for (size_t i = 0; i < cover->arcs_count; i++) {
        if (cover->arcs[i].state == state) {
            weigh_arc(cover, &cover->arcs[i]);
        }
    }
}

void search_cover_weigh_open(struct search_cover *cover) {
    clear_weights(cover);
    for (size_t i = 0; i < cover->arcs_count; i++) {
        if (cover->arcs[i].state != SEARCH_COVER_WHOLE) {
            weigh_arc(cover, &cover->arcs[i]);
        }
    }
}
