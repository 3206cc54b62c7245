/* What a group says to its owner. */
#include <stdio.h>

#include "base/wire.h"
#include "node/group/grouping_state.h"
#include "node/transport/ringing.h"

enum { SENTENCE_SIZE_MAX = 160 };

static void on_probe(struct grouping *grouping, struct wire_reader *reader, const struct peer *peer) {
    uint32_t size = wire_read_u32(reader);
    if (reader->err == ERR_OK) {
        grouping_probe(grouping, peer, size);
    }
}

/* True: he has not been seen before. The oldest makes room. */
static bool remember_asked(struct grouping *grouping, struct grouping_slot *slot, const struct peer *peer) {
    size_t oldest = 0;
    for (size_t i = 0; i < slot->asked_count; i++) {
        if (peer_equal(&slot->asked[i].peer, peer)) {
            return false;
        }
        oldest = slot->asked[i].at_us < slot->asked[oldest].at_us ? i : oldest;
    }
    size_t at = slot->asked_count < GROUPING_ASKED_MAX ? slot->asked_count++ : oldest;
    slot->asked[at] = (struct grouping_asked){.peer = *peer, .at_us = grouping_now_us(grouping)};
    return true;
}

static void on_asked(struct grouping *grouping, struct grouping_slot *slot, const struct peer *peer,
                     struct bytes papers) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    if (grouping_papers_are_good(grouping, slot, peer, papers)) {
        ASSERT(slot->approvals_count < GROUPING_ASKED_MAX); /* one in a step */
        slot->approvals[slot->approvals_count++] = *peer;
        return;
    }
    if (remember_asked(grouping, slot, peer)) {
        grouping_note(grouping, "group \"%s\": %s wants to join%s", slot->wish.name,
                      address_format(&peer->address, address),
                      slot->rules.admission == GROUP_ADMISSION_INVITE
                          ? " and has no good invitation"
                          : "; \"mnemon group approve\" lets it in");
    }
}

static void on_committed(struct grouping *grouping, struct grouping_slot *slot) {
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
        grouping_note(grouping, "group \"%s\": topology %u.%u of %u member%s, master %s", slot->wish.name,
                      group_term(slot->group), group_sequence(slot->group), topology->members_count,
                      topology->members_count == 1 ? "" : "s",
                      address_format(&topology->members[0].address, address));
    }
    grouping_show(grouping, slot, true);
}

static void on_out(struct grouping *grouping, struct grouping_slot *slot) {
    if (slot->wish.is_leaving) {
        grouping_remove(grouping, slot);
    } else {
        grouping_note(grouping, "group \"%s\": this node was dropped, and asks to join again",
                      slot->wish.name);
    }
}

static void on_blamed(struct grouping *grouping, const struct peer *peer, struct bytes text) {
    char sentence[SENTENCE_SIZE_MAX];
    snprintf(sentence, sizeof sentence, "sends what makes no sense to a group: %.*s", BYTES_ARG(text));
    ringing_blame(grouping->ringing, peer, sentence);
}

static void on_peer(struct grouping *grouping, struct grouping_slot *slot, const struct action *action) {
    struct wire_reader reader;
    struct peer peer;
    wire_reader_init(&reader, action->bytes);
    group_read_peer(&reader, &peer);
    if (action->code == GROUP_PROBE) {
        on_probe(grouping, &reader, &peer);
        return;
    }
    struct bytes rest = wire_read_bytes(&reader, wire_reader_left(&reader));
    if (reader.err == ERR_OK && action->code == GROUP_ASKED) {
        on_asked(grouping, slot, &peer, rest);
    } else if (reader.err == ERR_OK) {
        on_blamed(grouping, &peer, rest);
    }
}

void grouping_on_notice(struct grouping *grouping, struct grouping_slot *slot, const struct action *action) {
    switch ((enum group_notice)action->code) {
    case GROUP_PROBE:
    case GROUP_ASKED:
    case GROUP_BLAMED:
        on_peer(grouping, slot, action);
        break;
    case GROUP_COMMITTED:
        on_committed(grouping, slot);
        break;
    case GROUP_REFUSED:
        slot->is_refused = true;
        grouping_note(grouping, "group \"%s\": its master refuses this node", slot->wish.name);
        break;
    case GROUP_OUT:
        on_out(grouping, slot);
        break;
    case GROUP_MASTER:
        grouping_note(grouping, "group \"%s\": this node is its master now", slot->wish.name);
        break;
    case GROUP_YIELDED:
        grouping_note(grouping, "group \"%s\": another node is its master now", slot->wish.name);
        break;
    }
}
