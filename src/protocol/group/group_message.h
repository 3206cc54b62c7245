/*
 * group_message - what nodes of a group say to each other, and its bytes. Layouts: docs/protocol/group.md.
 *
 * One struct for all kinds; which members count is said beside each. Every message begins with version (1),
 * kind (1), group (16), number (8), and term (4) and sequence (4) of the topology that the sender holds, 0
 * if it holds none: so a node that is behind is noticed by those it talks to.
 */
#ifndef MNEMON_PROTOCOL_GROUP_GROUP_MESSAGE_H
#define MNEMON_PROTOCOL_GROUP_GROUP_MESSAGE_H

#include "base/step.h"
#include "protocol/group/graph.h"

/* The values are on the wire. */
enum group_message_kind {
    GROUP_MESSAGE_JOIN = 1,  /* token, papers */
    GROUP_MESSAGE_CHALLENGE, /* token: join again with it */
    GROUP_MESSAGE_TAKEN,     /* peer: the master, which the request goes to */
    GROUP_MESSAGE_REFUSED,   /* by the master */
    GROUP_MESSAGE_REQUEST, /* peer: the node that wants to join; papers. From member to member until all have
                              seen it */
    GROUP_MESSAGE_ECHO,
    GROUP_MESSAGE_ECHOED,
    GROUP_MESSAGE_STRANGER, /* answer to a node that takes itself for a member */
    GROUP_MESSAGE_REPORT,   /* heard, estimates */
    GROUP_MESSAGE_REPORTED,
    GROUP_MESSAGE_PIECE, /* of document `version`: piece, pieces_count, contents */
    GROUP_MESSAGE_ACK,   /* of document `version`: mask of the pieces that are there; all ones: it holds */
    GROUP_MESSAGE_PULSE, /* beat, signature; `version`: what the master holds */
    GROUP_MESSAGE_LEAVE,
    GROUP_MESSAGE_LEFT,
    GROUP_MESSAGE_KINDS_END,
};

enum {
    GROUP_VERSION = 1,
    GROUP_ID_SIZE = 16,
    GROUP_SIGNATURE_SIZE = 64,
    GROUP_PAPERS_SIZE_MAX = 512, /* what a join request shows to the master's owner */
    GROUP_MESSAGE_HEADER_SIZE = 34,
    GROUP_PIECE_SIZE = 1024, /* all but the last have this */
    GROUP_PIECES_MAX = 64,
    GROUP_AGE_NEVER = 255,
};

/* Which topology. The higher term wins, then the higher sequence. */
struct group_version {
    uint32_t term;
    uint32_t sequence;
};

static inline int group_version_compare(struct group_version a, struct group_version b) {
    if (a.term != b.term) {
        return a.term < b.term ? -1 : 1;
    }
    return a.sequence == b.sequence ? 0 : a.sequence < b.sequence ? -1 : 1;
}

struct group_message {
    uint8_t kind;
    uint64_t number;
    struct group_version held; /* by the sender */
    uint64_t token;
    struct peer peer;
    struct bytes papers; /* borrowed, as all bytes here */
    struct group_version version;
    uint8_t piece;
    uint8_t pieces_count;
    struct bytes contents;
    uint64_t mask;
    uint64_t beat;
    uint8_t signature[GROUP_SIGNATURE_SIZE];
    struct bytes heard;     /* an age for each member, in the order of the topology `held` */
    struct bytes estimates; /* estimate.h */
};

/* How long ago a member was heard, in one byte: seconds below 128, then minutes, then GROUP_AGE_NEVER. */
uint8_t group_message_write_age(uint64_t age_us);
uint64_t group_message_read_age_us(uint8_t code);

/* How much of a REPORT is left for estimates, if so many members are in the topology. */
size_t group_message_estimates_size_max(size_t members_count);

/* Always fits. Returns what was written to memory. */
struct bytes group_message_write(const struct group_message *message, const uint8_t id[GROUP_ID_SIZE],
                                 uint8_t memory[STEP_MESSAGE_SIZE_MAX]);

enum group_message_verdict { GROUP_MESSAGE_GOOD, GROUP_MESSAGE_MALFORMED, GROUP_MESSAGE_FOREIGN };

/* If it is of another version or group, only the header is read. Members of another kind are zeros. */
enum group_message_verdict group_message_read(struct bytes bytes, const uint8_t id[GROUP_ID_SIZE],
                                              struct group_message *ret_message);

/* What is signed for a pulse, into memory of GROUP_PULSE_SIZE. */
enum { GROUP_PULSE_SIZE = 5 + GROUP_ID_SIZE + 16 };
struct bytes group_message_pulse(const uint8_t id[GROUP_ID_SIZE], struct group_version version, uint64_t beat,
                                 uint8_t memory[GROUP_PULSE_SIZE]);

#endif
