#include "protocol/ring/message.h"

enum vnode_flag { VNODE_HAS_ADDRESS = 1, VNODE_IS_IPV6 = 2, VNODE_HAS_KEY = 4, VNODE_FLAGS_MAX = 7 };

/* ---- places ---- */

void message_write_id(struct wire_writer *writer, struct ring_id id) {
    uint8_t bytes[RING_ID_SIZE];
    ring_id_write(id, bytes);
    wire_write_bytes(writer, bytes_of(bytes, sizeof bytes));
}

struct ring_id message_read_id(struct wire_reader *reader) {
    uint8_t bytes[RING_ID_SIZE];
    wire_read_array(reader, bytes, sizeof bytes);
    return ring_id_read(bytes);
}

void message_write_vnode(struct wire_writer *writer, const struct vnode *vnode) {
    const struct peer *peer = &vnode->peer;
    if (vnode_is_padding(vnode)) {
        wire_write_u8(writer, 0);
        message_write_id(writer, vnode->id);
        return;
    }
    bool is_ipv4 = address_is_ipv4(&peer->address);
    unsigned flags =
        VNODE_HAS_ADDRESS | (is_ipv4 ? 0u : VNODE_IS_IPV6) | (peer_has_key(peer) ? VNODE_HAS_KEY : 0u);
    wire_write_u8(writer, (uint8_t)flags);
    peer_write_short(writer, &peer->address);
    wire_write_u8(writer, vnode->index);
    if ((flags & VNODE_HAS_KEY) != 0) {
        wire_write_bytes(writer, peer_key(peer));
    }
}

void message_read_vnode(struct wire_reader *reader, struct sha256 *sha256, struct vnode *ret_vnode) {
    *ret_vnode = (struct vnode){0};
    unsigned flags = wire_read_u8_max(reader, VNODE_FLAGS_MAX);
    if (reader->err == ERR_OK && (flags & VNODE_HAS_ADDRESS) == 0) {
        wire_read_check(reader, flags == 0, "flags of a place without an address");
        ret_vnode->id = message_read_id(reader);
        return;
    }
    peer_read_short(reader, (flags & VNODE_IS_IPV6) != 0, &ret_vnode->peer.address);
    ret_vnode->index = wire_read_u8_max(reader, RING_VIRTUAL_MAX - 1);
    if ((flags & VNODE_HAS_KEY) != 0) {
        peer_read_key(reader, ret_vnode->peer.key);
    }
    if (reader->err == ERR_OK) {
        ret_vnode->id = ring_id_of_node(sha256, &ret_vnode->peer.address, ret_vnode->index);
    }
}

static void code_vnode(struct wire_coder *coder, struct sha256 *sha256, struct vnode *vnode) {
    if (coder->reader != NULL) {
        message_read_vnode(coder->reader, sha256, vnode);
    } else {
        message_write_vnode(coder->writer, vnode);
    }
}

/* A place that can be asked; only lists have padding. */
static void code_real_vnode(struct wire_coder *coder, struct sha256 *sha256, struct vnode *vnode) {
    code_vnode(coder, sha256, vnode);
    wire_code_check(coder, !vnode_is_padding(vnode), "place without an address");
}

/* ---- bodies ---- */

static void code_index(struct wire_coder *coder, uint8_t *index) {
    wire_code_u8(coder, index, RING_VIRTUAL_MAX - 1);
}

static void code_key(struct wire_coder *coder, struct ring_id *key) {
    if (coder->reader != NULL) {
        *key = message_read_id(coder->reader);
    } else {
        message_write_id(coder->writer, *key);
    }
}

static void code_vnodes(struct wire_coder *coder, struct sha256 *sha256, struct message *message,
                        bool are_real) {
    wire_code_u8(coder, &message->vnodes_count, RING_LIST_MAX);
    for (unsigned i = 0; i < message->vnodes_count; i++) {
        (are_real ? code_real_vnode : code_vnode)(coder, sha256, &message->vnodes[i]);
    }
}

static void code_nodes(struct wire_coder *coder, struct sha256 *sha256, struct message *message) {
    wire_code_u8(coder, &message->status, MODE_CHORD);
    wire_code_bool(coder, &message->is_whole);
    wire_code_u8(coder, &message->vnodes_count, MESSAGE_VNODES_MAX);
    for (unsigned i = 0; i < message->vnodes_count; i++) {
        uint8_t *count = &message->nodes_vnodes_count[i];
        code_real_vnode(coder, sha256, &message->vnodes[i]);
        wire_code_u8(coder, count, RING_VIRTUAL_MAX);
        wire_code_check(coder, *count > 0 && message->vnodes[i].index + *count <= RING_VIRTUAL_MAX,
                        "number of places");
    }
}

/* sha256: of a reader only. */
static void message_code_body(struct wire_coder *coder, struct sha256 *sha256, struct message *message) {
    switch ((enum message_kind)message->kind) {
    case MESSAGE_ASK_STATE:
    case MESSAGE_PING:
        code_index(coder, &message->to);
        code_index(coder, &message->from);
        break;
    case MESSAGE_NOTIFY:
        code_index(coder, &message->to);
        code_index(coder, &message->from);
        wire_code_u64(coder, &message->digest);
        break;
    case MESSAGE_ASK_BEFORE:
        code_index(coder, &message->to);
        code_index(coder, &message->from);
        wire_code_u8(coder, &message->wanted, RING_LIST_MAX);
        wire_code_u64(coder, &message->digest);
        break;
    case MESSAGE_BEFORE:
        code_index(coder, &message->to);
        wire_code_u8(coder, &message->status, MESSAGE_NONE);
        code_vnodes(coder, sha256, message, true);
        break;
    case MESSAGE_STATE:
        code_index(coder, &message->to);
        wire_code_u8(coder, &message->status, MESSAGE_NONE);
        if (message->status == MESSAGE_MEMBER) {
            code_real_vnode(coder, sha256, &message->predecessor);
            code_vnodes(coder, sha256, message, false);
        }
        break;
    case MESSAGE_PONG:
        code_index(coder, &message->to);
        wire_code_u8(coder, &message->status, MESSAGE_NONE);
        break;
    case MESSAGE_FIND:
        code_key(coder, &message->key);
        wire_code_u8(coder, &message->wanted, RING_LIST_MAX);
        break;
    case MESSAGE_FOUND:
        code_index(coder, &message->to);
        wire_code_u8(coder, &message->status, FOUND_NONE);
        if (message->status == FOUND_OWNER) {
            code_real_vnode(coder, sha256, &message->predecessor);
        }
        code_vnodes(coder, sha256, message, false);
        break;
    case MESSAGE_ASK_NODES:
    case MESSAGE_NODES:
        code_nodes(coder, sha256, message);
        break;
    case MESSAGE_REFUSED:
        wire_code_u8(coder, &message->status, RING_REASONS_END - 1);
        break;
    case MESSAGE_CHALLENGE:
    case MESSAGE_KINDS_END:
        break;
    }
}

/* ---- messages ---- */

/* As many zeros as bring a question to MESSAGE_PADDED_SIZE; two bytes of that are their number. */
static void write_padding(struct wire_writer *writer, const struct message *message) {
    if (!message_is_question(message->kind)) {
        return;
    }
    bool is_needed = message->is_padded && writer->size + 2 < MESSAGE_PADDED_SIZE;
    wire_write_u16(writer, is_needed ? (uint16_t)(MESSAGE_PADDED_SIZE - writer->size - 2) : 0);
    while (is_needed && writer->size < MESSAGE_PADDED_SIZE) {
        wire_write_u8(writer, 0);
    }
}

static void read_padding(struct wire_reader *reader, struct message *message) {
    message->is_padded = false;
    if (!message_is_question(message->kind)) {
        return;
    }
    struct bytes zeros = wire_read_bytes(reader, wire_read_u16(reader));
    message->is_padded = zeros.size > 0;
    for (size_t i = 0; i < zeros.size; i++) {
        wire_read_check(reader, zeros.data[i] == 0, "padding that is not zero");
    }
}

struct bytes message_write(const struct message *message, uint8_t memory[STEP_MESSAGE_SIZE_MAX]) {
    ASSERT(message->vnodes_count <= MESSAGE_VNODES_MAX);
    struct wire_writer writer;
    wire_writer_init(&writer, memory, STEP_MESSAGE_SIZE_MAX);
    wire_write_u8(&writer, message->version);
    wire_write_u8(&writer, message->kind);
    wire_write_bytes(&writer, bytes_of(message->charter, RING_CHARTER_SIZE));
    wire_write_u64(&writer, message->number);
    wire_write_u64(&writer, message->token);
    struct wire_coder coder = {.writer = &writer};
    message_code_body(&coder, NULL, (struct message *)message); /* writing changes nothing */
    write_padding(&writer, message);
    return wire_writer_bytes(&writer); /* message.h asserts that there is room */
}

bool message_read(struct bytes bytes, const uint8_t charter[RING_CHARTER_SIZE], struct sha256 *sha256,
                  struct message *ret_message) {
    struct message *message = ret_message;
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    message->version = wire_read_u8(&reader);
    message->kind = wire_read_u8_max(&reader, MESSAGE_KINDS_END - 1);
    wire_read_array(&reader, message->charter, RING_CHARTER_SIZE);
    message->number = wire_read_u64(&reader);
    message->token = wire_read_u64(&reader);
    message->vnodes_count = 0;
    message->status = 0;
    message->to = 0; /* not all kinds have them */
    message->from = 0;
    if (reader.err != ERR_OK || message->kind == 0) {
        return false;
    }
    bool is_ours =
        message->version == RING_VERSION && memcmp(message->charter, charter, RING_CHARTER_SIZE) == 0;
    if (!is_ours && message->kind != MESSAGE_REFUSED) {
        return true;
    }
    struct wire_coder coder = {.reader = &reader};
    message_code_body(&coder, sha256, message);
    read_padding(&reader, message);
    return wire_reader_finish(&reader, NULL) == ERR_OK;
}
