#include "web/html/srcset.h"

/* Behind the ',' that ends the descriptors; commas in parentheses do not. */
static size_t skip_descriptors(struct bytes text, size_t at) {
    bool in_parentheses = false;
    for (; at < text.size; at++) {
        uint8_t byte = text.data[at];
        if (byte == ',' && !in_parentheses) {
            return at + 1;
        }
        in_parentheses = byte == '(' || (in_parentheses && byte != ')');
    }
    return at;
}

bool srcset_next(struct bytes *rest, struct bytes *ret_url) {
    size_t from = 0;
    while (from < rest->size && (byte_is_space(rest->data[from]) || rest->data[from] == ',')) {
        from++;
    }
    size_t to = from;
    while (to < rest->size && !byte_is_space(rest->data[to])) {
        to++;
    }
    if (from == to) {
        return false;
    }
    size_t end = to;
    while (rest->data[end - 1] == ',') { /* stops at the first byte, which is none */
        end--;
    }
    *ret_url = bytes_slice(*rest, from, end);
    *rest = bytes_skip(*rest, end < to ? to : skip_descriptors(*rest, to));
    return true;
}
