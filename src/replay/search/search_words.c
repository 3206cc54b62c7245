#include "replay/search/search_words.h"

#include <unictype.h>

#include "base/utf8.h"

/* FTS5 gathers all places of all words that begin so in memory, and cannot be stopped meanwhile. */
enum { PREFIX_SIZE_MIN = 3 };

struct term {
    struct bytes text;
    bool is_negative;
    bool is_prefix;
};

static bool words_is_space(uint8_t byte) {
    return byte <= ' ' || byte == 0x7f;
}

/* Is there anything in it that the tokenizer takes for a part of a word? */
static bool words_has_word(struct bytes text) {
    while (text.size > 0) {
        size_t length;
        uint32_t code_point = utf8_decode(text, &length);
        if (uc_is_general_category_withtable(code_point,
                                             UC_CATEGORY_MASK_L | UC_CATEGORY_MASK_N | UC_CATEGORY_MASK_Co)) {
            return true;
        }
        text = bytes_skip(text, length);
    }
    return false;
}

/* In bytes, without the stars at its end: a letter of a script with many is worth three. */
static size_t prefix_size(struct bytes text) {
    while (bytes_ends_with(text, BYTES("*"))) {
        text.size--;
    }
    return text.size;
}

/* Cut the next term off; false at the end. */
static bool next_term(struct bytes *rest, struct term *ret_term) {
    while (rest->size > 0 && words_is_space(rest->data[0])) {
        *rest = bytes_skip(*rest, 1);
    }
    if (rest->size == 0) {
        return false;
    }
    struct term term = {.is_negative = rest->data[0] == '-'};
    if (term.is_negative) {
        *rest = bytes_skip(*rest, 1);
    }
    if (rest->size > 0 && rest->data[0] == '"') {
        *rest = bytes_skip(*rest, 1);
        size_t size = bytes_find_byte(*rest, '"');
        term.text = bytes_slice(*rest, 0, size);
        *rest = bytes_skip(*rest, size < rest->size ? size + 1 : size);
    } else {
        size_t size = 0;
        while (size < rest->size && !words_is_space(rest->data[size]) && rest->data[size] != '"') {
            size++;
        }
        term.text = bytes_slice(*rest, 0, size);
        *rest = bytes_skip(*rest, size);
        term.is_prefix = bytes_ends_with(term.text, BYTES("*"));
    }
    *ret_term = term;
    return true;
}

/* In quotes FTS5 takes everything for text; there are none inside. */
static void put_term(struct buf *out, const struct term *term) {
    buf_put_byte(out, '"');
    for (size_t i = 0; i < term->text.size; i++) {
        uint8_t byte = term->text.data[i];
        ASSERT(byte != '"');
        buf_put_byte(out, words_is_space(byte) ? ' ' : byte);
    }
    buf_put_string(out, term->is_prefix ? "\"*" : "\"");
}

static size_t put_terms(struct buf *out, const struct term *terms, size_t terms_count, bool is_negative) {
    size_t count = 0;
    for (size_t i = 0; i < terms_count; i++) {
        if (terms[i].is_negative == is_negative) {
            buf_put_string(out, count++ == 0 ? "(" : is_negative ? " OR " : " AND ");
            put_term(out, &terms[i]);
        }
    }
    return count;
}

enum err search_words_put(struct buf *out, struct bytes words, struct err_detail *detail) {
    struct term terms[SEARCH_TERMS_MAX];
    struct term term;
    size_t terms_count = 0;
    size_t negative_count = 0;
    if (words.size > SEARCH_WORDS_SIZE_MAX) {
        return err_set(detail, ERR_LIMIT, "a search may have %u bytes at most", SEARCH_WORDS_SIZE_MAX);
    }
    if (!utf8_is_valid(words)) {
        return err_set(detail, ERR_INVALID, "the words are not UTF-8");
    }
    while (next_term(&words, &term)) {
        if (!words_has_word(term.text)) {
            continue;
        }
        if (terms_count == SEARCH_TERMS_MAX) {
            return err_set(detail, ERR_LIMIT, "a search may have %u words at most", SEARCH_TERMS_MAX);
        }
        if (term.is_prefix && prefix_size(term.text) < PREFIX_SIZE_MIN) {
            return err_set(detail, ERR_INVALID, "before a star there must be at least %d letters",
                           PREFIX_SIZE_MIN);
        }
        terms[terms_count++] = term;
        negative_count += term.is_negative;
    }
    if (terms_count == negative_count) {
        return err_set(detail, ERR_INVALID,
                       negative_count > 0
                           ? "there must be a word that is to be found, not only words that are not"
                           : "there must be a word to look for");
    }
    put_terms(out, terms, terms_count, false);
    buf_put_string(out, ")");
    if (negative_count > 0) {
        buf_put_string(out, " NOT ");
        put_terms(out, terms, terms_count, true);
        buf_put_string(out, ")");
    }
    return out->err;
}
