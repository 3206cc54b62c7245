#include "http/message/chunked.h"

#include "base/hex.h"

enum { SIZE_DIGITS_MAX = 15 }; /* below 2^60: sums stay far from overflow */

void chunked_start(struct chunked *chunked) {
    chunked->state = CHUNKED_SIZE;
    chunked->left = 0;
    chunked->is_wrong = false;
    chunked->line_size = 0;
}

static bool read_size(struct bytes line, uint64_t *ret_size) {
    struct bytes digits = bytes_trim(bytes_slice(line, 0, bytes_find_byte(line, ';')));
    uint64_t size = 0;
    if (digits.size == 0 || digits.size > SIZE_DIGITS_MAX) {
        return false;
    }
    for (size_t i = 0; i < digits.size; i++) {
        int digit = hex_digit(digits.data[i]);
        if (digit < 0) {
            return false;
        }
        size = size << 4 | (uint64_t)digit;
    }
    *ret_size = size;
    return true;
}

/* What stands in the line was no size: give it out as it came, and everything after it. */
static bool give_up(struct chunked *chunked, struct bytes *ret_piece) {
    *ret_piece = bytes_of(chunked->line, chunked->line_size);
    chunked->state = CHUNKED_RAW;
    chunked->is_wrong = true;
    chunked->line_size = 0;
    return ret_piece->size > 0;
}

/* True where the line proves to be body. */
static bool take_size_line(struct chunked *chunked, struct bytes *input, struct bytes *ret_piece) {
    size_t newline = bytes_find_byte(*input, '\n');
    bool is_whole = newline < input->size;
    size_t taken = is_whole ? newline + 1 : input->size;
    size_t room = sizeof chunked->line - chunked->line_size;
    bool fits = taken <= room;
    taken = fits ? taken : room;
    if (taken > 0) {
        memcpy(chunked->line + chunked->line_size, input->data, taken);
    }
    chunked->line_size += taken;
    *input = bytes_skip(*input, taken);
    if (fits && !is_whole) {
        return false;
    }
    if (!fits || !read_size(bytes_of(chunked->line, chunked->line_size), &chunked->left)) {
        return give_up(chunked, ret_piece);
    }
    chunked->line_size = 0;
    chunked->state = chunked->left > 0 ? CHUNKED_DATA : CHUNKED_REST;
    return false;
}

static bool take_data(struct chunked *chunked, struct bytes *input, struct bytes *ret_piece) {
    size_t taken = input->size < chunked->left ? input->size : (size_t)chunked->left;
    *ret_piece = bytes_slice(*input, 0, taken);
    *input = bytes_skip(*input, taken);
    chunked->left -= taken;
    if (chunked->left == 0) {
        chunked->state = CHUNKED_DATA_END;
    }
    return true;
}

bool chunked_next(struct chunked *chunked, struct bytes *input, struct bytes *ret_piece) {
    while (input->size > 0) {
        switch (chunked->state) {
        case CHUNKED_SIZE:
            if (take_size_line(chunked, input, ret_piece)) {
                return true;
            }
            break;
        case CHUNKED_DATA:
            return take_data(chunked, input, ret_piece);
        case CHUNKED_DATA_END:
            if (input->data[0] == '\r') {
                *input = bytes_skip(*input, 1);
            } else if (input->data[0] == '\n') {
                *input = bytes_skip(*input, 1);
                chunked->state = CHUNKED_SIZE;
            } else {
                give_up(chunked, ret_piece);
            }
            break;
        case CHUNKED_REST:
            *input = bytes_skip(*input, input->size);
            break;
        case CHUNKED_RAW:
            *ret_piece = *input;
            *input = bytes_skip(*input, input->size);
            return true;
        }
    }
    return false;
}

bool chunked_finish(struct chunked *chunked, struct bytes *ret_piece) {
    if (chunked->state != CHUNKED_SIZE || chunked->line_size == 0) {
        return false;
    }
    uint64_t size;
    bool is_size = read_size(bytes_of(chunked->line, chunked->line_size), &size);
    return !is_size && give_up(chunked, ret_piece);
}
