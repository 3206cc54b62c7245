/*
 * Whose is the group of that name? Who joins knows a name and an address; the contact tells him the founder's
 * key, from which the group's id follows, and its rules (group_driver_code.h). The contact is believed,
 * because people have chosen it; a token names the group itself (group_driver_papers.c).
 */
#include "net/datagram.h"
#include "node/group/group_driver_code.h"
#include "node/group/group_driver_state.h"
#include "node/transport/transport.h"

enum { TRIES_DOUBLED = 5 };
static const uint64_t TRY_US = 1000000; /* doubles with each try that is not answered, to half a minute */

static void say(struct group_driver *group_driver, const struct peer *to,
                const struct group_driver_message *message) {
    uint8_t memory[GROUP_DRIVER_CODE_SIZE_MAX];
    transport_send(group_driver->transport, to, DATAGRAM_GROUP, group_driver_code_write(message, memory));
}

void group_driver_ask(struct group_driver *group_driver, struct group_driver_slot *slot) {
    struct peer contact = {.address = slot->wish.contact}; /* whoever is there */
    char address[ADDRESS_TEXT_SIZE_MAX];
    retry_sent_doubling(&slot->ask, TRY_US, TRY_US << TRIES_DOUBLED, group_driver_now_us(group_driver));
    if (slot->ask.tries_count == TRIES_DOUBLED) {
        group_driver_note(group_driver, "group \"%s\": no answer from %s yet", slot->wish.name,
                          address_format(&slot->wish.contact, address));
    }
    struct group_driver_message message = {.kind = GROUP_DRIVER_ASK,
                                           .name = bytes_of_string(slot->wish.name)};
    say(group_driver, &contact, &message);
}

static struct group_driver_slot *find_by_name(struct group_driver *group_driver, struct bytes name) {
    for (size_t i = 0; i < GROUP_DRIVER_GROUPS_MAX; i++) {
        struct group_driver_slot *slot = &group_driver->slots[i];
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

static void on_ask(struct group_driver *group_driver, const struct peer *from, struct bytes name) {
    const struct group_driver_slot *slot = find_by_name(group_driver, name);
    bool is_member = slot != NULL && slot->group != NULL && group_mode(slot->group) == GROUP_MEMBER;
    struct group_driver_message message = {.kind = is_member ? GROUP_DRIVER_TELL : GROUP_DRIVER_NONE,
                                           .name = name};
    if (is_member) {
        message.rules = slot->rules;
    }
    say(group_driver, from, &message);
}

static void on_tell(struct group_driver *group_driver, const struct peer *from, struct bytes name,
                    const struct group_rules *rules) {
    struct group_driver_slot *slot = find_by_name(group_driver, name);
    if (slot == NULL || slot->ask.due_us == STEP_NEVER_US ||
        !address_equal(&slot->wish.contact, &from->address)) {
        return; /* nobody asked him */
    }
    slot->ask.due_us = STEP_NEVER_US;
    if (is_key(slot->rules.founder) && memcmp(slot->rules.founder, rules->founder, PEER_KEY_SIZE) != 0) {
        group_driver_note(group_driver, "group \"%s\": the contact is in another group of that name",
                          slot->wish.name);
        return;
    }
    slot->rules = *rules;
    group_driver_found(group_driver, slot, from);
    group_driver_set_timer(group_driver);
}

static void on_none(struct group_driver *group_driver, const struct peer *from, struct bytes name) {
    struct group_driver_slot *slot = find_by_name(group_driver, name);
    char address[ADDRESS_TEXT_SIZE_MAX];
    bool is_asked = slot != NULL && slot->ask.due_us != STEP_NEVER_US &&
                    address_equal(&slot->wish.contact, &from->address);
    if (!is_asked) {
        return;
    }
    slot->ask =
        (struct retry){.due_us = group_driver_now_us(group_driver) + TRY_US}; /* it may come into it */
    if (!slot->is_told) {
        slot->is_told = true;
        group_driver_note(group_driver, "group \"%s\": %s is not in it (yet)", slot->wish.name,
                          address_format(&from->address, address));
    }
    group_driver_set_timer(group_driver);
}

/* True: it was one of these, or malformed. */
bool group_driver_ask_receive(struct group_driver *group_driver, const struct datagram_message *message) {
    struct group_driver_message read;
    if (message->bytes.size == 0 || message->bytes.data[0] != 0) {
        return message->bytes.size == 0;
    }
    if (group_driver_code_read(message->bytes, &read) != ERR_OK) {
        return true;
    }
    switch (read.kind) {
    case GROUP_DRIVER_ASK:
        on_ask(group_driver, &message->from, read.name);
        break;
    case GROUP_DRIVER_TELL:
        on_tell(group_driver, &message->from, read.name, &read.rules);
        break;
    case GROUP_DRIVER_NONE:
        on_none(group_driver, &message->from, read.name);
        break;
    }
    return true;
}
