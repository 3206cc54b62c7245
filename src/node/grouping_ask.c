/*
 * Whose is the group of that name? Who joins knows a name and an address; the contact tells him the founder's
 * key, from which the group's id follows, and its rules.
 *
 *      ASK     0:u8  1:u8  name:string
 *      TELL    0:u8  2:u8  name:string  founder:32  admission:u8  generator:u8  k:u8
 *      NONE    0:u8  3:u8  name:string
 *
 * All go as DATAGRAM_GROUP, where the first byte of a message of a group is its version, which is not 0. The
 * contact is believed, because people have chosen it; a token names the group itself (grouping_papers.c).
 */
#include "base/wire.h"
#include "net/datagram.h"
#include "node/grouping_state.h"
#include "node/ringing.h"

enum ask_kind { ASK = 1, TELL, NONE };

enum {
    MESSAGE_SIZE_MAX = 3 + 1 + GROUP_FILES_NAME_SIZE_MAX + PEER_KEY_SIZE + 3,
    TRIES_DOUBLED = 5,
};
static const uint64_t TRY_US = 1000000; /* doubles with each try that is not answered, to half a minute */

static void say(struct grouping *grouping, const struct peer *to, enum ask_kind kind, struct bytes name,
                const struct group_rules *rules) {
    uint8_t memory[MESSAGE_SIZE_MAX];
    struct wire_writer writer;
    struct bytes message;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_u8(&writer, 0);
    wire_write_u8(&writer, (uint8_t)kind);
    wire_write_string(&writer, name);
    if (kind == TELL) {
        wire_write_bytes(&writer, bytes_of(rules->founder, PEER_KEY_SIZE));
        wire_write_u8(&writer, rules->admission);
        wire_write_u8(&writer, rules->generator);
        wire_write_u8(&writer, rules->k);
    }
    enum err err = wire_writer_finish(&writer, &message);
    ASSERT(err == ERR_OK);
    ringing_send(grouping->ringing, to, DATAGRAM_GROUP, message);
}

void grouping_ask(struct grouping *grouping, struct grouping_slot *slot) {
    struct peer contact = {.address = slot->wish.contact}; /* whoever is there */
    unsigned doubled = slot->asks_count < TRIES_DOUBLED ? slot->asks_count : TRIES_DOUBLED;
    char address[ADDRESS_TEXT_SIZE_MAX];
    slot->asks_count++;
    slot->ask_at_us = grouping_now_us(grouping) + (TRY_US << doubled);
    if (slot->asks_count == TRIES_DOUBLED) {
        grouping_note(grouping, "group \"%s\": no answer from %s yet", slot->wish.name,
                      address_format(&slot->wish.contact, address));
    }
    say(grouping, &contact, ASK, bytes_of_string(slot->wish.name), NULL);
}

static struct grouping_slot *find_by_name(struct grouping *grouping, struct bytes name) {
    for (size_t i = 0; i < GROUPING_GROUPS_MAX; i++) {
        struct grouping_slot *slot = &grouping->slots[i];
        if (slot->is_used && bytes_equal(name, bytes_of_string(slot->wish.name))) {
            return slot;
        }
    }
    return NULL;
}

static bool is_key(const uint8_t key[PEER_KEY_SIZE]) {
    static const uint8_t none[PEER_KEY_SIZE];
    return memcmp(key, none, PEER_KEY_SIZE) != 0;
}

static void on_ask(struct grouping *grouping, const struct peer *from, struct bytes name) {
    const struct grouping_slot *slot = find_by_name(grouping, name);
    bool is_member = slot != NULL && slot->group != NULL && group_mode(slot->group) == GROUP_MEMBER;
    say(grouping, from, is_member ? TELL : NONE, name, is_member ? &slot->rules : NULL);
}

static void on_tell(struct grouping *grouping, const struct peer *from, struct bytes name,
                    const struct group_rules *rules) {
    struct grouping_slot *slot = find_by_name(grouping, name);
    if (slot == NULL || slot->ask_at_us == STEP_NEVER_US ||
        !address_equal(&slot->wish.contact, &from->address)) {
        return; /* nobody asked him */
    }
    slot->ask_at_us = STEP_NEVER_US;
    if (is_key(slot->rules.founder) && memcmp(slot->rules.founder, rules->founder, PEER_KEY_SIZE) != 0) {
        grouping_note(grouping, "group \"%s\": the contact is in another group of that name",
                      slot->wish.name);
        return;
    }
    slot->rules = *rules;
    grouping_found(grouping, slot, from);
    grouping_set_timer(grouping);
}

static void on_none(struct grouping *grouping, const struct peer *from, struct bytes name) {
    struct grouping_slot *slot = find_by_name(grouping, name);
    char address[ADDRESS_TEXT_SIZE_MAX];
    bool is_asked = slot != NULL && slot->ask_at_us != STEP_NEVER_US &&
                    address_equal(&slot->wish.contact, &from->address);
    if (!is_asked) {
        return;
    }
    slot->ask_at_us = grouping_now_us(grouping) + TRY_US; /* he is there, and may be on his way into it */
    slot->asks_count = 0;
    if (!slot->is_told) {
        slot->is_told = true;
        grouping_note(grouping, "group \"%s\": %s is not in it (yet)", slot->wish.name,
                      address_format(&from->address, address));
    }
    grouping_set_timer(grouping);
}

/* True: it was one of these, or malformed. */
bool grouping_ask_receive(struct grouping *grouping, const struct datagram_message *message) {
    struct wire_reader reader;
    struct group_rules rules = {0};
    if (message->bytes.size == 0 || message->bytes.data[0] != 0) {
        return message->bytes.size == 0;
    }
    wire_reader_init(&reader, bytes_skip(message->bytes, 1));
    uint8_t kind = wire_read_u8_max(&reader, NONE);
    struct bytes name = wire_read_string(&reader, GROUP_FILES_NAME_SIZE_MAX - 1);
    if (kind == TELL) {
        wire_read_array(&reader, rules.founder, PEER_KEY_SIZE);
        rules.admission = wire_read_u8_max(&reader, GROUP_ADMISSION_INVITE);
        rules.generator = wire_read_u8_max(&reader, TOPOLOGY_TREE);
        rules.k = wire_read_u8_max(&reader, TOPOLOGY_K_MAX);
        if (!is_key(rules.founder)) {
            wire_read_fail(&reader, ERR_INVALID, "nobody's group");
        }
    }
    if (wire_reader_finish(&reader, NULL) != ERR_OK || !group_files_name_is_valid(name)) {
        return true;
    }
    if (kind == ASK) {
        on_ask(grouping, &message->from, name);
    } else if (kind == TELL) {
        on_tell(grouping, &message->from, name, &rules);
    } else if (kind == NONE) {
        on_none(grouping, &message->from, name);
    }
    return true;
}
