/*
 * encoding_prescan() - the standard's "prescan a byte stream to determine its encoding". It is not the
 * tokenizer: it knows no scripts and no titles, and a page may depend on just that.
 * https://html.spec.whatwg.org/multipage/parsing.html#prescan-a-byte-stream-to-determine-its-encoding
 */
#include "web/html/encoding.h"

/* Up to a quote, or to a space or '>' where there is none. False where the quote is not closed. */
static bool take_value(struct bytes *text, struct bytes *ret_value) {
    uint8_t quote = text->data[0];
    if (quote == '"' || quote == '\'') {
        struct bytes inside = bytes_skip(*text, 1);
        size_t size = bytes_find_byte(inside, quote);
        *ret_value = bytes_slice(inside, 0, size);
        *text = bytes_skip(inside, size < inside.size ? size + 1 : size);
        return size < inside.size;
    }
    size_t size = 0;
    while (size < text->size && !byte_is_space(text->data[size]) && text->data[size] != '>') {
        size++;
    }
    *ret_value = bytes_slice(*text, 0, size);
    *text = bytes_skip(*text, size);
    return text->size > 0;
}

/* "Get an attribute": false at the end of the tag, or of the bytes. */
static bool next_attribute(struct bytes *text, struct bytes *ret_name, struct bytes *ret_value) {
    while (text->size > 0 && (byte_is_space(text->data[0]) || text->data[0] == '/')) {
        *text = bytes_skip(*text, 1);
    }
    if (text->size == 0 || text->data[0] == '>') {
        return false;
    }
    size_t size = text->data[0] == '=' ? 1 : 0;
    while (size < text->size && !byte_is_space(text->data[size]) && text->data[size] != '/' &&
           text->data[size] != '>' && text->data[size] != '=') {
        size++;
    }
    *ret_name = bytes_slice(*text, 0, size);
    *ret_value = (struct bytes){NULL, 0};
    *text = bytes_skip(*text, size);
    bytes_skip_spaces(text);
    if (text->size == 0 || text->data[0] != '=') {
        return text->size > 0;
    }
    *text = bytes_skip(*text, 1);
    bytes_skip_spaces(text);
    if (text->size == 0 || text->data[0] == '>') {
        return text->size > 0;
    }
    return take_value(text, ret_value);
}

/* "text/html; charset=x" in an attribute: all that follows "charset" and '='. */
static struct bytes charset_in_content(struct bytes content) {
    while (content.size > 0) {
        if (!bytes_starts_with_ignore_case(content, BYTES("charset"))) {
            content = bytes_skip(content, 1);
            continue;
        }
        content = bytes_skip(content, 7);
        bytes_skip_spaces(&content);
        if (content.size == 0 || content.data[0] != '=') {
            continue;
        }
        content = bytes_skip(content, 1);
        bytes_skip_spaces(&content);
        struct bytes value = {NULL, 0};
        if (content.size > 0 && (content.data[0] == '"' || content.data[0] == '\'')) {
            return take_value(&content, &value) ? value : (struct bytes){NULL, 0};
        }
        size_t size = 0;
        while (size < content.size && !byte_is_space(content.data[size]) && content.data[size] != ';') {
            size++;
        }
        return bytes_slice(content, 0, size);
    }
    return (struct bytes){NULL, 0};
}

/* A document whose declaration could be read is not in UTF-16, whatever it declares. */
static const struct encoding *usable(const struct encoding *encoding) {
    if (encoding == NULL) {
        return NULL;
    }
    if (bytes_starts_with(bytes_of_string(encoding->name), BYTES("UTF-16"))) {
        return encoding_utf8;
    }
    if (strcmp(encoding->name, "x-user-defined") == 0) {
        return encoding_of_label(BYTES("windows-1252"));
    }
    return encoding;
}

/* Behind "<meta": what it declares, or NULL. *text is moved behind its attributes. */
static const struct encoding *read_meta(struct bytes *text) {
    bool got_pragma = false;
    bool needs_pragma = false;
    bool has_charset = false;
    unsigned seen = 0; /* of the three attributes; the first one counts */
    const struct encoding *encoding = NULL;
    struct bytes name;
    struct bytes value;
    while (next_attribute(text, &name, &value)) {
        if (bytes_equal_ignore_case(name, BYTES("http-equiv")) && (seen & 1) == 0) {
            seen |= 1;
            got_pragma = got_pragma || bytes_equal_ignore_case(value, BYTES("content-type"));
        } else if (bytes_equal_ignore_case(name, BYTES("content")) && (seen & 2) == 0) {
            seen |= 2;
            const struct encoding *found = encoding_of_label(charset_in_content(value));
            if (found != NULL && !has_charset) {
                encoding = found;
                needs_pragma = true;
                has_charset = true;
            }
        } else if (bytes_equal_ignore_case(name, BYTES("charset")) && (seen & 4) == 0) {
            seen |= 4;
            encoding = encoding_of_label(value);
            needs_pragma = false;
            has_charset = true;
        }
    }
    return needs_pragma && !got_pragma ? NULL : usable(encoding);
}

/* Over a comment, a tag or a declaration that is no meta. */
static void skip_markup(struct bytes *text) {
    struct bytes name;
    struct bytes value;
    if (bytes_starts_with_ignore_case(*text, BYTES("<!--"))) {
        struct bytes rest = bytes_skip(*text, 2); /* the dashes of "<!-->" close it, too */
        size_t end = bytes_find(rest, BYTES("-->"));
        *text = bytes_skip(rest, end < rest.size ? end + 3 : end);
        return;
    }
    size_t from = text->size > 1 && text->data[1] == '/' ? 2 : 1;
    if (text->size > from && byte_is_alpha(text->data[from])) {
        while (from < text->size && !byte_is_space(text->data[from]) && text->data[from] != '>') {
            from++;
        }
        *text = bytes_skip(*text, from);
        while (next_attribute(text, &name, &value)) {
        }
        return;
    }
    bool is_declaration =
        text->size > 1 && (text->data[1] == '!' || text->data[1] == '/' || text->data[1] == '?');
    size_t size = is_declaration ? bytes_find_byte(*text, '>') : 1;
    *text = bytes_skip(*text, size);
}

const struct encoding *encoding_prescan(struct bytes head) {
    struct bytes text = bytes_slice(head, 0, head.size < ENCODING_HEAD_SIZE ? head.size : ENCODING_HEAD_SIZE);
    for (;;) {
        text = bytes_skip(text, bytes_find_byte(text, '<'));
        if (text.size == 0) {
            return NULL;
        }
        bool is_meta = bytes_starts_with_ignore_case(text, BYTES("<meta")) && text.size > 5 &&
                       (byte_is_space(text.data[5]) || text.data[5] == '/');
        if (!is_meta) {
            skip_markup(&text);
            continue;
        }
        text = bytes_skip(text, 5);
        const struct encoding *encoding = read_meta(&text);
        if (encoding != NULL) {
            return encoding;
        }
    }
}
