/* What the master does: who is in, what the reports say, and the topology that follows from both. */
#include "protocol/group/group_state.h"

enum { LOOKS = 16 }; /* for silent members, in a silence */

/* ---- the next topology ---- */

/* Where the members of `draft` were before. */
struct origins {
    uint32_t of[GROUP_MEMBERS_MAX];
};

static void add_member(struct group *group, const struct peer *peer, uint32_t origin,
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
            add_member(group, &topology->members[i], i, origins);
        }
    }
    for (uint32_t i = 0; i < master->arrivals_count; i++) {
        add_member(group, &master->arrivals[i], GROUP_NOWHERE, origins);
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

static void publish(struct group *group) {
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

/* The edges that hold with what they cost, where some were not measured when they were chosen: in the draft.
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
        publish(group);
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
        publish(group);
    }
}

/* ---- who is in ---- */

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

/* An address has one member, as a key has: who is in the way goes. */
static void make_room(struct group *group, const struct peer *who) {
    for (uint32_t i = 1; i < group->topology->members_count; i++) {
        const struct peer *member = &group->topology->members[i];
        if (memcmp(member->key, who->key, PEER_KEY_SIZE) == 0 ||
            address_equal(&member->address, &who->address)) {
            group->master.is_leaving[i] = true;
        }
    }
}

static void refuse(struct group *group, const struct peer *who) {
    struct group_message message = {.kind = GROUP_MESSAGE_REFUSED};
    group_send(group, who, &message);
}

static void admit(struct group *group, const struct peer *who) {
    struct group_mastership *master = &group->master;
    uint32_t position = group_find(group, who);
    if (position != GROUP_NOWHERE && !master->is_leaving[position]) {
        group_flood_to(group, who); /* he has lost it */
        return;
    }
    if (is_arriving(group, who)) {
        return;
    }
    if (group->topology->members_count + master->arrivals_count >= group->config.members_max ||
        address_equal(&who->address, &group->config.self.address)) {
        refuse(group, who);
        return;
    }
    make_room(group, who);
    group_keys_remove(&master->left, who->key);
    group_keys_remove(&master->approved, who->key);
    master->arrivals[master->arrivals_count++] = *who;
    compute_soon(group);
}

void group_master_on_request(struct group *group, const struct peer *who, struct bytes papers) {
    struct group_mastership *master = &group->master;
    if (group_keys_has(&master->refused, who->key)) {
        refuse(group, who);
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
        refuse(group, &who);
    }
}

/* Who waits to be let in asks again by himself. */
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
        return; /* he asks again when he knows who is */
    }
    uint32_t position = group_find(group, &who);
    ASSERT(position != GROUP_NOWHERE && position != 0);
    group_answer(group, event, GROUP_MESSAGE_LEFT, message->number);
    group_keys_add(&group->master.left, who.key);
    group->master.is_leaving[position] = true;
    compute_soon(group);
}

/* ---- reports ---- */

/* Positions are those of the topology that he holds, so it must be ours. */
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
