#include "sim/experiments/crowd_world.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/wire.h"
#include "protocol/crowd/crowd.h"

enum { WISH_SIZE = 8 };

struct crowd_state {
    struct crowd *crowd;
    struct crowd_world *world;
    uint32_t index;
};

/* ---- nodes ---- */

static struct peer world_peer_of(uint32_t node) {
    return (struct peer){.address = sim_address(node)};
}

static enum err crowd_world_program_init(void *memory, const struct birth *birth) {
    struct crowd_state *state = memory;
    struct crowd_world *world = birth->config;
    struct crowd_config config = world->config;
    config.self = (struct peer){.address = birth->address};
    config.seed = birth->seed;
    config.part = world->parts[birth->index];
    if (birth->index == 0 && world->eager_searches_max != 0) {
        config.searches_max = world->eager_searches_max;
    }
    state->world = world;
    state->index = birth->index;
    enum err err = crowd_new(&config, &state->crowd);
    if (err != ERR_OK) {
        return err;
    }
    struct peer peers[CROWD_VIEW_MAX];
    const uint32_t *view = &world->views[(size_t)birth->index * config.view_size];
    for (size_t i = 0; i < world->view_counts[birth->index]; i++) {
        peers[i] = world_peer_of(view[i]);
    }
    crowd_install_for_experiment(state->crowd, peers, world->view_counts[birth->index]);
    return ERR_OK;
}

/* A command to the same crowd, in the same moment, behind what its step has already appended. */
static void world_tell(struct crowd_state *state, const struct event *event, enum crowd_command command,
                       uint64_t number, struct bytes bytes, struct outbox *out) {
    struct event told = {
        .kind = EVENT_COMMAND, .code = command, .number = number, .now_us = event->now_us, .bytes = bytes};
    out->wake_at_us = STEP_NEVER_US; /* stated anew */
    crowd_step(state->crowd, &told, out);
}

static struct bytes write_contacts(struct crowd_world *world, uint32_t node, uint8_t *memory) {
    struct peer peers[CROWD_CONTACTS_MAX];
    uint32_t order[CROWD_WORLD_LIST_SIZE] = {0};
    size_t count = 0;
    for (uint32_t i = 0; i < world->list_count; i++) {
        uint32_t other = (uint32_t)prng_below(&world->prng, i + 1);
        order[i] = order[other];
        order[other] = world->list[i];
    }
    for (uint32_t i = 0; i < world->list_count && count < CROWD_CONTACTS_MAX; i++) {
        if (order[i] != node) {
            peers[count++] = world_peer_of(order[i]);
        }
    }
    return crowd_write_contacts(peers, count, memory);
}

static bool gives_object(const struct crowd_state *state, uint64_t now_us) {
    const struct crowd_world *world = state->world;
    const struct crowd_world_search *search = &world->searches[state->index];
    bool is_on_its_way =
        search->found == CROWD_WORLD_FOUND && now_us < search->ended_at_us + world->transfer_us;
    bool is_withheld = world->is_withheld_by_tunnels && world->parts[state->index] == CROWD_TUNNEL;
    return world->has_object[state->index] && !is_on_its_way && !is_withheld;
}

static void world_answer(struct crowd_state *state, const struct event *event, struct wire_reader *notice,
                         struct outbox *out) {
    static const uint8_t finding[1] = {1};
    uint64_t number = wire_read_u64(notice);
    bool is_there = wire_read_u64(notice) == CROWD_WORLD_OBJECT && gives_object(state, event->now_us);
    world_tell(state, event, is_there ? CROWD_HAVE : CROWD_HAVE_NOT, number,
               bytes_of(finding, is_there ? 1 : 0), out);
}

/* Returns whether this search of ours ends with that; further findings say nothing new. */
static bool end_search(struct crowd_state *state, const struct event *event, enum crowd_world_found found,
                       uint64_t number) {
    struct crowd_world_search *search = &state->world->searches[state->index];
    if (search->number != number || search->found != CROWD_WORLD_OPEN) {
        return false;
    }
    search->found = found;
    search->ended_at_us = event->now_us;
    return true;
}

static void take_found(struct crowd_state *state, const struct event *event, struct wire_reader *notice,
                       struct outbox *out) {
    struct crowd_world *world = state->world;
    uint64_t number = wire_read_u64(notice);
    uint8_t hops = wire_read_u8(notice);
    if (!end_search(state, event, CROWD_WORLD_FOUND, number)) {
        return;
    }
    world->searches[state->index].hops = hops;
    world->has_object[state->index] |= world->keeps_found;
    world_tell(state, event, CROWD_ENOUGH, number, (struct bytes){0}, out);
}

static void take_lost(struct crowd_state *state, const struct event *event, struct wire_reader *notice) {
    end_search(state, event, CROWD_WORLD_LOST, wire_read_u64(notice));
}

static void join_again(struct crowd_state *state, const struct event *event, struct outbox *out) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    if (state->world->joins_again) {
        world_tell(state, event, CROWD_JOIN, 0, write_contacts(state->world, state->index, memory), out);
    }
}

static void take_notice(struct crowd_state *state, const struct event *event, const struct action *action,
                        struct outbox *out) {
    struct wire_reader reader;
    wire_reader_init(&reader, action->bytes);
    switch ((enum crowd_notice)action->code) {
    case CROWD_ASKED:
        world_answer(state, event, &reader, out);
        break;
    case CROWD_FOUND:
        take_found(state, event, &reader, out);
        break;
    case CROWD_LOST:
        take_lost(state, event, &reader);
        break;
    case CROWD_ALONE:
        join_again(state, event, out);
        break;
    case CROWD_BLAMED:
        break;
    }
}

/* What is not acknowledged is sent to somebody else. */
static bool drops(struct crowd_state *state, const struct event *event, struct outbox *out) {
    struct crowd_world *world = state->world;
    struct crowd_message message;
    if (world->drop_ppm == 0 || event->kind != EVENT_MESSAGE ||
        crowd_message_read(event->bytes, world->config.network, &message) != CROWD_MESSAGE_GOOD ||
        message.kind != CROWD_MESSAGE_QUERY || !prng_chance_ppm(&world->prng, world->drop_ppm)) {
        return false;
    }
    world->dropped_count++;
    if (world->is_drop_acknowledged) {
        uint8_t memory[STEP_MESSAGE_SIZE_MAX];
        message.kind = CROWD_MESSAGE_ACK;
        outbox_send(out, &event->from, crowd_message_write(&message, world->config.network, memory));
    }
    return true;
}

/* What a command appends may be a notice again: the loop sees it, too. */
static void crowd_world_program_step(void *memory, const struct event *event, struct outbox *out) {
    struct crowd_state *state = memory;
    if (drops(state, event, out)) {
        crowd_step(state->crowd, &(struct event){.kind = EVENT_WAKE, .now_us = event->now_us}, out);
    } else {
        crowd_step(state->crowd, event, out);
    }
    for (size_t i = 0; i < out->actions_count; i++) {
        if (out->actions[i].kind == ACTION_NOTICE) {
            struct action action = out->actions[i];
            take_notice(state, event, &action, out);
        }
    }
    if (state->world->is_joining[state->index]) {
        struct crowd_neighbour view[CROWD_VIEW_MAX];
        state->world->is_joining[state->index] = crowd_neighbours(state->crowd, view) == 0;
    }
}

static void crowd_world_program_done(void *memory) {
    struct crowd_state *state = memory;
    crowd_free(state->crowd);
}

/* ---- the world ---- */

/* Each notice of a step may lead to one more step. */
static struct program make_program(const struct crowd_config *config) {
    size_t actions_max = crowd_actions_max(config) * (1 + crowd_actions_max(config));
    return (struct program){
        .name = "crowd",
        .state_size = sizeof(struct crowd_state),
        .actions_max = actions_max,
        .memory_size = actions_max * STEP_MESSAGE_SIZE_MAX,
        .init = crowd_world_program_init,
        .step = crowd_world_program_step,
        .done = crowd_world_program_done,
    };
}

enum err crowd_world_init(struct crowd_world *world, const struct sim_config *sim,
                          const struct crowd_config *config) {
    *world = (struct crowd_world){.config = *config, .nodes_count = sim->nodes_max};
    world->config.self = world_peer_of(0);
    world->config.view_size = config->view_size == 0 ? 25 : config->view_size;
    world->program = make_program(&world->config);
    prng_init_stream(&world->prng, sim->seed, 7);
    size_t count = sim->nodes_max;
    world->sim = sim_new(sim);
    world->parts = calloc(count, sizeof *world->parts);
    world->has_object = calloc(count, sizeof *world->has_object);
    world->is_joining = calloc(count, sizeof *world->is_joining);
    world->searches = calloc(count, sizeof *world->searches);
    world->views = calloc(count * world->config.view_size, sizeof *world->views);
    world->view_counts = calloc(count, sizeof *world->view_counts);
    if (world->sim == NULL || world->parts == NULL || world->has_object == NULL ||
        world->is_joining == NULL || world->searches == NULL || world->views == NULL ||
        world->view_counts == NULL) {
        return ERR_MEMORY;
    }
    memset(world->parts, (int)config->part, count);
    return sim_add_all(world->sim, &world->program, world);
}

void crowd_world_done(struct crowd_world *world) {
    sim_free(world->sim);
    free(world->parts);
    free(world->has_object);
    free(world->is_joining);
    free(world->searches);
    free(world->views);
    free(world->view_counts);
    *world = (struct crowd_world){0};
}

/* ---- how nodes come to their first neighbours ---- */

void crowd_world_set_view(struct crowd_world *world, uint32_t node, const uint32_t *neighbours,
                          size_t count) {
    ASSERT(node < world->nodes_count && count <= world->config.view_size);
    world->view_counts[node] = (uint8_t)count;
    if (count > 0) {
        memcpy(&world->views[(size_t)node * world->config.view_size], neighbours, count * sizeof *neighbours);
    }
}

static bool world_is_among(uint32_t node, const uint32_t *nodes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (nodes[i] == node) {
            return true;
        }
    }
    return false;
}

void crowd_world_install(struct crowd_world *world, uint32_t count) {
    uint32_t wanted = count - 1 < world->config.view_size ? count - 1 : world->config.view_size;
    for (uint32_t node = 0; node < count; node++) {
        uint32_t view[CROWD_VIEW_MAX];
        for (uint32_t i = 0; i < wanted;) {
            view[i] = (uint32_t)prng_below(&world->prng, count);
            i += view[i] != node && !world_is_among(view[i], view, i);
        }
        crowd_world_set_view(world, node, view, wanted);
        sim_start_at(world->sim, node, 0);
    }
}

/* The newest is last; a node that was on it moves there. */
static void enter_list(struct crowd_world *world, uint32_t node) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < world->list_count; i++) {
        if (world->list[i] != node) {
            world->list[kept++] = world->list[i];
        }
    }
    if (kept == CROWD_WORLD_LIST_SIZE) {
        memmove(&world->list[0], &world->list[1], (kept - 1) * sizeof world->list[0]);
        kept--;
    }
    world->list[kept++] = node;
    world->list_count = kept;
}

static void give_list(struct crowd_world *world, uint32_t node) {
    uint32_t view[CROWD_VIEW_MAX];
    size_t count = 0;
    for (uint32_t i = world->list_count; i > 0 && count < world->config.view_size; i--) {
        if (world->list[i - 1] != node) {
            view[count++] = world->list[i - 1];
        }
    }
    crowd_world_set_view(world, node, view, count);
}

enum err crowd_world_come(struct crowd_world *world, uint32_t node) {
    enum err err = ERR_OK;
    if (world->gives_views) {
        give_list(world, node);
    }
    sim_start_at(world->sim, node, sim_now_us(world->sim));
    if ((!world->gives_views || world->joins_as_well) && world->list_count > 0) {
        world->is_joining[node] = !world->gives_views;
        uint8_t memory[STEP_MESSAGE_SIZE_MAX];
        err = sim_command_at(world->sim, node, sim_now_us(world->sim), CROWD_JOIN, 0,
                             write_contacts(world, node, memory));
    }
    enter_list(world, node);
    return err;
}

/* ---- searches ---- */

enum err crowd_world_find(struct crowd_world *world, uint32_t node, uint64_t object, uint64_t number,
                          uint64_t at_us) {
    uint8_t memory[WISH_SIZE];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_u64(&writer, object);
    uint64_t now_us = sim_now_us(world->sim);
    world->searches[node] =
        (struct crowd_world_search){.number = number, .asked_at_us = at_us > now_us ? at_us : now_us};
    return sim_command_at(world->sim, node, at_us, CROWD_FIND, number, bytes_of(memory, sizeof memory));
}

/* ---- looking ---- */

const struct crowd *crowd_world_crowd(const struct crowd_world *world, uint32_t node) {
    const struct crowd_state *state = sim_state(world->sim, node);
    return state == NULL ? NULL : state->crowd;
}

bool crowd_world_is_member(const struct crowd_world *world, uint32_t node) {
    return crowd_world_crowd(world, node) != NULL && !world->is_joining[node];
}
