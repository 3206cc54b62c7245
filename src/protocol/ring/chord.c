/*
 * chord - one place of this node on the ring: its predecessor, its successor list, its fingers.
 *
 * P. Zave's corrected Chord (How to make Chord correct, IEEE TSE 2017), operation by operation:
 *
 *   join                        list := all of m's, predecessor := m, for the member m before us
 *   stabilize from successor    dead: drop the head, append padding, notify the new head
 *                               live: list := [s] + first r-1 of s's; then its predecessor, if it is between,
 *                               is asked; otherwise s is notified
 *   stabilize from predecessor  dead: notify the head; live: list := [p] + first r-1 of p's; notify p
 *   rectify                     a node that notifies becomes predecessor if it is between, or if the old
 *                               one is dead
 *
 * The list always has r entries, the predecessor is never empty, lists are replaced whole from one answer and
 * at most one question is open; while it is, nodes that ask for the state hear *busy*. Padding is an ID
 * directly behind the last entry and has no address: the list stays full without skipping anybody.
 *
 * What is guaranteed (Zave): as long as no failure leaves a member without a live successor and r + 1
 * principals remain (members that no list skips), there is exactly one ordered ring and it becomes ideal.
 * Before a silent head counts as dead, everybody else in the list is pinged, so that several that died
 * together are found silent together. Whoever was silent just now is asked with fewer tries when its turn
 * comes, but it is asked: dropped unasked, one that crashed and came back would be passed over, which breaks
 * the guarantee (ring-invariants, seed 396).
 *
 * A machine with several places fails as several members at once; r should be larger than the number of
 * places of one machine. If all successors are dead in spite of it, the place goes back to small.c with
 * everybody it remembers.
 *
 * Below r + 1 nodes the lists are those of small.c, and nothing here changes them.
 */
#include "protocol/ring/ring_state.h"

enum {
    BUSY_US = 50000, /* then a busy node is asked again */
    HURRY_US = 20000,
    ROUND_US_LEAST = 200000, /* between two rounds, however often we are hurried */
    JOIN_AGAIN_US = 400000,
    FINGER_US_FIRST = 500000,
    ROUNDS_PER_FINGER = 12, /* at rest one finger in so many rounds of stabilizing */
    UNSETTLED_SPEED = 5,    /* so many times faster after a change … */
    UNSETTLED_ROUNDS = 4,   /* … for so many rounds at rest */
};

void chord_init(struct chord *chord, const struct vnode *self) {
    *chord = (struct chord){
        .self = *self, .predecessor = *self, .before_at_us = STEP_NEVER_US, .is_held_stale = true};
}

static uint32_t chord_index_of(const struct ring *ring, const struct chord *chord) {
    return (uint32_t)(chord - ring->vnodes);
}

/* ---- lists ---- */

static struct vnode padding_behind(const struct vnode *last) {
    return (struct vnode){.id = ring_id_add_power(last->id, 0)};
}

static void changed(struct ring *ring, struct chord *chord) {
    chord->changed_at_us = ring->now_us;
    chord->is_held_stale = true;
    before_hurry(ring, chord);
}

/*
 * [head] + the first r - 1 of the answer. Past our own place, and if the order is not that of the ring
 * (which no list has while the guarantee above holds), there is padding instead.
 */
static void replace_list(struct ring *ring, struct chord *chord, const struct vnode *head,
                         const struct message *answer, unsigned from) {
    unsigned r = ring->config.list_size;
    struct vnode list[RING_LIST_MAX];
    list[0] = from == 1 ? *head : answer->vnodes[0];
    struct ring_id last = ring_id_distance(chord->self.id, list[0].id);
    bool is_over = ring_id_equal(list[0].id, chord->self.id);
    for (unsigned i = 1; i < r; i++) {
        const struct vnode *next = &answer->vnodes[i - from];
        struct ring_id distance = ring_id_distance(chord->self.id, next->id);
        bool is_self = ring_id_equal(next->id, chord->self.id);
        if (is_over || (!is_self && ring_id_compare(distance, last) <= 0)) {
            list[i] = padding_behind(&list[i - 1]);
            is_over = true;
            continue;
        }
        list[i] = *next;
        last = distance;
        is_over = is_self;
        if (!vnode_is_padding(next)) {
            ring_heard_of(ring, next);
        }
    }
    for (unsigned i = 0; i < r; i++) {
        if (!vnode_equal(&list[i], &chord->list[i])) {
            changed(ring, chord);
        }
        chord->list[i] = list[i];
    }
}

static void notify(struct ring *ring, const struct chord *chord, const struct vnode *to) {
    if (vnode_is_padding(to) || ring_id_equal(to->id, chord->self.id)) {
        return;
    }
    struct message message = {.kind = MESSAGE_NOTIFY, .to = to->index, .from = chord->self.index};
    message.digest = before_digest(ring, chord);
    ring_send(ring, to, &message);
}

void chord_tell_successor(struct ring *ring, struct chord *chord) {
    notify(ring, chord, &chord->list[0]);
}

static void drop_head(struct ring *ring, struct chord *chord) {
    unsigned r = ring->config.list_size;
    struct vnode last = chord->list[r - 1];
    memmove(&chord->list[0], &chord->list[1], (r - 1) * sizeof chord->list[0]);
    chord->list[r - 1] = ring->config.breakage == RING_BREAK_PADDING ? chord->self : padding_behind(&last);
    changed(ring, chord);
    notify(ring, chord, &chord->list[0]);
}

static bool is_exhausted(const struct ring *ring, const struct chord *chord) {
    for (unsigned i = 0; i < ring->config.list_size; i++) {
        if (!vnode_is_padding(&chord->list[i]) && !ring_id_equal(chord->list[i].id, chord->self.id)) {
            return false;
        }
    }
    return true;
}

/* ---- rounds ---- */

static void next_round(struct ring *ring, struct chord *chord) {
    uint64_t rest_us = ring->config.stabilize_us;
    bool is_settled = ring->now_us - chord->changed_at_us > UNSETTLED_ROUNDS * rest_us;
    chord->stabilize_at_us =
        ring->now_us + ring_jitter(ring, is_settled ? rest_us : rest_us / UNSETTLED_SPEED);
}

static bool chord_open(struct ring *ring, const struct chord *chord, enum query_purpose purpose,
                       const struct vnode *to) {
    bool is_ping = purpose == QUERY_RECTIFY || purpose == QUERY_PROBE;
    struct query query = {
        .purpose = (uint8_t)purpose,
        .owner = chord_index_of(ring, chord),
        .kind = is_ping ? MESSAGE_PING : MESSAGE_ASK_STATE,
        .to = *to,
        .from = chord->self.index,
        .tries_max = query_is_silent(ring, to) ? QUERY_TRIES_AGAIN : QUERY_TRIES_DEAD,
    };
    return query_open(ring, &query);
}

static void chord_ask(struct ring *ring, struct chord *chord, enum query_purpose purpose,
                      const struct vnode *to) {
    chord->is_busy = chord_open(ring, chord, purpose, to);
}

void chord_hurry(struct ring *ring, struct chord *chord) {
    uint64_t at_us = chord->rounded_at_us + ROUND_US_LEAST;
    at_us = at_us > ring->now_us ? at_us : ring->now_us + ring_jitter(ring, HURRY_US);
    chord->stabilize_at_us = at_us < chord->stabilize_at_us ? at_us : chord->stabilize_at_us;
}

static void chord_probe(struct ring *ring, struct chord *chord, const struct vnode *to) {
    if (!vnode_is_padding(to) && !ring_is_own(ring, to) && !query_is_silent(ring, to) &&
        !query_is_open(ring, QUERY_PROBE, to)) {
        (void)chord_open(ring, chord, QUERY_PROBE, to); /* if too many are open, when its turn comes */
    }
}

void chord_doubt(struct ring *ring, struct chord *chord) {
    for (unsigned i = 1; i < ring->config.list_size; i++) {
        chord_probe(ring, chord, &chord->list[i]);
    }
    chord_probe(ring, chord, &chord->predecessor);
}

static void stabilize(struct ring *ring, struct chord *chord) {
    next_round(ring, chord);
    chord->rounded_at_us = ring->now_us;
    if (is_exhausted(ring, chord)) {
        mode_fall_back(ring, chord);
        return;
    }
    if (vnode_is_padding(&chord->list[0])) { /* known to be dead without asking */
        drop_head(ring, chord);
        chord->stabilize_at_us = ring->now_us;
        return;
    }
    chord_ask(ring, chord, QUERY_SUCCESSOR, &chord->list[0]);
}

static void adopt(struct ring *ring, struct chord *chord, const struct vnode *vnode) {
    if (!vnode_equal(&chord->predecessor, vnode)) {
        struct vnode old = chord->predecessor;
        chord->predecessor = *vnode;
        before_follow(ring, chord, &old);
        changed(ring, chord);
    }
}

/* One after the other, quickly at first; only those that the list does not reach. */
static void refresh_finger(struct ring *ring, struct chord *chord) {
    bool is_first_round = chord->finger_next < CHORD_FINGERS_MAX;
    unsigned finger = chord->finger_next % CHORD_FINGERS_MAX;
    struct ring_id target = ring_id_add_power(chord->self.id, 127 - finger);
    const struct vnode *last = &chord->list[ring->config.list_size - 1];
    bool is_reached = !ring_id_is_between(chord->self.id, last->id, target);
    if (is_reached) {
        chord->fingers[finger] = (struct ring_id){0};
        chord->finger_counts[finger] = 0;
        chord->finger_next = CHORD_FINGERS_MAX;
    } else {
        chord->finger_next++;
        chord->finger_next =
            chord->finger_next == 2 * CHORD_FINGERS_MAX ? CHORD_FINGERS_MAX : chord->finger_next;
        lookup_start(ring, LOOKUP_FINGER, chord_index_of(ring, chord), finger, target, ring->config.list_size,
                     NULL);
    }
    uint64_t rest_us = ROUNDS_PER_FINGER * ring->config.stabilize_us;
    chord->finger_at_us =
        ring->now_us + ring_jitter(ring, is_first_round && !is_reached ? FINGER_US_FIRST : rest_us);
}

void chord_set_finger(struct chord *chord, unsigned finger, const struct vnode *vnodes, unsigned count) {
    chord->fingers[finger] = vnodes[0].id;
    chord->finger_spans[finger] = ring_id_distance(vnodes[0].id, vnodes[count - 1].id).high;
    chord->finger_counts[finger] = (uint8_t)(count - 1);
}

static void tick_member(struct ring *ring, struct chord *chord) {
    if (!chord->is_busy && chord->has_waiting) {
        chord->has_waiting = false;
        chord_on_notify(ring, chord, &chord->waiting);
    }
    if (!chord->is_busy && ring->now_us >= chord->stabilize_at_us) {
        stabilize(ring, chord);
    }
    if (ring->now_us >= chord->finger_at_us) {
        refresh_finger(ring, chord);
    }
    before_tick(ring, chord);
    if (!chord->is_busy) {
        outbox_wake_at(ring->out, chord->stabilize_at_us);
    }
    outbox_wake_at(ring->out, chord->finger_at_us);
}

void chord_tick(struct ring *ring, struct chord *chord) {
    if (ring->mode == MODE_CHORD && chord->is_member) {
        tick_member(ring, chord);
        return;
    }
    bool wants_to_join = ring->mode == MODE_CHORD || ring->small.is_moving ||
                         (ring->mode == MODE_JOINING && ring->small.is_ring_met);
    if (!wants_to_join) {
        return;
    }
    if (!chord->is_joining && ring->now_us >= chord->join_at_us) {
        chord->join_at_us = ring->now_us + ring_jitter(ring, JOIN_AGAIN_US);
        chord->is_joining = true; /* first: a lookup that knows nobody ends at once */
        const struct vnode *only = ring->small.is_moving ? &ring->small.moving_through : NULL;
        if (!lookup_start(ring, LOOKUP_JOIN, chord_index_of(ring, chord), 0, chord->self.id, 1, only)) {
            chord->is_joining = false;
        }
    }
    if (!chord->is_joining) {
        outbox_wake_at(ring->out, chord->join_at_us);
    }
}

/* ---- answers ---- */

static void chord_end_round(struct ring *ring, struct chord *chord, const struct vnode *notified) {
    notify(ring, chord, notified);
    mode_shrink(ring, chord);
}

static void after_successor(struct ring *ring, struct chord *chord, const struct query *query,
                            const struct message *answer) {
    bool is_dead = answer == NULL || answer->status == MESSAGE_NONE;
    if (is_dead && vnode_equal(&query->to, &chord->list[0])) {
        drop_head(ring, chord);
        chord->stabilize_at_us = ring->now_us + ring_jitter(ring, BUSY_US);
        return;
    }
    if (is_dead || answer->status == MESSAGE_BUSY) {
        chord->stabilize_at_us = ring->now_us + ring_jitter(ring, BUSY_US);
        return;
    }
    replace_list(ring, chord, &query->to, answer, 1);
    next_round(ring, chord);
    if (taken_is_rival(chord, &answer->predecessor)) { /* if it lives, it is the one in the ring */
        lookup_start(ring, LOOKUP_HEAL, chord_index_of(ring, chord), 1, chord->self.id, 1,
                     &answer->predecessor);
    }
    if (ring_id_is_between(chord->self.id, answer->predecessor.id, query->to.id)) {
        chord_ask(ring, chord, QUERY_PREDECESSOR, &answer->predecessor);
        return;
    }
    chord_end_round(ring, chord, &query->to);
}

static void after_predecessor(struct ring *ring, struct chord *chord, const struct query *query,
                              const struct message *answer) {
    if (answer != NULL && answer->status == MESSAGE_MEMBER &&
        ring_id_is_between(chord->self.id, query->to.id, chord->list[0].id)) {
        replace_list(ring, chord, &query->to, answer, 1);
    } else if (answer != NULL && answer->status == MESSAGE_BUSY) {
        chord->stabilize_at_us = ring->now_us + ring_jitter(ring, BUSY_US);
    }
    chord_end_round(ring, chord, &chord->list[0]);
}

static void after_rectify(struct ring *ring, struct chord *chord, const struct query *query,
                          const struct message *answer) {
    bool is_dead = answer == NULL || answer->status == MESSAGE_NONE;
    if (is_dead && vnode_equal(&query->to, &chord->predecessor)) {
        adopt(ring, chord, &chord->candidate);
    }
}

static void after_join(struct ring *ring, struct chord *chord, const struct query *query,
                       const struct message *answer) {
    chord->is_joining = false;
    bool is_before = answer != NULL && answer->status == MESSAGE_MEMBER &&
                     answer->vnodes_count == ring->config.list_size &&
                     ring_id_is_between(query->to.id, chord->self.id, answer->vnodes[0].id);
    if (!is_before) { /* what changed meanwhile is found by the next lookup */
        ring->small.is_moving = false;
        return;
    }
    replace_list(ring, chord, &query->to, answer, 0);
    chord->predecessor = query->to;
    chord->before_count = 0;
    chord->is_before_whole = false;
    chord->is_member = true;
    chord->has_waiting = false;
    chord->finger_next = 0;
    changed(ring, chord);
    chord->stabilize_at_us = ring->now_us;
    chord->finger_at_us = ring->now_us + ring_jitter(ring, FINGER_US_FIRST);
    mode_joined(ring, chord);
}

/* Nobody knew whether it lives; if it is the head by now, the round need not wait for its time. */
static void after_probe(struct ring *ring, struct chord *chord, const struct query *query) {
    if (!chord->is_busy && query_is_silent(ring, &query->to) && vnode_equal(&query->to, &chord->list[0])) {
        chord->stabilize_at_us = ring->now_us;
    }
}

void chord_answered(struct ring *ring, struct chord *chord, const struct query *query,
                    const struct message *answer) {
    if (query->purpose == QUERY_PROBE) {
        after_probe(ring, chord, query);
        return;
    }
    chord->is_busy = false;
    bool is_state = answer != NULL && answer->kind == MESSAGE_STATE && answer->status == MESSAGE_MEMBER;
    if (is_state && answer->vnodes_count != ring->config.list_size) {
        ring_blame(ring, &query->to, "a successor list of another length");
        chord->is_joining = false;
        ring->small.is_moving = false;
        return;
    }
    bool is_moving = ring->mode == MODE_SMALL && ring->small.is_moving;
    if (query->purpose == QUERY_JOIN && (!chord->is_member || is_moving)) {
        after_join(ring, chord, query, answer);
    } else if (ring->mode != MODE_CHORD || !chord->is_member) {
        return; /* small.c keeps the lists now */
    } else if (query->purpose == QUERY_SUCCESSOR) {
        after_successor(ring, chord, query, answer);
    } else if (query->purpose == QUERY_PREDECESSOR) {
        after_predecessor(ring, chord, query, answer);
    } else if (query->purpose == QUERY_RECTIFY) { /* a join that is no longer needed has no candidate */
        after_rectify(ring, chord, query, answer);
    }
}

void chord_join(struct ring *ring, struct chord *chord, const struct vnode *predecessor) {
    chord->is_joining = false;
    bool is_wanted = !chord->is_member || ring->small.is_moving;
    if (is_wanted && !chord->is_busy && predecessor != NULL) {
        chord_ask(ring, chord, QUERY_JOIN, predecessor);
        chord->is_joining = chord->is_busy;
    }
    if (!chord->is_joining) {
        ring->small.is_moving = false; /* it was no other ring, or it is gone */
    }
}

void chord_meet(struct ring *ring, struct chord *chord, const struct vnode *stranger) {
    if (ring->mode == MODE_CHORD && chord->is_member && !chord->is_busy &&
        ring_id_is_between(chord->self.id, stranger->id, chord->list[0].id)) {
        chord_ask(ring, chord, QUERY_PREDECESSOR, stranger);
    }
}

/* ---- questions of others ---- */

void chord_on_ask_state(struct ring *ring, struct chord *chord, struct message *answer) {
    answer->kind = MESSAGE_STATE;
    answer->to = chord->self.index;
    answer->status = !chord->is_member ? MESSAGE_NONE : chord->is_busy ? MESSAGE_BUSY : MESSAGE_MEMBER;
    if (answer->status == MESSAGE_MEMBER) {
        answer->predecessor = chord->predecessor;
        answer->vnodes_count = ring->config.list_size;
        memcpy(answer->vnodes, chord->list, ring->config.list_size * sizeof chord->list[0]);
    }
}

void chord_on_notify(struct ring *ring, struct chord *chord, const struct vnode *from) {
    if (ring->mode != MODE_CHORD || !chord->is_member || vnode_equal(from, &chord->predecessor) ||
        ring_id_equal(from->id, chord->self.id)) {
        return;
    }
    if (ring_id_is_between(chord->predecessor.id, from->id, chord->self.id)) {
        adopt(ring, chord, from);
    } else if (chord->is_busy) {
        chord->waiting = *from;
        chord->has_waiting = true;
    } else {
        chord->candidate = *from;
        chord_ask(ring, chord, QUERY_RECTIFY, &chord->predecessor);
    }
}

static bool chord_has_id(const struct vnode *vnodes, unsigned count, struct ring_id id) {
    unsigned i = 0;
    while (i < count && !ring_id_equal(vnodes[i].id, id)) {
        i++;
    }
    return i < count;
}

bool chord_needs(const struct ring *ring, const struct chord *chord, struct ring_id id) {
    if (!chord->is_member) {
        return false;
    }
    if (ring_id_equal(chord->predecessor.id, id) || chord_has_id(chord->before, chord->before_count, id) ||
        chord_has_id(chord->list, ring->config.list_size, id)) {
        return true;
    }
    for (unsigned i = 0; i < CHORD_FINGERS_MAX; i++) {
        if (ring_id_equal(chord->fingers[i], id)) {
            return true;
        }
    }
    return false;
}
