/*
 * retreat - beside programs that do not know rows (even.c) every node is as it was in 0.2: one virtual node,
 * of index 0.
 *
 * Programs without the feature even-parts take each virtual node that they ever heard of for one of the ring,
 * if its node answers anything at all; and the node through which they joined for its index 0. With one
 * virtual node each, of index 0, this is right. So none of them must ever hear of another index:
 *
 *      the door     while there is something to hide, a node does not hear those of whom it is not known that
 *                   they know rows. All that they get is that it joins, with index 0, as it will have soon if
 *                   they do not. They ask again; meanwhile their hello tells, or its lack
 *      the retreat  when it turns out that one does not, the node gives its row back, and says so by is_whole
 *                   = false in its table (older programs do not look at it there). Whoever sees that goes
 *                   back, too; then the door opens, but not before questions to what was given up are over
 *      and on       when all members know rows and nothing was heard of others for a while, twice as long
 *                   after each time, the node is undecided again. Nobody chooses while one is back
 *
 * What is known of the sender comes with each message: event.code, enum ring_sender. In Chord nobody knows
 * all others: there the door is open, and whoever hears an older program itself keeps its first virtual node.
 */
#include "protocol/ring/ring_state.h"

enum {
    CALM_ROUNDS = 12, /* of stabilizing */
    CALM_DOUBLED_MAX = 9,
    DOOR_ROUNDS = 3, /* whoever has a row so long after us will not go back */
};

static const uint64_t QUIET_US = 10 * 1000000; /* longer than a question is repeated */

/* As in 0.2. Of several nodes behind one address only one has this. */
static bool is_plain(unsigned first, unsigned count) {
    return count == 1 && first == 0;
}

static uint64_t calm_us(const struct ring *ring) {
    unsigned doubled = ring->retreat.count > 0 ? ring->retreat.count - 1 : 0;
    doubled = doubled < CALM_DOUBLED_MAX ? doubled : CALM_DOUBLED_MAX;
    return (CALM_ROUNDS * ring->config.stabilize_us) << doubled;
}

static uint64_t calm_at_us(const struct ring *ring) {
    const struct retreat *retreat = &ring->retreat;
    uint64_t from_us = retreat->old_at_us > retreat->begun_at_us ? retreat->old_at_us : retreat->begun_at_us;
    return from_us + calm_us(ring);
}

static bool do_all_know_rows(const struct ring *ring) {
    for (uint32_t i = 0; i < ring->small.nodes_count; i++) {
        if (!ring->small.nodes[i].knows_rows) {
            return false;
        }
    }
    return true;
}

static bool is_anybody_back(const struct ring *ring) {
    for (uint32_t i = 0; i < ring->small.nodes_count; i++) {
        if (ring->small.nodes[i].is_back) {
            return true;
        }
    }
    return false;
}

bool retreat_is_on(const struct ring *ring) {
    return ring->retreat.is_on;
}

bool ring_is_back(const struct ring *ring) {
    return ring->retreat.is_on;
}

bool ring_heard_old(const struct ring *ring, uint64_t within_us, struct peer *ret_peer) {
    const struct retreat *retreat = &ring->retreat;
    *ret_peer = retreat->old;
    return retreat->old_at_us > 0 && ring->now_us - retreat->old_at_us <= within_us;
}

bool retreat_is_needed(const struct ring *ring) {
    return ring->retreat.is_on || is_anybody_back(ring) || !do_all_know_rows(ring);
}

/* ---- the retreat ---- */

/* Is there anything that older programs must not hear of? */
static bool is_to_hide(const struct ring *ring) {
    struct even_row own = even_own_row(ring);
    bool is_to_hide = ring->config.is_even && !is_plain(own.first, own.count);
    for (uint32_t i = 0; i < ring->small.nodes_count; i++) {
        const struct small_node *node = &ring->small.nodes[i];
        is_to_hide |= node->knows_rows && !node->is_back && !is_plain(node->first.index, node->vnodes_count);
    }
    return is_to_hide;
}

static void retreat_begin(struct ring *ring) {
    struct retreat *retreat = &ring->retreat;
    struct even_row own = even_own_row(ring);
    bool was_heard_of = ring->mode == MODE_SMALL && is_to_hide(ring);
    retreat->is_on = true;
    retreat->count++;
    retreat->begun_at_us = ring->now_us;
    retreat->quiet_until_us = was_heard_of ? ring->now_us + QUIET_US : 0;
    if (ring->mode == MODE_CHORD) {
        even_resize_in_chord(ring, 1);
    } else if (ring->config.is_even && !is_plain(own.first, own.count)) {
        even_take_one(ring, 0, EVEN_UNDECIDED_FIRST);
    } else {
        small_hurry(ring); /* they shall hear of it */
    }
}

static bool is_door_closed(const struct ring *ring) {
    const struct retreat *retreat = &ring->retreat;
    if (ring->mode == MODE_CHORD) {
        return false;
    }
    if (!retreat->is_on) {
        return is_to_hide(ring);
    }
    uint64_t late_us = retreat->begun_at_us + DOOR_ROUNDS * ring->config.stabilize_us;
    return ring->now_us < retreat->quiet_until_us || (ring->now_us < late_us && is_to_hide(ring));
}

bool retreat_hides_from(struct ring *ring, const struct address *address) {
    const struct small_node *node = small_find(ring, address);
    return (node == NULL || !node->knows_rows) && is_door_closed(ring);
}

void retreat_describe(const struct ring *ring, struct message *message) {
    struct sha256 sha256 = ring->sha256;
    struct vnode *self = &message->vnodes[0];
    *self = ring->vnodes[0].self;
    if (ring->config.is_even) {
        self->index = 0;
        self->id = ring_id_of_node(&sha256, &self->peer.address, 0);
    }
    message->status = MODE_JOINING;
    message->is_whole = true;
    message->nodes_vnodes_count[0] = 1;
    message->vnodes_count = 1;
}

/* ---- what is heard ---- */

static void note_sender(struct ring *ring, const struct event *event, const struct message *message) {
    struct small_node *node = small_find(ring, &event->from);
    bool is_table = message->kind == MESSAGE_ASK_NODES || message->kind == MESSAGE_NODES;
    struct retreat *retreat = &ring->retreat;
    retreat->sender_knows_rows = event->code == RING_SENDER_KNOWS_ROWS;
    retreat->is_sender_back =
        is_table && message->status != MODE_CHORD && !message->is_whole && retreat->sender_knows_rows;
    if (node != NULL) {
        node->knows_rows = retreat->sender_knows_rows;
        node->is_back = is_table ? retreat->is_sender_back : node->is_back;
        bool is_same =
            !is_table || (message->vnodes_count > 0 && message->nodes_vnodes_count[0] == node->vnodes_count &&
                          message->vnodes[0].index == node->first.index);
        node->agrees = node->agrees && is_same; /* its row comes with its answer: nobody plans before */
    }
    if (event->code == RING_SENDER_OLD) {
        retreat->old_at_us = ring->now_us;
        retreat->old = event_sender(event);
    }
}

bool retreat_admits(struct ring *ring, const struct event *event, const struct message *message) {
    struct retreat *retreat = &ring->retreat;
    note_sender(ring, event, message);
    bool is_reason = event->code == RING_SENDER_OLD || (retreat->is_sender_back && !retreat->is_over);
    if (is_reason && ring->mode != MODE_IDLE && !retreat->is_on) {
        retreat_begin(ring);
    }
    return retreat->sender_knows_rows || !is_door_closed(ring);
}

/* ---- and on ---- */

void retreat_tick(struct ring *ring) {
    struct retreat *retreat = &ring->retreat;
    if (retreat->is_over && !is_anybody_back(ring)) {
        retreat->is_over = false;
    }
    bool is_member = ring->mode == MODE_CHORD || (ring->mode == MODE_SMALL && do_all_know_rows(ring));
    if (!retreat->is_on || !is_member) {
        return; /* a message brings us back here */
    }
    if (ring->now_us < calm_at_us(ring)) {
        outbox_wake_at(ring->out, calm_at_us(ring));
        return;
    }
    retreat->is_on = false;
    retreat->is_over = true; /* for us; others need a little longer */
    if (ring->mode == MODE_CHORD) {
        even_resize_in_chord(ring, ring->even.wanted);
    } else if (ring->config.is_even) {
        even_take_one(ring, EVEN_UNDECIDED_FIRST, EVEN_UNDECIDED_END);
    } else {
        small_hurry(ring);
    }
}
