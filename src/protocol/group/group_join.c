/* How a node comes into a group and leaves it: its own side, that of the contact, the way to the
 * master. */
#include "base/map.h"
#include "protocol/group/group_state.h"

enum {
    SECOND_US = 1000000,
    TRY_US = 2 * SECOND_US, /* doubles with each try … */
    TRIES_DOUBLED = 5,
    TRY_US_MAX = TRY_US << TRIES_DOUBLED, /* … to about a minute */
    LEAVES = 3,
    LEAVE_US = 2 * SECOND_US,
    HANDED_OVER_US = 10 * SECOND_US, /* a master that leaves waits so long for the others to know */
    REQUESTS_EACH_US = 200000,       /* that a member passes on: 5 a second, 32 at once */
    REQUESTS_BURST = 32,
};

/* ---- the node that joins ---- */

void group_join_through(struct group *group, const struct peer *contact) {
    struct group_joining *joining = &group->joining;
    joining->contact = *contact;
    joining->contact_first = *contact;
    joining->has_master = false;
    joining->is_answered = false;
    joining->token = 0;
    joining->retry = (struct retry){0};
    joining->leaves_left = 0;
    joining->is_leaving = false;
    group->mode = GROUP_JOINING;
}

void group_join_begin(struct group *group, struct bytes bytes) {
    struct group_joining *joining = &group->joining;
    struct wire_reader reader;
    struct peer contact;
    wire_reader_init(&reader, bytes);
    peer_read(&reader, PEER_MEMBER, &contact);
    struct bytes papers = wire_read_bytes(&reader, wire_reader_left(&reader));
    ASSERT(reader.err == ERR_OK && papers.size <= GROUP_PAPERS_SIZE_MAX);
    memcpy(joining->papers, papers.data, papers.size);
    joining->papers_size = papers.size;
    if (group->mode != GROUP_MEMBER) {
        group_join_through(group, &contact);
    }
}

static void send_join(struct group *group) {
    struct group_joining *joining = &group->joining;
    struct group_message message = {.kind = GROUP_MESSAGE_JOIN,
                                    .number = joining->number,
                                    .token = joining->token,
                                    .papers = bytes_of(joining->papers, joining->papers_size)};
    group_send(group, &joining->contact, &message);
}

/* Every other time another node, if the first contact is silent or its answers have led to nothing. */
static const struct peer *choose_contact(struct group *group) {
    const struct group_joining *joining = &group->joining;
    const struct topology *old = group->topology;
    bool is_in_doubt = !joining->is_answered || joining->retry.tries_count > TRIES_DOUBLED;
    if (joining->retry.tries_count % 2 == 0 || !is_in_doubt) {
        return &joining->contact_first;
    }
    uint64_t lot = prng_below(&group->prng, old->members_count + group->former_count + 1);
    if (lot < old->members_count &&
        memcmp(old->members[lot].key, group->config.self.key, PEER_KEY_SIZE) != 0) {
        return &old->members[lot];
    }
    const struct peer *former = group_pick_former(group);
    return former == NULL ? &joining->contact_first : former;
}

/* Each try has a number of its own: members pass a request on once. */
static void try_join(struct group *group) {
    struct group_joining *joining = &group->joining;
    const struct peer *contact = choose_contact(group);
    if (!peer_equal(contact, &joining->contact)) {
        joining->contact = *contact;
        joining->token = 0;
    }
    uint64_t wait_us = retry_doubled_us(TRY_US, joining->retry.tries_count++, TRY_US_MAX);
    joining->number = prng_u64(&group->prng) | 1;
    joining->retry.due_us = group->now_us + group_spread(group, wait_us);
    joining->is_answered = false;
    send_join(group);
}

static bool is_contact(struct group *group, const struct event *event, const struct group_message *message) {
    struct peer from = event_sender(event);
    bool is_asked = group->mode == GROUP_JOINING && message->number == group->joining.number &&
                    peer_equal(&from, &group->joining.contact);
    group->counters.unasked_count += !is_asked;
    return is_asked;
}

void group_join_on_challenge(struct group *group, const struct event *event,
                             const struct group_message *message) {
    if (is_contact(group, event, message) && group->joining.token != message->token) {
        group->joining.token = message->token;
        send_join(group);
    }
}

void group_join_on_taken(struct group *group, const struct event *event,
                         const struct group_message *message) {
    bool is_us =
        memcmp(message->peer.key, group->config.self.key, PEER_KEY_SIZE) == 0; /* we have given way */
    if (is_contact(group, event, message) && !is_us) {
        memcpy(group->joining.master, message->peer.key, PEER_KEY_SIZE);
        group->joining.has_master = true;
        group->joining.is_answered = true;
    }
}

/* Only the master that the contact named may refuse. */
void group_join_on_refused(struct group *group, const struct event *event,
                           const struct group_message *message) {
    struct group_joining *joining = &group->joining;
    (void)message;
    if (group->mode != GROUP_JOINING || !joining->has_master ||
        memcmp(joining->master, event->from_key, PEER_KEY_SIZE) != 0) {
        group->counters.unasked_count++;
        return;
    }
    group->mode = GROUP_IDLE;
    group_document_drop(group);
    outbox_notice(group->out, GROUP_REFUSED, (struct bytes){0});
}

/*
 * A node that we asked says that we are no member, by a newer topology than ours. Our own master knows that
 * best; others are believed if we miss our master, or if we are master ourselves and there is one of a higher
 * term.
 */
void group_join_on_stranger(struct group *group, const struct event *event,
                            const struct group_message *message) {
    struct peer from = event_sender(event);
    const struct peer *master = group_master(group);
    if (group->mode != GROUP_MEMBER || master == NULL ||
        !group_measure_is_asked(group, &from, message->number)) {
        group->counters.unasked_count++;
        return;
    }
    if (group_version_compare(message->held, group->version) <= 0) {
        return;
    }
    bool yields = group_is_master(group) && message->held.term > group->version.term;
    bool is_out = peer_equal(master, &from) || (!group_is_master(group) && group_succession_is_missed(group));
    if (yields) {
        outbox_notice(group->out, GROUP_YIELDED, (struct bytes){0});
    }
    if (yields || is_out) {
        outbox_notice(group->out, GROUP_OUT, (struct bytes){0});
        group_join_through(group, &from);
    }
}

/* ---- the contact ---- */

static uint64_t make_token(const struct group *group, const struct peer *peer) {
    uint8_t text[PEER_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, text, sizeof text);
    peer_write(&writer, PEER_MEMBER, peer);
    uint64_t hash = map_hash(bytes_of(text, writer.size), group->secret);
    return hash == 0 ? 1 : hash; /* 0 stands for none */
}

static bool was_seen(struct group *group, const struct peer *who, uint64_t number) {
    struct group_requests *requests = &group->requests;
    uint64_t hash = map_hash(bytes_of(who->key, PEER_KEY_SIZE), group->secret ^ number) | 1;
    for (unsigned i = 0; i < GROUP_SEEN_MAX; i++) {
        if (requests->seen[i] == hash) {
            return true;
        }
    }
    requests->seen[requests->seen_next++ % GROUP_SEEN_MAX] = hash;
    return false;
}

/* To the master if that is us, and on to the others if not. */
static void pass_on(struct group *group, const struct peer *who, const struct peer *from,
                    const struct group_message *message) {
    if (was_seen(group, who, message->number)) {
        return;
    }
    if (!bucket_take_one(&group->requests.bucket_us, group->now_us, REQUESTS_EACH_US, REQUESTS_BURST)) {
        group->counters.flooded_count++;
        return;
    }
    group->counters.requests_count++;
    if (group_is_master(group)) {
        group_master_on_request(group, who, message->papers);
        return;
    }
    struct group_message request = {
        .kind = GROUP_MESSAGE_REQUEST, .number = message->number, .peer = *who, .papers = message->papers};
    group_send_neighbours(group, from, &request);
}

/* A member that asks is one whose address has changed, or that has lost what it saved. */
void group_join_on_join(struct group *group, const struct event *event, const struct group_message *message) {
    struct peer who = event_sender(event);
    if (group->mode != GROUP_MEMBER) {
        group->counters.strange_count++;
        return;
    }
    uint64_t token = make_token(group, &who);
    struct group_message answer = {
        .kind = GROUP_MESSAGE_CHALLENGE, .number = message->number, .token = token};
    if (message->token == token) {
        answer.kind = GROUP_MESSAGE_TAKEN;
        answer.peer = *group_master(group);
    }
    group_send(group, &who, &answer);
    if (message->token == token) {
        pass_on(group, &who, NULL, message);
    }
}

void group_join_on_request(struct group *group, const struct event *event,
                           const struct group_message *message) {
    struct peer from = event_sender(event);
    if (!peer_equal(&message->peer, &group->config.self)) {
        pass_on(group, &message->peer, &from, message);
    }
}

/* ---- leaving ---- */

static void be_gone(struct group *group) {
    group->joining.leaves_left = 0;
    group->joining.is_leaving = false;
    group->mode = GROUP_IDLE;
    group_document_drop(group);
    outbox_notice(group->out, GROUP_OUT, (struct bytes){0});
}

void group_join_leave(struct group *group) {
    struct group_joining *joining = &group->joining;
    joining->is_leaving = true;
    if (group->mode != GROUP_MEMBER || group->topology->members_count == 1) {
        be_gone(group);
        return;
    }
    if (group_is_master(group)) {
        group_master_hand_over(group);
        joining->leaves_left = 1;
        joining->leave_at_us = group->now_us + HANDED_OVER_US;
        return;
    }
    joining->leaves_left = LEAVES + 1;
    joining->leave_at_us = group->now_us;
    joining->leave_number = prng_u64(&group->prng) | 1;
}

void group_join_on_left(struct group *group, const struct event *event, const struct group_message *message) {
    struct peer from = event_sender(event);
    const struct peer *master = group_master(group);
    if (group->joining.leaves_left == 0 || message->number != group->joining.leave_number || master == NULL ||
        !peer_equal(master, &from)) {
        group->counters.unasked_count++;
        return;
    }
    be_gone(group);
}

static void tick_leave(struct group *group) {
    struct group_joining *joining = &group->joining;
    if (joining->leaves_left == 0) {
        return;
    }
    if (group->now_us >= joining->leave_at_us) {
        joining->leaves_left--;
        if (joining->leaves_left == 0 || group->mode != GROUP_MEMBER) {
            be_gone(group);
            return;
        }
        struct group_message message = {.kind = GROUP_MESSAGE_LEAVE, .number = joining->leave_number};
        joining->leave_at_us = group->now_us + LEAVE_US;
        group_send(group, group_master(group), &message);
    }
    outbox_wake_at(group->out, joining->leave_at_us);
}

void group_join_tick(struct group *group) {
    tick_leave(group);
    if (group->mode != GROUP_JOINING) {
        return;
    }
    if (retry_is_due(&group->joining.retry, group->now_us)) {
        try_join(group);
    }
    outbox_wake_at(group->out, group->joining.retry.due_us);
}
