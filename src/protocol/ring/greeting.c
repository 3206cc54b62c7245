#include "protocol/ring/greeting.h"

static void code_name(struct wire_coder *coder, struct greeting *greeting) {
    if (coder->reader == NULL) {
        wire_write_string(coder->writer, bytes_of_string(greeting->name));
        return;
    }
    struct bytes name = wire_read_string(coder->reader, CHARTER_NAME_SIZE_MAX);
    wire_read_check(coder->reader, charter_name_is_valid(name), "no name");
    if (coder->reader->err == ERR_OK) {
        memcpy(greeting->name, name.data, name.size);
    }
}

static void code_piece(struct wire_coder *coder, struct greeting *greeting) {
    wire_code_u32(coder, &greeting->size);
    wire_code_u32(coder, &greeting->offset);
    wire_code_string(coder, &greeting->piece, GREETING_PIECE_SIZE_MAX);
    bool is_inside = greeting->size <= CHARTER_SIZE_MAX && greeting->offset <= greeting->size &&
                     greeting->piece.size > 0 && greeting->piece.size <= greeting->size - greeting->offset;
    wire_code_check(coder, is_inside, "a piece outside of its charter");
}

static void greeting_code(struct wire_coder *coder, struct greeting *greeting) {
    wire_code_u8(coder, &greeting->kind, UINT8_MAX);
    wire_code_array(coder, greeting->ring, CHARTER_ID_SIZE);
    wire_code_u32(coder, &greeting->version);
    switch (greeting->kind) {
    case GREETING_HELLO:
        wire_code_string(coder, &greeting->membership, MEMBERSHIP_SIZE_MAX);
        wire_code_bool(coder, &greeting->wants_answer);
        break;
    case GREETING_REFUSE:
        wire_code_u8(coder, &greeting->reason, UINT8_MAX);
        code_name(coder, greeting);
        break;
    case GREETING_ASK:
        wire_code_u32(coder, &greeting->offset);
        break;
    case GREETING_PIECE:
        code_piece(coder, greeting);
        break;
    default:
        ASSERT(coder->reader != NULL);
        wire_code_check(coder, false, "unknown kind");
    }
}

struct bytes greeting_write(const struct greeting *greeting, uint8_t out[GREETING_SIZE_MAX]) {
    struct wire_writer writer;
    struct wire_coder coder = {.writer = &writer};
    wire_writer_init(&writer, out, GREETING_SIZE_MAX);
    wire_write_u8(&writer, GREETING_VERSION);
    greeting_code(&coder, (struct greeting *)greeting); /* writing changes nothing */
    return wire_writer_bytes(&writer);
}

enum err greeting_read(struct bytes input, struct greeting *ret_greeting, struct err_detail *detail) {
    struct greeting greeting = {0};
    struct wire_reader reader;
    struct wire_coder coder = {.reader = &reader};
    wire_reader_init(&reader, input);
    wire_read_version(&reader, GREETING_VERSION, "a greeting of another version");
    greeting_code(&coder, &greeting);
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
    if (reason == GREETING_OTHER_VERSION) {
        return "it speaks no version of the protocol that the other speaks";
    }
    bool is_verdict = reason > GREETING_NO_MEMBER && reason - GREETING_NO_MEMBER < MEMBERSHIP_VERDICTS_COUNT;
    return is_verdict ? membership_verdict_text(reason - GREETING_NO_MEMBER) : "it does not say why";
}
