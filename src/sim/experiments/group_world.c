#include "sim/experiments/group_world.h"

#include "base/assert.h"
#include "base/map.h"
#include "base/wire.h"
#include "sim/experiments/probe_path.h"

enum {
    BANDWIDTH_DEFAULT = 1000000,
    WINDOW_FIRST = 10,
    WINDOW_MAX = 45,       /* 64 KiB */
    HANDSHAKE_PACKETS = 7, /* three to begin, four to end */
};

struct group_state {
    struct group *group;
    struct group_world *world;
    struct peer self;
};

/* ---- keys ---- */

struct peer group_world_peer(uint32_t node) {
    struct peer peer = {.address = sim_address(node)};
    struct wire_writer writer;
    wire_writer_init(&writer, peer.key, PEER_KEY_SIZE);
    wire_write_u64(&writer, prng_mix(node + 1));
    wire_write_u64(&writer, node + 1);
    return peer;
}

static void make_signature(const uint8_t key[PEER_KEY_SIZE], struct bytes bytes,
                           uint8_t signature[GROUP_SIGNATURE_SIZE]) {
    uint64_t seed = map_hash(bytes_of(key, PEER_KEY_SIZE), 1);
    struct wire_writer writer;
    wire_writer_init(&writer, signature, GROUP_SIGNATURE_SIZE);
    while (writer.size < GROUP_SIGNATURE_SIZE) {
        wire_write_u64(&writer, map_hash(bytes, seed + writer.size));
    }
}

static void world_sign(void *context, struct bytes bytes, uint8_t signature[GROUP_SIGNATURE_SIZE]) {
    const struct group_state *state = context;
    make_signature(state->self.key, bytes, signature);
}

static bool world_verify(void *context, const uint8_t key[PEER_KEY_SIZE], struct bytes bytes,
                         const uint8_t signature[GROUP_SIGNATURE_SIZE]) {
    uint8_t expected[GROUP_SIGNATURE_SIZE];
    (void)context;
    make_signature(key, bytes, expected);
    return memcmp(expected, signature, GROUP_SIGNATURE_SIZE) == 0;
}

/* ---- nodes ---- */

static enum err world_program_init(void *memory, const struct birth *birth) {
    struct group_state *state = memory;
    struct group_world *world = birth->config;
    struct group_config config = world->config;
    state->world = world;
    state->self = group_world_peer(birth->index);
    config.self = state->self;
    config.seed = birth->seed;
    config.signer = (struct group_signer){.context = state, .sign = world_sign, .verify = world_verify};
    memcpy(config.founder, group_world_peer(0).key, PEER_KEY_SIZE);
    memcpy(config.id, "simulated group", GROUP_ID_SIZE);
    return group_new(&config, &state->group);
}

static void world_program_step(void *memory, const struct event *event, struct outbox *out) {
    struct group_state *state = memory;
    struct event known = *event;
    uint32_t node;
    if (event->kind == EVENT_MESSAGE && sim_node_of(state->world->sim, &event->from, &node)) {
        memcpy(known.from_key, group_world_peer(node).key, PEER_KEY_SIZE);
    }
    group_step(state->group, &known, out);
}

static void world_program_done(void *memory) {
    struct group_state *state = memory;
    group_free(state->group);
}

/* ---- what the driver of a node would do ---- */

static void count_probe(struct group_world *world, uint64_t size) {
    uint64_t segments = (size + GROUP_WORLD_SEGMENT_SIZE - 1) / GROUP_WORLD_SEGMENT_SIZE;
    uint64_t packets = segments + (segments + 1) / 2 + HANDSHAKE_PACKETS; /* every other is acknowledged */
    world->counts.probes_count++;
    world->probes.packets_count += packets;
    world->probes.size += size + packets * GROUP_WORLD_SEGMENT_HEADERS_SIZE;
}

static enum err world_learn(struct group_world *world, uint32_t node, uint32_t other, uint64_t size,
                            uint64_t duration_us) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct peer peer = group_world_peer(other);
    return sim_command_at(world->sim, node, sim_now_us(world->sim) + duration_us, GROUP_PROBED, 0,
                          group_write_transfer(&peer, size, duration_us, memory));
}

/* Nothing comes of it if the other is not there, or is cut off. */
static void world_probe(struct group_world *world, uint32_t node, struct wire_reader *reader) {
    const struct network *network = sim_network(world->sim);
    struct peer peer;
    uint32_t other;
    peer_read(reader, PEER_MEMBER, &peer);
    uint64_t size = wire_read_u32(reader);
    if (!sim_node_of(world->sim, &peer.address, &other) || sim_status(world->sim, other) != SIM_UP ||
        (network->blocked[network->nodes[node].group] >> network->nodes[other].group & 1) != 0) {
        return;
    }
    struct probe_path path = {.round_trip_us = network_latency_us(network, node, other) +
                                               network_latency_us(network, other, node),
                              .bandwidth = world->bandwidth,
                              .segment_size = GROUP_WORLD_SEGMENT_SIZE,
                              .window_first = WINDOW_FIRST,
                              .window_max = WINDOW_MAX};
    uint64_t duration_us = probe_path_us(&path, size);
    count_probe(world, size);
    enum err err = world_learn(world, node, other, size, duration_us);
    err = err != ERR_OK ? err : world_learn(world, other, node, size, duration_us);
    world->err = world->err != ERR_OK ? world->err : err;
}

static void world_on_notice(void *context, struct sim *sim, uint32_t node, uint32_t code,
                            struct bytes bytes) {
    struct group_world *world = context;
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    switch ((enum group_notice)code) {
    case GROUP_PROBE:
        world_probe(world, node, &reader);
        break;
    case GROUP_ASKED:
        world->counts.asked_count++;
        if (world->approves && world->err == ERR_OK) {
            world->err = sim_command_at(sim, node, sim_now_us(sim), GROUP_APPROVE, 0, bytes);
        }
        break;
    case GROUP_MASTER:
        world->counts.masters_count++;
        break;
    case GROUP_OUT:
        world->counts.out_count++;
        break;
    case GROUP_BLAMED:
        world->counts.blamed_count++;
        break;
    case GROUP_COMMITTED:
    case GROUP_YIELDED:
    case GROUP_REFUSED:
        break;
    }
}

/* ---- the world ---- */

enum err group_world_init(struct group_world *world, const struct sim_config *sim,
                          const struct group_config *config) {
    *world = (struct group_world){
        .config = *config, .nodes_count = sim->nodes_max, .bandwidth = BANDWIDTH_DEFAULT};
    world->program = (struct program){.name = "group",
                                      .state_size = sizeof(struct group_state),
                                      .actions_max = group_actions_max(config),
                                      .memory_size = group_memory_size(config),
                                      .slots_count = GROUP_SLOTS_COUNT,
                                      .init = world_program_init,
                                      .step = world_program_step,
                                      .done = world_program_done};
    world->sim = sim_new(sim);
    if (world->sim == NULL) {
        return ERR_MEMORY;
    }
    sim_observe(world->sim, &(struct sim_observer){.context = world, .notice = world_on_notice});
    return sim_add_all(world->sim, &world->program, world);
}

void group_world_done(struct group_world *world) {
    sim_free(world->sim);
    *world = (struct group_world){0};
}

enum err group_world_found(struct group_world *world) {
    sim_start_at(world->sim, 0, sim_now_us(world->sim));
    return sim_command_at(world->sim, 0, sim_now_us(world->sim), GROUP_CREATE, 0, (struct bytes){0});
}

enum err group_world_join(struct group_world *world, uint32_t node, uint32_t contact) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct peer peer = group_world_peer(contact);
    sim_start_at(world->sim, node, sim_now_us(world->sim));
    return sim_command_at(world->sim, node, sim_now_us(world->sim), GROUP_JOIN, 0,
                          group_write_peer(&peer, BYTES("papers"), memory));
}

const struct group *group_world_group(const struct group_world *world, uint32_t node) {
    const struct group_state *state = sim_state(world->sim, node);
    return state == NULL ? NULL : state->group;
}

struct group_world_traffic group_world_traffic(struct group_world *world) {
    const struct network_traffic *datagrams = &sim_network(world->sim)->counters.traffic;
    return (struct group_world_traffic){
        .size = world->probes.size + datagrams->sent_size +
                datagrams->sent_count * GROUP_WORLD_DATAGRAM_HEADERS_SIZE,
        .packets_count = world->probes.packets_count + datagrams->sent_count,
    };
}

/* ---- looking ---- */

static bool world_is_among(const struct group_world *world, uint32_t node, int among) {
    return sim_status(world->sim, node) == SIM_UP &&
           (among < 0 || sim_network(world->sim)->nodes[node].group == among);
}

bool group_world_is_settled(const struct group_world *world, int among) {
    const struct group *first = NULL;
    uint32_t count = 0;
    for (uint32_t node = 0; node < world->nodes_count; node++) {
        if (!world_is_among(world, node, among)) {
            continue;
        }
        const struct group *group = group_world_group(world, node);
        if (group_mode(group) != GROUP_MEMBER) {
            return false;
        }
        first = first == NULL ? group : first;
        if (group_term(group) != group_term(first) || group_sequence(group) != group_sequence(first)) {
            return false;
        }
        count++;
    }
    return first != NULL && group_topology(first)->members_count == count;
}

static bool is_broken(const struct group_world *world, uint32_t a, uint32_t b) {
    const uint32_t *link = world->broken_link;
    return world->has_broken_link && ((link[0] == a && link[1] == b) || (link[0] == b && link[1] == a));
}

bool group_world_reaches_all(const struct group_world *world, uint32_t from) {
    const struct network *network = sim_network(world->sim);
    bool is_reached[GROUP_MEMBERS_MAX] = {false};
    uint32_t todo[GROUP_MEMBERS_MAX] = {from};
    uint32_t todo_count = 1;
    ASSERT(world->nodes_count <= GROUP_MEMBERS_MAX);
    is_reached[from] = true;
    for (uint32_t i = 0; i < todo_count; i++) {
        struct group_neighbour neighbours[GROUP_MEMBERS_MAX];
        size_t count = group_neighbours(group_world_group(world, todo[i]), neighbours, GROUP_MEMBERS_MAX);
        for (size_t n = 0; n < count; n++) {
            uint32_t other;
            bool is_node = sim_node_of(world->sim, &neighbours[n].peer.address, &other);
            ASSERT(is_node);
            if (!is_reached[other] && !is_broken(world, todo[i], other) &&
                world_is_among(world, other, network->nodes[from].group)) {
                is_reached[other] = true;
                todo[todo_count++] = other;
            }
        }
    }
    for (uint32_t node = 0; node < world->nodes_count; node++) {
        if (!is_reached[node] && world_is_among(world, node, network->nodes[from].group)) {
            return false;
        }
    }
    return true;
}
