#include "web/html/refresh.h"

/* "5", "5.0" and ".5"; false if there is nothing of it. */
static bool skip_time(struct bytes *text) {
    size_t size = 0;
    while (size < text->size && (byte_is_digit(text->data[size]) || text->data[size] == '.')) {
        size++;
    }
    *text = bytes_skip(*text, size);
    return size > 0;
}

/* "url" and '='; nothing is skipped if either is missing. */
static void skip_key(struct bytes *text) {
    struct bytes rest = *text;
    if (!bytes_starts_with_ignore_case(rest, BYTES("url"))) {
        return;
    }
    rest = bytes_skip(rest, 3);
    bytes_skip_spaces(&rest);
    if (rest.size == 0 || rest.data[0] != '=') {
        return;
    }
    *text = bytes_skip(rest, 1);
    bytes_skip_spaces(text);
}

bool refresh_url(struct bytes value, struct bytes *ret_url) {
    struct bytes text = value;
    bytes_skip_spaces(&text);
    if (!skip_time(&text) || text.size == 0) {
        return false;
    }
    bool is_separated = text.data[0] == ';' || text.data[0] == ',' || byte_is_space(text.data[0]);
    if (!is_separated) {
        return false;
    }
    bytes_skip_spaces(&text);
    if (text.size > 0 && (text.data[0] == ';' || text.data[0] == ',')) {
        text = bytes_skip(text, 1);
    }
    bytes_skip_spaces(&text);
    skip_key(&text);
    if (text.size > 0 && (text.data[0] == '"' || text.data[0] == '\'')) {
        uint8_t quote = text.data[0];
        text = bytes_skip(text, 1);
        text.size = bytes_find_byte(text, quote);
    }
    *ret_url = text;
    return text.size > 0;
}
