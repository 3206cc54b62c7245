/*
 * lookup - which node is responsible for a key: asked step by step, three candidates at a time.
 *
 * Candidates come from the table, then from answers. Those before the key are asked nearest first (among
 * those equally near to a factor of two, the quicker one); those at or behind it only if a node that
 * should know says that they follow. Only the responsible place's own word ends a lookup, and not while
 * somebody nearer to the key is still to be asked: so a wrong answer costs time, and a place that is not
 * there is passed over. If the owner has just died and nobody has taken over yet, the first behind it that
 * answers is the answer; but a node that was silent is asked once more before, for it may be the network's
 * fault.
 *
 * A key of which the table holds the owner's own recent word is answered at once.
 */
#include "protocol/ring/ring_state.h"

static struct ring_id way(const struct lookup *lookup, const struct lookup_candidate *candidate) {
    return candidate->is_behind ? ring_id_distance(lookup->key, candidate->vnode.id)
                                : ring_id_distance(candidate->vnode.id, lookup->key);
}

static unsigned leading_zeros(struct ring_id id) {
    if (id.high != 0) {
        return (unsigned)__builtin_clzll(id.high);
    }
    return id.low == 0 ? 128 : 64 + (unsigned)__builtin_clzll(id.low);
}

static uint32_t round_trip_us(const struct ring *ring, const struct lookup_candidate *candidate) {
    const struct table_entry *entry = table_find(&ring->table, candidate->vnode.id);
    return entry == NULL ? 0 : entry->rtt.smoothed_us;
}

/* Whoever may be the owner first; then nearest; of those within a factor of two the quicker. */
static bool is_better(const struct ring *ring, const struct lookup *lookup, const struct lookup_candidate *a,
                      const struct lookup_candidate *b) {
    if (a->is_blocked != b->is_blocked) {
        return b->is_blocked;
    }
    if (a->is_behind != b->is_behind) {
        return a->is_behind;
    }
    struct ring_id way_a = way(lookup, a);
    struct ring_id way_b = way(lookup, b);
    if (leading_zeros(way_a) == leading_zeros(way_b)) {
        uint32_t rtt_a = round_trip_us(ring, a);
        uint32_t rtt_b = round_trip_us(ring, b);
        if (rtt_a != 0 && rtt_b != 0 && rtt_a != rtt_b) {
            return rtt_a < rtt_b;
        }
    }
    return ring_id_compare(way_a, way_b) < 0;
}

/* Done and of no more use: it may be named and asked again, which is the lesser evil. */
static bool is_spent(const struct lookup_candidate *candidate) {
    return candidate->state == CANDIDATE_DONE && !candidate->is_behind;
}

/* Full: the farthest that is spent makes room, or the farthest that was not asked for a nearer one. */
static struct lookup_candidate *lookup_make_room(struct lookup *lookup,
                                                 const struct lookup_candidate *added) {
    if (lookup->candidates_count < LOOKUP_CANDIDATES_MAX) {
        return &lookup->candidates[lookup->candidates_count++];
    }
    struct lookup_candidate *worst = NULL;
    for (unsigned i = 0; i < lookup->candidates_count; i++) {
        struct lookup_candidate *candidate = &lookup->candidates[i];
        if (candidate->state != CANDIDATE_NEW && !is_spent(candidate)) {
            continue;
        }
        bool is_farther = worst == NULL || ring_id_compare(way(lookup, candidate), way(lookup, worst)) > 0;
        bool is_worse =
            worst == NULL || (is_spent(candidate) == is_spent(worst) ? is_farther : is_spent(candidate));
        worst = is_worse ? candidate : worst;
    }
    bool is_nearer =
        worst != NULL && (is_spent(worst) || ring_id_compare(way(lookup, added), way(lookup, worst)) < 0);
    return is_nearer ? worst : NULL;
}

/* Named by somebody, or known to us; hops_count: until it has answered. */
static void candidate_add(struct ring *ring, struct lookup *lookup, const struct vnode *vnode, bool is_behind,
                          uint8_t hops_count) {
    if (vnode_is_padding(vnode) || ring_is_own(ring, vnode)) {
        return;
    }
    for (unsigned i = 0; i < lookup->candidates_count; i++) {
        struct lookup_candidate *candidate = &lookup->candidates[i];
        if (vnode_equal(&candidate->vnode, vnode)) {
            candidate->is_behind |= is_behind;
            return;
        }
    }
    const struct table_entry *entry = table_find(&ring->table, vnode->id);
    struct lookup_candidate added = {.vnode = *vnode, .hops_count = hops_count, .is_behind = is_behind};
    added.is_blocked = entry != NULL && table_is_blocked(entry, ring->now_us);
    struct lookup_candidate *room = lookup_make_room(lookup, &added);
    if (room != NULL) {
        *room = added;
    }
}

/* The next to be asked, or NULL. */
static struct lookup_candidate *candidate_best(const struct ring *ring, struct lookup *lookup) {
    struct lookup_candidate *best = NULL;
    for (unsigned i = 0; i < lookup->candidates_count; i++) {
        struct lookup_candidate *candidate = &lookup->candidates[i];
        if (candidate->state == CANDIDATE_NEW && (best == NULL || is_better(ring, lookup, candidate, best))) {
            best = candidate;
        }
    }
    return best;
}

/* Those behind the key that were silent are new again, once: false if there are none. */
static bool candidate_repeat(struct lookup *lookup) {
    bool is_any = false;
    for (unsigned i = 0; i < lookup->candidates_count; i++) {
        struct lookup_candidate *candidate = &lookup->candidates[i];
        bool is_silent = candidate->state == CANDIDATE_DONE && !candidate->has_answered;
        if (candidate->is_behind && is_silent && !candidate->is_blocked && !candidate->is_repeated) {
            candidate->is_repeated = true;
            candidate->state = CANDIDATE_NEW;
            is_any = true;
        }
    }
    return is_any;
}

/* Is somebody nearer to the key than the owner so far, asked or to be asked? */
static bool candidate_is_in_doubt(const struct lookup *lookup) {
    for (unsigned i = 0; i < lookup->candidates_count; i++) {
        const struct lookup_candidate *candidate = &lookup->candidates[i];
        bool is_open = candidate->state == CANDIDATE_ASKED ||
                       (candidate->state == CANDIDATE_NEW && !candidate->is_blocked);
        if (is_open && candidate->is_behind &&
            (ring_id_equal(candidate->vnode.id, lookup->key) ||
             ring_id_is_between(lookup->key, candidate->vnode.id, lookup->found[0].id))) {
            return true;
        }
    }
    return false;
}

static void add_own_knowledge(struct ring *ring, struct lookup *lookup, unsigned preceding_max) {
    struct vnode vnodes[LOOKUP_CANDIDATES_MAX];
    unsigned count = local_succeeding(ring, lookup->key, vnodes, RING_LIST_MAX);
    for (unsigned i = 0; i < count; i++) {
        candidate_add(ring, lookup, &vnodes[i], true, 1);
    }
    count = local_preceding(ring, lookup->key, vnodes, preceding_max);
    for (unsigned i = 0; i < count; i++) {
        candidate_add(ring, lookup, &vnodes[i], false, 1);
    }
    const struct chord *first = local_first(ring, lookup->key);
    if (first != NULL && local_is_near(ring, lookup->key, first->self.id)) {
        candidate_add(ring, lookup, &first->predecessor, true, 1);
    }
    if (ring->table.count == 0) {
        return;
    }
    const struct table_entry *behind = table_at(&ring->table, table_at_or_after(&ring->table, lookup->key));
    bool is_owner = behind->has_arc && ring_id_is_owned(behind->predecessor, lookup->key, behind->vnode.id);
    bool is_light = ring->mode == MODE_LIGHT; /* it has no list, and may know all places by hearsay only */
    if (is_owner || is_light ||
        (local_is_useful(ring, behind) && local_is_near(ring, lookup->key, behind->vnode.id))) {
        candidate_add(ring, lookup, &behind->vnode, true, 1);
    }
}

/* ---- ends ---- */

static void write_found(struct ring *ring, uint64_t number, const struct vnode *vnodes, unsigned count,
                        uint8_t hops_count) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_u64(&writer, number);
    wire_write_u8(&writer, hops_count);
    wire_write_u8(&writer, (uint8_t)count);
    for (unsigned i = 0; i < count; i++) {
        message_write_vnode(&writer, &vnodes[i]);
    }
    outbox_notice(ring->out, count > 0 ? RING_FOUND : RING_LOST, bytes_of(memory, writer.size));
}

static void lookup_finish(struct ring *ring, struct lookup *lookup) {
    uint32_t index = (uint32_t)(lookup - ring->lookups);
    query_close(ring, QUERY_LOOKUP, index);
    enum lookup_purpose purpose = lookup->purpose;
    lookup->purpose = LOOKUP_FREE;
    const struct vnode *owner = lookup->has_owner ? &lookup->found[0] : NULL;
    struct chord *chord = &ring->vnodes[lookup->owner_index];
    ring->counters.lookups_count++;
    ring->counters.lost_count += owner == NULL;
    ring->counters.hops_count += lookup->hops_count;
    switch (purpose) {
    case LOOKUP_FREE:
        break;
    case LOOKUP_USER:
        write_found(ring, lookup->number, lookup->found, owner == NULL ? 0 : lookup->found_count,
                    lookup->hops_count);
        break;
    case LOOKUP_JOIN:
        if (owner != NULL && taken_is_rival(chord, owner)) {
            taken_note(ring, chord->self.index, owner);
            owner = NULL;
        }
        chord_join(ring, chord, owner == NULL ? NULL : &lookup->predecessor);
        break;
    case LOOKUP_FINGER:
        if (owner != NULL && !ring_is_own(ring, owner)) {
            table_enter(&ring->table, owner);
            chord_set_finger(chord, lookup->detail, lookup->found, lookup->found_count);
        }
        break;
    case LOOKUP_HEAL:
        if (owner != NULL && taken_is_rival(chord, owner)) {
            if (lookup->detail == 1 || taken_gives_way(ring, &owner->peer.address)) {
                taken_note(ring, chord->self.index, owner);
            }
        } else if (owner != NULL && !ring_is_own(ring, owner)) {
            chord_meet(ring, chord, owner);
        }
        break;
    }
}

/* Our own place, if it owns the key by now, or follows it and its predecessor is silent. */
static const struct chord *own_heir(const struct ring *ring, const struct lookup *lookup) {
    const struct chord *first = local_first(ring, lookup->key);
    if (first != NULL && local_owner(ring, lookup->key) == first) {
        return first;
    }
    for (unsigned i = 0; first != NULL && i < lookup->candidates_count; i++) {
        const struct lookup_candidate *candidate = &lookup->candidates[i];
        if (vnode_equal(&candidate->vnode, &first->predecessor)) {
            return candidate->has_answered ? NULL : first;
        }
    }
    return NULL;
}

/* No node says that the key is its own: the first behind it that lives has it, as soon as it knows. */
static void take_heir(const struct ring *ring, struct lookup *lookup) {
    const struct vnode *heir = NULL;
    for (unsigned i = 0; i < lookup->candidates_count; i++) {
        const struct lookup_candidate *candidate = &lookup->candidates[i];
        if (candidate->is_behind && candidate->has_answered &&
            (heir == NULL || ring_id_is_between(lookup->key, candidate->vnode.id, heir->id))) {
            heir = &candidate->vnode;
            lookup->hops_count = candidate->hops_count;
        }
    }
    const struct chord *own = own_heir(ring, lookup);
    if (own != NULL && (heir == NULL || ring_id_is_between(lookup->key, own->self.id, heir->id))) {
        heir = &own->self;
    }
    if (heir != NULL) {
        lookup->has_owner = true;
        lookup->found[0] = *heir;
        lookup->found_count = 1;
    }
}

static bool lookup_ask(struct ring *ring, struct lookup *lookup, struct lookup_candidate *candidate) {
    struct query query = {
        .purpose = QUERY_LOOKUP,
        .owner = (uint32_t)(lookup - ring->lookups),
        .kind = MESSAGE_FIND,
        .to = candidate->vnode,
        .key = lookup->key,
        .wanted = lookup->wanted,
        .tries_max = QUERY_TRIES_LOOKUP,
    };
    candidate->state = CANDIDATE_ASKED;
    lookup->asked_count++;
    bool is_open = query_open(ring, &query);
    lookup->flight_count += is_open;
    return is_open;
}

static void ask_best(struct ring *ring, struct lookup *lookup) {
    /* Nobody waits for fingers and the like: one after the other costs less. */
    bool is_urgent = lookup->purpose == LOOKUP_USER || lookup->purpose == LOOKUP_JOIN;
    unsigned flight_max = is_urgent ? LOOKUP_FLIGHT_MAX : 1;
    while (lookup->flight_count < flight_max && lookup->asked_count < LOOKUP_ASKED_MAX) {
        struct lookup_candidate *candidate = candidate_best(ring, lookup);
        if (candidate == NULL || !lookup_ask(ring, lookup, candidate)) {
            break;
        }
    }
}

static void lookup_go_on(struct ring *ring, struct lookup *lookup) {
    if (lookup->is_known || (lookup->has_owner && !candidate_is_in_doubt(lookup))) {
        lookup_finish(ring, lookup);
        return;
    }
    ask_best(ring, lookup);
    if (lookup->flight_count == 0 && !lookup->has_owner && !lookup->is_widened) {
        lookup->is_widened = true;
        add_own_knowledge(ring, lookup, LOOKUP_CANDIDATES_MAX);
        ask_best(ring, lookup);
    }
    bool needs_heir = !lookup->has_owner && lookup->purpose == LOOKUP_USER;
    if (lookup->flight_count == 0 && needs_heir && candidate_repeat(lookup)) {
        ask_best(ring, lookup);
    }
    if (lookup->flight_count == 0) {
        if (needs_heir) {
            take_heir(ring, lookup);
        }
        lookup_finish(ring, lookup);
    }
}

/* ---- starts ---- */

static struct lookup *lookup_find_free(struct ring *ring) {
    for (uint32_t i = 0; i < ring->lookups_count; i++) {
        if (ring->lookups[i].purpose == LOOKUP_FREE) {
            return &ring->lookups[i];
        }
    }
    return NULL;
}

static struct lookup *lookup_begin(struct ring *ring, enum lookup_purpose purpose, struct ring_id key,
                                   uint8_t wanted) {
    struct lookup *lookup = lookup_find_free(ring);
    if (lookup != NULL) {
        memset(lookup, 0, sizeof *lookup);
        lookup->purpose = (uint8_t)purpose;
        lookup->key = key;
        lookup->wanted = wanted;
    }
    return lookup;
}

bool lookup_start(struct ring *ring, enum lookup_purpose purpose, uint32_t vnode_index, uint32_t detail,
                  struct ring_id key, uint8_t wanted, const struct vnode *only) {
    struct lookup *lookup = lookup_begin(ring, purpose, key, wanted);
    if (lookup == NULL) {
        return false;
    }
    lookup->owner_index = vnode_index;
    lookup->detail = detail;
    lookup->is_widened = only != NULL; /* what we know is our own part of the ring */
    const struct chord *owner = local_owner(ring, key);
    if (only != NULL) {
        candidate_add(ring, lookup, only, false, 1);
    } else if (owner != NULL) {
        lookup->has_owner = true;
        lookup->found[0] = owner->self;
        lookup->found_count = 1;
        lookup->predecessor = owner->predecessor;
    } else {
        add_own_knowledge(ring, lookup, LOCAL_NEXT_MAX);
    }
    lookup_go_on(ring, lookup);
    return true;
}

void lookup_command(struct ring *ring, uint64_t number, struct ring_id key, uint8_t wanted) {
    struct vnode vnodes[RING_LIST_MAX];
    const struct chord *owner = local_owner(ring, key);
    unsigned count =
        owner != NULL ? local_copy(ring, owner, vnodes, wanted) : local_fresh(ring, key, vnodes, wanted);
    if (count > 0) {
        ring->counters.lookups_count++;
        ring->counters.from_table_count++;
        write_found(ring, number, vnodes, count, 0);
        return;
    }
    struct lookup *lookup = lookup_begin(ring, LOOKUP_USER, key, wanted);
    if (lookup == NULL) {
        write_found(ring, number, NULL, 0, 0);
        return;
    }
    lookup->number = number;
    add_own_knowledge(ring, lookup, LOCAL_NEXT_MAX);
    lookup_go_on(ring, lookup);
}

/* ---- answers ---- */

static void take_owner(struct ring *ring, struct lookup *lookup, const struct query *query,
                       const struct message *answer, uint8_t hops_count) {
    const struct vnode *owner = answer->vnodes_count > 0 ? &answer->vnodes[0] : NULL;
    if (owner == NULL || !address_equal(&owner->peer.address, &query->to.peer.address) ||
        !ring_id_is_owned(answer->predecessor.id, lookup->key, owner->id)) {
        ring_blame(ring, &query->to, "claims a key that is not its own");
        return;
    }
    bool is_nearer =
        !lookup->has_owner || ring_id_compare(ring_id_distance(lookup->key, owner->id),
                                              ring_id_distance(lookup->key, lookup->found[0].id)) < 0;
    if (is_nearer) {
        lookup->has_owner = true;
        lookup->hops_count = hops_count;
        lookup->predecessor = answer->predecessor;
        lookup->found_count = 0;
        for (unsigned i = 0; i < answer->vnodes_count && lookup->found_count < lookup->wanted; i++) {
            if (!vnode_is_padding(&answer->vnodes[i])) {
                lookup->found[lookup->found_count++] = answer->vnodes[i];
            }
        }
    }
}

static void lookup_take_next(struct ring *ring, struct lookup *lookup, const struct query *query,
                             const struct message *answer, uint8_t hops_count) {
    for (unsigned i = 0; i < answer->vnodes_count; i++) {
        const struct vnode *vnode = &answer->vnodes[i];
        if (vnode_is_padding(vnode)) {
            continue;
        }
        lookup->is_known |= lookup->purpose == LOOKUP_HEAL && ring_is_own(ring, vnode) &&
                            ring_id_equal(vnode->id, lookup->key);
        /* Between the key and a place behind it: its predecessor. */
        bool is_behind = answer->status == FOUND_SUCCESSORS;
        for (unsigned j = 0; j < lookup->candidates_count; j++) {
            const struct lookup_candidate *asked = &lookup->candidates[j];
            is_behind |= asked->is_behind && vnode_equal(&asked->vnode, &query->to) &&
                         (ring_id_equal(vnode->id, lookup->key) ||
                          ring_id_is_between(lookup->key, vnode->id, query->to.id));
        }
        ring_heard_of(ring, vnode);
        candidate_add(ring, lookup, vnode, is_behind, (uint8_t)(hops_count + 1));
    }
}

void lookup_answered(struct ring *ring, struct lookup *lookup, const struct query *query,
                     const struct message *answer) {
    uint8_t hops_count = 0;
    for (unsigned i = 0; i < lookup->candidates_count; i++) {
        if (vnode_equal(&lookup->candidates[i].vnode, &query->to)) {
            lookup->candidates[i].state = CANDIDATE_DONE;
            lookup->candidates[i].has_answered = answer != NULL && answer->status != FOUND_NONE;
            hops_count = lookup->candidates[i].hops_count;
        }
    }
    lookup->flight_count--;
    if (answer != NULL && answer->status == FOUND_OWNER) {
        take_owner(ring, lookup, query, answer, hops_count);
    } else if (answer != NULL && (answer->status == FOUND_NEXT || answer->status == FOUND_SUCCESSORS)) {
        lookup_take_next(ring, lookup, query, answer, hops_count);
    }
    lookup_go_on(ring, lookup);
}
