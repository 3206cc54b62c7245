/*
 * local - what this node can say of a key without asking anybody: from its own places, their lists and the
 * table. Lookups begin with it, and the questions of others are answered from it.
 */
#include "protocol/ring/ring_state.h"

enum {
    FRESH_US = 10000000, /* a round of stabilizing: so old may what an owner said of itself be */
    USEFUL_US = 900000000,
};

const struct chord *local_owner(const struct ring *ring, struct ring_id key) {
    for (unsigned i = 0; i < ring->config.vnodes_count; i++) {
        const struct chord *chord = &ring->vnodes[i];
        if (chord->is_member && ring_id_is_owned(chord->predecessor.id, key, chord->self.id)) {
            return chord;
        }
    }
    return NULL;
}

uint8_t local_copy(const struct ring *ring, const struct chord *chord, struct vnode *vnodes,
                   unsigned wanted) {
    unsigned count = 0;
    vnodes[count++] = chord->self;
    for (unsigned i = 0; i < ring->config.list_size && count < wanted; i++) {
        const struct vnode *vnode = &chord->list[i];
        if (!vnode_is_padding(vnode) && !vnodes_have_node(vnodes, count, vnode)) {
            vnodes[count++] = *vnode;
        }
    }
    return (uint8_t)count;
}

bool local_is_useful(const struct ring *ring, const struct table_entry *entry) {
    bool is_recent = entry->heard_at_us > 0 && ring->now_us - entry->heard_at_us < USEFUL_US;
    return !table_is_blocked(entry, ring->now_us) &&
           (is_recent || ring->table.is_needed(ring, entry->vnode.id));
}

/* Our own place that comes last before the key; NULL if we are no member. */
static const struct chord *nearest_before(const struct ring *ring, struct ring_id key) {
    const struct chord *nearest = NULL;
    for (unsigned i = 0; i < ring->config.vnodes_count; i++) {
        const struct chord *chord = &ring->vnodes[i];
        if (chord->is_member &&
            (nearest == NULL || ring_id_is_between(nearest->self.id, chord->self.id, key))) {
            nearest = chord;
        }
    }
    return nearest;
}

const struct chord *local_first(const struct ring *ring, struct ring_id key) {
    const struct chord *first = NULL;
    for (unsigned i = 0; i < ring->config.vnodes_count; i++) {
        const struct chord *chord = &ring->vnodes[i];
        if (chord->is_member && (first == NULL || ring_id_is_between(key, chord->self.id, first->self.id))) {
            first = chord;
        }
    }
    return first;
}

unsigned local_preceding(const struct ring *ring, struct ring_id key, struct vnode *vnodes,
                         unsigned vnodes_max) {
    const struct table *table = &ring->table;
    if (table->count == 0) {
        return 0;
    }
    unsigned count = 0;
    const struct chord *nearest = nearest_before(ring, key);
    uint32_t position = table_at_or_after(table, key) + table->count;
    for (uint32_t i = 1; i <= table->count && i <= 64 && count < vnodes_max; i++) {
        const struct table_entry *entry = table_at(table, position - i);
        if (nearest != NULL && !ring_id_is_between(nearest->self.id, entry->vnode.id, key)) {
            break;
        }
        if (local_is_useful(ring, entry) && !ring_is_own(ring, &entry->vnode)) {
            vnodes[count++] = entry->vnode;
        }
    }
    return count;
}

unsigned local_succeeding(const struct ring *ring, struct ring_id key, struct vnode *vnodes,
                          unsigned vnodes_max) {
    const struct chord *nearest = nearest_before(ring, key);
    unsigned count = 0;
    for (unsigned i = 0; nearest != NULL && i < ring->config.list_size && count < vnodes_max; i++) {
        const struct vnode *vnode = &nearest->list[i];
        if (!vnode_is_padding(vnode) && ring_id_is_owned(nearest->self.id, key, vnode->id)) {
            vnodes[count++] = *vnode;
        }
    }
    return count;
}

bool local_is_near(const struct ring *ring, struct ring_id key, struct ring_id id) {
    const struct chord *chord = &ring->vnodes[0];
    unsigned r = ring->config.list_size;
    struct ring_id reach = ring_id_distance(chord->self.id, chord->list[r - 1].id);
    return chord->is_member && ring_id_distance(key, id).high <= 4 * (reach.high / r);
}

unsigned local_fresh(const struct ring *ring, struct ring_id key, struct vnode *vnodes, unsigned wanted) {
    const struct table *table = &ring->table;
    if (table->count == 0) {
        return 0;
    }
    uint32_t position = table_at_or_after(table, key);
    const struct table_entry *entry = table_at(table, position);
    if (!entry->has_arc || entry->misses_count > 0 || ring->now_us - entry->arc_at_us > FRESH_US ||
        !ring_id_is_owned(entry->predecessor, key, entry->vnode.id)) {
        return 0;
    }
    unsigned count = 0;
    struct ring_id last = {0};
    for (uint32_t i = 0; i < table->count && count < wanted; i++) {
        const struct table_entry *next = table_at(table, position + i);
        if (i > 0 && !(next->has_arc && ring->now_us - next->arc_at_us <= FRESH_US &&
                       ring_id_equal(next->predecessor, last))) {
            break;
        }
        last = next->vnode.id;
        if (!vnodes_have_node(vnodes, count, &next->vnode)) {
            vnodes[count++] = next->vnode;
        }
    }
    return count < wanted ? 0 : count;
}

void local_on_find(struct ring *ring, const struct message *question, struct message *answer) {
    answer->kind = MESSAGE_FOUND;
    answer->to = ring->vnodes[0].self.index;
    answer->status = FOUND_NONE;
    const struct chord *owner = local_owner(ring, question->key);
    if (owner != NULL) {
        answer->status = FOUND_OWNER;
        answer->to = owner->self.index;
        answer->predecessor = owner->predecessor;
        unsigned wanted = question->wanted < 1 ? 1 : question->wanted;
        answer->vnodes_count = local_copy(ring, owner, answer->vnodes, wanted);
        return;
    }
    if (ring->mode != MODE_SMALL && ring->mode != MODE_CHORD) {
        return;
    }
    answer->status = FOUND_SUCCESSORS;
    unsigned count = local_succeeding(ring, question->key, answer->vnodes, RING_LIST_MAX);
    if (count == 0) {
        answer->status = FOUND_NEXT;
        count = local_preceding(ring, question->key, answer->vnodes, LOCAL_NEXT_MAX);
        const struct chord *first = local_first(ring, question->key);
        if (first != NULL) {
            answer->vnodes[count++] = first->predecessor;
        }
    }
    answer->vnodes_count = (uint8_t)count;
}
