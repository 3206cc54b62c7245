#include "web/url/input.h"

struct bytes input_trim(struct bytes text) {
    size_t from = 0;
    while (from < text.size && text.data[from] <= ' ') {
        from++;
    }
    size_t to = text.size;
    while (to > from && text.data[to - 1] <= ' ') {
        to--;
    }
    return bytes_slice(text, from, to);
}

static bool is_newline(uint8_t byte) {
    return byte == '\t' || byte == '\n' || byte == '\r';
}

size_t input_find_newline(struct bytes text) {
    size_t i = 0;
    while (i < text.size && !is_newline(text.data[i])) {
        i++;
    }
    return i;
}

enum err input_put_without_newlines(struct buf *out, struct bytes text) {
    while (text.size > 0) {
        size_t length = input_find_newline(text);
        buf_put(out, bytes_slice(text, 0, length));
        text = bytes_skip(text, length < text.size ? length + 1 : length);
    }
    return out->err;
}

size_t input_original_offset(struct bytes text, size_t offset) {
    size_t i = 0;
    while (i < text.size && (offset > 0 || is_newline(text.data[i]))) {
        offset -= is_newline(text.data[i]) ? 0 : 1;
        i++;
    }
    return i;
}

static bool may_be_in_scheme(uint8_t byte) {
    return byte_is_alnum(byte) || byte == '+' || byte == '-' || byte == '.';
}

size_t input_scheme_length(struct bytes text) {
    if (text.size == 0 || !byte_is_alpha(text.data[0])) {
        return 0;
    }
    size_t i = 1;
    while (i < text.size && may_be_in_scheme(text.data[i])) {
        i++;
    }
    return i < text.size && text.data[i] == ':' ? i : 0;
}
