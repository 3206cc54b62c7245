#include "http/message/chunked.h"

#include "base/hex.h"

enum { DIGITS_MAX = 15 }; /* of a size: below 2^60, so that sums stay far from overflow */

void chunked_start(struct chunked *chunked, enum http_rules rules) {
    chunked->rules = rules;
    chunked->state = CHUNKED_SIZE;
    chunked->left = 0;
    chunked->digits_count = 0;
    chunked->line_size = 0;
}

static bool chunked_is_strict(const struct chunked *chunked) {
    return chunked->rules == HTTP_RULES_STRICT;
}

/* The size line is complete. */
static enum chunked_state chunked_begin(struct chunked *chunked) {
    chunked->digits_count = 0;
    chunked->line_size = 0;
    return chunked->left > 0 ? CHUNKED_DATA : CHUNKED_TRAILER;
}

/* A byte of an extension or a trailer that does not end its line. */
static enum chunked_state chunked_take_text(struct chunked *chunked, uint8_t byte, enum chunked_state same) {
    bool is_text = (byte >= ' ' && byte != 0x7f) || byte == '\t';
    if (!chunked_is_strict(chunked)) {
        return same;
    }
    return is_text && ++chunked->line_size <= CHUNKED_LINES_SIZE_MAX ? same : CHUNKED_WRONG;
}

static enum chunked_state chunked_take_size(struct chunked *chunked, uint8_t byte) {
    bool is_strict = chunked_is_strict(chunked);
    bool is_blank = byte == ' ' || byte == '\t';
    int digit = chunked->state == CHUNKED_SIZE ? hex_digit(byte) : -1;
    if (digit >= 0) {
        chunked->left = chunked->left << 4 | (uint64_t)digit;
        return ++chunked->digits_count <= DIGITS_MAX ? CHUNKED_SIZE : CHUNKED_WRONG;
    }
    if (chunked->digits_count == 0) {
        return !is_strict && (is_blank || byte == '\r') ? CHUNKED_SIZE : CHUNKED_WRONG;
    }
    if (byte == '\r') {
        return is_strict ? CHUNKED_SIZE_LF : CHUNKED_SIZE_BLANK;
    }
    if (byte == '\n' && !is_strict) {
        return chunked_begin(chunked);
    }
    if (byte == ';') {
        return CHUNKED_EXTENSION;
    }
    return is_blank ? chunked_take_text(chunked, byte, CHUNKED_SIZE_BLANK) : CHUNKED_WRONG;
}

static enum chunked_state chunked_take_extension(struct chunked *chunked, uint8_t byte) {
    bool is_strict = chunked_is_strict(chunked);
    if (byte == '\n' && !is_strict) {
        return chunked_begin(chunked);
    }
    return byte == '\r' && is_strict ? CHUNKED_SIZE_LF : chunked_take_text(chunked, byte, CHUNKED_EXTENSION);
}

static enum chunked_state chunked_take_data_end(const struct chunked *chunked, uint8_t byte) {
    if (byte == '\r') {
        return chunked_is_strict(chunked) ? CHUNKED_DATA_LF : CHUNKED_DATA_CR;
    }
    return byte == '\n' && !chunked_is_strict(chunked) ? CHUNKED_SIZE : CHUNKED_WRONG;
}

static enum chunked_state chunked_take_trailer(struct chunked *chunked, uint8_t byte) {
    bool is_strict = chunked_is_strict(chunked);
    bool is_start = chunked->state == CHUNKED_TRAILER;
    if (byte == '\n' && !is_strict) {
        return is_start ? CHUNKED_ENDED : CHUNKED_TRAILER;
    }
    if (byte == '\r' && (is_start || is_strict)) {
        return is_start ? CHUNKED_LAST_LF : CHUNKED_TRAILER_LF;
    }
    bool is_folded = is_start && (byte == ' ' || byte == '\t');
    return is_folded && is_strict ? CHUNKED_WRONG : chunked_take_text(chunked, byte, CHUNKED_TRAILER_LINE);
}

/* The state after one byte that is not a chunk's data. */
static enum chunked_state chunked_take_byte(struct chunked *chunked, uint8_t byte) {
    switch (chunked->state) {
    case CHUNKED_SIZE:
    case CHUNKED_SIZE_BLANK:
        return chunked_take_size(chunked, byte);
    case CHUNKED_EXTENSION:
        return chunked_take_extension(chunked, byte);
    case CHUNKED_SIZE_LF:
        return byte == '\n' ? chunked_begin(chunked) : CHUNKED_WRONG;
    case CHUNKED_DATA_CR:
        return chunked_take_data_end(chunked, byte);
    case CHUNKED_DATA_LF:
        return byte == '\n' ? CHUNKED_SIZE : CHUNKED_WRONG;
    case CHUNKED_TRAILER:
    case CHUNKED_TRAILER_LINE:
        return chunked_take_trailer(chunked, byte);
    case CHUNKED_TRAILER_LF:
        return byte == '\n' ? CHUNKED_TRAILER : CHUNKED_WRONG;
    case CHUNKED_LAST_LF:
        return byte == '\n' ? CHUNKED_ENDED : CHUNKED_WRONG;
    case CHUNKED_DATA:
    case CHUNKED_ENDED:
    case CHUNKED_LOST:
    case CHUNKED_WRONG:
        break;
    }
    assert_failed("only lines are read byte by byte", __FILE__, __LINE__);
}

/* The next byte is no chunk's. True if what stands in the line is therefore body: it is given out as it came.
 */
static bool chunked_give_up(struct chunked *chunked, struct bytes *ret_piece) {
    bool is_strict = chunked_is_strict(chunked);
    bool is_body = !is_strict && chunked->state < CHUNKED_TRAILER;
    *ret_piece = bytes_of(chunked->line, is_body ? chunked->line_size : 0);
    chunked->state = is_strict || is_body ? CHUNKED_WRONG : CHUNKED_LOST;
    chunked->line_size = 0;
    return ret_piece->size > 0;
}

/* One byte of a line. True if the line proves to be body; that byte is then still in the input. */
static bool chunked_take_line(struct chunked *chunked, struct bytes *input, struct bytes *ret_piece) {
    bool is_kept = !chunked_is_strict(chunked) && chunked->state <= CHUNKED_EXTENSION;
    bool fits = !is_kept || chunked->line_size < sizeof chunked->line;
    enum chunked_state next = fits ? chunked_take_byte(chunked, input->data[0]) : CHUNKED_WRONG;
    if (next == CHUNKED_WRONG) {
        return chunked_give_up(chunked, ret_piece);
    }
    if (is_kept && next <= CHUNKED_EXTENSION) {
        chunked->line[chunked->line_size++] = input->data[0];
    }
    chunked->state = next;
    *input = bytes_skip(*input, 1);
    return false;
}

static bool chunked_take_data(struct chunked *chunked, struct bytes *input, struct bytes *ret_piece) {
    size_t taken = input->size < chunked->left ? input->size : (size_t)chunked->left;
    *ret_piece = bytes_slice(*input, 0, taken);
    *input = bytes_skip(*input, taken);
    chunked->left -= taken;
    if (chunked->left == 0) {
        chunked->state = CHUNKED_DATA_CR;
    }
    return true;
}

bool chunked_next(struct chunked *chunked, struct bytes *input, struct bytes *ret_piece) {
    while (input->size > 0) {
        switch (chunked->state) {
        case CHUNKED_DATA:
            return chunked_take_data(chunked, input, ret_piece);
        case CHUNKED_ENDED:
            return false;
        case CHUNKED_LOST:
            *input = bytes_skip(*input, input->size);
            return false;
        case CHUNKED_WRONG:
            if (chunked_is_strict(chunked)) {
                return false;
            }
            *ret_piece = *input;
            *input = bytes_skip(*input, input->size);
            return true;
        default:
            if (chunked_take_line(chunked, input, ret_piece)) {
                return true;
            }
        }
    }
    return false;
}

bool chunked_finish(struct chunked *chunked, struct bytes *ret_piece) {
    return !chunked_is_strict(chunked) && chunked->state == CHUNKED_SIZE && chunked->digits_count == 0 &&
           chunked->line_size > 0 && chunked_give_up(chunked, ret_piece);
}

size_t chunked_take(struct chunked *chunked, struct bytes bytes) {
    struct bytes rest = bytes;
    struct bytes piece;
    while (chunked_next(chunked, &rest, &piece)) {
    }
    return bytes.size - rest.size;
}
