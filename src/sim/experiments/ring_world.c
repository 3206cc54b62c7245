#include "sim/experiments/ring_world.h"

#include <stdlib.h>

#include "base/wire.h"
#include "protocol/ring/ring.h"

struct ring_state {
    struct ring *ring;
    struct ring_world *world;
    uint32_t index;
};

/* ---- nodes ---- */

/* In nodes, which are in the order of their IDs: the first at or after id, 0 where the circle begins again.
 */
static uint32_t world_position_of(const struct ring_world *world, const uint32_t *nodes, uint32_t count,
                                  struct ring_id id) {
    uint32_t low = 0;
    uint32_t high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ring_id_compare(world->vnodes[nodes[middle]].id, id) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == count ? 0 : low;
}

static uint32_t installed_at_or_after(const struct ring_world *world, struct ring_id id) {
    return world_position_of(world, world->installed, world->installed_count, id);
}

static void install(struct ring_world *world, struct ring *ring, uint32_t node) {
    struct vnode list[RING_LIST_MAX];
    uint32_t count = world->installed_count;
    uint32_t known_wanted = node < world->experts_count ? count : world->known_count;
    ASSERT(count > 0);
    struct vnode *known = calloc(world->fingers_count + known_wanted + 1, sizeof *known);
    if (known == NULL) {
        return; /* the node then knows less */
    }
    struct ring_id self = world->vnodes[node].id;
    uint32_t position = installed_at_or_after(world, self);
    for (uint32_t i = 0; i < world->config.list_size; i++) {
        list[i] = world->vnodes[world->installed[(position + 1 + i) % count]];
    }
    uint32_t known_count = 0;
    for (uint32_t i = 0; i < world->fingers_count; i++) {
        uint32_t finger = installed_at_or_after(world, ring_id_add_power(self, 127 - i));
        known[known_count++] = world->vnodes[world->installed[finger]];
    }
    for (uint32_t i = 0; i < known_wanted; i++) {
        uint32_t other = known_wanted == count ? i : (uint32_t)prng_below(&world->prng, count);
        known[known_count++] = world->vnodes[world->installed[other]];
    }
    const struct vnode *predecessor = &world->vnodes[world->installed[(position + count - 1) % count]];
    ring_install_for_experiment(ring, list, predecessor, known, known_count, 0);
    free(known);
}

static enum err world_program_init(void *memory, const struct birth *birth) {
    struct ring_state *state = memory;
    struct ring_world *world = birth->config;
    struct ring_config config = world->config;
    config.self = (struct peer){.address = birth->address};
    config.seed = birth->seed;
    if (birth->index < world->experts_count) {
        config.table_capacity = world->nodes_count;
    } else if (world->experts_count > 0) {
        config.lookups_max = 1; /* only experts ask */
    }
    state->world = world;
    state->index = birth->index;
    enum err err = ring_new(&config, &state->ring);
    if (err == ERR_OK && birth->life == 1 && world->is_installed[birth->index]) {
        install(world, state->ring, birth->index);
    }
    return err;
}

static void world_program_step(void *memory, const struct event *event, struct outbox *out) {
    struct ring_state *state = memory;
    struct ring_liars *liars = &state->world->liars;
    if (ring_liars_has(liars, state->index)) {
        ring_liars_step(liars, state->ring, state->index, event, out);
    } else {
        ring_step(state->ring, event, out);
    }
}

static void world_program_done(void *memory) {
    struct ring_state *state = memory;
    ring_free(state->ring);
}

/* ---- the world ---- */

static int compare_vnodes(const void *a, const void *b, void *context) {
    const struct vnode *vnodes = context;
    return ring_id_compare(vnodes[*(const uint32_t *)a].id, vnodes[*(const uint32_t *)b].id);
}

static enum err add_nodes(struct ring_world *world) {
    struct sha256 sha256;
    enum err err = sha256_init(&sha256);
    if (err != ERR_OK) {
        return err;
    }
    for (uint32_t i = 0; i < world->nodes_count; i++) {
        struct vnode *vnode = &world->vnodes[i];
        vnode->peer.address = sim_address(i);
        vnode->id = ring_id_of_node(&sha256, &vnode->peer.address, 0);
        world->order[i] = i;
    }
    sha256_done(&sha256);
    qsort_r(world->order, world->nodes_count, sizeof *world->order, compare_vnodes, world->vnodes);
    return sim_add_all(world->sim, &world->program, world);
}

enum err ring_world_init(struct ring_world *world, const struct sim_config *sim,
                         const struct ring_config *config) {
    *world = (struct ring_world){.config = *config, .nodes_count = sim->nodes_max};
    world->config.self.address = sim_address(0);
    world->program = (struct program){
        .name = "ring",
        .state_size = sizeof(struct ring_state),
        .actions_max = ring_actions_max(&world->config) + RING_LIARS_EXTRA_MAX,
        .memory_size = ring_memory_size(&world->config) + RING_LIARS_EXTRA_MAX * STEP_MESSAGE_SIZE_MAX,
        .init = world_program_init,
        .step = world_program_step,
        .done = world_program_done,
    };
    prng_init_stream(&world->prng, sim->seed, 7);
    world->sim = sim_new(sim);
    world->vnodes = calloc(sim->nodes_max, sizeof *world->vnodes);
    world->order = calloc(sim->nodes_max, sizeof *world->order);
    world->members = calloc(sim->nodes_max, sizeof *world->members);
    world->installed = calloc(sim->nodes_max, sizeof *world->installed);
    world->is_installed = calloc(sim->nodes_max, sizeof *world->is_installed);
    if (world->sim == NULL || world->vnodes == NULL || world->order == NULL || world->members == NULL ||
        world->installed == NULL || world->is_installed == NULL) {
        return ERR_MEMORY;
    }
    enum err err = ring_liars_init(&world->liars, &world->config, world->vnodes, world->order,
                                   world->nodes_count, sim->seed);
    return err != ERR_OK ? err : add_nodes(world);
}

void ring_world_done(struct ring_world *world) {
    sim_free(world->sim);
    ring_liars_done(&world->liars);
    free(world->vnodes);
    free(world->order);
    free(world->members);
    free(world->installed);
    free(world->is_installed);
    *world = (struct ring_world){0};
}

void ring_world_install(struct ring_world *world, uint32_t count) {
    world->installed_count = 0;
    for (uint32_t i = 0; i < world->nodes_count; i++) {
        uint32_t node = world->order[i];
        world->is_installed[node] = node < count;
        if (node < count) {
            world->installed[world->installed_count++] = node;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        sim_start_at(world->sim, i, 0);
    }
}

const struct ring *ring_world_ring(const struct ring_world *world, uint32_t node) {
    const struct ring_state *state = sim_state(world->sim, node);
    return state == NULL ? NULL : state->ring;
}

bool ring_world_is_member(const struct ring_world *world, uint32_t node) {
    const struct ring *ring = ring_world_ring(world, node);
    return ring != NULL && ring_is_member(ring, 0);
}

enum err ring_world_join(struct ring_world *world, uint32_t node, uint32_t contact, uint64_t at_us) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct peer peer = {.address = contact == UINT32_MAX ? sim_address(0) : sim_address(contact)};
    struct bytes bytes = ring_write_contacts(&peer, contact == UINT32_MAX ? 0 : 1, memory);
    return sim_command_at(world->sim, node, at_us, RING_JOIN, 0, bytes);
}

enum err ring_world_join_members(struct ring_world *world, uint32_t node, uint64_t at_us) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct peer peers[16];
    size_t count = 0;
    ring_world_list_members(world);
    for (uint32_t i = 0; i < world->members_count && count < 16; i++) {
        peers[count++] = world->vnodes[world->members[i]].peer;
    }
    return sim_command_at(world->sim, node, at_us, RING_JOIN, 0, ring_write_contacts(peers, count, memory));
}

enum err ring_world_find(struct ring_world *world, uint32_t node, struct ring_id key, uint64_t number,
                         uint64_t at_us) {
    uint8_t memory[RING_ID_SIZE + 1];
    for (unsigned i = 0; i < 8; i++) {
        memory[i] = (uint8_t)(key.high >> (56 - 8 * i));
        memory[8 + i] = (uint8_t)(key.low >> (56 - 8 * i));
    }
    memory[RING_ID_SIZE] = 1;
    return sim_command_at(world->sim, node, at_us, RING_FIND, number, bytes_of(memory, sizeof memory));
}

/* ---- checks ---- */

void ring_world_list_members(struct ring_world *world) {
    world->members_count = 0;
    for (uint32_t i = 0; i < world->nodes_count; i++) {
        if (ring_world_is_member(world, world->order[i])) {
            world->members[world->members_count++] = world->order[i];
        }
    }
}

uint32_t ring_world_position(const struct ring_world *world, struct ring_id id) {
    return world_position_of(world, world->members, world->members_count, id);
}

uint32_t ring_world_owner(const struct ring_world *world, struct ring_id key) {
    return world->members[ring_world_position(world, key)];
}

static bool is_live(const struct ring_world *world, const struct vnode *vnode, uint32_t dead) {
    uint32_t node;
    return vnode->peer.address.port != 0 && sim_node_of(world->sim, &vnode->peer.address, &node) &&
           node != dead && ring_world_is_member(world, node);
}

/* The first live entry of the list, or NULL. */
static const struct vnode *live_successor(const struct ring_world *world, uint32_t node, uint32_t dead) {
    const struct ring *ring = ring_world_ring(world, node);
    for (uint8_t i = 0; i < world->config.list_size; i++) {
        const struct vnode *vnode = ring_successor(ring, 0, i);
        if (is_live(world, vnode, dead) && !ring_id_equal(vnode->id, world->vnodes[node].id)) {
            return vnode;
        }
    }
    return NULL;
}

/* Does the list of a node, begun by itself, pass over the given place? */
static bool skips(const struct ring_world *world, uint32_t node, struct ring_id id) {
    const struct ring *ring = ring_world_ring(world, node);
    struct ring_id from = world->vnodes[node].id;
    for (uint8_t i = 0; i < world->config.list_size; i++) {
        struct ring_id to = ring_successor(ring, 0, i)->id;
        if (ring_id_is_between(from, id, to)) {
            return true;
        }
        from = to;
    }
    return false;
}

static uint32_t count_principals(const struct ring_world *world, uint32_t dead) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < world->members_count; i++) {
        bool is_principal = world->members[i] != dead;
        for (uint32_t j = 0; j < world->members_count && is_principal; j++) {
            uint32_t other = world->members[j];
            is_principal = other == dead || !skips(world, other, world->vnodes[world->members[i]].id);
        }
        count += is_principal;
    }
    return count;
}

/*
 * From every member, as many steps as there are members lead into a cycle. It must be the same one for all,
 * and go once round the circle.
 */
static const char *check_cycle(struct ring_world *world, uint32_t dead) {
    uint32_t first = UINT32_MAX;
    for (uint32_t i = 0; i < world->members_count; i++) {
        uint32_t node = world->members[i];
        if (node == dead) {
            continue;
        }
        uint32_t smallest = UINT32_MAX; /* position in order of the smallest ID on the cycle */
        uint32_t turns = 0;
        for (uint32_t step = 0; step < 2 * world->members_count; step++) {
            uint32_t next = node;
            (void)sim_node_of(world->sim, &live_successor(world, node, dead)->peer.address, &next);
            if (step >= world->members_count) {
                bool is_turn = ring_id_compare(world->vnodes[next].id, world->vnodes[node].id) < 0;
                turns += is_turn;
                smallest = is_turn ? next : smallest;
            }
            node = next;
        }
        if (first == UINT32_MAX) {
            first = smallest;
        }
        if (smallest != first) {
            return "safety: two rings";
        }
        /* members_count steps on a cycle of m <= members_count places: once round each m steps */
        if (turns > world->members_count) {
            return "safety: the ring is not in order";
        }
    }
    return NULL;
}

const char *ring_world_check(struct ring_world *world, uint32_t dead, bool with_principals) {
    ring_world_list_members(world);
    for (uint32_t i = 0; i < world->members_count; i++) {
        if (world->members[i] != dead && live_successor(world, world->members[i], dead) == NULL) {
            return "safety: a member has no live successor";
        }
    }
    if (with_principals && count_principals(world, dead) < world->config.list_size + 1u) {
        return "safety: fewer principals than r + 1";
    }
    return check_cycle(world, dead);
}

/* Clockwise, each place once; behind our own place, which ends it, only padding. */
const char *ring_world_check_node(const struct ring_world *world, uint32_t node) {
    const struct ring *ring = ring_world_ring(world, node);
    if (ring == NULL || ring_mode(ring) != RING_CHORD || !ring_is_member(ring, 0)) {
        return NULL;
    }
    if (vnode_is_padding(ring_predecessor(ring, 0))) {
        return "safety: a member without a predecessor";
    }
    struct ring_id self = world->vnodes[node].id;
    struct ring_id last = {0};
    bool is_round = false;
    for (uint8_t i = 0; i < world->config.list_size; i++) {
        const struct vnode *vnode = ring_successor(ring, 0, i);
        struct ring_id distance = ring_id_distance(self, vnode->id);
        is_round |= ring_id_equal(vnode->id, self);
        bool is_in_order = ring_id_compare(distance, last) > 0;
        if (is_round ? !ring_id_equal(vnode->id, self) && !vnode_is_padding(vnode) : !is_in_order) {
            return "safety: a successor list is not in order";
        }
        last = distance;
    }
    return NULL;
}

const char *ring_world_check_ideal(struct ring_world *world, uint32_t *ret_node) {
    ring_world_list_members(world);
    uint32_t count = world->members_count;
    for (uint32_t i = 0; i < world->nodes_count; i++) {
        *ret_node = i;
        if (sim_status(world->sim, i) == SIM_UP && !ring_world_is_member(world, i)) {
            return "liveness: a node has not joined";
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t node = world->members[i];
        *ret_node = node;
        const struct ring *ring = ring_world_ring(world, node);
        uint32_t before = world->members[(i + count - 1) % count];
        if (!ring_id_equal(ring_predecessor(ring, 0)->id, world->vnodes[before].id)) {
            return "liveness: a predecessor is not the one before";
        }
        for (uint8_t j = 0; j < world->config.list_size && j + 1u < count; j++) {
            uint32_t behind = world->members[(i + 1 + j) % count];
            if (!ring_id_equal(ring_successor(ring, 0, j)->id, world->vnodes[behind].id)) {
                return "liveness: a list is not that of the ideal ring";
            }
        }
    }
    return NULL;
}

enum err ring_world_settle(struct ring_world *world, uint64_t step_us, uint64_t at_most_us,
                           uint64_t *ret_took_us) {
    uint64_t start_us = sim_now_us(world->sim);
    enum err err = ERR_OK;
    while (err == ERR_OK) {
        uint32_t node;
        const char *reason = ring_world_check_ideal(world, &node);
        *ret_took_us = sim_now_us(world->sim) - start_us;
        if (reason == NULL) {
            break;
        }
        if (*ret_took_us > at_most_us) {
            sim_fail(world->sim, node, reason);
            return ERR_MISMATCH;
        }
        err = sim_run_until(world->sim, sim_now_us(world->sim) + step_us);
    }
    return err;
}
