#include "protocol/crowd/crowd_message.h"

enum { AGE_SIZE = 2, AGE_MAX = UINT16_MAX };

/* ---- entries ---- */

size_t crowd_message_entry_size(const struct crowd_neighbour *entry) {
    return peer_size(PEER_TAGGED, &entry->peer) + AGE_SIZE;
}

static void write_entries(struct wire_writer *writer, const struct crowd_message *message) {
    ASSERT(message->entries_count <= CROWD_SHUFFLE_MAX);
    wire_write_u8(writer, message->entries_count);
    for (unsigned i = 0; i < message->entries_count; i++) {
        const struct crowd_neighbour *entry = &message->entries[i];
        peer_write(writer, PEER_TAGGED, &entry->peer);
        wire_write_u16(writer, (uint16_t)(entry->age < AGE_MAX ? entry->age : AGE_MAX));
    }
}

static void read_entries(struct wire_reader *reader, uint8_t count_max, struct crowd_message *message) {
    message->entries_count = wire_read_u8_max(reader, count_max);
    for (unsigned i = 0; i < message->entries_count && reader->err == ERR_OK; i++) {
        peer_read(reader, PEER_TAGGED, &message->entries[i].peer);
        message->entries[i].age = wire_read_u16(reader);
    }
}

/* ---- bodies ---- */

static void write_padding(struct wire_writer *writer) {
    static const uint8_t zeros[CROWD_MESSAGE_PADDED_SIZE] = {0};
    wire_write_bytes(writer, bytes_of(zeros, CROWD_MESSAGE_PADDED_SIZE - writer->size));
}

static void read_join(struct wire_reader *reader, struct crowd_message *message) {
    message->token = wire_read_u64(reader);
    if (message->token != 0 || reader->err != ERR_OK) {
        return;
    }
    struct bytes padding = wire_read_bytes(reader, CROWD_MESSAGE_PADDED_SIZE - reader->offset);
    for (size_t i = 0; i < padding.size; i++) {
        if (padding.data[i] != 0) {
            wire_read_fail(reader, ERR_INVALID, "padding is zeros");
            return;
        }
    }
}

static struct bytes read_contents(struct wire_reader *reader, size_t size_max) {
    struct bytes contents = wire_read_string(reader, size_max);
    if (contents.size == 0 && reader->err == ERR_OK) {
        wire_read_fail(reader, ERR_INVALID, "nothing is said");
    }
    return contents;
}

static void write_hit(struct wire_writer *writer, const struct crowd_message *message) {
    bool is_other = message->holder.address.port != 0;
    ASSERT(message->contents.size <= CROWD_FINDING_SIZE_MAX);
    wire_write_u8(writer, message->hops);
    wire_write_bool(writer, is_other);
    if (is_other) {
        peer_write(writer, PEER_TAGGED, &message->holder);
    }
    wire_write_string(writer, message->contents);
}

static void read_hit(struct wire_reader *reader, struct crowd_message *message) {
    message->hops = wire_read_u8(reader);
    message->holder = (struct peer){0};
    if (wire_read_bool(reader)) {
        peer_read(reader, PEER_TAGGED, &message->holder);
    }
    message->contents = read_contents(reader, CROWD_FINDING_SIZE_MAX);
}

static void write_query(struct wire_writer *writer, const struct crowd_message *message) {
    ASSERT(message->contents.size <= CROWD_WISH_SIZE_MAX);
    wire_write_u8(writer, message->ttl);
    wire_write_u8(writer, message->hops);
    wire_write_u8(writer, message->fanout);
    wire_write_string(writer, message->contents);
}

static void read_query(struct wire_reader *reader, struct crowd_message *message) {
    message->ttl = wire_read_u8_max(reader, CROWD_TTL_CAP);
    message->hops = wire_read_u8(reader);
    message->fanout = wire_read_u8_max(reader, CROWD_FANOUT_MAX);
    if (message->fanout == 0 && reader->err == ERR_OK) {
        wire_read_fail(reader, ERR_INVALID, "fan-out 0");
    }
    message->contents = read_contents(reader, CROWD_WISH_SIZE_MAX);
}

static void message_message_write_body(struct wire_writer *writer, const struct crowd_message *message) {
    switch ((enum crowd_message_kind)message->kind) {
    case CROWD_MESSAGE_SHUFFLE:
    case CROWD_MESSAGE_SHUFFLED:
    case CROWD_MESSAGE_JOINED:
    case CROWD_MESSAGE_WELCOME:
        write_entries(writer, message);
        break;
    case CROWD_MESSAGE_BUSY:
    case CROWD_MESSAGE_ACK:
        break;
    case CROWD_MESSAGE_JOIN:
        wire_write_u64(writer, message->token);
        if (message->token == 0) {
            write_padding(writer);
        }
        break;
    case CROWD_MESSAGE_CHALLENGE:
        wire_write_u64(writer, message->token);
        break;
    case CROWD_MESSAGE_WALK:
        wire_write_u8(writer, message->hops);
        peer_write(writer, PEER_TAGGED, &message->entries[0].peer);
        break;
    case CROWD_MESSAGE_QUERY:
        write_query(writer, message);
        break;
    case CROWD_MESSAGE_HIT:
        write_hit(writer, message);
        break;
    case CROWD_MESSAGE_KINDS_END:
        break;
    }
}

static void message_message_read_body(struct wire_reader *reader, struct crowd_message *message) {
    switch (message->kind) {
    case CROWD_MESSAGE_SHUFFLE:
    case CROWD_MESSAGE_SHUFFLED:
    case CROWD_MESSAGE_JOINED:
        read_entries(reader, CROWD_SHUFFLE_MAX, message);
        break;
    case CROWD_MESSAGE_WELCOME:
        read_entries(reader, 1, message);
        break;
    case CROWD_MESSAGE_BUSY:
    case CROWD_MESSAGE_ACK:
        break;
    case CROWD_MESSAGE_JOIN:
        read_join(reader, message);
        break;
    case CROWD_MESSAGE_CHALLENGE:
        message->token = wire_read_u64(reader);
        break;
    case CROWD_MESSAGE_WALK:
        message->hops = wire_read_u8_max(reader, CROWD_WALK_HOPS_MAX);
        peer_read(reader, PEER_TAGGED, &message->entries[0].peer);
        message->entries[0].age = 0;
        message->entries_count = 1;
        break;
    case CROWD_MESSAGE_QUERY:
        read_query(reader, message);
        break;
    case CROWD_MESSAGE_HIT:
        read_hit(reader, message);
        break;
    default:
        wire_read_fail(reader, ERR_INVALID, "unknown kind");
    }
}

/* ---- messages ---- */

struct bytes crowd_message_write(const struct crowd_message *message,
                                 const uint8_t network[CROWD_NETWORK_SIZE],
                                 uint8_t memory[STEP_MESSAGE_SIZE_MAX]) {
    ASSERT(message->kind > 0 && message->kind < CROWD_MESSAGE_KINDS_END);
    struct wire_writer writer;
    wire_writer_init(&writer, memory, STEP_MESSAGE_SIZE_MAX);
    wire_write_u8(&writer, CROWD_VERSION);
    wire_write_u8(&writer, message->kind);
    wire_write_bytes(&writer, bytes_of(network, CROWD_NETWORK_SIZE));
    wire_write_u64(&writer, message->number);
    message_message_write_body(&writer, message);
    ASSERT(writer.err == ERR_OK);
    return bytes_of(memory, writer.size);
}

enum crowd_message_verdict crowd_message_read(struct bytes bytes, const uint8_t network[CROWD_NETWORK_SIZE],
                                              struct crowd_message *ret_message) {
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    ret_message->version = wire_read_u8(&reader);
    ret_message->kind = wire_read_u8(&reader);
    struct bytes its_network = wire_read_bytes(&reader, CROWD_NETWORK_SIZE);
    ret_message->number = wire_read_u64(&reader);
    if (reader.err != ERR_OK) {
        return CROWD_MESSAGE_MALFORMED;
    }
    if (ret_message->version != CROWD_VERSION || memcmp(its_network.data, network, CROWD_NETWORK_SIZE) != 0) {
        return CROWD_MESSAGE_FOREIGN;
    }
    message_message_read_body(&reader, ret_message);
    return wire_reader_finish(&reader, NULL) == ERR_OK ? CROWD_MESSAGE_GOOD : CROWD_MESSAGE_MALFORMED;
}
