/*
 * message - what nodes of a ring say to each other, and its bytes. Layouts: docs/protocol/ring.md.
 *
 * One struct for all kinds; which members count is said beside each. A place travels as address, key and
 * virtual index; its ID is computed by whoever reads it, so that nobody can lie about one. A padding entry of
 * a successor list has no address (port 0) and travels as its ID.
 */
#ifndef MNEMON_PROTOCOL_RING_MESSAGE_H
#define MNEMON_PROTOCOL_RING_MESSAGE_H

#include "base/step.h"
#include "base/wire.h"
#include "protocol/ring/ring_id.h"

enum {
    RING_VERSION = 1,
    RING_LIST_MAX = 20, /* a list of IPv6 addresses and keys fits one message */
    RING_CHARTER_SIZE = 16,
};

/* A place somebody has. */
struct vnode {
    struct peer peer;
    uint8_t index; /* virtual */
    struct ring_id id;
};

/* Why a message is refused. */
enum ring_reason { RING_OTHER_VERSION, RING_OTHER_CHARTER, RING_REASONS_END };

enum message_kind {
    MESSAGE_ASK_STATE = 1, /* to place: your list and predecessor? */
    MESSAGE_STATE,
    MESSAGE_NOTIFY, /* to place: I, from place, take myself for your predecessor */
    MESSAGE_PING,   /* to place: are you a member? */
    MESSAGE_PONG,
    MESSAGE_FIND, /* who is responsible for the key? */
    MESSAGE_FOUND,
    MESSAGE_ASK_NODES, /* these nodes are in my table; which are in yours? */
    MESSAGE_NODES,
    MESSAGE_REFUSED,
    MESSAGE_CHALLENGE,  /* ask again with this token: the answer would be too large for a stranger */
    MESSAGE_ASK_BEFORE, /* to place: who are before you? */
    MESSAGE_BEFORE,
    MESSAGE_KINDS_END,
};

enum message_status { MESSAGE_MEMBER, MESSAGE_BUSY, MESSAGE_NONE };

/* The status of a MESSAGE_FOUND. */
enum message_found {
    FOUND_NEXT, /* places before the key that are nearer, and the predecessor of the node that answers */
    FOUND_SUCCESSORS, /* places behind the key: the first is its owner, if it lives */
    FOUND_OWNER,      /* the node that answers is responsible; it and its successors */
    FOUND_NONE,       /* it is no member */
};

/* What keeps the lists of a node, in MESSAGE_ASK_NODES and MESSAGE_NODES. */
enum message_mode { MODE_IDLE, MODE_JOINING, MODE_SMALL, MODE_CHORD };

enum {
    MESSAGE_HEADER_SIZE = 34,
    MESSAGE_VNODES_MAX = RING_LIST_MAX + 1, /* of NODES: all others of a small ring and the sender */
    MESSAGE_VNODE_SIZE_MAX = 52,
    MESSAGE_PADDED_SIZE = (STEP_MESSAGE_SIZE_MAX + 2) / 3, /* a question from a stranger: no amplification */
};

/* The longest of each kind: IPv6 places with keys. */
_Static_assert(MESSAGE_HEADER_SIZE + 2 + MESSAGE_VNODE_SIZE_MAX + 1 +
                       RING_LIST_MAX * MESSAGE_VNODE_SIZE_MAX <=
                   STEP_MESSAGE_SIZE_MAX,
               "STATE and FOUND: a predecessor and a list; BEFORE has no predecessor");
_Static_assert(MESSAGE_HEADER_SIZE + 3 + MESSAGE_VNODES_MAX * (MESSAGE_VNODE_SIZE_MAX + 1) + 2 <=
                   STEP_MESSAGE_SIZE_MAX,
               "ASK_NODES with its padding; NODES has none");

struct message {
    uint8_t version;
    uint8_t kind;
    uint8_t charter[RING_CHARTER_SIZE];
    uint64_t number; /* of the question, repeated in the answer */
    uint64_t token;  /* question: what the receiver gave us last; answer: for the asker's next question */
    uint8_t to;      /* index of the place that is asked, or that answers */
    uint8_t from;    /* index of the asking place */
    uint8_t status;  /* message_status, message_found, message_mode, ring_reason */
    bool is_whole;   /* NODES: all nodes of the ring are named */
    uint8_t wanted;  /* FIND, ASK_BEFORE: places */
    uint64_t digest; /* NOTIFY: of the chain before the sender; ASK_BEFORE: of its list. See before.c */
    struct ring_id key;
    struct vnode predecessor;                       /* STATE, FOUND_OWNER */
    struct vnode vnodes[MESSAGE_VNODES_MAX];        /* STATE: the list; FOUND; NODES: first of each; BEFORE */
    uint8_t nodes_vnodes_count[MESSAGE_VNODES_MAX]; /* NODES: how many places each has */
    uint8_t vnodes_count;
    bool is_padded; /* questions: to MESSAGE_PADDED_SIZE */
};

static inline bool vnode_is_padding(const struct vnode *vnode) {
    return vnode->peer.address.port == 0;
}

/* Always fits. Returns what was written to memory. */
struct bytes message_write(const struct message *message, uint8_t memory[STEP_MESSAGE_SIZE_MAX]);

/*
 * False if the bytes are no message; *ret_message then holds at most version and kind. If it is of another
 * version or charter than expected, only the header is read.
 */
bool message_read(struct bytes bytes, const uint8_t charter[RING_CHARTER_SIZE], struct sha256 *sha256,
                  struct message *ret_message);

/* One place, for commands, notices and messages. */
void message_write_vnode(struct wire_writer *writer, const struct vnode *vnode);
void message_read_vnode(struct wire_reader *reader, struct sha256 *sha256, struct vnode *ret_vnode);
void message_write_id(struct wire_writer *writer, struct ring_id id);
struct ring_id message_read_id(struct wire_reader *reader);

static inline bool message_is_question(uint8_t kind) {
    return kind == MESSAGE_ASK_STATE || kind == MESSAGE_PING || kind == MESSAGE_FIND ||
           kind == MESSAGE_ASK_NODES || kind == MESSAGE_ASK_BEFORE;
}

#endif
