#include "protocol/crowd/crowd_message.h"

enum { AGE_SIZE = 2, AGE_MAX = UINT16_MAX };

/* ---- entries ---- */

size_t crowd_message_entry_size(const struct crowd_neighbour *entry) {
    return peer_size(PEER_TAGGED, &entry->peer) + AGE_SIZE;
}

static void code_entries(struct wire_coder *coder, uint8_t count_max, struct crowd_message *message) {
    wire_code_u8(coder, &message->entries_count, count_max);
    ASSERT(message->entries_count <= count_max);
    for (unsigned i = 0; i < message->entries_count; i++) {
        struct crowd_neighbour *entry = &message->entries[i];
        peer_code(coder, PEER_TAGGED, &entry->peer);
        if (coder->reader != NULL) {
            entry->age = wire_read_u16(coder->reader);
        } else {
            wire_write_u16(coder->writer, (uint16_t)(entry->age < AGE_MAX ? entry->age : AGE_MAX));
        }
    }
}

/* ---- bodies ---- */

static void write_padding(struct wire_writer *writer) {
    static const uint8_t zeros[CROWD_MESSAGE_PADDED_SIZE] = {0};
    wire_write_bytes(writer, bytes_of(zeros, CROWD_MESSAGE_PADDED_SIZE - writer->size));
}

static void read_padding(struct wire_reader *reader) {
    struct bytes padding = wire_read_bytes(reader, CROWD_MESSAGE_PADDED_SIZE - reader->offset);
    for (size_t i = 0; i < padding.size; i++) {
        wire_read_check(reader, padding.data[i] == 0, "padding is zeros");
    }
}

static void code_join(struct wire_coder *coder, struct crowd_message *message) {
    wire_code_u64(coder, &message->token);
    if (message->token == 0 && coder->reader != NULL) {
        read_padding(coder->reader);
    } else if (message->token == 0) {
        write_padding(coder->writer);
    }
}

static void code_contents(struct wire_coder *coder, struct bytes *contents, size_t size_max) {
    wire_code_string(coder, contents, size_max);
    wire_code_check(coder, contents->size > 0, "nothing is said");
}

static void code_hit(struct wire_coder *coder, struct crowd_message *message) {
    bool is_other = coder->reader == NULL && message->holder.address.port != 0;
    wire_code_u8(coder, &message->hops, UINT8_MAX);
    wire_code_bool(coder, &is_other);
    if (is_other) {
        peer_code(coder, PEER_TAGGED, &message->holder);
    } else if (coder->reader != NULL) {
        message->holder = (struct peer){0};
    }
    code_contents(coder, &message->contents, CROWD_FINDING_SIZE_MAX);
}

static void code_query(struct wire_coder *coder, struct crowd_message *message) {
    wire_code_u8(coder, &message->ttl, CROWD_TTL_CAP);
    wire_code_u8(coder, &message->hops, UINT8_MAX);
    wire_code_u8(coder, &message->fanout, CROWD_FANOUT_MAX);
    wire_code_check(coder, message->fanout > 0, "fan-out 0");
    code_contents(coder, &message->contents, CROWD_WISH_SIZE_MAX);
}

static void code_walk(struct wire_coder *coder, struct crowd_message *message) {
    wire_code_u8(coder, &message->hops, CROWD_WALK_HOPS_MAX);
    peer_code(coder, PEER_TAGGED, &message->entries[0].peer);
    if (coder->reader != NULL) {
        message->entries[0].age = 0;
        message->entries_count = 1;
    }
}

static void crowd_code_body(struct wire_coder *coder, struct crowd_message *message) {
    switch ((enum crowd_message_kind)message->kind) {
    case CROWD_MESSAGE_SHUFFLE:
    case CROWD_MESSAGE_SHUFFLED:
    case CROWD_MESSAGE_JOINED:
        code_entries(coder, CROWD_SHUFFLE_MAX, message);
        break;
    case CROWD_MESSAGE_WELCOME:
        code_entries(coder, 1, message);
        break;
    case CROWD_MESSAGE_BUSY:
    case CROWD_MESSAGE_ACK:
        break;
    case CROWD_MESSAGE_JOIN:
        code_join(coder, message);
        break;
    case CROWD_MESSAGE_CHALLENGE:
        wire_code_u64(coder, &message->token);
        break;
    case CROWD_MESSAGE_WALK:
        code_walk(coder, message);
        break;
    case CROWD_MESSAGE_QUERY:
        code_query(coder, message);
        break;
    case CROWD_MESSAGE_HIT:
        code_hit(coder, message);
        break;
    case CROWD_MESSAGE_KINDS_END:
    default:
        wire_code_check(coder, false, "unknown kind");
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
    struct wire_coder coder = {.writer = &writer};
    crowd_code_body(&coder, (struct crowd_message *)message); /* writing changes nothing */
    return wire_writer_bytes(&writer);
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
    struct wire_coder coder = {.reader = &reader};
    crowd_code_body(&coder, ret_message);
    return wire_reader_finish(&reader, NULL) == ERR_OK ? CROWD_MESSAGE_GOOD : CROWD_MESSAGE_MALFORMED;
}
