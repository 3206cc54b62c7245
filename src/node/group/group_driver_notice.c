/* What a group says to its owner. */
#include <stdio.h>

#include "base/wire.h"
#include "node/group/group_driver_state.h"
#include "node/transport/transport.h"

enum { SENTENCE_SIZE_MAX = 160 };

static void on_probe(struct group_driver *group_driver, struct wire_reader *reader, const struct peer *peer) {
    uint32_t size = wire_read_u32(reader);
    if (reader->err == ERR_OK) {
        group_driver_probe(group_driver, peer, size);
    }
}

/* True: he has not been seen before. The oldest makes room. */
static bool remember_asked(struct group_driver *group_driver, struct group_driver_slot *slot,
                           const struct peer *peer) {
    size_t oldest = 0;
    for (size_t i = 0; i < slot->asked_count; i++) {
        if (peer_equal(&slot->asked[i].peer, peer)) {
            return false;
        }
        oldest = slot->asked[i].at_us < slot->asked[oldest].at_us ? i : oldest;
    }
    size_t at = slot->asked_count < GROUP_DRIVER_ASKED_MAX ? slot->asked_count++ : oldest;
    slot->asked[at] = (struct group_driver_asked){.peer = *peer, .at_us = group_driver_now_us(group_driver)};
    return true;
}

static void on_asked(struct group_driver *group_driver, struct group_driver_slot *slot,
                     const struct peer *peer, struct bytes papers) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    if (group_driver_papers_are_good(group_driver, slot, peer, papers)) {
        ASSERT(slot->approvals_count < GROUP_DRIVER_ASKED_MAX); /* one in a step */
        slot->approvals[slot->approvals_count++] = *peer;
        return;
    }
    if (remember_asked(group_driver, slot, peer)) {
        group_driver_note(group_driver, "group \"%s\": %s wants to join%s", slot->wish.name,
                          address_format(&peer->address, address),
                          slot->rules.admission == GROUP_ADMISSION_INVITE
                              ? " and has no good invitation"
                              : "; \"mnemon group approve\" lets it in");
    }
}

static void on_committed(struct group_driver *group_driver, struct group_driver_slot *slot) {
    const struct topology *topology = group_topology(slot->group);
    char address[ADDRESS_TEXT_SIZE_MAX];
    if (topology != NULL) {
        for (uint32_t i = 0; i < topology->members_count; i++) {
            for (size_t k = slot->asked_count; k-- > 0;) {
                if (memcmp(slot->asked[k].peer.key, topology->members[i].key, PEER_KEY_SIZE) == 0) {
                    slot->asked[k] = slot->asked[--slot->asked_count];
                }
            }
        }
        group_driver_note(group_driver, "group \"%s\": topology %u.%u of %u member%s, master %s",
                          slot->wish.name, group_term(slot->group), group_sequence(slot->group),
                          topology->members_count, topology->members_count == 1 ? "" : "s",
                          address_format(&topology->members[0].address, address));
    }
    group_driver_show(group_driver, slot, true);
}

static void on_out(struct group_driver *group_driver, struct group_driver_slot *slot) {
    if (slot->wish.is_leaving) {
        group_driver_remove(group_driver, slot);
    } else {
        group_driver_note(group_driver, "group \"%s\": this node was dropped, and asks to join again",
                          slot->wish.name);
    }
}

static void on_blamed(struct group_driver *group_driver, const struct peer *peer, struct bytes text) {
    char sentence[SENTENCE_SIZE_MAX];
    snprintf(sentence, sizeof sentence, "sends what makes no sense to a group: %.*s", BYTES_ARG(text));
    transport_blame(group_driver->transport, peer, sentence);
}

static void on_peer(struct group_driver *group_driver, struct group_driver_slot *slot,
                    const struct action *action) {
    struct wire_reader reader;
    struct peer peer;
    wire_reader_init(&reader, action->bytes);
    peer_read(&reader, PEER_MEMBER, &peer);
    if (action->code == GROUP_PROBE) {
        on_probe(group_driver, &reader, &peer);
        return;
    }
    struct bytes rest = wire_read_bytes(&reader, wire_reader_left(&reader));
    if (reader.err == ERR_OK && action->code == GROUP_ASKED) {
        on_asked(group_driver, slot, &peer, rest);
    } else if (reader.err == ERR_OK) {
        on_blamed(group_driver, &peer, rest);
    }
}

void group_driver_on_notice(struct group_driver *group_driver, struct group_driver_slot *slot,
                            const struct action *action) {
    switch ((enum group_notice)action->code) {
    case GROUP_PROBE:
    case GROUP_ASKED:
    case GROUP_BLAMED:
        on_peer(group_driver, slot, action);
        break;
    case GROUP_COMMITTED:
        on_committed(group_driver, slot);
        break;
    case GROUP_REFUSED:
        slot->is_refused = true;
        group_driver_note(group_driver, "group \"%s\": its master refuses this node", slot->wish.name);
        break;
    case GROUP_OUT:
        on_out(group_driver, slot);
        break;
    case GROUP_MASTER:
        group_driver_note(group_driver, "group \"%s\": this node is its master now", slot->wish.name);
        break;
    case GROUP_YIELDED:
        group_driver_note(group_driver, "group \"%s\": another node is its master now", slot->wish.name);
        break;
    }
}
