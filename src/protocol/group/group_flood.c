/*
 * The document that holds, from neighbour to neighbour: in pieces, each acknowledged, repeated until it is
 * there or he does not answer. Who was not there then is seen to be behind by the next word he says.
 */
#include "protocol/group/group_state.h"

enum {
    SECOND_US = 1000000,
    WINDOW = 8,           /* pieces on their way to one neighbour */
    AGAIN_US = SECOND_US, /* doubles with each try */
    TRIES_MAX = 6,
    PAUSE_US = 5000,              /* after GROUP_SENDS_MAX pieces */
    ARRIVING_US = 10 * SECOND_US, /* a sender that pauses longer makes room for another */
};
static const uint64_t ALL = UINT64_MAX;

static uint8_t pieces_of(size_t size) {
    return (uint8_t)((size + GROUP_PIECE_SIZE - 1) / GROUP_PIECE_SIZE);
}

static uint64_t mask_of(uint8_t pieces) {
    return pieces == GROUP_PIECES_MAX ? ALL : (UINT64_C(1) << pieces) - 1;
}

/* ---- out ---- */

static struct group_target *find_target(struct group *group, const struct peer *peer) {
    for (uint32_t i = 0; i < group->flood.targets_count; i++) {
        if (peer_equal(&group->flood.targets[i].peer, peer)) {
            return &group->flood.targets[i];
        }
    }
    return NULL;
}

void group_flood_to(struct group *group, const struct peer *peer) {
    struct group_flood *flood = &group->flood;
    struct group_target *target = find_target(group, peer);
    if (target == NULL && flood->targets_count < 2 * GROUP_MEMBERS_MAX) {
        target = &flood->targets[flood->targets_count++];
        target->mask = ALL;
    }
    if (target != NULL && target->mask == ALL) { /* else it is under way */
        *target = (struct group_target){.peer = *peer};
    }
}

void group_flood_aim_also(struct group *group) {
    for (uint32_t at = graph_set_next(&group->neighbours, 0); at < group->topology->members_count;
         at = graph_set_next(&group->neighbours, at + 1)) {
        group_flood_to(group, &group->topology->members[at]);
    }
}

void group_flood_aim(struct group *group) {
    group->flood.targets_count = 0;
    group_flood_aim_also(group);
}

void group_flood_begin(struct group *group) {
    struct group_flood *flood = &group->flood;
    flood->is_saved = true;
    for (uint32_t i = 0; i < flood->targets_count; i++) {
        flood->targets[i].retry.due_us = group->now_us;
    }
}

static void send_piece(struct group *group, struct group_target *target, uint8_t piece) {
    const struct group_flood *flood = &group->flood;
    struct bytes document = bytes_of(flood->document, flood->document_size);
    size_t from = (size_t)piece * GROUP_PIECE_SIZE;
    size_t left = document.size - from;
    struct group_message message = {
        .kind = GROUP_MESSAGE_PIECE,
        .version = group->version,
        .piece = piece,
        .pieces_count = pieces_of(document.size),
        .contents = bytes_slice(document, from, from + (left < GROUP_PIECE_SIZE ? left : GROUP_PIECE_SIZE)),
    };
    target->sent |= UINT64_C(1) << piece;
    group->sends_left--;
    group->counters.pieces_count++;
    group->counters.repeats_count += target->retry.tries_count > 1;
    group_send(group, &target->peer, &message);
}

static void send_window(struct group *group, struct group_target *target) {
    uint8_t pieces = pieces_of(group->flood.document_size);
    int in_flight = __builtin_popcountll(target->sent & ~target->mask);
    for (uint8_t piece = 0; piece < pieces && in_flight < WINDOW; piece++) {
        if (((target->sent | target->mask) >> piece & 1) != 0) {
            continue;
        }
        if (group->sends_left == 0) {
            outbox_wake_at(group->out, group->now_us + PAUSE_US);
            return;
        }
        send_piece(group, target, piece);
        in_flight++;
    }
}

static void tick_target(struct group *group, struct group_target *target) {
    if (retry_is_due(&target->retry, group->now_us)) {
        if (target->retry.tries_count == TRIES_MAX) {
            target->mask = ALL; /* given up */
            return;
        }
        retry_sent_doubling(&target->retry, AGAIN_US, UINT64_MAX, group->now_us);
        target->sent = 0;
    }
    send_window(group, target);
    outbox_wake_at(group->out, target->retry.due_us);
}

void group_flood_tick(struct group *group) {
    struct group_flood *flood = &group->flood;
    for (uint32_t i = 0; i < flood->targets_count && flood->is_saved; i++) {
        if (flood->targets[i].mask != ALL) {
            tick_target(group, &flood->targets[i]);
        }
    }
}

static void note_held(struct group *group, const struct peer *peer) {
    struct group_target *target = find_target(group, peer);
    if (target != NULL) {
        target->mask = ALL;
    }
}

void group_flood_on_ack(struct group *group, const struct event *event, const struct group_message *message) {
    struct peer from = event_sender(event);
    struct group_target *target = find_target(group, &from);
    if (target == NULL || target->mask == ALL) {
        group->counters.unasked_count++;
        return;
    }
    if (group_version_compare(message->version, group->version) != 0) {
        return; /* of one that we sent before */
    }
    target->mask |= message->mask;
    if ((target->mask & mask_of(pieces_of(group->flood.document_size))) ==
        mask_of(pieces_of(group->flood.document_size))) {
        target->mask = ALL;
    }
}

/* ---- in ---- */

static void send_ack(struct group *group, const struct peer *to, const struct group_message *piece,
                     uint64_t mask) {
    struct group_message message = {
        .kind = GROUP_MESSAGE_ACK, .number = piece->number, .version = piece->version, .mask = mask};
    group_send(group, to, &message);
}

/* Room for this document: its sender's, nobody's, or of one that has fallen silent. */
static bool begin_arriving(struct group *group, const struct peer *from,
                           const struct group_message *message) {
    struct group_flood *flood = &group->flood;
    bool is_busy = flood->arriving_until_us > group->now_us;
    bool is_same_sender = peer_equal(&flood->arriving_from, from);
    bool is_same = is_same_sender && flood->arriving_pieces == message->pieces_count &&
                   group_version_compare(flood->arriving_version, message->version) == 0;
    if (is_busy && !is_same_sender) {
        return false;
    }
    if (!is_busy || !is_same) {
        flood->arriving_from = *from;
        flood->arriving_version = message->version;
        flood->arriving_pieces = message->pieces_count;
        flood->arriving_mask = 0;
    }
    flood->arriving_until_us = group->now_us + ARRIVING_US;
    return true;
}

static bool is_whole(const struct group_flood *flood) {
    return flood->arriving_mask == mask_of(flood->arriving_pieces);
}

static bool may_send(const struct group *group, const struct peer *from) {
    return group->mode == GROUP_JOINING || group_find(group, from) != GROUP_NOWHERE ||
           group_is_former(group, from->key);
}

void group_flood_on_piece(struct group *group, const struct event *event,
                          const struct group_message *message) {
    struct group_flood *flood = &group->flood;
    struct peer from = event_sender(event);
    if (group->mode == GROUP_IDLE || !may_send(group, &from)) {
        group->counters.strange_count++;
        return;
    }
    int compared = group_version_compare(message->version, group->version);
    if (compared <= 0) {
        if (compared == 0) {
            note_held(group, &from);
        }
        send_ack(group, &from, message, ALL);
        return;
    }
    if (!begin_arriving(group, &from, message)) {
        return; /* he sends it again */
    }
    memcpy(flood->arriving + (size_t)message->piece * GROUP_PIECE_SIZE, message->contents.data,
           message->contents.size);
    flood->arriving_mask |= UINT64_C(1) << message->piece;
    if (message->piece + 1 == message->pieces_count) {
        flood->arriving_size = (size_t)message->piece * GROUP_PIECE_SIZE + message->contents.size;
    }
    uint64_t mask = flood->arriving_mask;
    if (is_whole(flood)) {
        flood->arriving_until_us = 0;
        flood->arriving_mask = 0;
        if (!group_document_take(group, bytes_of(flood->arriving, flood->arriving_size), event)) {
            return; /* not yet, or never */
        }
        note_held(group, &from);
        mask = ALL;
    }
    send_ack(group, &from, message, mask);
}
