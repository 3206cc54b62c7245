#include "ring/small.h"

#include "ring/state.h"

enum {
    SPEED = 2,             /* each node is asked so many times per round of stabilizing … */
    SPEED_UNSETTLED = 10,  /* … and so many times while tables differ */
    CONTACTS_US = 3000000, /* between two attempts to reach anybody at all */
};

static uint64_t ask_again_us(struct ring *ring, bool is_settled) {
    return ring->now_us +
           ring_jitter(ring, ring->config.stabilize_us / (is_settled ? SPEED : SPEED_UNSETTLED));
}

/* ---- the table ---- */

static struct small_node *find_node(struct small_node *nodes, uint32_t count, const struct address *address) {
    for (uint32_t i = 0; i < count; i++) {
        if (address_equal(&nodes[i].first.peer.address, address)) {
            return &nodes[i];
        }
    }
    return NULL;
}

static struct small_node *find(struct ring *ring, const struct address *address) {
    return find_node(ring->small.nodes, ring->small.nodes_count, address);
}

static bool is_self(const struct ring *ring, const struct address *address) {
    return address_equal(&ring->config.self.address, address);
}

/* Put one place into the sorted circle that begins behind `self`; only the r nearest and the last count. */
static void offer(struct ring *ring, struct chord *chord, const struct ring_place *place, unsigned *count) {
    if (ring_id_equal(place->id, chord->self.id)) {
        return;
    }
    struct ring_id distance = ring_id_distance(chord->self.id, place->id);
    struct ring_id last = ring_id_distance(chord->self.id, chord->predecessor.id);
    if (ring_id_compare(distance, last) > 0) {
        chord->predecessor = *place;
    }
    unsigned r = ring->config.list_size;
    unsigned at = *count;
    while (at > 0 &&
           ring_id_compare(distance, ring_id_distance(chord->self.id, chord->list[at - 1].id)) < 0) {
        at--;
    }
    if (at == r) {
        return;
    }
    unsigned moved = *count < r ? *count - at : r - 1 - at;
    memmove(&chord->list[at + 1], &chord->list[at], moved * sizeof chord->list[0]);
    chord->list[at] = *place;
    *count += *count < r;
}

static void offer_node(struct ring *ring, struct chord *chord, const struct small_node *node,
                       unsigned *count) {
    struct ring_place place = node->first;
    for (unsigned i = 0; i < node->places_count; i++) {
        place.index = (uint8_t)(node->first.index + i);
        place.id = ring_id_of_node(&ring->sha256, &place.peer.address, place.index);
        offer(ring, chord, &place, count);
    }
}

/* The lists of our places, from the table. */
static void install(struct ring *ring) {
    struct small *small = &ring->small;
    for (unsigned p = 0; p < ring->config.places_count; p++) {
        struct chord *chord = &ring->places[p];
        unsigned count = 0;
        chord->predecessor = chord->self;
        for (unsigned i = 0; i < ring->config.places_count; i++) {
            offer(ring, chord, &ring->places[i].self, &count);
        }
        for (uint32_t i = 0; i < small->nodes_count; i++) {
            offer_node(ring, chord, &small->nodes[i], &count);
        }
        for (; count < ring->config.list_size; count++) {
            const struct ring_place *last = count == 0 ? &chord->self : &chord->list[count - 1];
            chord->list[count] = (struct ring_place){.id = ring_id_add_power(last->id, 0)};
        }
        chord->is_member = ring->mode == MODE_SMALL;
        chord->changed_at_us = ring->now_us;
    }
}

static void table_changed(struct ring *ring) {
    for (uint32_t i = 0; i < ring->small.nodes_count; i++) {
        ring->small.nodes[i].agrees = false;
    }
    install(ring);
}

static void remove_node(struct small_node *nodes, uint32_t *count, struct small_node *node) {
    *node = nodes[--*count];
}

/* False where there is no room: the smallest IDs stay, on all nodes the same ones. */
static bool add_node(struct ring *ring, const struct small_node *node) {
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

/* True where he will be asked. */
static bool add_candidate(struct ring *ring, const struct ring_place *place) {
    struct small *small = &ring->small;
    if (is_self(ring, &place->peer.address) || find(ring, &place->peer.address) != NULL) {
        return false;
    }
    if (find_node(small->candidates, small->candidates_count, &place->peer.address) != NULL) {
        return true;
    }
    if (small->candidates_count == SMALL_CANDIDATES_MAX) {
        return false;
    }
    small->candidates[small->candidates_count++] = (struct small_node){.first = *place, .places_count = 1};
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
 * Who is about to join says nothing of others before all his contacts have answered or are dead: one of them
 * may be in a ring, and two who wait at its door must not found a second one.
 */
static bool is_at_the_door(const struct ring *ring) {
    return ring->mode == MODE_JOINING && (ring->small.is_ring_met || is_contact_open(&ring->small));
}

/* ---- asking ---- */

static void ask(struct ring *ring, struct small_node *node, uint8_t tries_max) {
    struct query query = {
        .purpose = QUERY_NODES,
        .kind = MESSAGE_ASK_NODES,
        .to = node->first,
        .tries_max = tries_max,
    };
    node->is_asked = query_open(ring, &query);
}

void small_join(struct ring *ring, const struct ring_place *contacts, uint32_t contacts_count) {
    struct small *small = &ring->small;
    small->contacts_count = 0;
    memset(small->is_contact_open, 0, sizeof small->is_contact_open);
    for (uint32_t i = 0; i < contacts_count && i < SMALL_CANDIDATES_MAX; i++) {
        if (!is_self(ring, &contacts[i].peer.address)) {
            small->contacts[small->contacts_count++] = contacts[i];
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
            lookup_start(ring, LOOKUP_HEAL, 0, 0, ring->places[0].self.id, 1, &small->contacts[i]);
        } else {
            small->is_contact_open[i] = add_candidate(ring, &small->contacts[i]);
        }
    }
    small->is_ring_met = false; /* it may be gone; whoever is in one says so again */
    if (ring->mode == MODE_CHORD) {
        small->contacts_count = 0; /* once is enough: the table remembers who answered */
    }
    small->contacts_at_us = ring->now_us + ring_jitter(ring, CONTACTS_US);
}

static void ask_due(struct ring *ring, struct small_node *nodes, uint32_t count, uint8_t tries_max) {
    for (uint32_t i = 0; i < count; i++) {
        if (!nodes[i].is_asked && ring->now_us >= nodes[i].ask_at_us) {
            ask(ring, &nodes[i], tries_max);
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
    message->status = ring->mode;
    message->is_whole = ring->mode != MODE_CHORD;
    message->places[0] = ring->places[0].self;
    message->nodes_places_count[0] = ring->config.places_count;
    unsigned count = 1;
    if (ring->mode != MODE_CHORD && !is_at_the_door(ring)) {
        for (uint32_t i = 0; i < small->nodes_count; i++) {
            message->places[count] = small->nodes[i].first;
            message->nodes_places_count[count++] = small->nodes[i].places_count;
        }
    }
    for (unsigned i = 0; ring->mode == MODE_CHORD && i < ring->config.list_size; i++) {
        const struct ring_place *place = &ring->places[0].list[i];
        message->is_whole |= ring_id_equal(place->id, ring->places[0].self.id);
        if (!ring_place_is_padding(place) && !ring_is_own(ring, place)) {
            message->places[count] = *place;
            message->nodes_places_count[count++] = 1;
        }
    }
    message->places_count = (uint8_t)count;
}

/* ---- changes of mode ---- */

static void become_chord(struct ring *ring) {
    ring->mode = MODE_CHORD;
    for (unsigned i = 0; i < ring->config.places_count; i++) {
        struct chord *chord = &ring->places[i];
        chord->stabilize_at_us =
            ring_jitter(ring, ring->config.stabilize_us / SPEED_UNSETTLED) + ring->now_us;
        chord->finger_at_us = ring->now_us + ring_jitter(ring, ring->config.stabilize_us);
        chord->finger_next = 0;
        chord->is_busy = false;
        chord->has_waiting = false;
    }
    ring->small.candidates_count = 0;
}

static void become_small(struct ring *ring) {
    ring->mode = MODE_SMALL;
    ring->small.nodes_count = 0;
    ring->small.candidates_count = 0;
    for (unsigned i = 0; i < ring->config.places_count; i++) {
        ring->places[i].is_busy = false;
        ring->places[i].has_waiting = false;
        ring->places[i].is_joining = false;
    }
    for (uint32_t i = ring->queries_count; i > 0; i--) {
        if (ring->queries[i - 1].purpose != QUERY_LOOKUP && ring->queries[i - 1].purpose != QUERY_NODES) {
            query_close(ring, ring->queries[i - 1].purpose, ring->queries[i - 1].owner);
            i = ring->queries_count + 1;
        }
    }
}

/* Leave: there is a larger ring. Whom we know stays a contact. */
static void yield_to_chord(struct ring *ring, const struct ring_place *peer) {
    struct small *small = &ring->small;
    small->contacts[0] = *peer;
    small->contacts_count = 1;
    memset(small->is_contact_open, 0, sizeof small->is_contact_open);
    for (uint32_t i = 0; i < small->nodes_count && small->contacts_count < SMALL_CANDIDATES_MAX; i++) {
        small->contacts[small->contacts_count++] = small->nodes[i].first;
    }
    ring->mode = MODE_JOINING;
    small->is_ring_met = true;
    small->nodes_count = 0;
    install(ring);
    for (unsigned i = 0; i < ring->config.places_count; i++) {
        ring->places[i].join_at_us = ring->now_us;
    }
}

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

void small_shrink(struct ring *ring, const struct chord *chord) {
    unsigned r = ring->config.list_size;
    unsigned end = 0;
    while (end < r && !ring_id_equal(chord->list[end].id, chord->self.id)) {
        end++;
    }
    if (end == r) {
        return;
    }
    struct ring_place list[RING_LIST_MAX];
    memcpy(list, chord->list, sizeof list);
    become_small(ring);
    for (unsigned i = 0; i < end; i++) {
        if (ring_place_is_padding(&list[i]) || ring_is_own(ring, &list[i])) {
            continue;
        }
        struct small_node *node = find(ring, &list[i].peer.address);
        if (node == NULL) {
            add_node(ring, &(struct small_node){.first = list[i], .places_count = 1});
            continue;
        }
        unsigned low = node->first.index < list[i].index ? node->first.index : list[i].index;
        unsigned high = (unsigned)node->first.index + node->places_count;
        high = high > list[i].index + 1u ? high : list[i].index + 1u;
        node->first = low == list[i].index ? list[i] : node->first;
        node->places_count = (uint8_t)(high - low);
    }
    table_changed(ring);
}

void small_fall_back(struct ring *ring, struct chord *chord) {
    for (unsigned i = 0; i < ring->config.places_count; i++) {
        const struct chord *other = &ring->places[i];
        if (other != chord && other->is_member) { /* it joins again through our other places */
            chord->is_member = false;
            chord->join_at_us = ring->now_us;
            return;
        }
    }
    become_small(ring);
    ring->heal_at_us = ring->now_us;
    install(ring);
}

void small_rejoin(struct ring *ring) {
    struct small *small = &ring->small;
    const struct chord *chord = &ring->places[0];
    become_small(ring);
    small->contacts_count = 0;
    for (unsigned i = 0; i < ring->config.list_size && small->contacts_count < SMALL_CANDIDATES_MAX; i++) {
        if (!ring_place_is_padding(&chord->list[i]) && !ring_is_own(ring, &chord->list[i])) {
            small->contacts[small->contacts_count++] = chord->list[i];
        }
    }
    small->contacts_at_us = ring->now_us;
    small->is_ring_met = false;
    ring->mode = MODE_JOINING;
    install(ring);
}

/* ---- messages ---- */

static bool has_node(const struct message *message, const struct address *address, uint8_t places_count) {
    for (unsigned i = 0; i < message->places_count; i++) {
        if (address_equal(&message->places[i].peer.address, address)) {
            return places_count == 0 || message->nodes_places_count[i] == places_count;
        }
    }
    return false;
}

static bool is_same_table(const struct ring *ring, const struct message *message) {
    const struct small *small = &ring->small;
    if (message->places_count != small->nodes_count + 1 ||
        !has_node(message, &ring->config.self.address, ring->config.places_count)) {
        return false;
    }
    for (uint32_t i = 0; i < small->nodes_count; i++) {
        if (!has_node(message, &small->nodes[i].first.peer.address, small->nodes[i].places_count)) {
            return false;
        }
    }
    return true;
}

/* Are all nodes of his known to us? Then his Chord is what is left of our own ring. */
static bool is_part_of_ours(struct ring *ring, const struct message *message) {
    for (unsigned i = 1; i < message->places_count; i++) {
        const struct address *address = &message->places[i].peer.address;
        if (!is_self(ring, address) && find(ring, address) == NULL) {
            return false;
        }
    }
    return true;
}

void small_meet(struct ring *ring, const struct ring_place *stranger) {
    if (ring->mode == MODE_SMALL || ring->mode == MODE_JOINING) {
        add_candidate(ring, stranger);
    }
}

void small_on_ask_nodes(struct ring *ring, const struct event *event, const struct message *message) {
    if (message->places_count == 0 || !address_equal(&event->from, &message->places[0].peer.address) ||
        is_self(ring, &event->from)) {
        return;
    }
    if (ring->mode != MODE_CHORD) {
        small_meet(ring, &message->places[0]);
        return;
    }
    struct chord *chord = &ring->places[0];
    bool is_fewer = message->status == MODE_SMALL && message->places_count <= ring->config.list_size;
    bool is_successor = false;
    for (unsigned i = 0; i < ring->config.list_size && is_fewer; i++) {
        const struct ring_place *place = &chord->list[i];
        is_successor |= address_equal(&place->peer.address, &event->from);
        is_fewer = ring_place_is_padding(place) || ring_is_own(ring, place) ||
                   has_node(message, &place->peer.address, 0);
    }
    if (is_fewer && is_successor) {
        become_small(ring);
        for (unsigned i = 0; i < message->places_count; i++) {
            struct small_node node = {.first = message->places[i],
                                      .places_count = message->nodes_places_count[i]};
            if (!ring_is_own(ring, &node.first)) {
                add_node(ring, &node); /* the table of our own successor: who is dead leaves it by silence */
            }
        }
        install(ring);
    }
}

static void heard_table(struct ring *ring, const struct query *query, const struct message *answer) {
    struct small *small = &ring->small;
    struct small_node *node = find(ring, &query->to.peer.address);
    bool has_room = answer->status != MODE_JOINING || small->nodes_count < ring->config.list_size;
    if (node == NULL && has_room) {
        struct small_node added = {.first = answer->places[0], .places_count = answer->nodes_places_count[0]};
        if (add_node(ring, &added)) {
            table_changed(ring);
        }
    } else if (node != NULL && (node->places_count != answer->nodes_places_count[0] ||
                                node->first.index != answer->places[0].index)) {
        node->first = answer->places[0];
        node->places_count = answer->nodes_places_count[0];
        table_changed(ring);
    }
    for (unsigned i = 1; i < answer->places_count; i++) {
        add_candidate(ring, &answer->places[i]);
    }
    if (ring->mode == MODE_JOINING && !is_at_the_door(ring) &&
        has_node(answer, &ring->config.self.address, 0)) {
        ring->mode = MODE_SMALL;
        table_changed(ring);
    }
    node = find(ring, &query->to.peer.address);
    if (node != NULL) {
        node->agrees = answer->status == MODE_SMALL && is_same_table(ring, answer);
        node->is_asked = false;
        node->ask_at_us = ask_again_us(ring, node->agrees);
    }
    if (ring->mode == MODE_SMALL && do_all_agree(ring)) {
        become_chord(ring);
    }
}

/* He is part of a Chord ring of more than his list shows. */
static void heard_chord(struct ring *ring, const struct query *query, const struct message *answer) {
    if (ring->mode == MODE_JOINING) {
        ring->small.is_ring_met = true;
        return;
    }
    bool is_ours = find(ring, &query->to.peer.address) != NULL;
    if (is_ours && ring->small.nodes_count >= ring->config.list_size) {
        become_chord(ring);
    } else if (is_part_of_ours(ring, answer)) {
        heard_table(ring, query, answer);
    } else {
        yield_to_chord(ring, &query->to);
    }
}

void small_answered(struct ring *ring, const struct query *query, const struct message *answer) {
    struct small *small = &ring->small;
    const struct address *address = &query->to.peer.address;
    struct small_node *candidate = find_node(small->candidates, small->candidates_count, address);
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
    struct small_node *node = find(ring, address);
    if (answer == NULL || answer->status == MODE_IDLE) {
        if (node != NULL) {
            remove_node(small->nodes, &small->nodes_count, node);
            table_changed(ring);
        }
        return;
    }
    if (answer->places_count == 0 || !address_equal(&answer->places[0].peer.address, address)) {
        ring_blame(ring, &query->to, "a table of nodes that does not begin with its own");
        return;
    }
    for (unsigned i = 0; i < answer->places_count; i++) {
        ring_heard_of(ring, &answer->places[i]);
    }
    if (answer->status == MODE_CHORD && !answer->is_whole) {
        heard_chord(ring, query, answer);
        node = find(ring, address);
        if (node != NULL) {
            node->is_asked = false;
            node->ask_at_us = ask_again_us(ring, false);
        }
        return;
    }
    heard_table(ring, query, answer);
}
