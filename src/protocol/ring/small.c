/*
 * small - rings of few nodes: everybody knows everybody, and the sorted table is the ring.
 *
 * Chord's guarantee needs r + 1 members, a new ring has one. So up to r *nodes* (a machine's places die
 * together, therefore machines are counted) each keeps a table of all, asks each of them in turn for theirs,
 * and sorts all places: the lists of chord.c follow from that. A node enters the table only by its own
 * answer, whoever named it; it leaves by silence. Tables so become the union of what is alive and connected.
 *
 * When a node begins and ceases to do so: mode.c.
 *
 * Guaranteed while nodes can reach each other: tables converge to those alive (a node that dies stays in for
 * QUERY_TRIES_DEAD time-outs after it is asked next); the change to Chord starts ideal. Not guaranteed: that
 * two nodes never disagree about a key meanwhile. Tables hold at most RING_LIST_MAX others, those with the
 * smallest IDs; a node that finds no room waits for Chord.
 */
#include "protocol/ring/ring_state.h"

enum {
    SPEED = 2,            /* each node is asked so many times per round of stabilizing … */
    SPEED_UNSETTLED = 10, /* … and so many times while tables differ */
    JOINING_ANSWERS =
        4, /* a node that joins asks each so many times at once: to be met, asked, and entered */
    JOINING_US = 150000,
    CONTACTS_US = 3000000, /* between two attempts to reach anybody at all */
};

static uint64_t ask_again_us(struct ring *ring, bool is_settled) {
    return ring->now_us +
           ring_jitter(ring, ring->config.stabilize_us / (is_settled ? SPEED : SPEED_UNSETTLED));
}

/* ---- the table ---- */

static struct small_node *small_find_node(struct small_node *nodes, uint32_t count,
                                          const struct address *address) {
    for (uint32_t i = 0; i < count; i++) {
        if (address_equal(&nodes[i].first.peer.address, address)) {
            return &nodes[i];
        }
    }
    return NULL;
}

struct small_node *small_find(struct ring *ring, const struct address *address) {
    return small_find_node(ring->small.nodes, ring->small.nodes_count, address);
}

/* The lists of one of our places, from all places in order. */
static void install_vnode(struct ring *ring, struct chord *chord, const struct circle *circle) {
    unsigned at = circle_at_or_after(circle, chord->self.id);
    unsigned others = circle->count - 1;
    chord->predecessor = *circle_before(circle, at, 1);
    for (unsigned i = 0; i < ring->config.list_size; i++) {
        const struct vnode *last = i == 0 ? &chord->self : &chord->list[i - 1];
        chord->list[i] = i < others ? *circle_after(circle, at, i + 1)
                                    : (struct vnode){.id = ring_id_add_power(last->id, 0)};
    }
    chord->before_count = 0;
    for (unsigned i = 2; i <= others && i <= before_size(ring); i++) {
        chord->before[chord->before_count++] = *circle_before(circle, at, i);
    }
    chord->is_before_whole = others <= before_size(ring);
    chord->is_member = ring->mode == MODE_SMALL;
    chord->changed_at_us = ring->now_us;
    chord->is_held_stale = true;
}

static void install(struct ring *ring) {
    struct circle circle;
    circle_of(ring, &circle);
    ring->small.generation++;
    for (unsigned i = 0; i < ring->config.vnodes_count; i++) {
        install_vnode(ring, &ring->vnodes[i], &circle);
    }
}

void small_changed(struct ring *ring) {
    for (uint32_t i = 0; i < ring->small.nodes_count; i++) {
        ring->small.nodes[i].agrees = false;
    }
    install(ring);
}

static void remove_node(struct small_node *nodes, uint32_t *count, struct small_node *node) {
    *node = nodes[--*count];
}

bool small_add(struct ring *ring, const struct small_node *node) {
    struct small *small = &ring->small;
    if (small->nodes_count == SMALL_NODES_MAX) {
        struct small_node *largest = &small->nodes[0];
        for (uint32_t i = 1; i < small->nodes_count; i++) {
            if (ring_id_compare(small->nodes[i].first.id, largest->first.id) > 0) {
                largest = &small->nodes[i];
            }
        }
        if (ring_id_compare(node->first.id, largest->first.id) > 0) {
            return false;
        }
        remove_node(small->nodes, &small->nodes_count, largest);
    }
    small->nodes[small->nodes_count++] = *node;
    return true;
}

/* True if it will be asked. */
static bool add_candidate(struct ring *ring, const struct vnode *vnode) {
    struct small *small = &ring->small;
    if (ring_is_own(ring, vnode) || small_find(ring, &vnode->peer.address) != NULL) {
        return false;
    }
    if (small_find_node(small->candidates, small->candidates_count, &vnode->peer.address) != NULL) {
        return true;
    }
    if (small->candidates_count == SMALL_CANDIDATES_MAX) {
        return false;
    }
    small->candidates[small->candidates_count++] = (struct small_node){.first = *vnode, .vnodes_count = 1};
    return true;
}

static bool is_contact_open(const struct small *small) {
    for (uint32_t i = 0; i < small->contacts_count; i++) {
        if (small->is_contact_open[i]) {
            return true;
        }
    }
    return false;
}

/*
 * A node that is about to join says nothing of others before all its contacts have answered or are dead: one
 * of them may be in a ring, and two that wait at its door must not found a second one.
 */
static bool is_at_the_door(const struct ring *ring) {
    return ring->mode == MODE_JOINING && (ring->small.is_ring_met || is_contact_open(&ring->small));
}

/* ---- asking ---- */

static void small_ask(struct ring *ring, struct small_node *node, uint8_t tries_max) {
    struct query query = {
        .purpose = QUERY_NODES,
        .kind = MESSAGE_ASK_NODES,
        .to = node->first,
        .tries_max = tries_max,
    };
    node->is_asked = query_open(ring, &query);
}

void small_join(struct ring *ring, const struct vnode *contacts, uint32_t contacts_count) {
    struct small *small = &ring->small;
    small->contacts_count = 0;
    memset(small->is_contact_open, 0, sizeof small->is_contact_open);
    for (uint32_t i = 0; i < contacts_count && i < SMALL_CANDIDATES_MAX; i++) {
        if (!ring_is_own(ring, &contacts[i])) {
            small->contacts[small->contacts_count++] = contacts[i];
            if (ring->mode == MODE_SMALL) { /* it may be of a part that was lost */
                add_candidate(ring, &contacts[i]);
            }
        }
    }
    small->contacts_at_us = ring->now_us;
    if (ring->mode == MODE_IDLE || ring->mode == MODE_JOINING) {
        ring->mode = contacts_count == 0 ? MODE_SMALL : MODE_JOINING;
        install(ring);
    }
}

static void ask_contacts(struct ring *ring) {
    struct small *small = &ring->small;
    for (uint32_t i = 0; i < small->contacts_count; i++) {
        if (ring->mode == MODE_CHORD) {
            lookup_start(ring, LOOKUP_HEAL, 0, 0, ring->vnodes[0].self.id, 1, &small->contacts[i]);
        } else {
            small->is_contact_open[i] = add_candidate(ring, &small->contacts[i]);
        }
    }
    small->is_ring_met = false; /* it may be gone; whoever is in one says so again */
    if (ring->mode == MODE_CHORD) {
        small->contacts_count = 0; /* once is enough: the table remembers the nodes that answered */
    }
    small->contacts_at_us = ring->now_us + ring_jitter(ring, CONTACTS_US);
}

static void ask_due(struct ring *ring, struct small_node *nodes, uint32_t count, uint8_t tries_max) {
    for (uint32_t i = 0; i < count; i++) {
        if (!nodes[i].is_asked && ring->now_us >= nodes[i].ask_at_us) {
            small_ask(ring, &nodes[i], tries_max);
        }
        if (!nodes[i].is_asked) {
            outbox_wake_at(ring->out, nodes[i].ask_at_us);
        }
    }
}

void small_tick(struct ring *ring) {
    struct small *small = &ring->small;
    bool is_alone = small->nodes_count == 0 || ring->mode == MODE_JOINING;
    bool is_wanted = small->contacts_count > 0 && (is_alone || ring->mode == MODE_CHORD);
    if (is_wanted && !is_contact_open(small)) {
        if (ring->now_us >= small->contacts_at_us) {
            ask_contacts(ring);
        }
        outbox_wake_at(ring->out, small->contacts_at_us);
    }
    if (ring->mode == MODE_SMALL || ring->mode == MODE_JOINING) {
        ask_due(ring, small->nodes, small->nodes_count, QUERY_TRIES_DEAD);
        uint8_t tries_max = ring->mode == MODE_JOINING ? QUERY_TRIES_DEAD : QUERY_TRIES_LOOKUP;
        ask_due(ring, small->candidates, small->candidates_count, tries_max);
    }
}

void small_describe(const struct ring *ring, struct message *message) {
    const struct small *small = &ring->small;
    message->status = ring->mode == MODE_LIGHT ? MODE_IDLE : ring->mode;
    message->is_whole = ring->mode != MODE_CHORD;
    message->vnodes[0] = ring->vnodes[0].self;
    message->nodes_vnodes_count[0] = ring->config.vnodes_count;
    unsigned count = 1;
    if (ring->mode != MODE_CHORD && !is_at_the_door(ring)) {
        for (uint32_t i = 0; i < small->nodes_count; i++) {
            message->vnodes[count] = small->nodes[i].first;
            message->nodes_vnodes_count[count++] = small->nodes[i].vnodes_count;
        }
    }
    for (unsigned i = 0; ring->mode == MODE_CHORD && i < ring->config.list_size; i++) {
        const struct vnode *vnode = &ring->vnodes[0].list[i];
        message->is_whole |= ring_id_equal(vnode->id, ring->vnodes[0].self.id);
        if (!vnode_is_padding(vnode) && !ring_is_own(ring, vnode)) {
            message->vnodes[count] = *vnode;
            message->nodes_vnodes_count[count++] = 1;
        }
    }
    message->vnodes_count = (uint8_t)count;
}

/* ---- messages ---- */

static bool do_all_agree(const struct ring *ring) {
    if (ring->small.nodes_count < ring->config.list_size) {
        return false;
    }
    for (uint32_t i = 0; i < ring->small.nodes_count; i++) {
        if (!ring->small.nodes[i].agrees) {
            return false;
        }
    }
    return true;
}

static bool small_has_node(const struct message *message, const struct address *address,
                           uint8_t vnodes_count) {
    for (unsigned i = 0; i < message->vnodes_count; i++) {
        if (address_equal(&message->vnodes[i].peer.address, address)) {
            return vnodes_count == 0 || message->nodes_vnodes_count[i] == vnodes_count;
        }
    }
    return false;
}

static bool is_same_table(const struct ring *ring, const struct message *message) {
    const struct small *small = &ring->small;
    if (message->vnodes_count != small->nodes_count + 1 ||
        !small_has_node(message, &ring->config.self.address, ring->config.vnodes_count)) {
        return false;
    }
    for (uint32_t i = 0; i < small->nodes_count; i++) {
        if (!small_has_node(message, &small->nodes[i].first.peer.address, small->nodes[i].vnodes_count)) {
            return false;
        }
    }
    return true;
}

/* Are all nodes of its ring known to us? Then its Chord is what is left of our own ring. */
static bool is_part_of_ours(struct ring *ring, const struct message *message) {
    for (unsigned i = 1; i < message->vnodes_count; i++) {
        const struct vnode *vnode = &message->vnodes[i];
        if (!ring_is_own(ring, vnode) && small_find(ring, &vnode->peer.address) == NULL) {
            return false;
        }
    }
    return true;
}

void small_meet(struct ring *ring, const struct vnode *stranger) {
    if (ring->mode == MODE_SMALL || ring->mode == MODE_JOINING) {
        add_candidate(ring, stranger);
    }
}

void small_on_ask_nodes(struct ring *ring, const struct event *event, const struct message *message) {
    if (message->vnodes_count == 0 || !address_equal(&event->from, &message->vnodes[0].peer.address) ||
        ring_is_own(ring, &message->vnodes[0])) {
        return;
    }
    if (ring->mode != MODE_CHORD) {
        small_meet(ring, &message->vnodes[0]);
        return;
    }
    struct chord *chord = &ring->vnodes[0];
    bool is_fewer = message->status == MODE_SMALL && message->vnodes_count <= ring->config.list_size;
    bool is_successor = false;
    for (unsigned i = 0; i < ring->config.list_size && is_fewer; i++) {
        const struct vnode *vnode = &chord->list[i];
        is_successor |= address_equal(&vnode->peer.address, &event->from);
        is_fewer = vnode_is_padding(vnode) || ring_is_own(ring, vnode) ||
                   small_has_node(message, &vnode->peer.address, 0);
    }
    if (is_fewer && is_successor) {
        mode_follow_down(ring, message);
    }
}

/* NULL: it is not in the table. */
static void drop_node(struct ring *ring, struct small_node *node) {
    if (node != NULL) {
        remove_node(ring->small.nodes, &ring->small.nodes_count, node);
        small_changed(ring);
    }
}

/* What it says of itself; a node that has a place of another is left out until it has others. */
static void take_node(struct ring *ring, const struct small_node *heard, bool is_joining) {
    struct small *small = &ring->small;
    struct small_node *node = small_find(ring, &heard->first.peer.address);
    bool is_new =
        node == NULL || node->vnodes_count != heard->vnodes_count || node->first.index != heard->first.index;
    if (is_new && taken_is_known(ring, heard)) {
        drop_node(ring, node);
    } else if (node == NULL && (!is_joining || small->nodes_count < ring->config.list_size)) {
        if (small_add(ring, heard)) {
            small_changed(ring);
        }
    } else if (node != NULL && is_new) {
        node->first = heard->first;
        node->vnodes_count = heard->vnodes_count;
        small_changed(ring);
    }
}

static void heard_table(struct ring *ring, const struct query *query, const struct message *answer) {
    struct small_node heard = {.first = answer->vnodes[0], .vnodes_count = answer->nodes_vnodes_count[0]};
    bool is_joining = answer->status == MODE_JOINING;
    struct small_node *node = small_find(ring, &query->to.peer.address);
    if (taken_on_node(ring, &heard, !is_joining)) {
        drop_node(ring, node);
        return;
    }
    take_node(ring, &heard, is_joining);
    for (unsigned i = 1; i < answer->vnodes_count; i++) {
        add_candidate(ring, &answer->vnodes[i]);
    }
    if (ring->mode == MODE_JOINING && !is_at_the_door(ring) &&
        small_has_node(answer, &ring->config.self.address, 0) && !taken_is_named(ring, answer)) {
        ring->mode = MODE_SMALL;
        small_changed(ring);
    }
    node = small_find(ring, &query->to.peer.address);
    if (node != NULL) {
        node->agrees = answer->status == MODE_SMALL && is_same_table(ring, answer);
        node->is_asked = false;
        node->ask_at_us = ask_again_us(ring, node->agrees);
        if (ring->mode == MODE_JOINING && node->answers_count < JOINING_ANSWERS) {
            node->answers_count++;
            node->ask_at_us = ring->now_us + ring_jitter(ring, JOINING_US);
        }
    }
    if (ring->mode == MODE_SMALL && do_all_agree(ring)) {
        mode_become_chord(ring);
    }
}

/*
 * It is part of a Chord ring of more than its list shows. In our table: it has not noticed yet that the ring
 * is small, or has moved to a larger one, as the nodes it names will say. Not in it: its ring is another
 * one, unless all of its list is ours.
 */
static void heard_chord(struct ring *ring, const struct query *query, const struct message *answer) {
    if (ring->mode == MODE_JOINING) {
        ring->small.is_ring_met = true;
        return;
    }
    bool is_ours = small_find(ring, &query->to.peer.address) != NULL;
    if (is_ours && ring->small.nodes_count >= ring->config.list_size) {
        mode_become_chord(ring);
    } else if (is_ours || is_part_of_ours(ring, answer)) {
        heard_table(ring, query, answer);
    } else {
        mode_move(ring, &query->to);
    }
}

void small_answered(struct ring *ring, const struct query *query, const struct message *answer) {
    struct small *small = &ring->small;
    const struct address *address = &query->to.peer.address;
    struct small_node *candidate = small_find_node(small->candidates, small->candidates_count, address);
    if (candidate != NULL) {
        remove_node(small->candidates, &small->candidates_count, candidate);
    }
    for (uint32_t i = 0; i < small->contacts_count; i++) {
        if (small->is_contact_open[i] && address_equal(&small->contacts[i].peer.address, address)) {
            small->is_contact_open[i] = false;
            small->contacts_at_us = ring->now_us + ring_jitter(ring, CONTACTS_US);
        }
    }
    if (ring->mode != MODE_SMALL && ring->mode != MODE_JOINING) {
        return;
    }
    struct small_node *node = small_find(ring, address);
    if (answer == NULL || answer->status == MODE_IDLE) {
        drop_node(ring, node);
        return;
    }
    if (answer->vnodes_count == 0 || !address_equal(&answer->vnodes[0].peer.address, address)) {
        ring_blame(ring, &query->to, "a table of nodes that does not begin with its own");
        return;
    }
    for (unsigned i = 0; i < answer->vnodes_count; i++) {
        ring_heard_of(ring, &answer->vnodes[i]);
    }
    if (answer->status == MODE_CHORD && !answer->is_whole) {
        heard_chord(ring, query, answer);
        node = small_find(ring, address);
        if (node != NULL) {
            node->is_asked = false;
            node->ask_at_us = ask_again_us(ring, false);
        }
        return;
    }
    heard_table(ring, query, answer);
}
