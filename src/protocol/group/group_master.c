/* What the master does: which nodes are in, what the reports say, and the topology that follows from both. */
#include "protocol/group/group_state.h"

/*
 * Is the master there, and which member succeeds it?
 *
 * The master sends a signed pulse over the topology. Whoever has not heard of it for half of
 * master_silence_us asks it directly. After master_silence_us, the later the farther down in the topology, a
 * member asks all others whether they are there, and opens a new term if it hears none that comes before it,
 * and more than half of those that are not the master: so of a group that is cut in two at most the greater
 * part gets another master, and one member that is cut off does not come back as master of all.
 *
 *      term        round (24 bits) | 255 - position of the one that opened it (8 bits)
 *
 * Equal terms of two masters would need two topologies of one version.
 */

enum {
    POSITION_BITS = 8,
    ROUND_MAX = (1 << 24) - 1,
    POLL_US = 5000000,
    ASKS = 8,  /* in a silence */
    POLLS = 4, /* in a silence */
};

/* The term that the member at this position opens after that one. */
static uint32_t group_succession_term(uint32_t term_before, uint32_t position) {
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

/* A little earlier than somebody takes over: clocks and ways differ. Whoever has just begun has heard nobody.
 */
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

/* An earlier one that is there misses the master, too, or will: it is that one's turn. */
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

/* With each, a member that was lost is asked whether it is there again, perhaps with a master of its own. */
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
        return; /* once round, or of a master that we do not follow */
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

enum { LOOKS = 16 }; /* for silent members, in a silence */

/* ---- the next topology ---- */

/* If the members of `draft` were before. */
struct origins {
    uint32_t of[GROUP_MEMBERS_MAX];
};

static void master_add_member(struct group *group, const struct peer *peer, uint32_t origin,
                              struct origins *origins) {
    struct topology *draft = group->draft;
    origins->of[draft->members_count] = origin;
    draft->members[draft->members_count++] = *peer;
}

static void gather_members(struct group *group, bool with_self, struct origins *origins) {
    const struct group_mastership *master = &group->master;
    const struct topology *topology = group->topology;
    group->draft->members_count = 0;
    group->draft->edges_count = 0;
    group->draft->k = group->config.connectivity;
    for (uint32_t i = with_self ? 0 : 1; i < topology->members_count; i++) {
        if (!master->is_leaving[i]) {
            master_add_member(group, &topology->members[i], i, origins);
        }
    }
    for (uint32_t i = 0; i < master->arrivals_count; i++) {
        master_add_member(group, &master->arrivals[i], GROUP_NOWHERE, origins);
    }
}

/* What is known of pairs that stay, and what we know ourselves. */
static void carry_costs(struct group *group, const struct origins *origins) {
    const struct costs *before = group->master.costs;
    struct costs *next = group->master.next_costs;
    uint32_t count = group->draft->members_count;
    costs_init(next, count);
    for (uint32_t a = 0; a < count; a++) {
        for (uint32_t b = 0; b < count && origins->of[a] != GROUP_NOWHERE; b++) {
            if (a == b || origins->of[b] == GROUP_NOWHERE) {
                continue;
            }
            uint32_t cost_us = before->us[origins->of[a]][origins->of[b]];
            if (origins->of[a] == 0) {
                const struct estimate *estimate = &group->members[origins->of[b]].estimate;
                cost_us = estimate_is_known(estimate) ? estimate_cost_us(estimate, ESTIMATE_SIZE_REFERENCE)
                                                      : cost_us;
            }
            costs_set(next, a, b, cost_us);
        }
    }
}

static bool make_draft(struct group *group, bool with_self) {
    struct group_mastership *master = &group->master;
    struct topology_rules rules = {.kind = group->config.kind, .k = group->config.connectivity};
    struct origins origins;
    gather_members(group, with_self, &origins);
    carry_costs(group, &origins);
    topology_make(&rules, master->next_costs, master->work, master->graph);
    group->counters.computed_count++;
    return topology_set_edges(group->draft, master->graph, master->next_costs) == ERR_OK;
}

static void master_publish(struct group *group) {
    struct group_mastership *master = &group->master;
    struct costs *costs = master->costs;
    master->costs = master->next_costs;
    master->next_costs = costs;
    master->arrivals_count = 0;
    master->has_new_rules = false;
    memset(master->is_leaving, 0, GROUP_MEMBERS_MAX * sizeof *master->is_leaving);
    group_document_publish(group, group->version.term, (uint64_t)group->version.sequence + 1);
}

static bool is_measured(const struct topology *topology) {
    bool is_known = true;
    for (uint32_t i = 0; i < topology->edges_count && is_known; i++) {
        is_known = topology->edges[i].cost_us != COSTS_UNKNOWN_US;
    }
    return is_known;
}

/* The edges that hold with what they cost, if some were not measured when they were chosen: in the draft.
 */
static bool fill_costs(struct group *group) {
    struct group_mastership *master = &group->master;
    if (is_measured(group->topology) || group->draft->members_count != group->topology->members_count) {
        return false;
    }
    topology_get_graph(group->topology, master->graph);
    return topology_set_edges(group->draft, master->graph, master->next_costs) == ERR_OK &&
           is_measured(group->draft);
}

static void compute(struct group *group) {
    struct group_mastership *master = &group->master;
    struct topology_rules rules = {.kind = group->config.kind, .k = group->config.connectivity};
    master->compute_at_us = group->now_us + group_spread(group, group->config.compute_us);
    if (make_draft(group, true) &&
        (master->has_new_rules ||
         topology_is_better(group->draft, group->topology, &rules, master->next_costs) ||
         fill_costs(group))) {
        master_publish(group);
    }
}

static void compute_soon(struct group *group) {
    uint64_t at_us = group->now_us + group->config.gather_us;
    if (at_us < group->master.compute_at_us) {
        group->master.compute_at_us = at_us;
    }
}

/* ---- beginning and end ---- */

void group_master_create(struct group *group) {
    struct topology *draft = group->draft;
    if (group->mode != GROUP_IDLE) {
        return;
    }
    draft->k = group->config.connectivity;
    draft->members_count = 1;
    draft->members[0] = group->config.self;
    draft->edges_count = 0;
    group_document_publish(group, group_succession_term(0, 0), 1);
}

/* Until reports come, the costs of the edges are what is known. */
void group_master_begin(struct group *group) {
    struct group_mastership *master = &group->master;
    const struct topology *topology = group->topology;
    costs_init(master->costs, topology->members_count);
    for (uint32_t i = 0; i < topology->edges_count; i++) {
        const struct topology_edge *edge = &topology->edges[i];
        costs_set(master->costs, edge->a, edge->b, edge->cost_us);
    }
    for (uint32_t i = 0; i < topology->members_count; i++) {
        group->members[i].known_at_us = group->now_us; /* nobody told us before */
    }
    memset(master->is_leaving, 0, GROUP_MEMBERS_MAX * sizeof *master->is_leaving);
    master->arrivals_count = 0;
    master->compute_at_us = group->now_us + group_spread(group, group->config.compute_us);
    master->look_at_us = group->now_us;
    master->pulse_at_us = group->now_us + group_spread(group, group->config.pulse_us);
}

/* The last topology of a master that leaves has the next one in its first place. */
void group_master_hand_over(struct group *group) {
    if (make_draft(group, false)) {
        master_publish(group);
    }
}

/* ---- which nodes are in ---- */

static void drop_silent(struct group *group) {
    struct group_mastership *master = &group->master;
    for (uint32_t i = 1; i < group->topology->members_count; i++) {
        bool is_silent = group->now_us - group->members[i].known_at_us >= group->config.silence_us;
        if (is_silent && !master->is_leaving[i]) {
            master->is_leaving[i] = true;
            group->counters.dropped_count++;
            compute_soon(group);
        }
    }
}

static bool is_arriving(const struct group *group, const struct peer *who) {
    for (uint32_t i = 0; i < group->master.arrivals_count; i++) {
        if (memcmp(group->master.arrivals[i].key, who->key, PEER_KEY_SIZE) == 0 ||
            address_equal(&group->master.arrivals[i].address, &who->address)) {
            return true;
        }
    }
    return false;
}

/* An address has one member, as a key has: another one in the way goes. */
static void master_make_room(struct group *group, const struct peer *who) {
    for (uint32_t i = 1; i < group->topology->members_count; i++) {
        const struct peer *member = &group->topology->members[i];
        if (memcmp(member->key, who->key, PEER_KEY_SIZE) == 0 ||
            address_equal(&member->address, &who->address)) {
            group->master.is_leaving[i] = true;
        }
    }
}

static void master_refuse(struct group *group, const struct peer *who) {
    struct group_message message = {.kind = GROUP_MESSAGE_REFUSED};
    group_send(group, who, &message);
}

static void admit(struct group *group, const struct peer *who) {
    struct group_mastership *master = &group->master;
    uint32_t position = group_find(group, who);
    if (position != GROUP_NOWHERE && !master->is_leaving[position]) {
        group_flood_to(group, who); /* it has lost it */
        return;
    }
    if (is_arriving(group, who)) {
        return;
    }
    if (group->topology->members_count + master->arrivals_count >= group->config.members_max ||
        address_equal(&who->address, &group->config.self.address)) {
        master_refuse(group, who);
        return;
    }
    master_make_room(group, who);
    group_keys_remove(&master->left, who->key);
    group_keys_remove(&master->approved, who->key);
    master->arrivals[master->arrivals_count++] = *who;
    compute_soon(group);
}

void group_master_on_request(struct group *group, const struct peer *who, struct bytes papers) {
    struct group_mastership *master = &group->master;
    if (group_keys_has(&master->refused, who->key)) {
        master_refuse(group, who);
    } else if (group->config.is_open || group_keys_has(&master->approved, who->key) ||
               group_is_former(group, who->key) || group_find(group, who) != GROUP_NOWHERE) {
        admit(group, who);
    } else {
        master->asked[master->asked_next++ % GROUP_ASKED_MAX] = *who;
        group_notice_peer(group, GROUP_ASKED, who, papers);
    }
}

static struct peer read_peer(struct bytes bytes) {
    struct wire_reader reader;
    struct peer peer;
    wire_reader_init(&reader, bytes);
    peer_read(&reader, PEER_MEMBER, &peer);
    ASSERT(reader.err == ERR_OK);
    return peer;
}

static bool has_asked(const struct group *group, const struct peer *who) {
    for (unsigned i = 0; i < GROUP_ASKED_MAX; i++) {
        if (peer_equal(&group->master.asked[i], who)) {
            return true;
        }
    }
    return false;
}

void group_master_approve(struct group *group, struct bytes bytes) {
    struct peer who = read_peer(bytes);
    group_keys_remove(&group->master.refused, who.key);
    group_keys_add(&group->master.approved, who.key);
    if (group_is_master(group) && has_asked(group, &who)) {
        admit(group, &who);
    }
}

void group_master_refuse(struct group *group, struct bytes bytes) {
    struct peer who = read_peer(bytes);
    group_keys_remove(&group->master.approved, who.key);
    group_keys_add(&group->master.refused, who.key);
    if (!group_is_master(group)) {
        return;
    }
    uint32_t position = group_find_key(group->topology, who.key);
    if (position != GROUP_NOWHERE && position != 0) {
        group_keys_add(&group->master.left, who.key);
        group->master.is_leaving[position] = true;
        compute_soon(group);
    } else if (has_asked(group, &who)) {
        master_refuse(group, &who);
    }
}

/* A node that waits to be let in asks again by itself. */
void group_master_set_rules(struct group *group, struct bytes bytes) {
    struct group_config *config = &group->config;
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    bool is_open = wire_read_bool(&reader);
    enum topology_kind kind = (enum topology_kind)wire_read_u8_max(&reader, TOPOLOGY_TREE);
    uint8_t connectivity = wire_read_u8_max(&reader, TOPOLOGY_K_MAX);
    ASSERT(reader.err == ERR_OK && connectivity > 0);
    config->is_open = is_open;
    if (kind != config->kind || connectivity != config->connectivity) {
        config->kind = kind;
        config->connectivity = connectivity;
        group->master.has_new_rules = true;
        compute_soon(group);
    }
}

void group_master_on_leave(struct group *group, const struct event *event,
                           const struct group_message *message) {
    struct peer who = event_sender(event);
    if (!group_is_master(group)) {
        return; /* it asks again when it knows the master */
    }
    uint32_t position = group_find(group, &who);
    ASSERT(position != GROUP_NOWHERE && position != 0);
    group_answer(group, event, GROUP_MESSAGE_LEFT, message->number);
    group_keys_add(&group->master.left, who.key);
    group->master.is_leaving[position] = true;
    compute_soon(group);
}

/* ---- reports ---- */

/* Positions are those of the topology that it holds, so it must be ours. */
static void note_heard(struct group *group, const struct group_message *message) {
    if (group_version_compare(message->held, group->version) != 0 ||
        message->heard.size != group->topology->members_count) {
        return;
    }
    for (uint32_t i = 0; i < group->topology->members_count; i++) {
        uint64_t age_us = group_message_read_age_us(message->heard.data[i]);
        uint64_t at_us = age_us < group->now_us ? group->now_us - age_us : 0;
        if (message->heard.data[i] != GROUP_AGE_NEVER && at_us > group->members[i].known_at_us) {
            group->members[i].known_at_us = at_us;
        }
    }
}

void group_master_on_report(struct group *group, const struct event *event,
                            const struct group_message *message) {
    struct peer from = event_sender(event);
    uint32_t position = group_find(group, &from);
    struct estimate_entry entries[GROUP_MEMBERS_MAX];
    size_t count = 0;
    if (!group_is_master(group)) {
        return;
    }
    if (estimate_read_report(message->estimates, group->now_us, entries, &count) != ERR_OK) {
        group_blame(group, event, "a report that is none");
        return;
    }
    note_heard(group, message);
    for (size_t i = 0; i < count; i++) {
        uint32_t about = topology_find(group->topology, &entries[i].about);
        if (about < group->topology->members_count && about != position) {
            costs_set(group->master.costs, position, about,
                      estimate_cost_us(&entries[i].estimate, ESTIMATE_SIZE_REFERENCE));
        }
    }
    group_answer(group, event, GROUP_MESSAGE_REPORTED, message->number);
}

/* ---- time ---- */

void group_master_tick(struct group *group) {
    struct group_mastership *master = &group->master;
    if (!group_is_master(group)) {
        return;
    }
    if (group->now_us >= master->look_at_us) {
        master->look_at_us = group->now_us + group->config.silence_us / LOOKS;
        drop_silent(group);
    }
    if (group->now_us >= master->compute_at_us) {
        compute(group);
    }
    outbox_wake_at(group->out, master->look_at_us);
    outbox_wake_at(group->out, master->compute_at_us);
}
