/*
 * Documents: a topology, signed. Who may sign which, and what happens when one holds from now on.
 *
 *      document    "topology" | group (16) | term (u32) | signer (32) | topology | signature (64)
 *
 * The signature is over all before it. The sequence number is the topology's own, the master its first
 * member, who need not be the signer: a master that leaves signs the topology of the next one.
 */
#include "protocol/group/group_state.h"

static const char MAGIC[8] = {'t', 'o', 'p', 'o', 'l', 'o', 'g', 'y'};

struct parsed {
    struct group_version version;
    uint8_t signer[PEER_KEY_SIZE];
};

/* The topology goes to `draft`. */
static bool parse(struct group *group, struct bytes document, struct parsed *ret_parsed) {
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

static bool is_key(const uint8_t a[PEER_KEY_SIZE], const uint8_t b[PEER_KEY_SIZE]) {
    return memcmp(a, b, PEER_KEY_SIZE) == 0;
}

/* Of a newer document than ours. See group.h. */
static bool may_sign(const struct group *group, const struct parsed *parsed) {
    const struct group_joining *joining = &group->joining;
    const struct topology *topology = group->topology;
    const uint8_t *signer = parsed->signer;
    if (is_key(signer, group->config.founder)) {
        return true;
    }
    if (group->mode == GROUP_JOINING && joining->has_master && is_key(signer, joining->master)) {
        return true;
    }
    if (topology->members_count == 0) {
        return false;
    }
    if (parsed->version.term == group->version.term) {
        return is_key(signer, topology->members[0].key);
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
        group_join_again(group, &group->topology->members[0]);
    } else if (group->mode == GROUP_MEMBER) {
        group->mode = GROUP_IDLE;
    }
}

static void save(struct group *group) {
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
    save(group);
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

bool group_document_take(struct group *group, struct bytes document, const struct event *event) {
    struct parsed parsed;
    if (!parse(group, document, &parsed)) {
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
    if (!parse(group, document, &parsed) || !is_signed(group, document, &parsed)) {
        return;
    }
    memcpy(group->flood.document, document.data, document.size);
    group->flood.document_size = document.size;
    group->flood.is_saved = true;
    group_members_follow(group);
    group->version = parsed.version;
    group->mode = GROUP_MEMBER;
    if (group->position == GROUP_NOWHERE) { /* dropped, or our address has changed: who left saved nothing */
        group_join_again(group, &group->topology->members[0]);
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
    save(group);
}
