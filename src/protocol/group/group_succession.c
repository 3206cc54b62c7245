/*
 * Is the master there, and who follows it?
 *
 * The master sends a signed pulse over the topology. Who has not heard of it for half of master_silence_us
 * asks it directly. After master_silence_us, the later the farther down in the topology, a member asks all
 * others whether they are there, and opens a new term if it hears nobody who comes before it, and more than
 * half of those who are not the master: so of a group that is cut in two at most the greater part gets
 * another master, and one member that is cut off does not come back as master of all.
 *
 *      term        round (24 bits) | 255 - position of the one who opened it (8 bits)
 *
 * Equal terms of two masters would need two topologies of one version.
 */
#include "protocol/group/group_state.h"

enum {
    POSITION_BITS = 8,
    ROUND_MAX = (1 << 24) - 1,
    POLL_US = 5000000,
    ASKS = 8,  /* in a silence */
    POLLS = 4, /* in a silence */
};

uint32_t group_succession_term(uint32_t term_before, uint32_t position) {
    uint32_t round = (term_before >> POSITION_BITS) + 1;
    return round << POSITION_BITS | (GROUP_MEMBERS_MAX - 1 - position);
}

void group_succession_begin(struct group *group, bool is_heard) {
    struct group_succession *succession = &group->succession;
    succession->heard_at_us = is_heard ? group->now_us : 0;
    succession->wait_from_us = group->now_us;
    succession->ask_at_us = group->now_us;
    succession->poll_at_us = group->now_us;
    succession->polled_at_us = 0;
    succession->holds = group->version;
}

void group_succession_heard(struct group *group, struct group_version held) {
    struct group_succession *succession = &group->succession;
    succession->heard_at_us = group->now_us;
    succession->wait_from_us = group->now_us;
    succession->polled_at_us = 0;
    succession->holds = held;
}

/* A little earlier than somebody takes over: clocks and ways differ. Who has just begun has heard nobody. */
bool group_succession_is_missed(const struct group *group) {
    const struct group_succession *succession = &group->succession;
    return succession->heard_at_us == 0 ||
           group->now_us - succession->heard_at_us >= group->config.master_silence_us / 4 * 3;
}

/* ---- the next master ---- */

/* Us first, the others as they were, the old master last. */
static void order_draft(struct group *group, uint32_t *ret_places) {
    const struct topology *topology = group->topology;
    struct topology *draft = group->draft;
    uint32_t count = 0;
    draft->k = topology->k;
    draft->members[count] = topology->members[group->position];
    ret_places[group->position] = count++;
    for (uint32_t i = 1; i < topology->members_count; i++) {
        if (i != group->position) {
            draft->members[count] = topology->members[i];
            ret_places[i] = count++;
        }
    }
    draft->members[count] = topology->members[0];
    ret_places[0] = count++;
    draft->members_count = count;
}

/* The same edges: a new master knows no better ones yet. */
static bool draw_draft(struct group *group, const uint32_t *places) {
    struct graph *graph = group->master.graph;
    struct costs *costs = group->master.next_costs;
    graph_init(graph, group->draft->members_count);
    costs_init(costs, group->draft->members_count);
    for (uint32_t i = 0; i < group->topology->edges_count; i++) {
        const struct topology_edge *edge = &group->topology->edges[i];
        graph_join(graph, places[edge->a], places[edge->b]);
        costs_set(costs, places[edge->a], places[edge->b], edge->cost_us);
    }
    return topology_set_edges(group->draft, graph, costs) == ERR_OK;
}

void group_succession_claim(struct group *group) {
    uint32_t places[GROUP_MEMBERS_MAX];
    if (group->mode != GROUP_MEMBER || group->position == 0 ||
        group->version.term >> POSITION_BITS >= ROUND_MAX) {
        return;
    }
    uint32_t term = group_succession_term(group->version.term, group->position);
    order_draft(group, places);
    if (draw_draft(group, places)) {
        group_document_publish(group, term, (uint64_t)group->version.sequence + 1);
    }
}

static void open_poll(struct group *group) {
    struct group_succession *succession = &group->succession;
    succession->poll_number = prng_u64(&group->prng) | 1;
    succession->polled_at_us = group->now_us;
    succession->poll_at_us = group->now_us + group->config.master_silence_us / POLLS;
    struct group_message message = {.kind = GROUP_MESSAGE_ECHO, .number = succession->poll_number};
    for (uint32_t i = 0; i < group->topology->members_count; i++) {
        if (i != group->position) {
            group_send(group, &group->topology->members[i], &message);
        }
    }
}

/* An earlier one who is there misses the master, too, or will: it is his turn. */
static void close_poll(struct group *group) {
    uint32_t count = 1; /* us */
    bool is_our_turn = true;
    for (uint32_t i = 1; i < group->topology->members_count; i++) {
        bool is_there =
            i != group->position && group->members[i].heard_at_us > group->succession.polled_at_us;
        count += is_there;
        is_our_turn = is_our_turn && !(is_there && i < group->position);
    }
    group->succession.polled_at_us = 0;
    if (is_our_turn && 2 * count > group->topology->members_count - 1) {
        group_succession_claim(group);
    }
}

static void tick_member(struct group *group) {
    struct group_succession *succession = &group->succession;
    const struct group_config *config = &group->config;
    uint64_t half_at_us = succession->wait_from_us + config->master_silence_us / 2;
    uint64_t turn_at_us =
        succession->wait_from_us + config->master_silence_us + (group->position - 1) * config->order_us;
    if (group->now_us >= half_at_us && group->now_us >= succession->ask_at_us) {
        succession->ask_at_us = group->now_us + config->master_silence_us / ASKS;
        group_measure_ask(group, group_master(group));
    }
    if (succession->polled_at_us != 0 && group->now_us >= succession->polled_at_us + POLL_US) {
        close_poll(group);
    } else if (succession->polled_at_us == 0 && group->now_us >= turn_at_us &&
               group->now_us >= succession->poll_at_us) { /* one at a time, however short the periods are */
        open_poll(group);
    }
    if (group_is_master(group)) {
        return;
    }
    outbox_wake_at(group->out, half_at_us > succession->ask_at_us ? half_at_us : succession->ask_at_us);
    if (succession->polled_at_us != 0) {
        outbox_wake_at(group->out, succession->polled_at_us + POLL_US);
    } else {
        outbox_wake_at(group->out, turn_at_us > succession->poll_at_us ? turn_at_us : succession->poll_at_us);
    }
}

/* ---- pulses ---- */

/* With each, one who was lost is asked whether he is there again, perhaps with a master of his own. */
static void tick_master(struct group *group) {
    struct group_mastership *master = &group->master;
    const struct group_signer *signer = &group->config.signer;
    if (group->now_us >= master->pulse_at_us) {
        uint8_t memory[GROUP_PULSE_SIZE];
        struct group_message message = {.kind = GROUP_MESSAGE_PULSE, .version = group->version};
        master->pulse_at_us = group->now_us + group_spread(group, group->config.pulse_us);
        master->beat =
            group_version_compare(master->beat_version, group->version) == 0 ? master->beat + 1 : 1;
        master->beat_version = group->version;
        message.beat = master->beat;
        signer->sign(signer->context,
                     group_message_pulse(group->config.id, message.version, message.beat, memory),
                     message.signature);
        group_send_neighbours(group, NULL, &message);
        const struct peer *former = group_pick_former(group);
        if (former != NULL) {
            group_measure_ask(group, former);
        }
    }
    outbox_wake_at(group->out, master->pulse_at_us);
}

void group_succession_on_pulse(struct group *group, const struct event *event,
                               const struct group_message *message) {
    struct group_mastership *master = &group->master;
    const struct group_signer *signer = &group->config.signer;
    struct peer from = event_sender(event);
    uint8_t memory[GROUP_PULSE_SIZE];
    int compared = group_version_compare(message->version, master->beat_version);
    bool is_old = compared < 0 || (compared == 0 && message->beat <= master->beat);
    if (group_is_master(group) || is_old || message->version.term != group->version.term) {
        return; /* once round, or of a master whom we do not follow */
    }
    if (!signer->verify(signer->context, group_master(group)->key,
                        group_message_pulse(group->config.id, message->version, message->beat, memory),
                        message->signature)) {
        group->counters.forged_count++;
        group_blame(group, event, "a pulse with a false signature");
        return;
    }
    master->beat_version = message->version;
    master->beat = message->beat;
    group_succession_heard(group, message->version);
    struct group_message pulse = *message;
    group_send_neighbours(group, &from, &pulse);
}

void group_succession_tick(struct group *group) {
    if (group->mode != GROUP_MEMBER) {
        return;
    }
    if (!group_is_master(group)) {
        tick_member(group);
    }
    if (group_is_master(group)) {
        tick_master(group);
    }
}
