/*
 * Documents: a topology, signed. Who may sign which, and what happens when one holds from now on.
 *
 *      document    "topology" | group (16) | term (u32) | signer (32) | topology | signature (64)
 *
 * The signature is over all before it. The sequence number is the topology's own, the master its first
 * member, which need not be the signer: a master that leaves signs the topology of the next one.
 */
#include "protocol/group/group_state.h"

/*
 * The document that holds, from neighbour to neighbour: in pieces, each acknowledged, repeated until it is
 * there or it does not answer. Whoever was not there then is seen to be behind by the next word it says.
 */

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

/* ---- pieces out ---- */

static struct group_target *document_find_target(struct group *group, const struct peer *peer) {
    for (uint32_t i = 0; i < group->flood.targets_count; i++) {
        if (peer_equal(&group->flood.targets[i].peer, peer)) {
            return &group->flood.targets[i];
        }
    }
    return NULL;
}

void group_flood_to(struct group *group, const struct peer *peer) {
    struct group_flood *flood = &group->flood;
    struct group_target *target = document_find_target(group, peer);
    if (target == NULL && flood->targets_count < 2 * GROUP_MEMBERS_MAX) {
        target = &flood->targets[flood->targets_count++];
        target->mask = ALL;
    }
    if (target != NULL && target->mask == ALL) { /* else it is under way */
        *target = (struct group_target){.peer = *peer};
    }
}

static void group_flood_aim_also(struct group *group) {
    for (uint32_t at = graph_set_next(&group->neighbours, 0); at < group->topology->members_count;
         at = graph_set_next(&group->neighbours, at + 1)) {
        group_flood_to(group, &group->topology->members[at]);
    }
}

/* Before another topology holds: its document goes to our neighbours of now. After: to those of then, too. */
static void group_flood_aim(struct group *group) {
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
    struct group_target *target = document_find_target(group, peer);
    if (target != NULL) {
        target->mask = ALL;
    }
}

void group_flood_on_ack(struct group *group, const struct event *event, const struct group_message *message) {
    struct peer from = event_sender(event);
    struct group_target *target = document_find_target(group, &from);
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

static const char MAGIC[8] = {'t', 'o', 'p', 'o', 'l', 'o', 'g', 'y'};

struct parsed {
    struct group_version version;
    uint8_t signer[PEER_KEY_SIZE];
};

/* The topology goes to `draft`. */
static bool document_parse(struct group *group, struct bytes document, struct parsed *ret_parsed) {
    if (document.size < GROUP_DOCUMENT_HEAD_SIZE + GROUP_SIGNATURE_SIZE ||
        document.size > GROUP_DOCUMENT_SIZE_MAX) {
        return false;
    }
    struct wire_reader reader;
    wire_reader_init(&reader, bytes_slice(document, 0, document.size - GROUP_SIGNATURE_SIZE));
    struct bytes magic = wire_read_bytes(&reader, sizeof MAGIC);
    struct bytes id = wire_read_bytes(&reader, GROUP_ID_SIZE);
    ret_parsed->version.term = wire_read_u32(&reader);
    wire_read_array(&reader, ret_parsed->signer, PEER_KEY_SIZE);
    struct bytes rest = wire_read_bytes(&reader, wire_reader_left(&reader));
    if (reader.err != ERR_OK || !bytes_equal(magic, bytes_of(MAGIC, sizeof MAGIC)) ||
        !bytes_equal(id, bytes_of(group->config.id, GROUP_ID_SIZE)) ||
        topology_read(rest, group->draft, NULL) != ERR_OK || group->draft->sequence > UINT32_MAX ||
        group->draft->members_count == 0) {
        return false;
    }
    ret_parsed->version.sequence = (uint32_t)group->draft->sequence;
    return true;
}

static bool is_signed(const struct group *group, struct bytes document, const struct parsed *parsed) {
    const struct group_signer *signer = &group->config.signer;
    size_t size = document.size - GROUP_SIGNATURE_SIZE;
    return signer->verify(signer->context, parsed->signer, bytes_slice(document, 0, size),
                          document.data + size);
}

/* May this key sign a newer document than ours? See group.h. */
static bool may_sign(const struct group *group, const struct parsed *parsed) {
    const struct group_joining *joining = &group->joining;
    const struct topology *topology = group->topology;
    const uint8_t *signer = parsed->signer;
    if (peer_key_equal(signer, group->config.founder)) {
        return true;
    }
    if (group->mode == GROUP_JOINING && joining->has_master && peer_key_equal(signer, joining->master)) {
        return true;
    }
    if (topology->members_count == 0) {
        return false;
    }
    if (parsed->version.term == group->version.term) {
        return peer_key_equal(signer, topology->members[0].key);
    }
    if (group_find_key(topology, signer) == GROUP_NOWHERE && !group_is_former(group, signer)) {
        return false;
    }
    return group_is_master(group) || group_succession_is_missed(group) ||
           group->succession.holds.term >= parsed->version.term;
}

/* ---- another one holds ---- */

/* What we are by it. A master that is leaving stays until the others have it (group_join.c). */
static void change_mode(struct group *group, bool was_master) {
    if (group->position != GROUP_NOWHERE) {
        group->mode = GROUP_MEMBER;
        if (group->position == 0 && !was_master) {
            group_master_begin(group);
            outbox_notice(group->out, GROUP_MASTER, (struct bytes){0});
        }
        return;
    }
    if (group->mode == GROUP_MEMBER && !group->joining.is_leaving) {
        outbox_notice(group->out, GROUP_OUT, (struct bytes){0});
        group_join_through(group, &group->topology->members[0]);
    } else if (group->mode == GROUP_MEMBER) {
        group->mode = GROUP_IDLE;
    }
}

static void document_save(struct group *group) {
    struct group_flood *flood = &group->flood;
    flood->is_saved = false;
    flood->save_number++;
    outbox_save(group->out, GROUP_SLOT, flood->save_number, bytes_of(flood->document, flood->document_size));
}

/* `draft` and the document in flood.document. */
static void commit(struct group *group, struct group_version version) {
    bool was_master = group_is_master(group);
    bool was_member = group->mode == GROUP_MEMBER;
    const struct peer *master = group_master(group);
    bool is_same_master = master != NULL && peer_equal(master, &group->draft->members[0]);
    group_flood_aim(group);
    group_members_follow(group);
    group->version = version;
    group_flood_aim_also(group);
    group->counters.committed_count++;
    document_save(group);
    group_save_former(group);
    change_mode(group, was_master);
    group_succession_begin(group, true);
    if (!was_member) {
        group_measure_begin(group);
    } else if (!is_same_master) {
        group_measure_report_soon(group);
    }
    if (was_master && !group_is_master(group) && !group->joining.is_leaving) {
        outbox_notice(group->out, GROUP_YIELDED, (struct bytes){0});
    }
    outbox_notice(group->out, GROUP_COMMITTED, (struct bytes){0});
}

void group_document_publish(struct group *group, uint32_t term, uint64_t sequence) {
    struct group_flood *flood = &group->flood;
    const struct group_signer *signer = &group->config.signer;
    uint8_t signature[GROUP_SIGNATURE_SIZE];
    struct wire_writer writer;
    if (sequence > UINT32_MAX) {
        return; /* one a second for 136 years */
    }
    group->draft->sequence = sequence;
    wire_writer_init(&writer, flood->document, GROUP_DOCUMENT_SIZE_MAX);
    wire_write_bytes(&writer, bytes_of(MAGIC, sizeof MAGIC));
    wire_write_bytes(&writer, bytes_of(group->config.id, GROUP_ID_SIZE));
    wire_write_u32(&writer, term);
    wire_write_bytes(&writer, bytes_of(group->config.self.key, PEER_KEY_SIZE));
    struct bytes topology =
        topology_write(group->draft, flood->document + writer.size, GROUP_DOCUMENT_SIZE_MAX - writer.size);
    writer.size += topology.size;
    signer->sign(signer->context, bytes_of(flood->document, writer.size), signature);
    wire_write_bytes(&writer, bytes_of(signature, sizeof signature));
    ASSERT(writer.err == ERR_OK);
    flood->document_size = writer.size;
    commit(group, (struct group_version){.term = term, .sequence = (uint32_t)sequence});
}

/* What was put together of pieces, or was saved. False if it is none or may not be believed. */
static bool group_document_take(struct group *group, struct bytes document, const struct event *event) {
    struct parsed parsed;
    if (!document_parse(group, document, &parsed)) {
        group_blame(group, event, "a document that is none");
        return false;
    }
    if (group_version_compare(parsed.version, group->version) <= 0) {
        return false;
    }
    if (!may_sign(group, &parsed)) {
        group->counters.forged_count++; /* or only too early */
        return false;
    }
    if (!is_signed(group, document, &parsed)) {
        group->counters.forged_count++;
        group_blame(group, event, "a document with a false signature");
        return false;
    }
    memcpy(group->flood.document, document.data, document.size);
    group->flood.document_size = document.size;
    commit(group, parsed.version);
    return true;
}

/* Bytes of our own disk: what is not whole is as though nothing had been saved. */
void group_document_restore(struct group *group, struct bytes document) {
    struct parsed parsed;
    if (!document_parse(group, document, &parsed) || !is_signed(group, document, &parsed)) {
        return;
    }
    memcpy(group->flood.document, document.data, document.size);
    group->flood.document_size = document.size;
    group->flood.is_saved = true;
    group_members_follow(group);
    group->version = parsed.version;
    group->mode = GROUP_MEMBER;
    if (group->position ==
        GROUP_NOWHERE) { /* dropped, or our address has changed: a node that left saved nothing */
        group_join_through(group, &group->topology->members[0]);
    } else if (group->position == 0) {
        group_master_begin(group);
    }
}

void group_document_drop(struct group *group) {
    group->topology->members_count = 0;
    group->topology->edges_count = 0;
    group->version = (struct group_version){0};
    group->position = GROUP_NOWHERE;
    group->neighbours = (struct graph_set){0};
    group->flood.document_size = 0;
    group->flood.targets_count = 0;
    document_save(group);
}

/* ---- pieces in ---- */

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
        return; /* it sends it again */
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
