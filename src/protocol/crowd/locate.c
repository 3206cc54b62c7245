/*
 * locate - LocateObject: our own searches, and the queries of others that pass through here.
 *
 *      ours     FIND ─ remembered as absent: LOST
 *                    ─ query with a new id, TTL t, to f random neighbours ─ HIT: FOUND, again and again
 *                    ─ nothing after t * T: t + 1, up to ttl_last ─ then LOST, and remembered
 *      others'  QUERY ─ ACK ─ too often, seen before: dropped
 *                     ─ waits for its turn: those first whose wish many neighbours have sent lately
 *                     ─ ASKED ─ HAVE: HIT to the node it came from
 *                             ─ HAVE_NOT: TTL left: on to f random neighbours, not back
 *      HIT      of a query that we sent on, from a node that we sent it to: back to the one it came from
 *
 * TTL: a node that begins a query or passes it on decrements it first and sends only what is not negative, as
 * the paper has it. So a search with TTL 1 reaches the neighbours, one with TTL t goes t hops far, and what
 * is on the wire is the number of hops that are left to go behind the receiver.
 *
 * T: a try with TTL t is waited for t * T. In the paper's the object comes directly, here a HIT comes back
 * the way the query went; so T stands for a hop there, a hop back and the look into a store. A finding for an
 * earlier try counts as long as the search is open. After the first no further try is made, and the search
 * ends with the time of the try that is under way; unless the owner discounts what was found.
 *
 * A neighbour that does not acknowledge within ack_us is replaced by another one, twice at most, and is
 * dropped from the view (overlay_drop()) if it was silent for the second time.
 *
 * Floods are bounded on every side: a bucket for each neighbour, one for all; a TTL cap; a bound on the
 * findings that go back for one query (8, of one neighbour 3); and wishes that went through here often
 * without any finding are only looked for here and not sent on, but for one in eight, until one is found or
 * absent_us has passed. The queries that wait never push out our own: they are remembered only when their
 * turn has come.
 */
#include "base/map.h"
#include "base/prng.h"
#include "protocol/crowd/crowd_state.h"

enum { ROUNDS_MAX = 2 };
static struct locate_copy *copies_of(const struct locate_seen *seen, const struct locate_query *query) {
    return seen->copies + (size_t)(query - seen->queries) * seen->copies_max;
}

static struct locate_copy *locate_seen_copy(const struct locate_seen *seen, const struct locate_query *query,
                                            uint32_t peer_hash) {
    for (unsigned i = 0; i < query->copies_count; i++) {
        struct locate_copy *copy = copies_of(seen, query) + i;
        if (copy->peer_hash == peer_hash) {
            return copy;
        }
    }
    return NULL;
}

static bool locate_seen_add_copy(struct locate_seen *seen, struct locate_query *query, uint32_t peer_hash) {
    if (query->copies_count == seen->copies_max) {
        return false;
    }
    copies_of(seen, query)[query->copies_count++] =
        (struct locate_copy){.peer_hash = peer_hash & ((1u << 30) - 1)};
    return true;
}

/* of choosing others */

static bool is_awaited(const struct locate_flight *flight, uint32_t peer_hash) {
    for (unsigned i = 0; i < flight->awaited_count; i++) {
        if (flight->awaited[i] == peer_hash) {
            return true;
        }
    }
    return false;
}

/* False: there is no room for one more. */
static bool send_copy(struct crowd *crowd, struct locate_flight *flight, struct locate_query *query,
                      const struct crowd_message *message, const struct peer *to, uint32_t peer_hash) {
    if (!crowd->config.takes_repeats && !locate_seen_add_copy(&crowd->locate.seen, query, peer_hash)) {
        return false;
    }
    crowd_send(crowd, to, message);
    flight->awaited[flight->awaited_count++] = peer_hash;
    return true;
}

/*
 * To `count` neighbours that have not been used for this query; if repeats are taken, only those of the
 * last round are known.
 */
static size_t send_round(struct crowd *crowd, struct locate_flight *flight, struct locate_query *query,
                         const struct crowd_message *message, const struct address *not_to, size_t count) {
    struct locate_flight last = *flight;
    uint8_t order[CROWD_VIEW_MAX];
    int without = not_to == NULL ? -1 : view_find(&crowd->view, not_to);
    bool is_first = query->copies_count == 0 && last.awaited_count == 0;
    size_t candidates =
        view_pick(&crowd->view, &crowd->prng, without, is_first ? count : CROWD_VIEW_MAX, order);
    flight->awaited_count = 0;
    for (size_t i = 0; i < candidates && flight->awaited_count < count; i++) {
        const struct peer *to = &crowd->view.neighbours[order[i]].peer;
        uint32_t peer_hash = locate_peer_hash(crowd, &to->address);
        bool is_used =
            is_awaited(&last, peer_hash) || locate_seen_copy(&crowd->locate.seen, query, peer_hash) != NULL;
        if (!is_used && !send_copy(crowd, flight, query, message, to, peer_hash)) {
            break;
        }
    }
    flight->due_us = flight->awaited_count == 0 ? STEP_NEVER_US : crowd->now_us + crowd->config.ack_us;
    return flight->awaited_count;
}

size_t locate_flight_start(struct crowd *crowd, struct locate_flight *flight, struct locate_query *query,
                           const struct crowd_message *message, const struct address *not_to, size_t count) {
    ASSERT(count <= CROWD_FANOUT_MAX);
    *flight = (struct locate_flight){0};
    return send_round(crowd, flight, query, message, not_to, count);
}

/* ---- silence ---- */

static void blame_silence(struct crowd *crowd, uint32_t peer_hash) {
    struct locate *locate = &crowd->locate;
    for (unsigned i = 0; i < LOCATE_SILENT_MAX; i++) {
        if (locate->silent[i] != peer_hash) {
            continue;
        }
        locate->silent[i] = 0;
        for (unsigned n = 0; n < crowd->view.count; n++) {
            struct address address = crowd->view.neighbours[n].peer.address;
            if (locate_peer_hash(crowd, &address) == peer_hash) {
                overlay_drop(crowd, &address);
                crowd->counters.silent_count++;
                return;
            }
        }
        return;
    }
    locate->silent[locate->silent_next] = peer_hash;
    locate->silent_next = (uint8_t)((locate->silent_next + 1) % LOCATE_SILENT_MAX);
}

/* Something came from it: a silence before it is forgiven. */
static void locate_flight_hear(struct crowd *crowd, uint32_t peer_hash) {
    for (unsigned i = 0; i < LOCATE_SILENT_MAX; i++) {
        if (crowd->locate.silent[i] == peer_hash) {
            crowd->locate.silent[i] = 0;
        }
    }
}

/* A node that wakes this late was asleep itself: what came meanwhile has not been read yet. */
static bool is_own_fault(const struct crowd *crowd, const struct locate_flight *flight) {
    return crowd->now_us - flight->due_us > crowd->config.ack_us / 2;
}

size_t locate_flight_tick(struct crowd *crowd, struct locate_flight *flight, struct locate_query *query,
                          const struct crowd_message *message, const struct address *not_to) {
    if (crowd->now_us < flight->due_us) {
        return 0;
    }
    if (is_own_fault(crowd, flight)) {
        flight->due_us = crowd->now_us + crowd->config.ack_us / 2;
        return 0;
    }
    for (unsigned i = 0; i < flight->awaited_count && !crowd->config.keeps_silent; i++) {
        blame_silence(crowd, flight->awaited[i]);
    }
    if (flight->rounds_count == ROUNDS_MAX) {
        *flight = (struct locate_flight){.due_us = STEP_NEVER_US};
        return 0;
    }
    flight->rounds_count++;
    size_t sent = send_round(crowd, flight, query, message, not_to, flight->awaited_count);
    crowd->counters.reselected_count += sent;
    return sent;
}

bool locate_flight_acknowledge(struct locate_flight *flight, uint32_t peer_hash) {
    for (unsigned i = 0; i < flight->awaited_count; i++) {
        if (flight->awaited[i] == peer_hash) {
            flight->awaited[i] = flight->awaited[--flight->awaited_count];
            flight->due_us = flight->awaited_count == 0 ? STEP_NEVER_US : flight->due_us;
            return true;
        }
    }
    return false;
}

enum {
    FRUITLESS_FORWARDS = 16,      /* so often in vain: probably nobody has it */
    FRUITLESS_AFTER_US = 2000000, /* findings of the first queries have had time to come back */
    FRUITLESS_ONE_IN = 8,         /* is sent on nevertheless: somebody may have it by now */
};

/* ---- wishes of others ---- */

static bool locate_is_over(const struct crowd *crowd, const struct locate_wanted *wanted) {
    return wanted->wish_hash == 0 || crowd->now_us - wanted->since_us >= crowd->config.absent_us;
}

static struct locate_wanted *ways_of(const struct crowd *crowd, uint64_t wish_hash) {
    return &crowd->locate.wanted[wish_hash % (crowd->locate.wanted_count / LOCATE_WAYS) * LOCATE_WAYS];
}

static struct locate_wanted *find_wanted(const struct crowd *crowd, uint64_t wish_hash) {
    if (crowd->locate.wanted == NULL) {
        return NULL;
    }
    struct locate_wanted *ways = ways_of(crowd, wish_hash);
    for (unsigned i = 0; i < LOCATE_WAYS; i++) {
        if (ways[i].wish_hash == wish_hash && !locate_is_over(crowd, &ways[i])) {
            return &ways[i];
        }
    }
    return NULL;
}

/* The place of what is over, or else of what the fewest want, and of these the oldest. */
static struct locate_wanted *locate_make_room(struct crowd *crowd, uint64_t wish_hash) {
    struct locate_wanted *ways = ways_of(crowd, wish_hash);
    struct locate_wanted *least = ways;
    for (unsigned i = 0; i < LOCATE_WAYS; i++) {
        if (locate_is_over(crowd, &ways[i])) {
            return &ways[i];
        }
        if (ways[i].senders_count < least->senders_count ||
            (ways[i].senders_count == least->senders_count && ways[i].since_us < least->since_us)) {
            least = &ways[i];
        }
    }
    return least;
}

void locate_wanted_note(struct crowd *crowd, uint64_t wish_hash, uint32_t peer_hash) {
    if (crowd->locate.wanted == NULL) {
        return;
    }
    struct locate_wanted *wanted = find_wanted(crowd, wish_hash);
    if (wanted == NULL) {
        wanted = locate_make_room(crowd, wish_hash);
        *wanted = (struct locate_wanted){.wish_hash = wish_hash, .since_us = crowd->now_us};
    }
    for (unsigned i = 0; i < wanted->senders_count; i++) {
        if (wanted->senders[i] == peer_hash) {
            return;
        }
    }
    if (wanted->senders_count < LOCATE_SENDERS_MAX) {
        wanted->senders[wanted->senders_count++] = peer_hash;
    }
}

unsigned locate_wanted_senders(const struct crowd *crowd, uint64_t wish_hash) {
    const struct locate_wanted *wanted = find_wanted(crowd, wish_hash);
    return wanted == NULL ? 0 : wanted->senders_count;
}

bool locate_wanted_is_fruitless(struct crowd *crowd, uint64_t wish_hash) {
    struct locate_wanted *wanted = find_wanted(crowd, wish_hash);
    if (wanted == NULL || wanted->is_found) {
        return false;
    }
    wanted->forwards_count++;
    return wanted->forwards_count > FRUITLESS_FORWARDS &&
           crowd->now_us - wanted->since_us >= FRUITLESS_AFTER_US &&
           wanted->forwards_count % FRUITLESS_ONE_IN != 0;
}

void locate_wanted_found(struct crowd *crowd, uint64_t wish_hash) {
    struct locate_wanted *wanted = find_wanted(crowd, wish_hash);
    if (wanted != NULL) {
        wanted->is_found = true;
    }
    standing_clear(&crowd->locate.absent, STANDING_SILENT, bytes_of(&wish_hash, sizeof wish_hash));
}

/* ---- wishes of ours ---- */

bool locate_absent_is(const struct crowd *crowd, uint64_t wish_hash) {
    return standing_holds(&crowd->locate.absent, STANDING_SILENT, bytes_of(&wish_hash, sizeof wish_hash),
                          crowd->now_us);
}

void locate_absent_note(struct crowd *crowd, uint64_t wish_hash) {
    if (!crowd->config.is_unlimited) {
        standing_note(&crowd->locate.absent, STANDING_SILENT, bytes_of(&wish_hash, sizeof wish_hash),
                      crowd->now_us, crowd->now_us + crowd->config.absent_us);
    }
}

/* A query of others may have more copies than ours would, but not many times more. */
uint8_t locate_fanout_max(const struct crowd_config *config) {
    unsigned fanout = 2 * (unsigned)config->fanout;
    return (uint8_t)(fanout < CROWD_FANOUT_MAX ? fanout : CROWD_FANOUT_MAX);
}

/* Room for those that are chosen in place of silent ones; of our own fanout always. */
static uint8_t copies_max(const struct crowd_config *config) {
    return config->takes_repeats ? 0 : (uint8_t)(2 * locate_fanout_max(config));
}

/* At most half of the slots are used. */
static uint32_t slots_count(const struct crowd_config *config) {
    uint32_t count = 16;
    while (count < 2 * config->seen_max) {
        count *= 2;
    }
    return count;
}

static void locate_seen_init(struct locate_seen *seen, const struct crowd_config *config, uint64_t secret,
                             struct arena *arena) {
    ASSERT(config->seen_max > 0 && config->seen_max < 1u << 28);
    uint32_t count = slots_count(config);
    *seen = (struct locate_seen){
        .slots_mask = count - 1,
        .count_max = config->seen_max,
        .secret = secret,
        .copies_max = copies_max(config),
    };
    seen->queries = arena_take_array(arena, config->seen_max, sizeof *seen->queries);
    seen->slots = arena_take_array(arena, count, sizeof *seen->slots);
    if (seen->copies_max > 0) {
        seen->copies =
            arena_take_array(arena, (size_t)config->seen_max * seen->copies_max, sizeof *seen->copies);
    }
}

/* ---- by id ---- */

/* Ids are chosen by other nodes, which must not be able to make all of them meet in one place: hence the
 * secret. */
static uint32_t home_of(const struct locate_seen *seen, uint64_t id) {
    return (uint32_t)prng_mix(id ^ seen->secret) & seen->slots_mask;
}

/* The slot of the id, or the free one where it would be. */
static uint32_t find_slot(const struct locate_seen *seen, uint64_t id) {
    uint32_t slot = home_of(seen, id);
    while (seen->slots[slot] != 0 && seen->queries[seen->slots[slot] - 1].id != id) {
        slot = (slot + 1) & seen->slots_mask;
    }
    return slot;
}

struct locate_query *locate_seen_find(const struct locate_seen *seen, uint64_t id) {
    uint32_t position = seen->slots[find_slot(seen, id)];
    return position == 0 ? NULL : &seen->queries[position - 1];
}

/* What stands behind the freed slot and could not be reached any more moves up. */
static void locate_forget(struct locate_seen *seen, uint64_t id) {
    uint32_t hole = find_slot(seen, id);
    ASSERT(seen->slots[hole] != 0);
    for (uint32_t slot = (hole + 1) & seen->slots_mask; seen->slots[slot] != 0;
         slot = (slot + 1) & seen->slots_mask) {
        uint32_t home = home_of(seen, seen->queries[seen->slots[slot] - 1].id);
        if (((slot - home) & seen->slots_mask) >= ((slot - hole) & seen->slots_mask)) {
            seen->slots[hole] = seen->slots[slot];
            hole = slot;
        }
    }
    seen->slots[hole] = 0;
}

struct locate_query *locate_seen_add(struct locate_seen *seen, uint64_t id) {
    struct locate_query *query = &seen->queries[seen->next];
    if (seen->count == seen->count_max) {
        locate_forget(seen, query->id);
    } else {
        seen->count++;
    }
    uint32_t slot = find_slot(seen, id);
    ASSERT(seen->slots[slot] == 0);
    seen->slots[slot] = seen->next + 1;
    seen->next = (seen->next + 1) % seen->count_max;
    *query = (struct locate_query){.id = id};
    return query;
}

/* ---- copies ---- */

enum {
    UNITS_MAX = 8, /* of one tick; what is left is done in the next, at once */
    WANTED_COUNT_MIN = 16,
};

/* ---- life ---- */

static uint32_t wanted_count(const struct crowd_config *config) {
    uint32_t count = config->waiting_max / LOCATE_WAYS * LOCATE_WAYS;
    return count < WANTED_COUNT_MIN ? WANTED_COUNT_MIN : count;
}

/* An answer of the owner is passed to all that wait for it; beside that a message of another, and a tick. */
size_t locate_actions_max(const struct crowd_config *config) {
    return config->waiting_max + (UNITS_MAX + 2) * CROWD_FANOUT_MAX;
}

static void locate_take_memory(struct crowd *crowd) {
    struct locate *locate = &crowd->locate;
    const struct crowd_config *config = &crowd->config;
    struct arena *arena = &crowd->arena;
    locate->searches = arena_take_array(arena, config->searches_max, sizeof *locate->searches);
    locate->tasks = arena_take_array(arena, config->waiting_max, sizeof *locate->tasks);
    locate->order = arena_take_array(arena, config->waiting_max, sizeof *locate->order);
    if (!config->is_unlimited) {
        locate->wanted_count = wanted_count(config);
        locate->wanted = arena_take_array(arena, locate->wanted_count, sizeof *locate->wanted);
        struct standing_entry *absent = arena_take_array(arena, config->searches_max, sizeof *absent);
        standing_init(&locate->absent, absent, config->searches_max, crowd->secret);
        locate->peers_full_at_us =
            arena_take_array(arena, LOCATE_BUCKETS_COUNT, sizeof *locate->peers_full_at_us);
    }
    locate_seen_init(&locate->seen, config, crowd->secret, arena);
}

void locate_init(struct crowd *crowd) {
    const struct crowd_config *config = &crowd->config;
    ASSERT(config->searches_max > 0 && config->waiting_max > 0 && config->waiting_max < 1u << 20);
    ASSERT(config->fanout > 0 && config->fanout <= CROWD_FANOUT_MAX);
    ASSERT(config->ttl_first > 0 && config->ttl_first <= config->ttl_last);
    ASSERT(config->ttl_last <= CROWD_TTL_CAP && config->tries_at_last > 0);
    ASSERT(config->ttl_cap > 0 && config->peer_rate > 0 && config->total_rate > 0);
    crowd->locate = (struct locate){.due_us = STEP_NEVER_US};
    locate_take_memory(crowd);
    for (uint32_t i = 0; i < config->waiting_max && crowd->locate.order != NULL; i++) {
        crowd->locate.order[i] = i;
    }
}

/* ---- for the other files ---- */

void locate_due(struct crowd *crowd, uint64_t at_us) {
    if (at_us < crowd->locate.due_us) {
        crowd->locate.due_us = at_us;
    }
}

uint32_t locate_peer_hash(const struct crowd *crowd, const struct address *address) {
    uint32_t hash = (uint32_t)(crowd_token(crowd, address) >> 34);
    return hash == 0 ? 1 : hash;
}

uint64_t locate_wish_hash(const struct crowd *crowd, struct bytes wish) {
    uint64_t hash = map_hash(wish, crowd->secret);
    return hash == 0 ? 1 : hash;
}

/* ---- messages ---- */

/* The query, if we sent it to this neighbour, or NULL. If repeats are taken, that is not known. */
static struct locate_query *find_sent(struct crowd *crowd, uint64_t id, uint32_t peer_hash,
                                      struct locate_copy **ret_copy) {
    struct locate_query *query = locate_seen_find(&crowd->locate.seen, id);
    *ret_copy = NULL;
    if (query != NULL && !crowd->config.takes_repeats) {
        *ret_copy = locate_seen_copy(&crowd->locate.seen, query, peer_hash);
        query = *ret_copy == NULL ? NULL : query;
    }
    if (query == NULL) {
        crowd->counters.unasked_count++;
    }
    return query;
}

static void acknowledge(struct crowd *crowd, const struct locate_query *query, uint32_t peer_hash) {
    locate_flight_hear(crowd, peer_hash);
    if (query->from.address.port == 0) {
        locate_search_acknowledge(crowd, query, peer_hash);
    }
    locate_pass_acknowledge(crowd, query->id, peer_hash);
}

static void receive_ack(struct crowd *crowd, const struct event *event, const struct crowd_message *message) {
    uint32_t peer_hash = locate_peer_hash(crowd, &event->from);
    struct locate_copy *copy;
    const struct locate_query *query = find_sent(crowd, message->number, peer_hash, &copy);
    if (query != NULL) {
        acknowledge(crowd, query, peer_hash);
    }
}

/* Is there room for one more finding of this query, and of this neighbour? */
static bool admits_finding(const struct crowd *crowd, struct locate_query *query, struct locate_copy *copy) {
    if (copy != NULL) {
        if (copy->findings_count == LOCATE_FINDINGS_OF_ONE_MAX) {
            return false;
        }
        copy->findings_count = (copy->findings_count + 1u) & LOCATE_FINDINGS_OF_ONE_MAX;
    }
    ASSERT(copy != NULL || crowd->config.takes_repeats);
    if (query->findings_count == LOCATE_FINDINGS_MAX) {
        return false;
    }
    query->findings_count++;
    return true;
}

static void receive_hit(struct crowd *crowd, const struct event *event, const struct crowd_message *message) {
    uint32_t peer_hash = locate_peer_hash(crowd, &event->from);
    struct locate_copy *copy;
    struct locate_query *query = find_sent(crowd, message->number, peer_hash, &copy);
    if (query == NULL) {
        return;
    }
    acknowledge(crowd, query, peer_hash);
    if (!admits_finding(crowd, query, copy)) {
        crowd->counters.unasked_count++;
        return;
    }
    struct crowd_message hit = {
        .kind = CROWD_MESSAGE_HIT,
        .number = query->id,
        .hops = message->hops,
        .holder = message->holder,
        .contents = message->contents,
    };
    if (hit.holder.address.port == 0) { /* the sender: only its receiver knows which node that is */
        hit.holder = event_sender(event);
    }
    locate_wanted_found(crowd, query->wish_hash);
    if (query->from.address.port == 0) {
        locate_search_hit(crowd, query, &hit);
        return;
    }
    crowd_send(crowd, &query->from, &hit);
    crowd->counters.relayed_count++;
}

void locate_receive(struct crowd *crowd, const struct event *event, const struct crowd_message *message) {
    switch (message->kind) {
    case CROWD_MESSAGE_QUERY:
        locate_pass_query(crowd, event, message);
        break;
    case CROWD_MESSAGE_ACK:
        receive_ack(crowd, event, message);
        break;
    case CROWD_MESSAGE_HIT:
        receive_hit(crowd, event, message);
        break;
    default:
        ASSERT(false);
    }
}

void locate_tick(struct crowd *crowd) {
    struct locate *locate = &crowd->locate;
    if (crowd->now_us >= locate->due_us) {
        unsigned units = UNITS_MAX;
        locate->due_us = STEP_NEVER_US;
        locate_search_tick(crowd, &units);
        locate_pass_tick(crowd, &units);
    }
    outbox_wake_at(crowd->out, locate->due_us);
}
