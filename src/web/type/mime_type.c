#include "web/type/mime_type.h"

#include <string.h>

/* ---- code points, by the names of the standard ---- */

/* RFC 9110's token. */
static bool type_is_token_byte(uint8_t byte) {
    return byte_is_alnum(byte) || (byte != '\0' && strchr("!#$%&'*+-.^_`|~", byte) != NULL);
}

static bool type_is_token(struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        if (!type_is_token_byte(text.data[i])) {
            return false;
        }
    }
    return text.size > 0;
}

/* "HTTP quoted-string token code point": what the value of a parameter may have, quoted or not. */
static bool type_is_value_byte(uint8_t byte) {
    return byte == '\t' || (byte >= ' ' && byte != 0x7f);
}

/* "HTTP whitespace"; other spaces are part of what they stand in. */
static bool type_is_space(uint8_t byte) {
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static struct bytes type_trim_end(struct bytes text) {
    while (text.size > 0 && type_is_space(text.data[text.size - 1])) {
        text.size--;
    }
    return text;
}

static struct bytes type_trim(struct bytes text) {
    while (text.size > 0 && type_is_space(text.data[0])) {
        text = bytes_skip(text, 1);
    }
    return type_trim_end(text);
}

/* ---- one value ---- */

/* The size of the quoted string that the text begins with, its quotes included; all of it without an end. */
static size_t type_quoted_size(struct bytes text) {
    for (size_t i = 1; i < text.size; i++) {
        if (text.data[i] == '"') {
            return i + 1;
        }
        if (text.data[i] == '\\') {
            i++;
        }
    }
    return text.size;
}

/* What a parameter says, without quotes and backslashes. */
struct type_value {
    bool is_sound; /* nothing in it that must not be */
    size_t size;   /* may be more than is kept */
    char text[MIME_CHARSET_SIZE_MAX + 1];
};

static void type_value_put(struct type_value *value, uint8_t byte) {
    value->is_sound = value->is_sound && type_is_value_byte(byte);
    if (value->size < MIME_CHARSET_SIZE_MAX) {
        value->text[value->size] = (char)byte;
    }
    value->size++;
}

/* From behind the equals sign. False: a parameter without a value is none. */
static bool type_read_value(struct bytes *rest, struct type_value *value) {
    *value = (struct type_value){.is_sound = true};
    if (rest->size > 0 && rest->data[0] == '"') {
        struct bytes quoted = bytes_slice(*rest, 0, type_quoted_size(*rest));
        bool is_open = true;
        for (size_t i = 1; i < quoted.size && is_open; i++) {
            if (quoted.data[i] == '"') {
                is_open = false;
                continue;
            }
            i += quoted.data[i] == '\\' && i + 1 < quoted.size;
            type_value_put(value, quoted.data[i]);
        }
        *rest = bytes_skip(*rest, quoted.size);
        *rest = bytes_skip(*rest, bytes_find_byte(*rest, ';'));
        return true;
    }
    struct bytes plain = type_trim_end(bytes_slice(*rest, 0, bytes_find_byte(*rest, ';')));
    for (size_t i = 0; i < plain.size; i++) {
        type_value_put(value, plain.data[i]);
    }
    *rest = bytes_skip(*rest, bytes_find_byte(*rest, ';'));
    return plain.size > 0;
}

/* ";name=value": rest begins with the semicolon, and afterwards with the next. The first charset counts. */
static void type_read_parameter(struct mime_type *type, struct bytes *rest) {
    *rest = bytes_skip(*rest, 1);
    while (rest->size > 0 && type_is_space(rest->data[0])) {
        *rest = bytes_skip(*rest, 1);
    }
    size_t size = 0;
    while (size < rest->size && rest->data[size] != ';' && rest->data[size] != '=') {
        size++;
    }
    struct bytes name = bytes_slice(*rest, 0, size);
    *rest = bytes_skip(*rest, size);
    if (rest->size <= 1 || rest->data[0] == ';') {
        *rest = bytes_skip(*rest, rest->size == 1 && rest->data[0] == '=' ? 1 : 0);
        return;
    }
    struct type_value value;
    *rest = bytes_skip(*rest, 1);
    if (type_read_value(rest, &value) && value.is_sound && !type->has_charset &&
        bytes_equal_ignore_case(name, BYTES("charset"))) {
        type->has_charset = true;
        memcpy(type->charset, value.text, sizeof type->charset);
    }
}

bool mime_type_parse(struct mime_type *type, struct bytes value) {
    *type = (struct mime_type){.has_charset = false};
    value = type_trim(value);
    size_t semicolon = bytes_find_byte(value, ';');
    size_t slash = bytes_find_byte(value, '/');
    if (slash >= semicolon) { /* also if there is none */
        return false;
    }
    struct bytes name = bytes_slice(value, 0, slash);
    struct bytes below = type_trim_end(bytes_slice(value, slash + 1, semicolon));
    size_t size = name.size + 1 + below.size;
    if (!type_is_token(name) || !type_is_token(below) || size > MIME_ESSENCE_SIZE_MAX) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        type->essence[i] = (char)byte_lower(value.data[i]);
    }
    struct bytes rest = bytes_skip(value, semicolon);
    while (rest.size > 0) {
        type_read_parameter(type, &rest);
    }
    return true;
}

/* ---- a header ---- */

/* "Get, decode, and split": up to a comma that is not quoted. */
static struct bytes type_take_value(struct bytes *rest) {
    size_t size = 0;
    while (size < rest->size && rest->data[size] != ',') {
        size += rest->data[size] == '"' ? type_quoted_size(bytes_skip(*rest, size)) : 1;
    }
    struct bytes value = bytes_slice(*rest, 0, size);
    *rest = bytes_skip(*rest, size < rest->size ? size + 1 : size);
    return value;
}

bool mime_type_extract(struct mime_type *type, struct bytes header) {
    struct mime_type first = {.has_charset = false}; /* of those in a row that have the same essence */
    struct mime_type next;
    *type = first;
    while (header.size > 0) {
        if (!mime_type_parse(&next, type_take_value(&header)) || mime_type_is(&next, "*/*")) {
            continue;
        }
        if (strcmp(next.essence, first.essence) != 0) {
            first = next;
        }
        *type = next.has_charset ? next : first;
    }
    return type->essence[0] != '\0';
}

/* ---- questions ---- */

struct bytes mime_type_essence(const struct mime_type *type) {
    return bytes_of_string(type->essence);
}

struct bytes mime_type_charset(const struct mime_type *type) {
    return bytes_of_string(type->charset);
}

bool mime_type_is(const struct mime_type *type, const char *essence) {
    return strcmp(type->essence, essence) == 0;
}

bool mime_type_begins(const struct mime_type *type, const char *start) {
    return strncmp(type->essence, start, strlen(start)) == 0;
}

bool mime_type_is_html(const struct mime_type *type) {
    return mime_type_is(type, "text/html") || mime_type_is(type, "application/xhtml+xml");
}

bool mime_type_is_xml(const struct mime_type *type) {
    return mime_type_is(type, "text/xml") || mime_type_is(type, "application/xml") ||
           bytes_ends_with(mime_type_essence(type), BYTES("+xml"));
}

bool mime_type_is_script(const struct mime_type *type) {
    static const char *const scripts[] = {"application/ecmascript",
                                          "application/javascript",
                                          "application/x-ecmascript",
                                          "application/x-javascript",
                                          "text/ecmascript",
                                          "text/javascript",
                                          "text/javascript1.0",
                                          "text/javascript1.1",
                                          "text/javascript1.2",
                                          "text/javascript1.3",
                                          "text/javascript1.4",
                                          "text/javascript1.5",
                                          "text/jscript",
                                          "text/livescript",
                                          "text/x-ecmascript",
                                          "text/x-javascript",
                                          NULL};
    return bytes_is_one_of(mime_type_essence(type), scripts);
}
