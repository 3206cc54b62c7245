#include "node/proxy/proxy_body.h"

enum { DIGITS_MAX = 15 }; /* of a chunk's size: far more than anybody sends, and no overflow */

void proxy_body_start(struct proxy_body *body, enum proxy_body_kind kind, uint64_t length) {
    *body = (struct proxy_body){.kind = kind, .left = kind == PROXY_BODY_LENGTH ? length : 0};
    body->is_ended = kind == PROXY_BODY_NONE || (kind == PROXY_BODY_LENGTH && length == 0);
}

static size_t take_left(struct proxy_body *body, size_t size) {
    size_t taken = size < body->left ? size : (size_t)body->left;
    body->left -= taken;
    return taken;
}

/* -1: none */
static int digit_value(uint8_t byte) {
    if (byte_is_digit(byte)) {
        return byte - '0';
    }
    uint8_t lower = byte_lower(byte);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static bool is_text(uint8_t byte) {
    return (byte >= ' ' && byte != 0x7f) || byte == '\t';
}

/* A size has ended: with CR, or with what begins an extension. */
static bool end_size(struct proxy_body *body, uint8_t byte) {
    if (body->digits_count == 0 || (byte != '\r' && byte != ';' && byte != ' ' && byte != '\t')) {
        return false;
    }
    body->state = byte == '\r' ? PROXY_BODY_SIZE_END : PROXY_BODY_EXTENSION;
    body->line_size = 0;
    return true;
}

static bool take_size(struct proxy_body *body, uint8_t byte) {
    int value = digit_value(byte);
    if (value < 0) {
        return end_size(body, byte);
    }
    body->left = body->left * 16 + (uint64_t)value;
    return ++body->digits_count <= DIGITS_MAX;
}

/* Text up to CR, then the state that is said. */
static bool take_line(struct proxy_body *body, uint8_t byte, enum proxy_body_state next) {
    if (byte == '\r') {
        body->state = next;
        return true;
    }
    return is_text(byte) && ++body->line_size <= PROXY_BODY_LINES_SIZE_MAX;
}

static bool expect(struct proxy_body *body, uint8_t byte, uint8_t expected, enum proxy_body_state next) {
    body->state = next;
    return byte == expected;
}

static bool begin_chunk(struct proxy_body *body, uint8_t byte) {
    body->state = body->left > 0 ? PROXY_BODY_DATA : PROXY_BODY_TRAILER;
    body->digits_count = 0;
    body->line_size = 0;
    return byte == '\n';
}

/* One byte that is not a chunk's data. */
static bool take_byte(struct proxy_body *body, uint8_t byte) {
    switch (body->state) {
    case PROXY_BODY_SIZE:
        return take_size(body, byte);
    case PROXY_BODY_EXTENSION:
        return take_line(body, byte, PROXY_BODY_SIZE_END);
    case PROXY_BODY_SIZE_END:
        return begin_chunk(body, byte);
    case PROXY_BODY_DATA_CR:
        return expect(body, byte, '\r', PROXY_BODY_DATA_LF);
    case PROXY_BODY_DATA_LF:
        return expect(body, byte, '\n', PROXY_BODY_SIZE);
    case PROXY_BODY_TRAILER:
        if (byte == '\r') {
            body->state = PROXY_BODY_LAST_LF;
            return true;
        }
        body->state = PROXY_BODY_TRAILER_LINE;
        return byte != ' ' && byte != '\t' && take_line(body, byte, PROXY_BODY_TRAILER_LF);
    case PROXY_BODY_TRAILER_LINE:
        return take_line(body, byte, PROXY_BODY_TRAILER_LF);
    case PROXY_BODY_TRAILER_LF:
        return expect(body, byte, '\n', PROXY_BODY_TRAILER);
    case PROXY_BODY_LAST_LF:
        body->is_ended = byte == '\n';
        return body->is_ended;
    case PROXY_BODY_DATA:
        break;
    }
    assert_failed("data is taken elsewhere", __FILE__, __LINE__);
}

static size_t take_chunks(struct proxy_body *body, struct bytes bytes) {
    size_t taken = 0;
    while (taken < bytes.size && !body->is_ended) {
        if (body->state == PROXY_BODY_DATA) {
            taken += take_left(body, bytes.size - taken);
            body->state = body->left == 0 ? PROXY_BODY_DATA_CR : PROXY_BODY_DATA;
            continue;
        }
        if (!take_byte(body, bytes.data[taken])) {
            body->is_wrong = true;
            return taken;
        }
        taken++;
    }
    return taken;
}

size_t proxy_body_take(struct proxy_body *body, struct bytes bytes) {
    size_t taken = 0;
    if (body->is_ended || body->is_wrong) {
        return 0;
    }
    switch (body->kind) {
    case PROXY_BODY_NONE:
        return 0;
    case PROXY_BODY_LENGTH:
        taken = take_left(body, bytes.size);
        body->is_ended = body->left == 0;
        return taken;
    case PROXY_BODY_CHUNKED:
        return take_chunks(body, bytes);
    case PROXY_BODY_UNTIL_CLOSE:
        return bytes.size;
    }
    assert_failed("every kind of body is known", __FILE__, __LINE__);
}

bool proxy_body_finish(struct proxy_body *body) {
    body->is_ended = body->is_ended || body->kind == PROXY_BODY_UNTIL_CLOSE;
    return body->is_ended;
}
