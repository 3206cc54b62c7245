#include "protocol/ring/message.h"

enum vnode_flag { VNODE_HAS_ADDRESS = 1, VNODE_IS_IPV6 = 2, VNODE_HAS_KEY = 4, VNODE_FLAGS_MAX = 7 };

/* ---- places ---- */

void message_write_id(struct wire_writer *writer, struct ring_id id) {
    for (unsigned i = 0; i < 8; i++) {
        wire_write_u8(writer, (uint8_t)(id.high >> (56 - 8 * i)));
    }
    for (unsigned i = 0; i < 8; i++) {
        wire_write_u8(writer, (uint8_t)(id.low >> (56 - 8 * i)));
    }
}

struct ring_id message_read_id(struct wire_reader *reader) {
    uint8_t bytes[RING_ID_SIZE];
    wire_read_array(reader, bytes, sizeof bytes);
    struct ring_id id = {0};
    for (unsigned i = 0; i < 8; i++) {
        id.high = id.high << 8 | bytes[i];
        id.low = id.low << 8 | bytes[8 + i];
    }
    return id;
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
        if (flags != 0) {
            wire_read_fail(reader, ERR_INVALID, "flags of a place without an address");
        }
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

/* A place that can be asked; only lists have padding. */
static void read_real_vnode(struct wire_reader *reader, struct sha256 *sha256, struct vnode *ret_vnode) {
    message_read_vnode(reader, sha256, ret_vnode);
    if (reader->err == ERR_OK && vnode_is_padding(ret_vnode)) {
        wire_read_fail(reader, ERR_INVALID, "place without an address");
    }
}

/* ---- bodies ---- */

static void write_vnodes(struct wire_writer *writer, const struct message *message) {
    wire_write_u8(writer, message->vnodes_count);
    for (unsigned i = 0; i < message->vnodes_count; i++) {
        message_write_vnode(writer, &message->vnodes[i]);
    }
}

static void read_vnodes(struct wire_reader *reader, struct sha256 *sha256, struct message *message) {
    uint8_t count = wire_read_u8_max(reader, RING_LIST_MAX);
    for (unsigned i = 0; i < count; i++) {
        message_read_vnode(reader, sha256, &message->vnodes[i]);
    }
    message->vnodes_count = count;
}

/* Without padding. */
static void read_real_vnodes(struct wire_reader *reader, struct sha256 *sha256, struct message *message,
                             uint8_t count_max) {
    uint8_t count = wire_read_u8_max(reader, count_max);
    for (unsigned i = 0; i < count; i++) {
        read_real_vnode(reader, sha256, &message->vnodes[i]);
    }
    message->vnodes_count = count;
}

static void write_nodes(struct wire_writer *writer, const struct message *message) {
    wire_write_u8(writer, message->status);
    wire_write_bool(writer, message->is_whole);
    wire_write_u8(writer, message->vnodes_count);
    for (unsigned i = 0; i < message->vnodes_count; i++) {
        message_write_vnode(writer, &message->vnodes[i]);
        wire_write_u8(writer, message->nodes_vnodes_count[i]);
    }
}

static void read_nodes(struct wire_reader *reader, struct sha256 *sha256, struct message *message) {
    message->status = wire_read_u8_max(reader, MODE_CHORD);
    message->is_whole = wire_read_bool(reader);
    uint8_t count = wire_read_u8_max(reader, MESSAGE_VNODES_MAX);
    for (unsigned i = 0; i < count; i++) {
        read_real_vnode(reader, sha256, &message->vnodes[i]);
        uint8_t vnodes_count = wire_read_u8_max(reader, RING_VIRTUAL_MAX);
        if (reader->err == ERR_OK &&
            (vnodes_count == 0 || message->vnodes[i].index + vnodes_count > RING_VIRTUAL_MAX)) {
            wire_read_fail(reader, ERR_INVALID, "number of places");
        }
        message->nodes_vnodes_count[i] = vnodes_count;
    }
    message->vnodes_count = count;
}

static void message_write_body(struct wire_writer *writer, const struct message *message) {
    switch ((enum message_kind)message->kind) {
    case MESSAGE_ASK_STATE:
    case MESSAGE_PING:
        wire_write_u8(writer, message->to);
        wire_write_u8(writer, message->from);
        break;
    case MESSAGE_NOTIFY:
        wire_write_u8(writer, message->to);
        wire_write_u8(writer, message->from);
        wire_write_u64(writer, message->digest);
        break;
    case MESSAGE_ASK_BEFORE:
        wire_write_u8(writer, message->to);
        wire_write_u8(writer, message->from);
        wire_write_u8(writer, message->wanted);
        wire_write_u64(writer, message->digest);
        break;
    case MESSAGE_BEFORE:
        wire_write_u8(writer, message->to);
        wire_write_u8(writer, message->status);
        write_vnodes(writer, message);
        break;
    case MESSAGE_STATE:
        wire_write_u8(writer, message->to);
        wire_write_u8(writer, message->status);
        if (message->status == MESSAGE_MEMBER) {
            message_write_vnode(writer, &message->predecessor);
            write_vnodes(writer, message);
        }
        break;
    case MESSAGE_PONG:
        wire_write_u8(writer, message->to);
        wire_write_u8(writer, message->status);
        break;
    case MESSAGE_FIND:
        message_write_id(writer, message->key);
        wire_write_u8(writer, message->wanted);
        break;
    case MESSAGE_FOUND:
        wire_write_u8(writer, message->to);
        wire_write_u8(writer, message->status);
        if (message->status == FOUND_OWNER) {
            message_write_vnode(writer, &message->predecessor);
        }
        write_vnodes(writer, message);
        break;
    case MESSAGE_ASK_NODES:
    case MESSAGE_NODES:
        write_nodes(writer, message);
        break;
    case MESSAGE_REFUSED:
        wire_write_u8(writer, message->status);
        break;
    case MESSAGE_CHALLENGE:
    case MESSAGE_KINDS_END:
        break;
    }
}

static void message_read_body(struct wire_reader *reader, struct sha256 *sha256, struct message *message) {
    switch ((enum message_kind)message->kind) {
    case MESSAGE_ASK_STATE:
    case MESSAGE_PING:
        message->to = wire_read_u8_max(reader, RING_VIRTUAL_MAX - 1);
        message->from = wire_read_u8_max(reader, RING_VIRTUAL_MAX - 1);
        break;
    case MESSAGE_NOTIFY:
        message->to = wire_read_u8_max(reader, RING_VIRTUAL_MAX - 1);
        message->from = wire_read_u8_max(reader, RING_VIRTUAL_MAX - 1);
        message->digest = wire_read_u64(reader);
        break;
    case MESSAGE_ASK_BEFORE:
        message->to = wire_read_u8_max(reader, RING_VIRTUAL_MAX - 1);
        message->from = wire_read_u8_max(reader, RING_VIRTUAL_MAX - 1);
        message->wanted = wire_read_u8_max(reader, RING_LIST_MAX);
        message->digest = wire_read_u64(reader);
        break;
    case MESSAGE_BEFORE:
        message->to = wire_read_u8_max(reader, RING_VIRTUAL_MAX - 1);
        message->status = wire_read_u8_max(reader, MESSAGE_NONE);
        read_real_vnodes(reader, sha256, message, RING_LIST_MAX);
        break;
    case MESSAGE_STATE:
        message->to = wire_read_u8_max(reader, RING_VIRTUAL_MAX - 1);
        message->status = wire_read_u8_max(reader, MESSAGE_NONE);
        if (reader->err == ERR_OK && message->status == MESSAGE_MEMBER) {
            read_real_vnode(reader, sha256, &message->predecessor);
            read_vnodes(reader, sha256, message);
        }
        break;
    case MESSAGE_PONG:
        message->to = wire_read_u8_max(reader, RING_VIRTUAL_MAX - 1);
        message->status = wire_read_u8_max(reader, MESSAGE_NONE);
        break;
    case MESSAGE_FIND:
        message->key = message_read_id(reader);
        message->wanted = wire_read_u8_max(reader, RING_LIST_MAX);
        break;
    case MESSAGE_FOUND:
        message->to = wire_read_u8_max(reader, RING_VIRTUAL_MAX - 1);
        message->status = wire_read_u8_max(reader, FOUND_NONE);
        if (reader->err == ERR_OK && message->status == FOUND_OWNER) {
            read_real_vnode(reader, sha256, &message->predecessor);
        }
        read_vnodes(reader, sha256, message);
        break;
    case MESSAGE_ASK_NODES:
    case MESSAGE_NODES:
        read_nodes(reader, sha256, message);
        break;
    case MESSAGE_REFUSED:
        message->status = wire_read_u8_max(reader, RING_REASONS_END - 1);
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
        if (zeros.data[i] != 0) {
            wire_read_fail(reader, ERR_INVALID, "padding that is not zero");
            return;
        }
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
    message_write_body(&writer, message);
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
    message_read_body(&reader, sha256, message);
    read_padding(&reader, message);
    return wire_reader_finish(&reader, NULL) == ERR_OK;
}
