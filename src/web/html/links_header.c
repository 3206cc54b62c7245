/* links_header() - Link (RFC 8288) and Refresh. */
#include "web/html/links_state.h"
#include "web/html/refresh.h"

static void skip_spaces(struct bytes *text) {
    while (text->size > 0 && (text->data[0] == ' ' || text->data[0] == '\t')) {
        *text = bytes_skip(*text, 1);
    }
}

/* A token, or a quoted string; a quote that is not closed goes to the end. */
static struct bytes take_value(struct bytes *text) {
    struct bytes value;
    if (text->size > 0 && text->data[0] == '"') {
        struct bytes inside = bytes_skip(*text, 1);
        size_t size = 0;
        while (size < inside.size && inside.data[size] != '"') {
            size += inside.data[size] == '\\' && size + 1 < inside.size ? 2 : 1;
        }
        value = bytes_slice(inside, 0, size);
        *text = bytes_skip(inside, size < inside.size ? size + 1 : size);
        return value;
    }
    size_t size = 0;
    while (size < text->size && text->data[size] != ';' && text->data[size] != ',') {
        size++;
    }
    value = bytes_trim(bytes_slice(*text, 0, size));
    *text = bytes_skip(*text, size);
    return value;
}

/* "; name=value": false where no parameter follows. */
static bool next_parameter(struct bytes *text, struct bytes *ret_name, struct bytes *ret_value) {
    skip_spaces(text);
    if (text->size == 0 || text->data[0] != ';') {
        return false;
    }
    *text = bytes_skip(*text, 1);
    size_t size = 0;
    while (size < text->size && text->data[size] != '=' && text->data[size] != ';' &&
           text->data[size] != ',') {
        size++;
    }
    *ret_name = bytes_trim(bytes_slice(*text, 0, size));
    *ret_value = (struct bytes){NULL, 0};
    *text = bytes_skip(*text, size);
    if (text->size > 0 && text->data[0] == '=') {
        *text = bytes_skip(*text, 1);
        skip_spaces(text);
        *ret_value = take_value(text);
    }
    return true;
}

/* One link behind its '<'; *text is moved to the ',' behind it. */
static void header_link(struct links *links, struct bytes *text, uint64_t offset) {
    size_t size = bytes_find_byte(*text, '>');
    if (size == text->size) {
        *text = bytes_skip(*text, size);
        return;
    }
    struct bytes reference = bytes_slice(*text, 0, size);
    *text = bytes_skip(*text, size + 1);
    struct bytes rel = {NULL, 0};
    struct bytes anchor = {NULL, 0};
    bool has_as = false;
    struct bytes name;
    struct bytes value;
    while (next_parameter(text, &name, &value)) {
        if (bytes_equal_ignore_case(name, BYTES("rel")) && rel.data == NULL) {
            rel = value;
        } else if (bytes_equal_ignore_case(name, BYTES("anchor"))) {
            anchor = value;
        }
        has_as = has_as || bytes_equal_ignore_case(name, BYTES("as"));
    }
    struct link link = {.element = "", .attribute = "header", .offset = offset};
    if (anchor.size == 0 && links_rel_kind(rel, has_as, &link.kind)) { /* else it is about another document */
        links_report(links, &link, reference);
    }
}

void links_header(struct links *links, struct bytes name, struct bytes value) {
    if (bytes_equal_ignore_case(name, BYTES("refresh"))) {
        struct link link = {.kind = LINK_REFRESH, .element = "", .attribute = "header"};
        struct bytes text;
        if (refresh_url(value, &text)) {
            links_report(links, &link, text);
        }
        return;
    }
    if (!bytes_equal_ignore_case(name, BYTES("link"))) {
        return;
    }
    struct bytes rest = value;
    while (rest.size > 0) {
        rest = bytes_skip(rest, bytes_find_byte(rest, '<'));
        if (rest.size > 0) {
            rest = bytes_skip(rest, 1);
            header_link(links, &rest, 0);
        }
    }
}
