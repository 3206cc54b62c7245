#include "web/url/session.h"

enum { ID_SIZE = 32, ASP_ID_SIZE = 24, ASP_SUFFIX_SIZE = 8 };

/* Cut `count` bytes of a kind off *text. */
static bool session_take(struct bytes *text, size_t count, bool (*is_kind)(uint8_t byte)) {
    if (text->size < count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_kind(text->data[i])) {
            return false;
        }
    }
    *text = bytes_skip(*text, count);
    return true;
}

static bool session_take_text(struct bytes *text, struct bytes prefix) {
    if (!bytes_starts_with(*text, prefix)) {
        return false;
    }
    *text = bytes_skip(*text, prefix.size);
    return true;
}

/* One or more bytes up to '&' or the end. */
static bool session_take_value(struct bytes *text) {
    size_t length = bytes_find_byte(*text, '&');
    *text = bytes_skip(*text, length);
    return length > 0;
}

static bool take_query_id(struct bytes *text) {
    switch (text->data[0]) {
    case 'j':
        return session_take_text(text, BYTES("jsessionid=")) && session_take(text, ID_SIZE, byte_is_alnum);
    case 'p':
        return session_take_text(text, BYTES("phpsessid=")) && session_take(text, ID_SIZE, byte_is_alnum);
    case 's':
        return session_take_text(text, BYTES("sid=")) && session_take(text, ID_SIZE, byte_is_alnum);
    case 'a':
        return session_take_text(text, BYTES("aspsessionid")) &&
               session_take(text, ASP_SUFFIX_SIZE, byte_is_alpha) && session_take_text(text, BYTES("=")) &&
               session_take(text, ASP_ID_SIZE, byte_is_alpha);
    case 'c':
        return session_take_text(text, BYTES("cfid=")) && session_take_value(text) &&
               session_take_text(text, BYTES("&cftoken=")) && session_take_value(text);
    default:
        return false;
    }
}

/* Length of the session id at the start of the text with its '&', or 0. */
static size_t query_id_length(struct bytes text) {
    struct bytes rest = text;
    if (!take_query_id(&rest) || (rest.size > 0 && !session_take_text(&rest, BYTES("&")))) {
        return 0;
    }
    return text.size - rest.size;
}

size_t session_strip_query(uint8_t *query, size_t size) {
    struct bytes text = bytes_of(query, size);
    size_t kept = 0;
    for (size_t i = 0; i < size;) {
        size_t length = query_id_length(bytes_skip(text, i));
        if (length > 0) {
            i += length;
        } else {
            query[kept++] = query[i++];
        }
    }
    return kept;
}

/* "(24)/" or "(x(24)y(24)…)/". */
static bool take_path_id(struct bytes *text) {
    if (!session_take_text(text, BYTES("("))) {
        return false;
    }
    struct bytes plain = *text;
    if (session_take(&plain, ASP_ID_SIZE, byte_is_alnum) && session_take_text(&plain, BYTES(")/"))) {
        *text = plain;
        return true;
    }
    unsigned count = 0;
    while (session_take(text, 1, byte_is_alpha)) {
        if (!session_take_text(text, BYTES("(")) || !session_take(text, ASP_ID_SIZE, byte_is_alnum) ||
            !session_take_text(text, BYTES(")"))) {
            return false;
        }
        count++;
    }
    return count > 0 && session_take_text(text, BYTES(")/"));
}

static size_t path_id_length(struct bytes text) {
    struct bytes rest = text;
    if (!take_path_id(&rest)) {
        return 0;
    }
    size_t name = bytes_find(bytes_skip(rest, rest.size > 0 ? 1 : 0), BYTES(".aspx"));
    return name + 1 < rest.size ? text.size - rest.size : 0;
}

size_t session_strip_path(uint8_t *path, size_t size) {
    struct bytes text = bytes_of(path, size);
    if (bytes_find(text, BYTES("/(")) == size) {
        return size;
    }
    size_t kept = 0;
    for (size_t i = 0; i < size;) {
        size_t length = i > 0 && path[i - 1] == '/' ? path_id_length(bytes_skip(text, i)) : 0;
        if (length > 0) {
            i += length;
        } else {
            path[kept++] = path[i++];
        }
    }
    return kept;
}
