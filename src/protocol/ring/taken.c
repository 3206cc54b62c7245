/*
 * taken - no two nodes have one place.
 *
 * IDs come from addresses without ports, so nodes behind one address (of IPv6: in one /64) need places of
 * different indices. Whoever has a place keeps it. Whoever comes and finds that another live node has it
 * takes the next indices by itself, or, if its indices are fixed, stays outside until it is told to join
 * again; it asks with the same places, for the other may be gone by then. Nobody is believed to live on
 * hearsay: the other must have answered itself. Our own address and port are ourselves in an earlier life and
 * no conflict.
 *
 *      seen while joining     the owner of our own ID has our ID and another address      (lookup.c)
 *                             somebody's table begins with places that are ours, too      (small.c)
 *      seen as a member       two rings have met, or two came at once: the successor has another
 *                             predecessor with our ID, which answers                       (chord.c)
 *                             otherwise the larger address gives way
 */
#include "protocol/ring/ring_state.h"

enum { IPV6_NETWORK_SIZE = 8 }; /* as ring_id.c has it */

void taken_init(struct taken *taken) {
    *taken = (struct taken){.moves_left = RING_VIRTUAL_MAX};
}

/* ---- which places are taken ---- */

static bool is_one_host(const struct address *a, const struct address *b) {
    size_t size = address_is_ipv4(a) ? sizeof a->ip : IPV6_NETWORK_SIZE;
    return address_is_ipv4(a) == address_is_ipv4(b) && memcmp(a->ip, b->ip, size) == 0;
}

/* Two nodes with a place in common? Of one and the same address and port: no. */
static bool taken_is_shared(const struct small_node *a, const struct small_node *b) {
    const struct address *of_a = &a->first.peer.address;
    const struct address *of_b = &b->first.peer.address;
    return !address_equal(of_a, of_b) && is_one_host(of_a, of_b) &&
           a->first.index < b->first.index + b->vnodes_count &&
           b->first.index < a->first.index + a->vnodes_count;
}

bool taken_is_rival(const struct chord *chord, const struct vnode *vnode) {
    return !vnode_is_padding(vnode) && ring_id_equal(vnode->id, chord->self.id) &&
           !address_equal(&vnode->peer.address, &chord->self.peer.address);
}

static struct small_node ourselves(const struct ring *ring) {
    return (struct small_node){.first = ring->vnodes[0].self, .vnodes_count = ring->config.vnodes_count};
}

bool taken_gives_way(const struct ring *ring, const struct address *to) {
    const struct address *own = &ring->config.self.address;
    int order = memcmp(own->ip, to->ip, sizeof own->ip);
    return order > 0 || (order == 0 && own->port > to->port);
}

bool taken_on_node(struct ring *ring, const struct small_node *node, bool is_member) {
    struct small_node own = ourselves(ring);
    if (!taken_is_shared(&own, node)) {
        return false;
    }
    bool are_we_members = ring->mode == MODE_SMALL || ring->mode == MODE_CHORD;
    bool is_his = is_member != are_we_members ? is_member : taken_gives_way(ring, &node->first.peer.address);
    if (is_his) { /* the last that we have in common: the next may be free */
        unsigned own_end = own.first.index + own.vnodes_count - 1u;
        unsigned his_end = node->first.index + node->vnodes_count - 1u;
        taken_note(ring, (uint8_t)(own_end < his_end ? own_end : his_end), &node->first);
    }
    return true;
}

bool taken_is_known(const struct ring *ring, const struct small_node *node) {
    for (uint32_t i = 0; i < ring->small.nodes_count; i++) {
        if (taken_is_shared(&ring->small.nodes[i], node)) {
            return true;
        }
    }
    return false;
}

bool taken_is_named(const struct ring *ring, const struct message *nodes) {
    struct small_node own = ourselves(ring);
    for (unsigned i = 0; i < nodes->vnodes_count; i++) {
        struct small_node named = {.first = nodes->vnodes[i], .vnodes_count = nodes->nodes_vnodes_count[i]};
        if (taken_is_shared(&own, &named)) {
            return true;
        }
    }
    return false;
}

/* ---- what follows ---- */

void taken_note(struct ring *ring, uint8_t index, const struct vnode *holder) {
    if (!ring->taken.is_noted) {
        ring->taken.is_noted = true;
        ring->taken.index = index;
        ring->taken.holder = *holder;
    }
}

static void taken_tell(struct ring *ring, uint8_t next) {
    uint8_t memory[2 * MESSAGE_VNODE_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_u8(&writer, ring->taken.index);
    wire_write_u8(&writer, next);
    message_write_vnode(&writer, &ring->taken.holder);
    outbox_notice(ring->out, RING_TAKEN, bytes_of(memory, writer.size));
}

/* Whoever has our place is in the ring, or at its door as we are. */
static void turn_to_holder(struct ring *ring) {
    struct small *small = &ring->small;
    for (uint32_t i = 0; i < small->contacts_count; i++) {
        if (vnode_equal(&small->contacts[i], &ring->taken.holder)) {
            return;
        }
    }
    small->contacts_count -= small->contacts_count == SMALL_CANDIDATES_MAX;
    small->contacts[small->contacts_count++] = ring->taken.holder;
}

static void move(struct ring *ring, uint8_t first) {
    ring->taken.moves_left--;
    ring->config.first_index = first;
    for (unsigned i = 0; i < ring->config.vnodes_count; i++) {
        struct vnode self = {.peer = ring->config.self, .index = (uint8_t)(first + i)};
        self.id = ring_id_of_node(&ring->sha256, &self.peer.address, self.index);
        chord_init(&ring->vnodes[i], &self);
    }
    turn_to_holder(ring);
    small_changed(ring);
}

void taken_settle(struct ring *ring) {
    struct taken *taken = &ring->taken;
    if (!taken->is_noted) {
        return;
    }
    taken->is_noted = false;
    unsigned first = taken->index + 1u;
    first = first + ring->config.vnodes_count <= RING_VIRTUAL_MAX ? first : 0;
    bool is_moving =
        !ring->config.is_first_fixed && taken->moves_left > 0 && first != ring->config.first_index;
    taken_tell(ring, is_moving ? (uint8_t)first : RING_VIRTUAL_MAX);
    mode_rejoin(ring);
    holders_announce(ring); /* what we had is gone, while it has its old name */
    if (is_moving) {
        move(ring, (uint8_t)first);
    } else {
        ring->mode = MODE_IDLE; /* until RING_JOIN */
        ring->small.contacts_count = 0;
    }
}
