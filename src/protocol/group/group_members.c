/* Who is a member by the topology that holds, what is known of them, and who was one. */
#include "protocol/group/group_state.h"

/* ---- finding ---- */

uint32_t group_find_key(const struct topology *topology, const uint8_t key[PEER_KEY_SIZE]) {
    for (uint32_t i = 0; i < topology->members_count; i++) {
        if (memcmp(topology->members[i].key, key, PEER_KEY_SIZE) == 0) {
            return i;
        }
    }
    return GROUP_NOWHERE;
}

uint32_t group_find(const struct group *group, const struct peer *peer) {
    uint32_t position = group_find_key(group->topology, peer->key);
    if (position == GROUP_NOWHERE || !peer_equal(&group->topology->members[position], peer)) {
        return GROUP_NOWHERE;
    }
    return position;
}

static uint32_t find_former(const struct group *group, const uint8_t key[PEER_KEY_SIZE]) {
    uint32_t at = 0;
    while (at < group->former_count && memcmp(group->former[at].key, key, PEER_KEY_SIZE) != 0) {
        at++;
    }
    return at;
}

bool group_is_former(const struct group *group, const uint8_t key[PEER_KEY_SIZE]) {
    return find_former(group, key) < group->former_count;
}

static void group_forget_former(struct group *group, const uint8_t key[PEER_KEY_SIZE]) {
    uint32_t at = find_former(group, key);
    if (at < group->former_count) {
        group->former[at] = group->former[--group->former_count];
        group->is_former_changed = true;
        group->former_next = group->former_count % GROUP_MEMBERS_MAX;
    }
}

static void remember_former(struct group *group, const struct peer *peer) {
    group_forget_former(group, peer->key);
    group->former[group->former_next] = *peer;
    group->is_former_changed = true;
    group->former_next = (group->former_next + 1) % GROUP_MEMBERS_MAX;
    if (group->former_count < GROUP_MEMBERS_MAX) {
        group->former_count++;
    }
}

void group_save_former(struct group *group) {
    uint8_t memory[GROUP_MEMBERS_MAX * PEER_SIZE_MAX];
    struct wire_writer writer;
    if (!group->is_former_changed) {
        return;
    }
    group->is_former_changed = false;
    wire_writer_init(&writer, memory, sizeof memory);
    for (uint32_t i = 0; i < group->former_count; i++) {
        peer_write(&writer, PEER_MEMBER, &group->former[i]);
    }
    outbox_save(group->out, GROUP_SLOT_FORMER, 0, bytes_of(memory, writer.size));
}

/* Bytes of our own disk: what is not whole is left out. */
void group_restore_former(struct group *group, struct bytes bytes) {
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    while (wire_reader_left(&reader) > 0) {
        struct peer peer;
        peer_read(&reader, PEER_MEMBER, &peer);
        if (reader.err == ERR_OK && group_find_key(group->topology, peer.key) == GROUP_NOWHERE) {
            remember_former(group, &peer);
        }
    }
    group->is_former_changed = false;
}

/* ---- another topology ---- */

static void note_neighbours(struct group *group) {
    group->neighbours = (struct graph_set){0};
    if (group->position == GROUP_NOWHERE) {
        return;
    }
    for (uint32_t i = 0; i < group->topology->edges_count; i++) {
        const struct topology_edge *edge = &group->topology->edges[i];
        if (edge->a == group->position) {
            graph_set_add(&group->neighbours, edge->b);
        } else if (edge->b == group->position) {
            graph_set_add(&group->neighbours, edge->a);
        }
    }
}

void group_members_follow(struct group *group) {
    const struct topology *next = group->draft;
    struct group_member *members = group->members_before; /* swapped below */
    for (uint32_t i = 0; i < next->members_count; i++) {
        uint32_t before = group_find_key(group->topology, next->members[i].key);
        members[i] = before == GROUP_NOWHERE ? (struct group_member){.known_at_us = group->now_us}
                                             : group->members[before];
        group_forget_former(group, next->members[i].key);
    }
    for (uint32_t i = 0; i < group->topology->members_count; i++) {
        const struct peer *member = &group->topology->members[i];
        bool is_self = memcmp(member->key, group->config.self.key, PEER_KEY_SIZE) == 0;
        bool is_lost = group_find_key(next, member->key) == GROUP_NOWHERE &&
                       !group_keys_has(&group->master.left, member->key);
        if (!is_self && is_lost) {
            remember_former(group, member);
        }
    }
    group->members_before = group->members;
    group->members = members;
    *group->topology = *next;
    group->position = group_find(group, &group->config.self);
    note_neighbours(group);
}

/* ---- picking ---- */

const struct peer *group_pick_member(struct group *group) {
    uint32_t count = group->topology->members_count;
    if (count < 2 || group->position == GROUP_NOWHERE) {
        return NULL;
    }
    uint32_t at = (uint32_t)prng_below(&group->prng, count - 1);
    return &group->topology->members[at + (at >= group->position)];
}

const struct peer *group_pick_former(struct group *group) {
    return group->former_count == 0 ? NULL : &group->former[prng_below(&group->prng, group->former_count)];
}

/* ---- neighbours, for the owner ---- */

static struct group_neighbour look_at(const struct group *group, uint32_t position, uint32_t cost_us) {
    const struct group_member *member = &group->members[position];
    return (struct group_neighbour){.peer = group->topology->members[position],
                                    .cost_us = cost_us,
                                    .round_trip_us = member->estimate.round_trip_us,
                                    .bandwidth = member->estimate.bandwidth,
                                    .heard_at_us = member->heard_at_us};
}

static size_t fixed_neighbours(const struct group *group, struct group_neighbour *out, size_t count_max) {
    size_t count = group->config.neighbours_count < count_max ? group->config.neighbours_count : count_max;
    for (size_t i = 0; i < count; i++) {
        out[i] = (struct group_neighbour){.peer = group->fixed[i],
                                          .cost_us = COSTS_UNKNOWN_US,
                                          .bandwidth = group->fixed_estimates[i].bandwidth};
    }
    return count;
}

size_t group_neighbours(const struct group *group, struct group_neighbour *out, size_t count_max) {
    if (group->mode == GROUP_FIXED) {
        return fixed_neighbours(group, out, count_max);
    }
    size_t count = 0;
    for (uint32_t i = 0; i < group->topology->edges_count && count < count_max; i++) {
        const struct topology_edge *edge = &group->topology->edges[i];
        if (edge->a == group->position || edge->b == group->position) {
            uint32_t other = edge->a == group->position ? edge->b : edge->a;
            out[count++] = look_at(group, other, edge->cost_us);
        }
    }
    return count;
}

/* ---- keys ---- */

static uint32_t find_key(const struct group_keys *keys, const uint8_t key[PEER_KEY_SIZE]) {
    uint32_t at = 0;
    while (at < keys->count && memcmp(keys->keys[at], key, PEER_KEY_SIZE) != 0) {
        at++;
    }
    return at;
}

bool group_keys_has(const struct group_keys *keys, const uint8_t key[PEER_KEY_SIZE]) {
    return find_key(keys, key) < keys->count;
}

void group_keys_add(struct group_keys *keys, const uint8_t key[PEER_KEY_SIZE]) {
    if (group_keys_has(keys, key)) {
        return;
    }
    memcpy(keys->keys[keys->next], key, PEER_KEY_SIZE); /* the oldest gives way */
    keys->next = (keys->next + 1) % GROUP_KEYS_MAX;
    keys->count += keys->count < GROUP_KEYS_MAX;
}

void group_keys_remove(struct group_keys *keys, const uint8_t key[PEER_KEY_SIZE]) {
    uint32_t at = find_key(keys, key);
    if (at < keys->count) {
        keys->count--;
        memmove(keys->keys[at], keys->keys[keys->count], PEER_KEY_SIZE);
        keys->next = keys->count % GROUP_KEYS_MAX;
    }
}
