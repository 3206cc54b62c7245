#include "ring/lookup.h"

#include "ring/state.h"

enum { FRESH_US = 30000000, USEFUL_US = 900000000 };

/* ---- what we know ourselves ---- */

static const struct chord *own_owner(const struct ring *ring, struct ring_id key) {
    for (unsigned i = 0; i < ring->config.places_count; i++) {
        const struct chord *chord = &ring->places[i];
        if (chord->is_member && ring_id_is_owned(chord->predecessor.id, key, chord->self.id)) {
            return chord;
        }
    }
    return NULL;
}

static uint8_t copy_list(const struct ring *ring, const struct chord *chord, struct ring_place *places,
                         unsigned wanted) {
    unsigned count = 0;
    places[count++] = chord->self;
    for (unsigned i = 0; i < ring->config.list_size && count < wanted; i++) {
        if (!ring_place_is_padding(&chord->list[i]) && !ring_id_equal(chord->list[i].id, chord->self.id)) {
            places[count++] = chord->list[i];
        }
    }
    return (uint8_t)count;
}

static bool is_useful(const struct ring *ring, const struct table_entry *entry) {
    bool is_recent = entry->heard_at_us > 0 && ring->now_us - entry->heard_at_us < USEFUL_US;
    return !table_is_blocked(entry, ring->now_us) &&
           (is_recent || ring->table.is_needed(ring, entry->place.id));
}

/* Our own place that comes last before the key; NULL where we are no member. */
static const struct chord *own_nearest(const struct ring *ring, struct ring_id key) {
    const struct chord *nearest = NULL;
    for (unsigned i = 0; i < ring->config.places_count; i++) {
        const struct chord *chord = &ring->places[i];
        if (chord->is_member &&
            (nearest == NULL || ring_id_is_between(nearest->self.id, chord->self.id, key))) {
            nearest = chord;
        }
    }
    return nearest;
}

/* Our own place that comes first behind the key; NULL where we are no member. */
static const struct chord *own_first(const struct ring *ring, struct ring_id key) {
    const struct chord *first = NULL;
    for (unsigned i = 0; i < ring->config.places_count; i++) {
        const struct chord *chord = &ring->places[i];
        if (chord->is_member && (first == NULL || ring_id_is_between(key, chord->self.id, first->self.id))) {
            first = chord;
        }
    }
    return first;
}

/* The nearest before the key that we would ask ourselves, nearest first, nearer than we. */
static unsigned preceding(const struct ring *ring, struct ring_id key, struct ring_place *places,
                          unsigned places_max) {
    const struct table *table = &ring->table;
    if (table->count == 0) {
        return 0;
    }
    unsigned count = 0;
    const struct chord *nearest = own_nearest(ring, key);
    uint32_t position = table_at_or_after(table, key) + table->count;
    for (uint32_t i = 1; i <= table->count && i <= 64 && count < places_max; i++) {
        const struct table_entry *entry = table_at(table, position - i);
        if (nearest != NULL && !ring_id_is_between(nearest->self.id, entry->place.id, key)) {
            break;
        }
        if (is_useful(ring, entry) && !ring_is_own(ring, &entry->place)) {
            places[count++] = entry->place;
        }
    }
    return count;
}

/* Real places at or behind the key from the list of our place before it: the first is its owner, if it lives.
 */
static unsigned succeeding(const struct ring *ring, struct ring_id key, struct ring_place *places,
                           unsigned places_max) {
    const struct chord *nearest = own_nearest(ring, key);
    unsigned count = 0;
    for (unsigned i = 0; nearest != NULL && i < ring->config.list_size && count < places_max; i++) {
        const struct ring_place *place = &nearest->list[i];
        if (!ring_place_is_padding(place) && ring_id_is_owned(nearest->self.id, key, place->id)) {
            places[count++] = *place;
        }
    }
    return count;
}

void lookup_on_find(struct ring *ring, const struct message *question, struct message *answer) {
    answer->kind = MESSAGE_FOUND;
    answer->to = ring->places[0].self.index;
    answer->status = FOUND_NONE;
    const struct chord *owner = own_owner(ring, question->key);
    if (owner != NULL) {
        answer->status = FOUND_OWNER;
        answer->to = owner->self.index;
        answer->predecessor = owner->predecessor;
        unsigned wanted = question->wanted < 1 ? 1 : question->wanted;
        answer->places_count = copy_list(ring, owner, answer->places, wanted);
        return;
    }
    if (ring->mode != MODE_SMALL && ring->mode != MODE_CHORD) {
        return;
    }
    answer->status = FOUND_SUCCESSORS;
    unsigned count = succeeding(ring, question->key, answer->places, RING_LIST_MAX);
    if (count == 0) {
        answer->status = FOUND_NEXT;
        count = preceding(ring, question->key, answer->places, LOOKUP_NEXT_MAX);
        const struct chord *first = own_first(ring, question->key);
        if (first != NULL) {
            answer->places[count++] = first->predecessor;
        }
    }
    answer->places_count = (uint8_t)count;
}

/* ---- candidates ---- */

static struct ring_id way(const struct lookup *lookup, const struct lookup_candidate *candidate) {
    return candidate->is_behind ? ring_id_distance(lookup->key, candidate->place.id)
                                : ring_id_distance(candidate->place.id, lookup->key);
}

static unsigned leading_zeros(struct ring_id id) {
    if (id.high != 0) {
        return (unsigned)__builtin_clzll(id.high);
    }
    return id.low == 0 ? 128 : 64 + (unsigned)__builtin_clzll(id.low);
}

static uint32_t round_trip_us(const struct ring *ring, const struct lookup_candidate *candidate) {
    const struct table_entry *entry = table_find(&ring->table, candidate->place.id);
    return entry == NULL ? 0 : entry->rtt.smoothed_us;
}

/* Who may be the owner first; then nearest; of those within a factor of two the quicker. */
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
static struct lookup_candidate *make_room(struct lookup *lookup, const struct lookup_candidate *added) {
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

static void add_candidate(struct ring *ring, struct lookup *lookup, const struct ring_place *place,
                          bool is_behind, uint8_t hops_count) {
    if (ring_place_is_padding(place) || ring_is_own(ring, place)) {
        return;
    }
    for (unsigned i = 0; i < lookup->candidates_count; i++) {
        struct lookup_candidate *candidate = &lookup->candidates[i];
        if (ring_place_equal(&candidate->place, place)) {
            candidate->is_behind |= is_behind;
            return;
        }
    }
    const struct table_entry *entry = table_find(&ring->table, place->id);
    struct lookup_candidate added = {.place = *place, .hops_count = hops_count, .is_behind = is_behind};
    added.is_blocked = entry != NULL && table_is_blocked(entry, ring->now_us);
    struct lookup_candidate *room = make_room(lookup, &added);
    if (room != NULL) {
        *room = added;
    }
}

/* Nearer to the key than a few places usually are, by the density of our own list. */
static bool is_near(const struct ring *ring, struct ring_id key, struct ring_id id) {
    const struct chord *chord = &ring->places[0];
    unsigned r = ring->config.list_size;
    struct ring_id reach = ring_id_distance(chord->self.id, chord->list[r - 1].id);
    return chord->is_member && ring_id_distance(key, id).high <= 4 * (reach.high / r);
}

static void add_own_knowledge(struct ring *ring, struct lookup *lookup, unsigned preceding_max) {
    struct ring_place places[LOOKUP_CANDIDATES_MAX];
    unsigned count = succeeding(ring, lookup->key, places, RING_LIST_MAX);
    for (unsigned i = 0; i < count; i++) {
        add_candidate(ring, lookup, &places[i], true, 1);
    }
    count = preceding(ring, lookup->key, places, preceding_max);
    for (unsigned i = 0; i < count; i++) {
        add_candidate(ring, lookup, &places[i], false, 1);
    }
    const struct chord *first = own_first(ring, lookup->key);
    if (first != NULL && is_near(ring, lookup->key, first->self.id)) {
        add_candidate(ring, lookup, &first->predecessor, true, 1);
    }
    if (ring->table.count == 0) {
        return;
    }
    const struct table_entry *behind = table_at(&ring->table, table_at_or_after(&ring->table, lookup->key));
    bool is_owner = behind->has_arc && ring_id_is_owned(behind->predecessor, lookup->key, behind->place.id);
    if (is_owner || (is_useful(ring, behind) && is_near(ring, lookup->key, behind->place.id))) {
        add_candidate(ring, lookup, &behind->place, true, 1);
    }
}

/* ---- ends ---- */

static void write_found(struct ring *ring, uint64_t number, const struct ring_place *places, unsigned count,
                        uint8_t hops_count) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_u64(&writer, number);
    wire_write_u8(&writer, hops_count);
    wire_write_u8(&writer, (uint8_t)count);
    for (unsigned i = 0; i < count; i++) {
        message_write_place(&writer, &places[i]);
    }
    outbox_notice(ring->out, count > 0 ? RING_FOUND : RING_LOST, bytes_of(memory, writer.size));
}

static void finish(struct ring *ring, struct lookup *lookup) {
    uint32_t index = (uint32_t)(lookup - ring->lookups);
    query_close(ring, QUERY_LOOKUP, index);
    enum lookup_purpose purpose = lookup->purpose;
    lookup->purpose = LOOKUP_FREE;
    const struct ring_place *owner = lookup->has_owner ? &lookup->found[0] : NULL;
    struct chord *chord = &ring->places[lookup->owner_index];
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
        chord_join(ring, chord, owner == NULL ? NULL : &lookup->predecessor);
        break;
    case LOOKUP_FINGER:
        if (owner != NULL && !ring_is_own(ring, owner)) {
            table_enter(&ring->table, owner);
            chord_set_finger(chord, lookup->detail, owner);
        }
        break;
    case LOOKUP_HEAL:
        if (owner != NULL && !ring_is_own(ring, owner)) {
            chord_meet(ring, chord, owner);
        }
        break;
    }
}

/* Somebody nearer to the key than the owner so far, asked or to be asked. */
static bool is_in_doubt(const struct lookup *lookup) {
    for (unsigned i = 0; i < lookup->candidates_count; i++) {
        const struct lookup_candidate *candidate = &lookup->candidates[i];
        bool is_open = candidate->state == CANDIDATE_ASKED ||
                       (candidate->state == CANDIDATE_NEW && !candidate->is_blocked);
        if (is_open && candidate->is_behind &&
            (ring_id_equal(candidate->place.id, lookup->key) ||
             ring_id_is_between(lookup->key, candidate->place.id, lookup->found[0].id))) {
            return true;
        }
    }
    return false;
}

/* Our own place, where it owns the key by now, or follows it and its predecessor is silent. */
static const struct chord *own_heir(const struct ring *ring, const struct lookup *lookup) {
    const struct chord *first = own_first(ring, lookup->key);
    if (first != NULL && own_owner(ring, lookup->key) == first) {
        return first;
    }
    for (unsigned i = 0; first != NULL && i < lookup->candidates_count; i++) {
        const struct lookup_candidate *candidate = &lookup->candidates[i];
        if (ring_place_equal(&candidate->place, &first->predecessor)) {
            return candidate->has_answered ? NULL : first;
        }
    }
    return NULL;
}

/* Nobody says that the key is his: the first behind it that lives has it, as soon as he knows. */
static void take_heir(const struct ring *ring, struct lookup *lookup) {
    const struct ring_place *heir = NULL;
    for (unsigned i = 0; i < lookup->candidates_count; i++) {
        const struct lookup_candidate *candidate = &lookup->candidates[i];
        if (candidate->is_behind && candidate->has_answered &&
            (heir == NULL || ring_id_is_between(lookup->key, candidate->place.id, heir->id))) {
            heir = &candidate->place;
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

static struct lookup_candidate *best_candidate(const struct ring *ring, struct lookup *lookup) {
    struct lookup_candidate *best = NULL;
    for (unsigned i = 0; i < lookup->candidates_count; i++) {
        struct lookup_candidate *candidate = &lookup->candidates[i];
        if (candidate->state == CANDIDATE_NEW && (best == NULL || is_better(ring, lookup, candidate, best))) {
            best = candidate;
        }
    }
    return best;
}

static bool ask(struct ring *ring, struct lookup *lookup, struct lookup_candidate *candidate) {
    struct query query = {
        .purpose = QUERY_LOOKUP,
        .owner = (uint32_t)(lookup - ring->lookups),
        .kind = MESSAGE_FIND,
        .to = candidate->place,
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
        struct lookup_candidate *candidate = best_candidate(ring, lookup);
        if (candidate == NULL || !ask(ring, lookup, candidate)) {
            break;
        }
    }
}

static void go_on(struct ring *ring, struct lookup *lookup) {
    if (lookup->is_known || (lookup->has_owner && !is_in_doubt(lookup))) {
        finish(ring, lookup);
        return;
    }
    ask_best(ring, lookup);
    if (lookup->flight_count == 0 && !lookup->has_owner && !lookup->is_widened) {
        lookup->is_widened = true;
        if (lookup->purpose != LOOKUP_HEAL) {
            add_own_knowledge(ring, lookup, LOOKUP_CANDIDATES_MAX);
            ask_best(ring, lookup);
        }
    }
    if (lookup->flight_count == 0) {
        if (!lookup->has_owner && lookup->purpose == LOOKUP_USER) {
            take_heir(ring, lookup);
        }
        finish(ring, lookup);
    }
}

/* ---- starts ---- */

static struct lookup *find_free(struct ring *ring) {
    for (uint32_t i = 0; i < ring->lookups_count; i++) {
        if (ring->lookups[i].purpose == LOOKUP_FREE) {
            return &ring->lookups[i];
        }
    }
    return NULL;
}

static struct lookup *begin(struct ring *ring, enum lookup_purpose purpose, struct ring_id key,
                            uint8_t wanted) {
    struct lookup *lookup = find_free(ring);
    if (lookup != NULL) {
        memset(lookup, 0, sizeof *lookup);
        lookup->purpose = (uint8_t)purpose;
        lookup->key = key;
        lookup->wanted = wanted;
    }
    return lookup;
}

bool lookup_start(struct ring *ring, enum lookup_purpose purpose, uint32_t place_index, uint32_t detail,
                  struct ring_id key, uint8_t wanted, const struct ring_place *only) {
    struct lookup *lookup = begin(ring, purpose, key, wanted);
    if (lookup == NULL) {
        return false;
    }
    lookup->owner_index = place_index;
    lookup->detail = detail;
    const struct chord *owner = own_owner(ring, key);
    if (only != NULL) {
        add_candidate(ring, lookup, only, false, 1);
    } else if (owner != NULL) {
        lookup->has_owner = true;
        lookup->found[0] = owner->self;
        lookup->found_count = 1;
        lookup->predecessor = owner->predecessor;
    } else {
        add_own_knowledge(ring, lookup, LOOKUP_NEXT_MAX);
    }
    go_on(ring, lookup);
    return true;
}

/* The owner's own recent word, and those behind it in the table. */
static bool answer_from_table(struct ring *ring, uint64_t number, struct ring_id key, uint8_t wanted) {
    const struct table *table = &ring->table;
    if (table->count == 0) {
        return false;
    }
    uint32_t position = table_at_or_after(table, key);
    const struct table_entry *entry = table_at(table, position);
    if (!entry->has_arc || entry->misses_count > 0 || ring->now_us - entry->arc_at_us > FRESH_US ||
        !ring_id_is_owned(entry->predecessor, key, entry->place.id)) {
        return false;
    }
    struct ring_place places[MESSAGE_PLACES_MAX];
    unsigned count = 0;
    for (uint32_t i = 0; i < table->count && count < wanted; i++) {
        const struct table_entry *next = table_at(table, position + i);
        if (i > 0 && !(next->has_arc && ring->now_us - next->arc_at_us <= FRESH_US &&
                       ring_id_equal(next->predecessor, places[count - 1].id))) {
            break;
        }
        places[count++] = next->place;
    }
    if (count < wanted) {
        return false;
    }
    ring->counters.lookups_count++;
    ring->counters.from_table_count++;
    write_found(ring, number, places, count, 0);
    return true;
}

void lookup_command(struct ring *ring, uint64_t number, struct ring_id key, uint8_t wanted) {
    const struct chord *owner = own_owner(ring, key);
    if (owner != NULL) {
        struct ring_place places[MESSAGE_PLACES_MAX];
        uint8_t count = copy_list(ring, owner, places, wanted);
        ring->counters.lookups_count++;
        ring->counters.from_table_count++;
        write_found(ring, number, places, count, 0);
        return;
    }
    if (answer_from_table(ring, number, key, wanted)) {
        return;
    }
    struct lookup *lookup = begin(ring, LOOKUP_USER, key, wanted);
    if (lookup == NULL) {
        write_found(ring, number, NULL, 0, 0);
        return;
    }
    lookup->number = number;
    add_own_knowledge(ring, lookup, LOOKUP_NEXT_MAX);
    go_on(ring, lookup);
}

/* ---- answers ---- */

static void take_owner(struct ring *ring, struct lookup *lookup, const struct query *query,
                       const struct message *answer, uint8_t hops_count) {
    const struct ring_place *owner = answer->places_count > 0 ? &answer->places[0] : NULL;
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
        for (unsigned i = 0; i < answer->places_count && lookup->found_count < lookup->wanted; i++) {
            if (!ring_place_is_padding(&answer->places[i])) {
                lookup->found[lookup->found_count++] = answer->places[i];
            }
        }
    }
}

static void take_next(struct ring *ring, struct lookup *lookup, const struct query *query,
                      const struct message *answer, uint8_t hops_count) {
    for (unsigned i = 0; i < answer->places_count; i++) {
        const struct ring_place *place = &answer->places[i];
        if (ring_place_is_padding(place)) {
            continue;
        }
        lookup->is_known |= lookup->purpose == LOOKUP_HEAL && ring_id_equal(place->id, lookup->key);
        /* Between the key and one who is behind it: his predecessor. */
        bool is_behind = answer->status == FOUND_SUCCESSORS;
        for (unsigned j = 0; j < lookup->candidates_count; j++) {
            const struct lookup_candidate *asked = &lookup->candidates[j];
            is_behind |= asked->is_behind && ring_place_equal(&asked->place, &query->to) &&
                         (ring_id_equal(place->id, lookup->key) ||
                          ring_id_is_between(lookup->key, place->id, query->to.id));
        }
        ring_heard_of(ring, place);
        add_candidate(ring, lookup, place, is_behind, (uint8_t)(hops_count + 1));
    }
}

void lookup_answered(struct ring *ring, struct lookup *lookup, const struct query *query,
                     const struct message *answer) {
    uint8_t hops_count = 0;
    for (unsigned i = 0; i < lookup->candidates_count; i++) {
        if (ring_place_equal(&lookup->candidates[i].place, &query->to)) {
            lookup->candidates[i].state = CANDIDATE_DONE;
            lookup->candidates[i].has_answered = answer != NULL && answer->status != FOUND_NONE;
            hops_count = lookup->candidates[i].hops_count;
        }
    }
    lookup->flight_count--;
    if (answer != NULL && answer->status == FOUND_OWNER) {
        take_owner(ring, lookup, query, answer, hops_count);
    } else if (answer != NULL && (answer->status == FOUND_NEXT || answer->status == FOUND_SUCCESSORS)) {
        take_next(ring, lookup, query, answer, hops_count);
    }
    go_on(ring, lookup);
}
