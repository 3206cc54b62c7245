#include "web/html/html_doctype.h"

static bool skip_word(struct bytes *text, struct bytes word) {
    if (!bytes_starts_with_ignore_case(*text, word)) {
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
    bytes_skip_spaces(&text);
    if (text.size == 0) {
        return !is_open;
    }
    bool is_public = skip_word(&text, BYTES("public"));
    if (!is_public && !skip_word(&text, BYTES("system"))) {
        return false;
    }
    bytes_skip_spaces(&text);
    if (!starts_with_quote(text) || !take_id(&text, &token->ids[is_public ? 0 : 1])) {
        return false;
    }
    bytes_skip_spaces(&text);
    if (is_public) {
        if (text.size == 0) {
            return !is_open;
        }
        if (!starts_with_quote(text) || !take_id(&text, &token->ids[1])) {
            return false;
        }
        bytes_skip_spaces(&text);
    }
    /* What follows the system identifier is ignored, but an end of the input there is not. */
    return text.size > 0 || !is_open;
}

void html_doctype_parse(struct html_token *token, struct bytes text, bool is_open) {
    token->ids[0] = token->ids[1] = (struct bytes){NULL, 0};
    bytes_skip_spaces(&text);
    size_t size = 0;
    while (size < text.size && !byte_is_space(text.data[size])) {
        size++;
    }
    token->name = bytes_slice(text, 0, size);
    token->is_quirky = size == 0 || !parse_ids(token, bytes_skip(text, size), is_open);
}
