#include "protocol/ring/greeting.h"

struct bytes greeting_write(const struct greeting *greeting, uint8_t out[GREETING_SIZE_MAX]) {
    struct wire_writer writer;
    wire_writer_init(&writer, out, GREETING_SIZE_MAX);
    wire_write_u8(&writer, GREETING_VERSION);
    wire_write_u8(&writer, greeting->kind);
    wire_write_bytes(&writer, bytes_of(greeting->ring, CHARTER_ID_SIZE));
    wire_write_u32(&writer, greeting->version);
    switch (greeting->kind) {
    case GREETING_HELLO:
        wire_write_string(&writer, greeting->membership);
        wire_write_bool(&writer, greeting->wants_answer);
        break;
    case GREETING_REFUSE:
        wire_write_u8(&writer, greeting->reason);
        wire_write_string(&writer, bytes_of_string(greeting->name));
        break;
    case GREETING_ASK:
        wire_write_u32(&writer, greeting->offset);
        break;
    case GREETING_PIECE:
        wire_write_u32(&writer, greeting->size);
        wire_write_u32(&writer, greeting->offset);
        wire_write_string(&writer, greeting->piece);
        break;
    default:
        ASSERT(false);
    }
    return wire_writer_bytes(&writer);
}

static void greeting_read_name(struct wire_reader *reader, struct greeting *greeting) {
    struct bytes name = wire_read_string(reader, CHARTER_NAME_SIZE_MAX);
    if (reader->err == ERR_OK && !charter_name_is_valid(name)) {
        wire_read_fail(reader, ERR_INVALID, "no name");
    } else if (reader->err == ERR_OK) {
        memcpy(greeting->name, name.data, name.size);
    }
}

static void greeting_read_piece(struct wire_reader *reader, struct greeting *greeting) {
    greeting->size = wire_read_u32(reader);
    greeting->offset = wire_read_u32(reader);
    greeting->piece = wire_read_string(reader, GREETING_PIECE_SIZE_MAX);
    bool is_inside = greeting->size <= CHARTER_SIZE_MAX && greeting->offset <= greeting->size &&
                     greeting->piece.size > 0 && greeting->piece.size <= greeting->size - greeting->offset;
    if (reader->err == ERR_OK && !is_inside) {
        wire_read_fail(reader, ERR_INVALID, "a piece outside of its charter");
    }
}

static void greeting_read_body(struct wire_reader *reader, struct greeting *greeting) {
    switch (greeting->kind) {
    case GREETING_HELLO:
        greeting->membership = wire_read_string(reader, MEMBERSHIP_SIZE_MAX);
        greeting->wants_answer = wire_read_bool(reader);
        break;
    case GREETING_REFUSE:
        greeting->reason = wire_read_u8(reader);
        greeting_read_name(reader, greeting);
        break;
    case GREETING_ASK:
        greeting->offset = wire_read_u32(reader);
        break;
    case GREETING_PIECE:
        greeting_read_piece(reader, greeting);
        break;
    default:
        wire_read_fail(reader, ERR_INVALID, "unknown kind");
    }
}

enum err greeting_read(struct bytes input, struct greeting *ret_greeting, struct err_detail *detail) {
    struct greeting greeting = {0};
    struct wire_reader reader;
    wire_reader_init(&reader, input);
    if (wire_read_u8(&reader) != GREETING_VERSION && reader.err == ERR_OK) {
        wire_read_fail(&reader, ERR_UNSUPPORTED, "a greeting of another version");
    }
    greeting.kind = wire_read_u8(&reader);
    wire_read_array(&reader, greeting.ring, CHARTER_ID_SIZE);
    greeting.version = wire_read_u32(&reader);
    if (reader.err == ERR_OK) {
        greeting_read_body(&reader, &greeting);
    }
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        *ret_greeting = greeting;
    }
    return err;
}

const char *greeting_reason_text(uint8_t reason) {
    if (reason == GREETING_OTHER_RING) {
        return "it belongs to another ring";
    }
    bool is_verdict = reason > GREETING_NO_MEMBER && reason - GREETING_NO_MEMBER < MEMBERSHIP_VERDICTS_COUNT;
    return is_verdict ? membership_verdict_text(reason - GREETING_NO_MEMBER) : "it does not say why";
}
