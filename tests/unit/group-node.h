/* One node of a group in a test's hand: its events are made here, what it does is looked at. */
#ifndef MNEMON_TESTS_GROUP_NODE_H
#define MNEMON_TESTS_GROUP_NODE_H

#include <stdlib.h>

#include "base/map.h"
#include "protocol/group/group.h"
#include "unit.h"

enum { NODE_DOCUMENT_SIZE_MAX = TOPOLOGY_SIZE_MAX + 256 };
static const uint64_t NODE_SECOND_US = 1000000;
static const uint64_t NODE_MINUTE_US = 60000000;
static const uint8_t NODE_ID[GROUP_ID_SIZE] = {'a', ' ', 'g', 'r', 'o', 'u', 'p'};

struct node {
    struct group *group;
    struct action *actions;
    uint8_t *memory;
    struct outbox out;
    struct peer self;
    uint64_t now_us;
};

static inline struct peer node_peer(uint32_t index) {
    struct peer peer = {.address = address_ipv4(10, 0, (uint8_t)(index >> 8), (uint8_t)index, 7070)};
    peer.key[0] = (uint8_t)index;
    peer.key[1] = (uint8_t)(index >> 8);
    peer.key[2] = 1;
    return peer;
}

/* A hash under the key: nobody forges here but on purpose. */
static inline void node_sign_as(const struct peer *signer, struct bytes bytes, uint8_t *signature) {
    uint64_t hash = map_hash(bytes, map_hash(bytes_of(signer->key, PEER_KEY_SIZE), 1));
    for (unsigned i = 0; i < GROUP_SIGNATURE_SIZE; i++) {
        signature[i] = (uint8_t)(hash >> i % 8 * 8);
    }
}

static inline void node_sign(void *context, struct bytes bytes, uint8_t *signature) {
    node_sign_as(context, bytes, signature);
}

static inline bool node_verify(void *context, const uint8_t *key, struct bytes bytes,
                               const uint8_t *signature) {
    uint8_t expected[GROUP_SIGNATURE_SIZE];
    struct peer signer = {0};
    (void)context;
    memcpy(signer.key, key, PEER_KEY_SIZE);
    node_sign_as(&signer, bytes, expected);
    return memcmp(expected, signature, GROUP_SIGNATURE_SIZE) == 0;
}

static inline void node_init(struct node *node, uint32_t index, struct group_config config) {
    *node = (struct node){.self = node_peer(index), .now_us = NODE_SECOND_US};
    config.self = node->self;
    config.seed = index + 7;
    memcpy(config.id, NODE_ID, GROUP_ID_SIZE);
    memcpy(config.founder, node_peer(0).key, PEER_KEY_SIZE);
    config.signer = (struct group_signer){.context = &node->self, .sign = node_sign, .verify = node_verify};
    size_t actions_max = group_actions_max(&config);
    node->actions = calloc(actions_max, sizeof *node->actions);
    node->memory = malloc(group_memory_size(&config));
    assert_true(node->actions != NULL && node->memory != NULL);
    outbox_init(&node->out, node->actions, actions_max, node->memory, group_memory_size(&config));
    assert_int_equal(group_new(&config, &node->group), ERR_OK);
}

static inline void node_done(struct node *node) {
    group_free(node->group);
    free(node->actions);
    free(node->memory);
}

static inline void node_step(struct node *node, struct event event) {
    event.now_us = node->now_us;
    outbox_clear(&node->out);
    group_step(node->group, &event, &node->out);
}

static inline void node_command(struct node *node, enum group_command command, struct bytes bytes) {
    node_step(node, (struct event){.kind = EVENT_COMMAND, .code = command, .bytes = bytes});
}

static inline void node_receive(struct node *node, const struct peer *from, struct group_message message) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct event event = {.kind = EVENT_MESSAGE, .from = from->address};
    memcpy(event.from_key, from->key, PEER_KEY_SIZE);
    event.bytes = group_message_write(&message, NODE_ID, memory);
    node_step(node, event);
}

/* What the last step saved is durable. */
static inline void node_saved(struct node *node) {
    for (size_t i = 0; i < node->out.actions_count; i++) {
        if (node->out.actions[i].kind == ACTION_SAVE) {
            struct event event = {
                .kind = EVENT_SAVED, .code = GROUP_SLOT, .number = node->out.actions[i].number};
            node_step(node, event);
            return;
        }
    }
}

/* How many of this kind left in the last step; the last of them to ret (may be NULL). */
static inline unsigned node_sent(const struct node *node, enum group_message_kind kind,
                                 struct group_message *ret) {
    unsigned count = 0;
    for (size_t i = 0; i < node->out.actions_count; i++) {
        struct group_message message;
        if (node->out.actions[i].kind != ACTION_SEND) {
            continue;
        }
        assert_int_equal(group_message_read(node->out.actions[i].bytes, NODE_ID, &message),
                         GROUP_MESSAGE_GOOD);
        if (message.kind == kind) {
            count++;
            if (ret != NULL) {
                *ret = message;
            }
        }
    }
    return count;
}

static inline bool node_noticed(const struct node *node, enum group_notice notice) {
    for (size_t i = 0; i < node->out.actions_count; i++) {
        if (node->out.actions[i].kind == ACTION_NOTICE && node->out.actions[i].code == notice) {
            return true;
        }
    }
    return false;
}

/* ---- documents ---- */

struct node_document {
    uint8_t bytes[NODE_DOCUMENT_SIZE_MAX];
    size_t size;
    struct group_version version;
};

/* Members `first` to first + count - 1 in a ring, the first of them master. */
static inline void node_write_document(struct node_document *document, uint32_t term, uint32_t sequence,
                                       uint32_t first, uint32_t count, const struct peer *signer) {
    static struct topology topology; /* large; a test has one thread */
    struct wire_writer writer;
    topology = (struct topology){.sequence = sequence, .k = 2, .members_count = count};
    for (uint32_t i = 0; i < count; i++) {
        topology.members[i] = node_peer(first + i);
        if (count > 2 && i + 1 == count) {
            continue;
        }
        if (i == 0 && count > 2) { /* the edge that closes the ring comes second of the first member's */
            topology.edges[topology.edges_count++] = (struct topology_edge){0, 1, 1000};
            topology.edges[topology.edges_count++] = (struct topology_edge){0, (uint16_t)(count - 1), 1000};
        } else if (i + 1 < count) {
            topology.edges[topology.edges_count++] =
                (struct topology_edge){(uint16_t)i, (uint16_t)(i + 1), 1000};
        }
    }
    wire_writer_init(&writer, document->bytes, sizeof document->bytes);
    wire_write_bytes(&writer, BYTES("topology"));
    wire_write_bytes(&writer, bytes_of(NODE_ID, GROUP_ID_SIZE));
    wire_write_u32(&writer, term);
    wire_write_bytes(&writer, bytes_of(signer->key, PEER_KEY_SIZE));
    struct bytes body =
        topology_write(&topology, document->bytes + writer.size, sizeof document->bytes - writer.size);
    size_t size = writer.size + body.size;
    node_sign_as(signer, bytes_of(document->bytes, size), document->bytes + size);
    document->size = size + GROUP_SIGNATURE_SIZE;
    document->version = (struct group_version){term, sequence};
}

static inline uint8_t node_pieces(const struct node_document *document) {
    return (uint8_t)((document->size + GROUP_PIECE_SIZE - 1) / GROUP_PIECE_SIZE);
}

static inline void node_receive_piece(struct node *node, const struct peer *from,
                                      const struct node_document *document, uint8_t piece) {
    size_t at = (size_t)piece * GROUP_PIECE_SIZE;
    size_t left = document->size - at;
    struct group_message message = {
        .kind = GROUP_MESSAGE_PIECE,
        .held = document->version,
        .version = document->version,
        .piece = piece,
        .pieces_count = node_pieces(document),
        .contents = bytes_of(document->bytes + at, left < GROUP_PIECE_SIZE ? left : GROUP_PIECE_SIZE)};
    node_receive(node, from, message);
}

/* True where it holds then. */
static inline bool node_offer(struct node *node, const struct peer *from,
                              const struct node_document *document) {
    for (uint8_t piece = 0; piece < node_pieces(document); piece++) {
        node_receive_piece(node, from, document, piece);
    }
    return group_term(node->group) == document->version.term &&
           group_sequence(node->group) == document->version.sequence;
}

/* A life that begins with this document. */
static inline void node_restore(struct node *node, const struct node_document *document) {
    node_step(node, (struct event){.kind = EVENT_RESTORED,
                                   .code = GROUP_SLOT,
                                   .bytes = bytes_of(document->bytes, document->size)});
    node_step(node, (struct event){.kind = EVENT_START});
}

#endif
