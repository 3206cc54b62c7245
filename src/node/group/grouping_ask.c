/*
 * Whose is the group of that name? Who joins knows a name and an address; the contact tells him the founder's
 * key, from which the group's id follows, and its rules (grouping_code.h). The contact is believed, because
 * people have chosen it; a token names the group itself (grouping_papers.c).
 */
#include "net/datagram.h"
#include "node/group/grouping_code.h"
#include "node/group/grouping_state.h"
#include "node/transport/ringing.h"

enum { TRIES_DOUBLED = 5 };
static const uint64_t TRY_US = 1000000; /* doubles with each try that is not answered, to half a minute */

static void say(struct grouping *grouping, const struct peer *to, const struct grouping_message *message) {
    uint8_t memory[GROUPING_CODE_SIZE_MAX];
    ringing_send(grouping->ringing, to, DATAGRAM_GROUP, grouping_code_write(message, memory));
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
    struct grouping_message message = {.kind = GROUPING_ASK, .name = bytes_of_string(slot->wish.name)};
    say(grouping, &contact, &message);
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
    struct grouping_message message = {.kind = is_member ? GROUPING_TELL : GROUPING_NONE, .name = name};
    if (is_member) {
        message.rules = slot->rules;
    }
    say(grouping, from, &message);
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
    struct grouping_message read;
    if (message->bytes.size == 0 || message->bytes.data[0] != 0) {
        return message->bytes.size == 0;
    }
    if (grouping_code_read(message->bytes, &read) != ERR_OK) {
        return true;
    }
    switch (read.kind) {
    case GROUPING_ASK:
        on_ask(grouping, &message->from, read.name);
        break;
    case GROUPING_TELL:
        on_tell(grouping, &message->from, read.name, &read.rules);
        break;
    case GROUPING_NONE:
        on_none(grouping, &message->from, read.name);
        break;
    }
    return true;
}
