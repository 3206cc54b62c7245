#include "base/prng.h"
#include "protocol/crowd/locate_state.h"

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

bool locate_seen_init(struct locate_seen *seen, const struct crowd_config *config, uint64_t secret,
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
    return seen->queries != NULL && seen->slots != NULL && (seen->copies_max == 0 || seen->copies != NULL);
}

/* ---- by id ---- */

/* Ids are chosen by others, who must not be able to make all of them meet in one place: hence the secret. */
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
static void forget(struct locate_seen *seen, uint64_t id) {
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
        forget(seen, query->id);
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

static struct locate_copy *copies_of(const struct locate_seen *seen, const struct locate_query *query) {
    return seen->copies + (size_t)(query - seen->queries) * seen->copies_max;
}

struct locate_copy *locate_seen_copy(const struct locate_seen *seen, const struct locate_query *query,
                                     uint32_t peer_hash) {
    for (unsigned i = 0; i < query->copies_count; i++) {
        struct locate_copy *copy = copies_of(seen, query) + i;
        if (copy->peer_hash == peer_hash) {
            return copy;
        }
    }
    return NULL;
}

bool locate_seen_add_copy(struct locate_seen *seen, struct locate_query *query, uint32_t peer_hash) {
    if (query->copies_count == seen->copies_max) {
        return false;
    }
    copies_of(seen, query)[query->copies_count++] =
        (struct locate_copy){.peer_hash = peer_hash & ((1u << 30) - 1)};
    return true;
}
