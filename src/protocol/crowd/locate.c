#include "protocol/crowd/locate.h"

#include "base/map.h"
#include "protocol/crowd/state.h"

enum {
    UNITS_MAX = 8, /* of one tick; what is left is done in the next, at once */
    WANTED_COUNT_MIN = 16,
};

/* ---- life ---- */

static uint32_t wanted_count(const struct crowd_config *config) {
    uint32_t count = config->waiting_max / LOCATE_WAYS * LOCATE_WAYS;
    return count < WANTED_COUNT_MIN ? WANTED_COUNT_MIN : count;
}

/* An answer of the owner is passed to all who wait for it; beside that a message of another, and a tick. */
size_t locate_actions_max(const struct crowd_config *config) {
    return config->waiting_max + (UNITS_MAX + 2) * CROWD_FANOUT_MAX;
}

static bool take_memory(struct crowd *crowd) {
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
    return locate_seen_init(&locate->seen, config, crowd->secret, arena) && locate->searches != NULL &&
           locate->tasks != NULL && locate->order != NULL &&
           (config->is_unlimited ||
            (locate->wanted != NULL && locate->absent.entries != NULL && locate->peers_full_at_us != NULL));
}

enum err locate_init(struct crowd *crowd) {
    const struct crowd_config *config = &crowd->config;
    ASSERT(config->searches_max > 0 && config->waiting_max > 0 && config->waiting_max < 1u << 20);
    ASSERT(config->fanout > 0 && config->fanout <= CROWD_FANOUT_MAX);
    ASSERT(config->ttl_first > 0 && config->ttl_first <= config->ttl_last);
    ASSERT(config->ttl_last <= CROWD_TTL_CAP && config->tries_at_last > 0);
    ASSERT(config->ttl_cap > 0 && config->peer_rate > 0 && config->total_rate > 0);
    crowd->locate = (struct locate){.due_us = STEP_NEVER_US};
    if (!take_memory(crowd)) {
        return ERR_MEMORY;
    }
    for (uint32_t i = 0; i < config->waiting_max; i++) {
        crowd->locate.order[i] = i;
    }
    return ERR_OK;
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

/* Did we send it to him? The query, or NULL. Where repeats are taken, it is not known. */
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

/* Is there room for one more finding of this query, and of him? */
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
    if (hit.holder.address.port == 0) { /* the sender: only whom he sends it to knows who that is */
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
