#include "web/html/html_doctype.h"

static bool is_space(uint8_t byte) {
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\f' || byte == '\r';
}

static void skip_spaces(struct bytes *text) {
    while (text->size > 0 && is_space(text->data[0])) {
        *text = bytes_skip(*text, 1);
    }
}

static bool skip_word(struct bytes *text, struct bytes word) {
    if (text->size < word.size || !bytes_equal_ignore_case(bytes_slice(*text, 0, word.size), word)) {
        return false;
    }
    *text = bytes_skip(*text, word.size);
    return true;
}

/* "…" or '…'. False where the quote is not closed; what there is of it counts all the same. */
static bool take_id(struct bytes *text, struct bytes *ret_id) {
    uint8_t quote = text->data[0];
    *text = bytes_skip(*text, 1);
    size_t size = bytes_find_byte(*text, quote);
    *ret_id = bytes_slice(*text, 0, size);
    if (size == text->size) {
        *text = bytes_skip(*text, size);
        return false;
    }
    *text = bytes_skip(*text, size + 1);
    return true;
}

static bool starts_with_quote(struct bytes text) {
    return text.size > 0 && (text.data[0] == '"' || text.data[0] == '\'');
}

/* Behind the name. False where the standard asks for quirks mode. */
static bool parse_ids(struct html_token *token, struct bytes text, bool is_open) {
    skip_spaces(&text);
    if (text.size == 0) {
        return !is_open;
    }
    bool is_public = skip_word(&text, BYTES("public"));
    if (!is_public && !skip_word(&text, BYTES("system"))) {
        return false;
    }
    skip_spaces(&text);
    if (!starts_with_quote(text) || !take_id(&text, &token->ids[is_public ? 0 : 1])) {
        return false;
    }
    skip_spaces(&text);
    if (is_public) {
        if (text.size == 0) {
            return !is_open;
        }
        if (!starts_with_quote(text) || !take_id(&text, &token->ids[1])) {
            return false;
        }
        skip_spaces(&text);
    }
    /* What follows the system identifier is ignored, but an end of the input there is not. */
    return text.size > 0 || !is_open;
}

void html_doctype_parse(struct html_token *token, struct bytes text, bool is_open) {
    token->ids[0] = token->ids[1] = (struct bytes){NULL, 0};
    skip_spaces(&text);
    size_t size = 0;
    while (size < text.size && !is_space(text.data[size])) {
        size++;
    }
    token->name = bytes_slice(text, 0, size);
    token->is_quirky = size == 0 || !parse_ids(token, bytes_skip(text, size), is_open);
}
