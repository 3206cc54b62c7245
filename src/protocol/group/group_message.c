#include "protocol/group/group_message.h"

enum { HEARD_LENGTH_SIZE_MAX = 2, SECONDS_EXACT = 128, SECOND_US = 1000000 };

_Static_assert(GROUP_MESSAGE_HEADER_SIZE + 8 + 2 + GROUP_PIECE_SIZE + 2 <= STEP_MESSAGE_SIZE_MAX, "PIECE");
_Static_assert(GROUP_MESSAGE_HEADER_SIZE + PEER_SIZE_MAX + 2 + GROUP_PAPERS_SIZE_MAX <= STEP_MESSAGE_SIZE_MAX,
               "REQUEST");

size_t group_message_estimates_size_max(size_t members_count) {
    size_t others = GROUP_MESSAGE_HEADER_SIZE + HEARD_LENGTH_SIZE_MAX + members_count;
    return STEP_MESSAGE_SIZE_MAX - others;
}

uint8_t group_message_write_age(uint64_t age_us) {
    uint64_t seconds = age_us / SECOND_US;
    if (seconds < SECONDS_EXACT) {
        return (uint8_t)seconds;
    }
    uint64_t code = SECONDS_EXACT + (seconds - SECONDS_EXACT) / 60;
    return (uint8_t)(code < GROUP_AGE_NEVER ? code : GROUP_AGE_NEVER);
}

uint64_t group_message_read_age_us(uint8_t code) {
    uint64_t seconds = code < SECONDS_EXACT ? code : SECONDS_EXACT + (uint64_t)(code - SECONDS_EXACT) * 60;
    return seconds * SECOND_US;
}

/* ---- bodies ---- */

static void write_version(struct wire_writer *writer, struct group_version version) {
    wire_write_u32(writer, version.term);
    wire_write_u32(writer, version.sequence);
}

static struct group_version message_read_version(struct wire_reader *reader) {
    struct group_version version = {.term = wire_read_u32(reader)};
    version.sequence = wire_read_u32(reader);
    return version;
}

static void write_piece(struct wire_writer *writer, const struct group_message *message) {
    ASSERT(message->piece < message->pieces_count && message->pieces_count <= GROUP_PIECES_MAX);
    ASSERT(message->contents.size > 0 && message->contents.size <= GROUP_PIECE_SIZE);
    write_version(writer, message->version);
    wire_write_u8(writer, message->piece);
    wire_write_u8(writer, message->pieces_count);
    wire_write_string(writer, message->contents);
}

static void message_read_piece(struct wire_reader *reader, struct group_message *message) {
    message->version = message_read_version(reader);
    message->piece = wire_read_u8(reader);
    message->pieces_count = wire_read_u8_max(reader, GROUP_PIECES_MAX);
    message->contents = wire_read_string(reader, GROUP_PIECE_SIZE);
    bool is_last = message->piece + 1 == message->pieces_count;
    if (message->piece >= message->pieces_count) {
        wire_read_fail(reader, ERR_INVALID, "no such piece");
    } else if (is_last ? message->contents.size == 0 : message->contents.size != GROUP_PIECE_SIZE) {
        wire_read_fail(reader, ERR_INVALID, "size of a piece");
    }
}

static void write_pulse(struct wire_writer *writer, const struct group_message *message) {
    write_version(writer, message->version);
    wire_write_u64(writer, message->beat);
    wire_write_bytes(writer, bytes_of(message->signature, GROUP_SIGNATURE_SIZE));
}

static void read_pulse(struct wire_reader *reader, struct group_message *message) {
    message->version = message_read_version(reader);
    message->beat = wire_read_u64(reader);
    wire_read_array(reader, message->signature, GROUP_SIGNATURE_SIZE);
}

/* The estimates end with the message. */
static void write_report(struct wire_writer *writer, const struct group_message *message) {
    ASSERT(message->heard.size <= GROUP_MEMBERS_MAX);
    ASSERT(message->estimates.size <= group_message_estimates_size_max(message->heard.size));
    wire_write_string(writer, message->heard);
    wire_write_bytes(writer, message->estimates);
}

static void read_report(struct wire_reader *reader, struct group_message *message) {
    message->heard = wire_read_string(reader, GROUP_MEMBERS_MAX);
    message->estimates = wire_read_bytes(reader, wire_reader_left(reader));
}

static void message_message_write_body(struct wire_writer *writer, const struct group_message *message) {
    switch ((enum group_message_kind)message->kind) {
    case GROUP_MESSAGE_JOIN:
        ASSERT(message->papers.size <= GROUP_PAPERS_SIZE_MAX);
        wire_write_u64(writer, message->token);
        wire_write_string(writer, message->papers);
        break;
    case GROUP_MESSAGE_CHALLENGE:
        wire_write_u64(writer, message->token);
        break;
    case GROUP_MESSAGE_TAKEN:
        peer_write(writer, PEER_MEMBER, &message->peer);
        break;
    case GROUP_MESSAGE_REQUEST:
        ASSERT(message->papers.size <= GROUP_PAPERS_SIZE_MAX);
        peer_write(writer, PEER_MEMBER, &message->peer);
        wire_write_string(writer, message->papers);
        break;
    case GROUP_MESSAGE_REPORT:
        write_report(writer, message);
        break;
    case GROUP_MESSAGE_PIECE:
        write_piece(writer, message);
        break;
    case GROUP_MESSAGE_ACK:
        write_version(writer, message->version);
        wire_write_u64(writer, message->mask);
        break;
    case GROUP_MESSAGE_PULSE:
        write_pulse(writer, message);
        break;
    case GROUP_MESSAGE_REFUSED:
    case GROUP_MESSAGE_ECHO:
    case GROUP_MESSAGE_ECHOED:
    case GROUP_MESSAGE_STRANGER:
    case GROUP_MESSAGE_REPORTED:
    case GROUP_MESSAGE_LEAVE:
    case GROUP_MESSAGE_LEFT:
        break;
    case GROUP_MESSAGE_KINDS_END:
        ASSERT(false);
    }
}

static void message_message_read_body(struct wire_reader *reader, struct group_message *message) {
    switch ((enum group_message_kind)message->kind) {
    case GROUP_MESSAGE_JOIN:
        message->token = wire_read_u64(reader);
        message->papers = wire_read_string(reader, GROUP_PAPERS_SIZE_MAX);
        break;
    case GROUP_MESSAGE_CHALLENGE:
        message->token = wire_read_u64(reader);
        break;
    case GROUP_MESSAGE_TAKEN:
        peer_read(reader, PEER_MEMBER, &message->peer);
        break;
    case GROUP_MESSAGE_REQUEST:
        peer_read(reader, PEER_MEMBER, &message->peer);
        message->papers = wire_read_string(reader, GROUP_PAPERS_SIZE_MAX);
        break;
    case GROUP_MESSAGE_REPORT:
        read_report(reader, message);
        break;
    case GROUP_MESSAGE_PIECE:
        message_read_piece(reader, message);
        break;
    case GROUP_MESSAGE_ACK:
        message->version = message_read_version(reader);
        message->mask = wire_read_u64(reader);
        break;
    case GROUP_MESSAGE_PULSE:
        read_pulse(reader, message);
        break;
    case GROUP_MESSAGE_REFUSED:
    case GROUP_MESSAGE_ECHO:
    case GROUP_MESSAGE_ECHOED:
    case GROUP_MESSAGE_STRANGER:
    case GROUP_MESSAGE_REPORTED:
    case GROUP_MESSAGE_LEAVE:
    case GROUP_MESSAGE_LEFT:
        break;
    case GROUP_MESSAGE_KINDS_END:
    default:
        wire_read_fail(reader, ERR_INVALID, "unknown kind");
    }
}

/* ---- whole messages ---- */

struct bytes group_message_write(const struct group_message *message, const uint8_t id[GROUP_ID_SIZE],
                                 uint8_t memory[STEP_MESSAGE_SIZE_MAX]) {
    struct wire_writer writer;
    wire_writer_init(&writer, memory, STEP_MESSAGE_SIZE_MAX);
    wire_write_u8(&writer, GROUP_VERSION);
    wire_write_u8(&writer, message->kind);
    wire_write_bytes(&writer, bytes_of(id, GROUP_ID_SIZE));
    wire_write_u64(&writer, message->number);
    write_version(&writer, message->held);
    message_message_write_body(&writer, message);
    return wire_writer_bytes(&writer);
}

enum group_message_verdict group_message_read(struct bytes bytes, const uint8_t id[GROUP_ID_SIZE],
                                              struct group_message *ret_message) {
    struct wire_reader reader;
    uint8_t their_id[GROUP_ID_SIZE];
    *ret_message = (struct group_message){0};
    if (bytes.size > STEP_MESSAGE_SIZE_MAX) {
        return GROUP_MESSAGE_MALFORMED;
    }
    wire_reader_init(&reader, bytes);
    uint8_t version = wire_read_u8(&reader);
    ret_message->kind = wire_read_u8(&reader);
    wire_read_array(&reader, their_id, sizeof their_id);
    ret_message->number = wire_read_u64(&reader);
    ret_message->held = message_read_version(&reader);
    if (reader.err != ERR_OK) {
        return GROUP_MESSAGE_MALFORMED;
    }
    if (version != GROUP_VERSION || memcmp(their_id, id, GROUP_ID_SIZE) != 0) {
        return GROUP_MESSAGE_FOREIGN;
    }
    message_message_read_body(&reader, ret_message);
    return wire_reader_finish(&reader, NULL) == ERR_OK ? GROUP_MESSAGE_GOOD : GROUP_MESSAGE_MALFORMED;
}

/* The word in front keeps signatures of different things apart. */
struct bytes group_message_pulse(const uint8_t id[GROUP_ID_SIZE], struct group_version version, uint64_t beat,
                                 uint8_t memory[GROUP_PULSE_SIZE]) {
    struct wire_writer writer;
    wire_writer_init(&writer, memory, GROUP_PULSE_SIZE);
    wire_write_bytes(&writer, BYTES("pulse"));
    wire_write_bytes(&writer, bytes_of(id, GROUP_ID_SIZE));
    write_version(&writer, version);
    wire_write_u64(&writer, beat);
    return bytes_of(memory, writer.size);
}
