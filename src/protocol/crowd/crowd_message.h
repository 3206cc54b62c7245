/*
 * crowd_message - what nodes of a crowd say to each other, and its bytes. Layouts: docs/protocol/crowd.md.
 *
 * One struct for all kinds; which members count is said beside each. Every message begins with version (1),
 * kind (1), network (16) and number (8).
 */
#ifndef MNEMON_PROTOCOL_CROWD_CROWD_MESSAGE_H
#define MNEMON_PROTOCOL_CROWD_CROWD_MESSAGE_H

#include "base/peer.h"
#include "base/step.h"

enum {
    CROWD_VERSION = 1,
    CROWD_NETWORK_SIZE = 16,
    CROWD_VIEW_MAX = 64,
    CROWD_SHUFFLE_MAX = 16,
    CROWD_CONTACTS_MAX = 16,
    CROWD_FANOUT_MAX = 16,
    CROWD_TTL_CAP = 15, /* of experiments; what a node takes from others: config.ttl_cap */
    CROWD_WISH_SIZE_MAX = 400,
    CROWD_FINDING_SIZE_MAX = 1000,
    CROWD_BLAME_TEXT_SIZE_MAX = 48,
};

/* A node as it is known to another. */
struct crowd_neighbour {
    struct peer peer;
    uint32_t age; /* shuffles of ours since it was made; 0 under CROWD_PROOFS */
};

/* The values are on the wire. */
enum crowd_message_kind {
    CROWD_MESSAGE_SHUFFLE = 1, /* entries: those that leave the sender's view, without the receiver; the
                                  sender itself is not written: the receiver adds it with age 0 */
    CROWD_MESSAGE_SHUFFLED,    /* entries */
    CROWD_MESSAGE_BUSY,        /* the shuffle is rejected: one of the sender's own is open */
    CROWD_MESSAGE_JOIN,        /* token; padded if it is 0 */
    CROWD_MESSAGE_CHALLENGE,   /* token: join again with it */
    CROWD_MESSAGE_JOINED,      /* entries: a random part of the view */
    CROWD_MESSAGE_WALK,        /* hops left, entries[0]: the node that joins */
    CROWD_MESSAGE_WELCOME, /* to the node that joins: entries, at most one: whose place in the sender's view
                              it took */
    CROWD_MESSAGE_QUERY,   /* number: of the query; ttl, hops, fanout, contents: the wish */
    CROWD_MESSAGE_ACK,     /* number: of the query */
    CROWD_MESSAGE_HIT, /* number: of the query; hops, holder (port 0: the sender), contents: the finding */
    CROWD_MESSAGE_KINDS_END,
};

enum {
    CROWD_MESSAGE_HEADER_SIZE = 26,
    CROWD_MESSAGE_ENTRY_SIZE_MAX = PEER_SIZE_MAX + 2,
    CROWD_MESSAGE_PADDED_SIZE = (STEP_MESSAGE_SIZE_MAX + 2) / 3,
    CROWD_WALK_HOPS_MAX = 16,
};

_Static_assert(CROWD_MESSAGE_HEADER_SIZE + 1 + CROWD_SHUFFLE_MAX * CROWD_MESSAGE_ENTRY_SIZE_MAX <=
                   STEP_MESSAGE_SIZE_MAX,
               "SHUFFLE");
_Static_assert(CROWD_MESSAGE_HEADER_SIZE + 3 + PEER_SIZE_MAX + CROWD_FINDING_SIZE_MAX <=
                   STEP_MESSAGE_SIZE_MAX,
               "HIT");

struct crowd_message {
    uint8_t version; /* as read; ours is written */
    uint8_t kind;
    uint64_t number;
    uint64_t token;
    uint8_t ttl;
    uint8_t hops; /* QUERY, HIT: that the query has gone; WALK: that are left */
    uint8_t fanout;
    uint8_t entries_count;
    struct crowd_neighbour entries[CROWD_SHUFFLE_MAX];
    struct peer holder;
    struct bytes contents; /* borrowed */
};

/* Always fits. Returns what was written to memory. */
struct bytes crowd_message_write(const struct crowd_message *message,
                                 const uint8_t network[CROWD_NETWORK_SIZE],
                                 uint8_t memory[STEP_MESSAGE_SIZE_MAX]);

enum crowd_message_verdict { CROWD_MESSAGE_GOOD, CROWD_MESSAGE_MALFORMED, CROWD_MESSAGE_FOREIGN };

/* If it is of another version or network, only the header is read. Members of another kind keep what they
 * held: *ret need not be cleared, which matters at a million shuffles a second. */
enum crowd_message_verdict crowd_message_read(struct bytes bytes, const uint8_t network[CROWD_NETWORK_SIZE],
                                              struct crowd_message *ret_message);

/* How long it is among entries. */
size_t crowd_message_entry_size(const struct crowd_neighbour *entry);

#endif
