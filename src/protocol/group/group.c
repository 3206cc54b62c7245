#include "protocol/group/group.h"

#include "protocol/group/group_state.h"

/* Which nodes are members by the topology that holds, what is known of them, and which ones were members. */

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
static void group_restore_former(struct group *group, struct bytes bytes) {
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

static struct group_neighbour group_look_at(const struct group *group, uint32_t position, uint32_t cost_us) {
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
            out[count++] = group_look_at(group, other, edge->cost_us);
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

enum {
    SECOND_US = 1000000,
    BLAME_US = SECOND_US,
    MESSAGES_EACH_US = 20000, /* of one member: 50 a second, 256 at once */
    MESSAGES_BURST = 256,
    STRANGERS_EACH_US = 100000,
    STRANGERS_BURST = 32,
    PUSH_US = 60 * SECOND_US, /* to a member that is behind, not more often */
    MEMORY_SIZE_MAX = 16 << 20,
};

/* ---- life ---- */

static uint64_t group_or_default(uint64_t value, uint64_t otherwise) {
    return value == 0 ? otherwise : value;
}

static struct group_config with_defaults(const struct group_config *given) {
    struct group_config config = *given;
    const uint64_t minute_us = GROUP_MINUTE_US;
    config.members_max = (uint16_t)group_or_default(config.members_max, GROUP_MEMBERS_MAX);
    config.echo_us = group_or_default(config.echo_us, 15 * minute_us);
    config.probe_us = group_or_default(config.probe_us, 60 * minute_us);
    config.probe_size = (uint32_t)group_or_default(config.probe_size, (32 << 10));
    config.report_us = group_or_default(config.report_us, 30 * minute_us);
    config.slowing_us = group_or_default(config.slowing_us, 90 * minute_us);
    config.fast_us = group_or_default(config.fast_us, (uint64_t)10 * SECOND_US);
    config.connectivity = (uint8_t)group_or_default(config.connectivity, TOPOLOGY_K_DEFAULT);
    config.compute_us = group_or_default(config.compute_us, 60 * minute_us);
    config.gather_us = group_or_default(config.gather_us, (uint64_t)5 * SECOND_US);
    config.silence_us = group_or_default(config.silence_us, 60 * minute_us);
    config.pulse_us = group_or_default(config.pulse_us, 5 * minute_us);
    config.master_silence_us = group_or_default(config.master_silence_us, 15 * minute_us);
    config.order_us = group_or_default(config.order_us, (uint64_t)30 * SECOND_US);
    ASSERT(config.self.address.port != 0);
    ASSERT(config.members_max <= GROUP_MEMBERS_MAX && config.neighbours_count <= GROUP_NEIGHBOURS_MAX);
    ASSERT(config.connectivity <= TOPOLOGY_K_MAX && config.kind <= TOPOLOGY_TREE);
    ASSERT(config.signer.sign != NULL && config.signer.verify != NULL);
    return config;
}

static void take_mastership(struct group *group) {
    struct group_mastership *master = &group->master;
    master->costs = arena_take(&group->arena, sizeof *master->costs);
    master->next_costs = arena_take(&group->arena, sizeof *master->next_costs);
    master->work = arena_take(&group->arena, sizeof *master->work);
    master->graph = arena_take(&group->arena, sizeof *master->graph);
    master->is_leaving = arena_take_array(&group->arena, GROUP_MEMBERS_MAX, sizeof *master->is_leaving);
    master->arrivals = arena_take_array(&group->arena, GROUP_MEMBERS_MAX, sizeof *master->arrivals);
}

static void group_take_memory(struct group *group) {
    struct arena *arena = &group->arena;
    struct group_flood *flood = &group->flood;
    group->topology = arena_take(arena, sizeof *group->topology);
    group->draft = arena_take(arena, sizeof *group->draft);
    group->members = arena_take_array(arena, GROUP_MEMBERS_MAX, sizeof *group->members);
    group->members_before = arena_take_array(arena, GROUP_MEMBERS_MAX, sizeof *group->members_before);
    group->former = arena_take_array(arena, GROUP_MEMBERS_MAX, sizeof *group->former);
    flood->document = arena_take(arena, GROUP_DOCUMENT_SIZE_MAX);
    flood->arriving = arena_take(arena, (size_t)GROUP_PIECES_MAX * GROUP_PIECE_SIZE);
    flood->targets = arena_take_array(arena, (size_t)2 * GROUP_MEMBERS_MAX, sizeof *flood->targets);
    take_mastership(group);
}

enum err group_new(const struct group_config *given, struct group **ret_group) {
    struct group_config config = with_defaults(given);
    struct group *group = arena_new(sizeof *group, MEMORY_SIZE_MAX);
    if (group == NULL) {
        return ERR_MEMORY;
    }
    group->config = config;
    group->position = GROUP_NOWHERE;
    prng_init(&group->prng, config.seed);
    group->secret = prng_u64(&group->prng);
    if (config.neighbours_count > 0) {
        group->mode = GROUP_FIXED;
        memcpy(group->fixed, config.neighbours, config.neighbours_count * sizeof *config.neighbours);
    } else {
        group_take_memory(group);
    }
    if (group->arena.is_short) {
        group_free(group);
        return ERR_MEMORY;
    }
    *ret_group = group;
    return ERR_OK;
}

void group_free(struct group *group) {
    arena_free(group);
}

/* Once to all neighbours in answer to an event, once because it is time; pieces; and some. */
size_t group_actions_max(const struct group_config *config) {
    (void)config;
    return 2 * (size_t)GROUP_MEMBERS_MAX + GROUP_SENDS_MAX + GROUP_MISC_MAX;
}

size_t group_memory_size(const struct group_config *config) {
    return group_actions_max(config) * (size_t)STEP_MESSAGE_SIZE_MAX + 2 * (size_t)GROUP_DOCUMENT_SIZE_MAX;
}

/* ---- for the other files ---- */

void group_send(struct group *group, const struct peer *to, struct group_message *message) {
    message->held = group->version;
    outbox_send_peer(group->out, to, group_message_write(message, group->config.id, group->memory));
}

void group_send_neighbours(struct group *group, const struct peer *but, struct group_message *message) {
    const struct graph_set *neighbours = &group->neighbours;
    for (uint32_t at = graph_set_next(neighbours, 0); at < group->topology->members_count;
         at = graph_set_next(neighbours, at + 1)) {
        if (but == NULL || !peer_equal(but, &group->topology->members[at])) {
            group_send(group, &group->topology->members[at], message);
        }
    }
}

void group_answer(struct group *group, const struct event *event, enum group_message_kind kind,
                  uint64_t number) {
    struct peer to = event_sender(event);
    struct group_message message = {.kind = (uint8_t)kind, .number = number};
    group_send(group, &to, &message);
}

void group_notice_peer(struct group *group, enum group_notice notice, const struct peer *peer,
                       struct bytes rest) {
    outbox_notice(group->out, notice, group_write_peer(peer, rest, group->memory));
}

void group_blame(struct group *group, const struct event *event, const char *text) {
    struct peer who = event_sender(event);
    ASSERT(strlen(text) <= GROUP_BLAME_TEXT_SIZE_MAX);
    group->counters.blamed_count++;
    if (group->now_us >= group->blame_at_us) {
        group->blame_at_us = group->now_us + BLAME_US;
        group_notice_peer(group, GROUP_BLAMED, &who, bytes_of_string(text));
    }
}

uint64_t group_spread(struct group *group, uint64_t period_us) {
    return period_us - period_us / 8 + prng_below(&group->prng, period_us / 4 + 1);
}

/* ---- messages ---- */

/* A node that takes itself for a member is told that it is none, in fewer bytes than it sent. */
static void receive_stranger(struct group *group, const struct event *event,
                             const struct group_message *message) {
    group->counters.strange_count++;
    if (group->mode == GROUP_MEMBER && bucket_take_one(&group->requests.strangers_bucket_us, group->now_us,
                                                       STRANGERS_EACH_US, STRANGERS_BURST)) {
        group_answer(group, event, GROUP_MESSAGE_STRANGER, message->number);
    }
}

static void group_on_echo(struct group *group, const struct event *event,
                          const struct group_message *message) {
    group_answer(group, event, GROUP_MESSAGE_ECHOED, message->number);
}

/* What is done with each kind, and whether only members may say it. */
static const struct {
    group_take *take;
    bool is_of_members;
} receivers[GROUP_MESSAGE_KINDS_END] = {
    [GROUP_MESSAGE_JOIN] = {group_join_on_join, false},
    [GROUP_MESSAGE_CHALLENGE] = {group_join_on_challenge, false},
    [GROUP_MESSAGE_TAKEN] = {group_join_on_taken, false},
    [GROUP_MESSAGE_REFUSED] = {group_join_on_refused, false},
    [GROUP_MESSAGE_REQUEST] = {group_join_on_request, true},
    [GROUP_MESSAGE_ECHO] = {group_on_echo, true},
    [GROUP_MESSAGE_ECHOED] = {group_measure_on_echoed, false},
    [GROUP_MESSAGE_STRANGER] = {group_join_on_stranger, false},
    [GROUP_MESSAGE_REPORT] = {group_master_on_report, true},
    [GROUP_MESSAGE_REPORTED] = {group_measure_on_reported, false},
    [GROUP_MESSAGE_PIECE] = {group_flood_on_piece, false},
    [GROUP_MESSAGE_ACK] = {group_flood_on_ack, false},
    [GROUP_MESSAGE_PULSE] = {group_succession_on_pulse, true},
    [GROUP_MESSAGE_LEAVE] = {group_master_on_leave, true},
    [GROUP_MESSAGE_LEFT] = {group_join_on_left, false},
};

static void receive(struct group *group, const struct event *event, const struct group_message *message,
                    uint32_t position) {
    bool is_member = position != GROUP_NOWHERE && group->mode == GROUP_MEMBER;
    if (receivers[message->kind].is_of_members && !is_member) {
        receive_stranger(group, event, message);
    } else {
        receivers[message->kind].take(group, event, message);
    }
}

/* Any word of a member says that it is there, and which topology it holds. */
static bool hear_member(struct group *group, uint32_t position, const struct group_message *message) {
    struct group_member *member = &group->members[position];
    const struct peer *peer = &group->topology->members[position];
    if (!bucket_take_one(&member->bucket_us, group->now_us, MESSAGES_EACH_US, MESSAGES_BURST)) {
        group->counters.flooded_count++;
        return false;
    }
    member->heard_at_us = group->now_us;
    member->known_at_us = group->now_us;
    if (position == 0 && message->kind == GROUP_MESSAGE_JOIN) {
        group->succession.heard_at_us = 0; /* a master that asks to join is none any more */
    } else if (position == 0) {
        group_succession_heard(group, message->held);
    }
    bool may_push = member->pushed_at_us == 0 || group->now_us - member->pushed_at_us >= PUSH_US;
    if (group_version_compare(message->held, group->version) < 0 && may_push &&
        message->kind != GROUP_MESSAGE_ACK && group->mode == GROUP_MEMBER) {
        member->pushed_at_us = group->now_us;
        group_flood_to(group, peer);
    }
    return true;
}

static void group_on_message(struct group *group, const struct event *event) {
    struct group_message message;
    struct peer from = event_sender(event);
    group->counters.received_count++;
    if (!peer_is_possible(&from) || address_equal(&from.address, &group->config.self.address) ||
        memcmp(from.key, group->config.self.key, PEER_KEY_SIZE) == 0) {
        group->counters.strange_count++;
        return;
    }
    switch (group_message_read(event->bytes, group->config.id, &message)) {
    case GROUP_MESSAGE_MALFORMED:
        group->counters.malformed_count++;
        group_blame(group, event, "a malformed message");
        return;
    case GROUP_MESSAGE_FOREIGN:
        group->counters.foreign_count++;
        return;
    case GROUP_MESSAGE_GOOD:
        break;
    }
    uint32_t position = group_find(group, &from);
    if (position == GROUP_NOWHERE || hear_member(group, position, &message)) {
        receive(group, event, &message, position);
    }
}

/* ---- other events ---- */

static void group_on_command(struct group *group, const struct event *event) {
    switch ((enum group_command)event->code) {
    case GROUP_CREATE:
        group_master_create(group);
        break;
    case GROUP_JOIN:
        group_join_begin(group, event->bytes);
        break;
    case GROUP_LEAVE:
        group_join_leave(group);
        break;
    case GROUP_APPROVE:
        group_master_approve(group, event->bytes);
        break;
    case GROUP_REFUSE:
        group_master_refuse(group, event->bytes);
        break;
    case GROUP_PROBED:
        group_measure_probed(group, event->bytes);
        break;
    case GROUP_CLAIM:
        group_succession_claim(group);
        break;
    case GROUP_RULES:
        group_master_set_rules(group, event->bytes);
        break;
    }
}

/* What was saved held then; a master says so again, under a new number, because what it sent last may have
 * been newer than what it saved. */
static void on_start(struct group *group) {
    group_measure_begin(group);
    group_succession_begin(group, false);
    if (group_is_master(group)) {
        *group->draft = *group->topology;
        group_document_publish(group, group->version.term, (uint64_t)group->version.sequence + 1);
    }
}

static void on_fixed(struct group *group, const struct event *event) {
    if (event->kind == EVENT_MESSAGE) {
        group->counters.received_count++;
        group->counters.strange_count++;
    } else if (event->kind == EVENT_COMMAND && event->code == GROUP_PROBED) {
        group_measure_probed(group, event->bytes);
    }
}

static void on_event(struct group *group, const struct event *event) {
    switch (event->kind) {
    case EVENT_RESTORED:
        if (event->code == GROUP_SLOT) {
            group_document_restore(group, event->bytes);
        } else if (event->code == GROUP_SLOT_FORMER) {
            group_restore_former(group, event->bytes);
        }
        break;
    case EVENT_START:
        on_start(group);
        break;
    case EVENT_MESSAGE:
        group_on_message(group, event);
        break;
    case EVENT_COMMAND:
        group_on_command(group, event);
        break;
    case EVENT_SAVED:
        if (event->code == GROUP_SLOT && event->number == group->flood.save_number) {
            group_flood_begin(group);
        }
        break;
    case EVENT_WAKE:
        break;
    }
}

void group_step(struct group *group, const struct event *event, struct outbox *out) {
    group->now_us = event->now_us;
    group->out = out;
    group->sends_left = GROUP_SENDS_MAX;
    if (group->mode == GROUP_FIXED) {
        on_fixed(group, event);
    } else {
        on_event(group, event);
        if (event->kind != EVENT_RESTORED) {
            group_join_tick(group);
            group_succession_tick(group);
            group_master_tick(group);
            group_measure_tick(group);
            group_flood_tick(group);
        }
    }
    group->out = NULL;
}

/* ---- for the owner ---- */

struct bytes group_write_peer(const struct peer *peer, struct bytes papers, void *memory) {
    struct wire_writer writer;
    wire_writer_init(&writer, memory, STEP_MESSAGE_SIZE_MAX);
    peer_write(&writer, PEER_MEMBER, peer);
    wire_write_bytes(&writer, papers);
    return wire_writer_bytes(&writer);
}

struct bytes group_write_transfer(const struct peer *peer, uint64_t size, uint64_t duration_us,
                                  void *memory) {
    struct wire_writer writer;
    wire_writer_init(&writer, memory, STEP_MESSAGE_SIZE_MAX);
    peer_write(&writer, PEER_MEMBER, peer);
    wire_write_u64(&writer, size);
    wire_write_u64(&writer, duration_us);
    return bytes_of(memory, writer.size);
}

struct bytes group_write_rules(bool is_open, enum topology_kind kind, uint8_t connectivity, void *memory) {
    struct wire_writer writer;
    wire_writer_init(&writer, memory, STEP_MESSAGE_SIZE_MAX);
    wire_write_bool(&writer, is_open);
    wire_write_u8(&writer, (uint8_t)kind);
    wire_write_u8(&writer, connectivity);
    return bytes_of(memory, writer.size);
}

enum group_mode group_mode(const struct group *group) {
    return group->mode;
}

bool group_is_master(const struct group *group) {
    return group->mode == GROUP_MEMBER && group->position == 0;
}

const struct group_counters *group_counters(const struct group *group) {
    return &group->counters;
}

const struct topology *group_topology(const struct group *group) {
    return group->mode == GROUP_FIXED || group->topology->members_count == 0 ? NULL : group->topology;
}

uint32_t group_term(const struct group *group) {
    return group->version.term;
}

uint32_t group_sequence(const struct group *group) {
    return group->version.sequence;
}

const struct peer *group_master(const struct group *group) {
    const struct topology *topology = group_topology(group);
    return topology == NULL ? NULL : &topology->members[0];
}
