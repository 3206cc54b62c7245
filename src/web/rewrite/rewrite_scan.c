#include "web/rewrite/rewrite_scan.h"

/* clang-format off */
static const char *const names[REWRITE_WORDS_COUNT] = {
    [REWRITE_WORD_NONE] = "",
    [REWRITE_WORD_LOCATION] = "location", "top", "parent", "window", "self", "globalThis", "document", "frames",
    "history", "postMessage",
    [REWRITE_WORD_IMPORT] = "import", "export", "from", "as", "meta", "url", "super", "class", "function", "var",
    "let", "const", "if", "while", "for", "with", "break", "continue", "get", "set", "async", "static", "try",
    "finally",
    [REWRITE_WORD_ELSE] = "else", "do", "return", "throw", "case", "default", "typeof", "void", "delete", "new",
    "in", "instanceof", "await",
    [REWRITE_WORD_YIELD] = "yield",
};
/* clang-format on */

enum { WORD_SIZE_MIN = 2, WORD_SIZE_MAX = 11 };

void rewrite_scan_words(struct words *words) {
    words_init(words, names, REWRITE_WORDS_COUNT);
}

enum rewrite_word rewrite_scan_word(const struct words *words, struct bytes name) {
    if (name.size < WORD_SIZE_MIN || name.size > WORD_SIZE_MAX) {
        return REWRITE_WORD_NONE;
    }
    unsigned id = words_find(words, html_key(name), name);
    bool is_equal = id != 0 && memcmp(names[id], name.data, name.size) == 0;
    return is_equal ? (enum rewrite_word)id : REWRITE_WORD_NONE;
}

bool rewrite_scan_is_space(uint8_t byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

bool rewrite_scan_is_name(uint8_t byte) {
    return byte_is_alnum(byte) || byte == '_' || byte == '$' || byte == '\\' || byte >= 0x80;
}

/* The size of "\u{1f600}" at the start of the text. */
static size_t braced_escape_size(struct bytes text) {
    if (!bytes_starts_with(text, BYTES("\\u{"))) {
        return 1;
    }
    size_t end = bytes_find_byte(text, '}');
    return end < text.size ? end + 1 : text.size;
}

size_t rewrite_scan_name(struct bytes text) {
    size_t at = 0;
    while (at < text.size && rewrite_scan_is_name(text.data[at])) {
        at += text.data[at] == '\\' ? braced_escape_size(bytes_skip(text, at)) : 1;
    }
    return at;
}

/*
 * Punctuators
 */

static size_t set(enum rewrite_token_kind *ret_kind, enum rewrite_token_kind kind, size_t size) {
    *ret_kind = kind;
    return size;
}

static size_t equals_punctuator(const uint8_t byte[3], enum rewrite_token_kind *ret_kind) {
    if (byte[1] == '>' && byte[0] == '=') {
        return set(ret_kind, REWRITE_TOKEN_ARROW, 2);
    }
    if (byte[1] == '=') {
        return set(ret_kind, REWRITE_TOKEN_EQUALITY, byte[2] == '=' ? 3 : 2);
    }
    return set(ret_kind, byte[0] == '=' ? REWRITE_TOKEN_EQUALS : REWRITE_TOKEN_OPERATOR, 1);
}

static size_t question_punctuator(const uint8_t byte[3], enum rewrite_token_kind *ret_kind) {
    if (byte[1] == '.' && !byte_is_digit(byte[2])) {
        return set(ret_kind, REWRITE_TOKEN_OPTIONAL, 2);
    }
    if (byte[1] == '?') {
        return set(ret_kind, REWRITE_TOKEN_OPERATOR, byte[2] == '=' ? 3 : 2);
    }
    return set(ret_kind, REWRITE_TOKEN_QUESTION, 1);
}

size_t rewrite_scan_punctuator(struct bytes text, bool is_last, enum rewrite_token_kind *ret_kind) {
    if (text.size < 3 && !is_last) {
        return 0;
    }
    uint8_t byte[3] = {text.data[0], text.size > 1 ? text.data[1] : '\0',
                       text.size > 2 ? text.data[2] : '\0'};
    switch (byte[0]) {
    case '=':
    case '!':
        return equals_punctuator(byte, ret_kind);
    case '?':
        return question_punctuator(byte, ret_kind);
    case '.':
        return byte[1] == '.' && byte[2] == '.' ? set(ret_kind, REWRITE_TOKEN_ELLIPSIS, 3)
                                                : set(ret_kind, REWRITE_TOKEN_DOT, 1);
    case '+':
    case '-':
        return byte[1] == byte[0] ? set(ret_kind, REWRITE_TOKEN_INCREMENT, 2)
                                  : set(ret_kind, REWRITE_TOKEN_OPERATOR, byte[1] == '=' ? 2 : 1);
    case '*':
        return byte[1] == '*' || byte[1] == '=' ? set(ret_kind, REWRITE_TOKEN_OPERATOR, 2)
                                                : set(ret_kind, REWRITE_TOKEN_STAR, 1);
    case '{':
    case '}':
    case '(':
    case ')':
    case '[':
    case ']':
    case ',':
    case ';':
    case ':':
        return set(ret_kind, (enum rewrite_token_kind)byte[0], 1);
    default:
        return set(ret_kind, REWRITE_TOKEN_OPERATOR, byte[1] == '=' ? 2 : 1);
    }
}

/*
 * What comes next
 */

/* Behind the comment at text[at], or text.size if its end is not there; `at` if there is none. */
static size_t skip_comment(struct bytes text, size_t at) {
    struct bytes rest = bytes_skip(text, at);
    if (bytes_starts_with(rest, BYTES("//"))) {
        size_t end = 2;
        while (end < rest.size && rest.data[end] != '\n' && rest.data[end] != '\r') {
            end++;
        }
        return at + end;
    }
    if (bytes_starts_with(rest, BYTES("/*"))) {
        size_t end = bytes_find(bytes_skip(rest, 2), BYTES("*/")) + 2;
        return end == rest.size ? text.size : at + end + 2;
    }
    return at;
}

static size_t skip_spaces_and_comments(struct bytes text) {
    size_t at = 0;
    for (size_t from = SIZE_MAX; at != from && at < text.size;) {
        from = at;
        while (at < text.size && rewrite_scan_is_space(text.data[at])) {
            at++;
        }
        at = skip_comment(text, at);
    }
    return at;
}

/* The text ends before it can be said. */
static bool too_short(bool is_cut, bool is_last, size_t at, struct rewrite_peek *ret_peek) {
    *ret_peek = (struct rewrite_peek){
        .kind = is_cut ? REWRITE_TOKEN_UNKNOWN : REWRITE_TOKEN_END, .from = at, .to = at};
    return is_cut || is_last;
}

bool rewrite_scan_peek(const struct words *words, struct bytes view, size_t at, bool is_last,
                       struct rewrite_peek *ret_peek) {
    struct bytes text = bytes_skip(view, at);
    bool is_cut = text.size > REWRITE_PEEK_SIZE_MAX;
    text.size = is_cut ? REWRITE_PEEK_SIZE_MAX : text.size;
    size_t skipped = skip_spaces_and_comments(text);
    text = bytes_skip(text, skipped);
    size_t from = at + skipped;
    if (text.size == 0 || (text.size == 1 && text.data[0] == '/')) { /* which may start a comment */
        return too_short(is_cut, is_last, from, ret_peek);
    }
    *ret_peek = (struct rewrite_peek){.kind = REWRITE_TOKEN_OPERATOR, .from = from, .to = from + 1};
    uint8_t byte = text.data[0];
    if (rewrite_scan_is_name(byte)) {
        size_t size = rewrite_scan_name(text);
        if (size == text.size && (is_cut || !is_last)) {
            return too_short(is_cut, is_last, from, ret_peek);
        }
        ret_peek->kind = byte_is_digit(byte) ? REWRITE_TOKEN_LITERAL : REWRITE_TOKEN_NAME;
        ret_peek->word = rewrite_scan_word(words, bytes_slice(text, 0, size));
        ret_peek->to = from + size;
        return true;
    }
    if (byte == '/' || byte == '"' || byte == '\'' || byte == '`') {
        ret_peek->kind = byte == '`' ? REWRITE_TOKEN_BACKTICK : REWRITE_TOKEN_OPERATOR;
        return true;
    }
    size_t size = rewrite_scan_punctuator(text, is_last && !is_cut, &ret_peek->kind);
    ret_peek->to = from + size;
    return size > 0 || too_short(is_cut, is_last, from, ret_peek);
}
