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

static void code_version(struct wire_coder *coder, struct group_version *version) {
    wire_code_u32(coder, &version->term);
    wire_code_u32(coder, &version->sequence);
}

static void code_piece(struct wire_coder *coder, struct group_message *message) {
    code_version(coder, &message->version);
    wire_code_u8(coder, &message->piece, UINT8_MAX);
    wire_code_u8(coder, &message->pieces_count, GROUP_PIECES_MAX);
    wire_code_string(coder, &message->contents, GROUP_PIECE_SIZE);
    size_t size = message->contents.size;
    bool is_last = message->piece + 1 == message->pieces_count;
    ASSERT(coder->reader != NULL || (message->piece < message->pieces_count && size > 0));
    wire_code_check(coder, message->piece < message->pieces_count, "no such piece");
    wire_code_check(coder, is_last ? size > 0 : size == GROUP_PIECE_SIZE, "size of a piece");
}

static void code_pulse(struct wire_coder *coder, struct group_message *message) {
    code_version(coder, &message->version);
    wire_code_u64(coder, &message->beat);
    wire_code_array(coder, message->signature, GROUP_SIGNATURE_SIZE);
}

/* The estimates end with the message. */
static void code_report(struct wire_coder *coder, struct group_message *message) {
    wire_code_string(coder, &message->heard, GROUP_MEMBERS_MAX);
    if (coder->reader != NULL) {
        message->estimates = wire_read_bytes(coder->reader, wire_reader_left(coder->reader));
    } else {
        ASSERT(message->estimates.size <= group_message_estimates_size_max(message->heard.size));
        wire_write_bytes(coder->writer, message->estimates);
    }
}

static void group_code_body(struct wire_coder *coder, struct group_message *message) {
    switch ((enum group_message_kind)message->kind) {
    case GROUP_MESSAGE_JOIN:
        wire_code_u64(coder, &message->token);
        wire_code_string(coder, &message->papers, GROUP_PAPERS_SIZE_MAX);
        break;
    case GROUP_MESSAGE_CHALLENGE:
        wire_code_u64(coder, &message->token);
        break;
    case GROUP_MESSAGE_TAKEN:
        peer_code(coder, PEER_MEMBER, &message->peer);
        break;
    case GROUP_MESSAGE_REQUEST:
        peer_code(coder, PEER_MEMBER, &message->peer);
        wire_code_string(coder, &message->papers, GROUP_PAPERS_SIZE_MAX);
        break;
    case GROUP_MESSAGE_REPORT:
        code_report(coder, message);
        break;
    case GROUP_MESSAGE_PIECE:
        code_piece(coder, message);
        break;
    case GROUP_MESSAGE_ACK:
        code_version(coder, &message->version);
        wire_code_u64(coder, &message->mask);
        break;
    case GROUP_MESSAGE_PULSE:
        code_pulse(coder, message);
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
        ASSERT(coder->reader != NULL);
        wire_code_check(coder, false, "unknown kind");
    }
}

/* ---- whole messages ---- */

struct bytes group_message_write(const struct group_message *message, const uint8_t id[GROUP_ID_SIZE],
                                 uint8_t memory[STEP_MESSAGE_SIZE_MAX]) {
    struct group_message *coded = (struct group_message *)message; /* writing changes nothing */
    struct wire_writer writer;
    struct wire_coder coder = {.writer = &writer};
    wire_writer_init(&writer, memory, STEP_MESSAGE_SIZE_MAX);
    wire_write_u8(&writer, GROUP_VERSION);
    wire_write_u8(&writer, message->kind);
    wire_write_bytes(&writer, bytes_of(id, GROUP_ID_SIZE));
    wire_write_u64(&writer, message->number);
    code_version(&coder, &coded->held);
    group_code_body(&coder, coded);
    return wire_writer_bytes(&writer);
}

enum group_message_verdict group_message_read(struct bytes bytes, const uint8_t id[GROUP_ID_SIZE],
                                              struct group_message *ret_message) {
    struct wire_reader reader;
    struct wire_coder coder = {.reader = &reader};
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
    code_version(&coder, &ret_message->held);
    if (reader.err != ERR_OK) {
        return GROUP_MESSAGE_MALFORMED;
    }
    if (version != GROUP_VERSION || memcmp(their_id, id, GROUP_ID_SIZE) != 0) {
        return GROUP_MESSAGE_FOREIGN;
    }
    group_code_body(&coder, ret_message);
    return wire_reader_finish(&reader, NULL) == ERR_OK ? GROUP_MESSAGE_GOOD : GROUP_MESSAGE_MALFORMED;
}

/* The word in front keeps signatures of different things apart. */
struct bytes group_message_pulse(const uint8_t id[GROUP_ID_SIZE], struct group_version version, uint64_t beat,
                                 uint8_t memory[GROUP_PULSE_SIZE]) {
    struct wire_writer writer;
    wire_writer_init(&writer, memory, GROUP_PULSE_SIZE);
    wire_write_bytes(&writer, BYTES("pulse"));
    wire_write_bytes(&writer, bytes_of(id, GROUP_ID_SIZE));
    wire_write_u32(&writer, version.term);
    wire_write_u32(&writer, version.sequence);
    wire_write_u64(&writer, beat);
    return wire_writer_bytes(&writer);
}
