#include "web/html/css.h"

#include "base/hex.h"
#include "base/utf8.h"

/*
 * Escapes and names: "\75 rl" is "url"
 */

enum { DIGITS_MAX = 6, ESCAPE_SIZE_MAX = 9 }; /* '\', six digits, CR LF */

/* A size of what starts a text: the text ends too early to say, and is not the last. */
#define INCOMPLETE SIZE_MAX

/* NAME: may be in a name. SIGN: '@', '#', '\\'. END: of a rule. OTHER: a delimiter that matters. */
enum { NAME = 1, SIGN = 2, END = 4, OTHER = 8, SPACE = 16, NEWLINE = 32 };

/* A zero byte counts as U+FFFD, which may be in names like all that is not ASCII. */
static const uint8_t classes[256] = {
    ['\0'] = NAME,
    ['\t'] = SPACE,
    ['\n'] = SPACE | NEWLINE,
    ['\f'] = SPACE | NEWLINE,
    ['\r'] = SPACE | NEWLINE,
    [' '] = SPACE,
    ['-'] = NAME,
    ['_'] = NAME,
    ['0' ... '9'] = NAME,
    ['A' ... 'Z'] = NAME,
    ['a' ... 'z'] = NAME,
    [0x80 ... 0xff] = NAME,
    ['#'] = SIGN,
    ['@'] = SIGN,
    ['\\'] = SIGN,
    [';'] = END,
    ['{'] = END,
    ['}'] = END,
    ['"'] = OTHER,
    ['\''] = OTHER,
    ['('] = OTHER,
    [')'] = OTHER,
    ['/'] = OTHER,
};

static bool css_is_newline(uint8_t byte) {
    return (classes[byte] & NEWLINE) != 0;
}

static bool css_is_space(uint8_t byte) {
    return (classes[byte] & SPACE) != 0;
}

static bool css_is_name(uint8_t byte) {
    return (classes[byte] & NAME) != 0;
}

/* Line ends are one character, CR LF too. */
static size_t space_size(struct bytes text, bool is_last) {
    if (text.size == 0) {
        return is_last ? 0 : INCOMPLETE;
    }
    if (text.data[0] == '\r') {
        if (text.size == 1) {
            return is_last ? 1 : INCOMPLETE;
        }
        return text.data[1] == '\n' ? 2 : 1;
    }
    return css_is_space(text.data[0]) ? 1 : 0;
}

static size_t css_escape_size(struct bytes text, bool is_last) {
    if (text.size == 1) {
        return is_last ? 1 : INCOMPLETE;
    }
    if (css_is_newline(text.data[1])) {
        return 0;
    }
    size_t size = 1;
    while (size < text.size && size <= DIGITS_MAX && hex_digit(text.data[size]) >= 0) {
        size++;
    }
    if (size == 1) {
        return 2; /* any other character; the rest of one that is not ASCII is a name by itself */
    }
    if (size == text.size && size <= DIGITS_MAX) {
        return is_last ? size : INCOMPLETE;
    }
    size_t space = space_size(bytes_skip(text, size), is_last);
    return space == INCOMPLETE ? INCOMPLETE : size + space;
}

static size_t css_name_size(struct bytes text, bool is_last) {
    size_t at = 0;
    for (;;) {
        while (at < text.size && css_is_name(text.data[at])) {
            at++;
        }
        if (at == text.size) {
            return is_last ? at : INCOMPLETE;
        }
        if (text.data[at] != '\\') {
            return at;
        }
        size_t escape = css_escape_size(bytes_skip(text, at), is_last);
        if (escape == 0 || escape == INCOMPLETE) {
            return escape == 0 ? at : INCOMPLETE;
        }
        at += escape;
    }
}

/* The number whose hexadecimal digits stand behind the '\' of an escape of this size. */
static uint32_t escaped_number(struct bytes text, size_t size) {
    uint32_t number = 0;
    for (size_t i = 1; i < size && hex_digit(text.data[i]) >= 0; i++) {
        number = number << 4 | (uint32_t)hex_digit(text.data[i]);
    }
    return number;
}

/* text starts with '\'. Returns how much of it was dealt with. */
static size_t put_escape(struct buf *out, struct bytes text) {
    size_t size = css_escape_size(text, true);
    if (size == 0) {
        return 1 + space_size(bytes_skip(text, 1), true); /* a line of a string goes on in the next */
    }
    if (size == 1) {
        return 1; /* the end of the input */
    }
    if (hex_digit(text.data[1]) < 0) {
        buf_put(out, text.data[1] == '\0' ? BYTES("\xef\xbf\xbd") : bytes_slice(text, 1, 2));
        return 2;
    }
    uint32_t code_point = escaped_number(text, size);
    if (code_point == 0 || code_point > 0x10ffff || (code_point >= 0xd800 && code_point <= 0xdfff)) {
        code_point = UTF8_REPLACEMENT;
    }
    uint8_t encoded[UTF8_LENGTH_MAX];
    size_t encoded_size = utf8_encode(code_point, encoded);
    buf_put(out, bytes_of(encoded, encoded_size));
    return size;
}

enum err css_decode(struct buf *out, struct bytes value) {
    for (size_t at = 0; at < value.size;) {
        size_t end = at;
        while (end < value.size && value.data[end] != '\\' && value.data[end] != '\0') {
            end++;
        }
        buf_put(out, bytes_slice(value, at, end));
        at = end;
        if (at < value.size && value.data[at] == '\0') {
            buf_put(out, BYTES("\xef\xbf\xbd"));
            at++;
        } else if (at < value.size) {
            at += put_escape(out, bytes_skip(value, at));
        }
    }
    return out->err;
}

/* The ASCII character at the start of the name, in lower case, or 0 if it is none. */
static uint8_t character_at(struct bytes name, size_t *ret_size) {
    *ret_size = 1;
    if (name.data[0] != '\\') {
        return byte_lower(name.data[0]);
    }
    *ret_size = css_escape_size(name, true);
    if (*ret_size < 2 || hex_digit(name.data[1]) < 0) {
        return *ret_size < 2 ? 0 : byte_lower(name.data[1]);
    }
    uint32_t code_point = escaped_number(name, *ret_size);
    return code_point < 0x80 ? byte_lower((uint8_t)code_point) : 0;
}

static bool css_name_equals(struct bytes name, struct bytes word) {
    while (name.size > 0 && word.size > 0) {
        size_t size;
        if (character_at(name, &size) != word.data[0]) {
            return false;
        }
        name = bytes_skip(name, size);
        word = bytes_skip(word, 1);
    }
    return name.size == 0 && word.size == 0;
}

void css_init(struct css *css) {
    *css = (struct css){.state = CSS_IN_NORMAL};
    tape_init(&css->tape, CSS_VALUE_SIZE_MAX + ESCAPE_SIZE_MAX);
}

void css_done(struct css *css) {
    tape_done(&css->tape);
}

void css_start(struct css *css) {
    tape_start(&css->tape);
    css->state = CSS_IN_NORMAL;
    css->rule = CSS_NO_RULE;
    css->has_reference = false;
    css->given = css->at = css->from = css->to = css->depth = 0;
}

void css_feed(struct css *css, struct bytes piece) {
    tape_feed(&css->tape, piece);
}

void css_end(struct css *css) {
    tape_end(&css->tape);
}

/* What a step did, with the view from css->at on. */
enum css_step {
    CSS_AGAIN, /* css->at has moved, the state has changed or css->has_reference */
    CSS_MORE,  /* the view ends before it can be said; nothing from css->at on has been dealt with */
};

static enum css_step css_enter(struct css *css, enum css_state state) {
    css->state = state;
    return CSS_AGAIN;
}

static enum css_step css_pass(struct css *css, size_t size) {
    if (size == INCOMPLETE) {
        return CSS_MORE;
    }
    css->at += size;
    return CSS_AGAIN;
}

/*
 * Functions and rules
 */

static void css_open_function(struct css *css, enum css_function function) {
    if (css->depth < CSS_DEPTH_MAX) {
        css->functions[css->depth] = (uint8_t)function;
    }
    css->depth++;
}

static void css_close_function(struct css *css) {
    css->depth -= css->depth > 0 ? 1 : 0;
}

static enum css_function innermost(const struct css *css) {
    bool is_known = css->depth > 0 && css->depth <= CSS_DEPTH_MAX;
    return is_known ? (enum css_function)css->functions[css->depth - 1] : CSS_PLAIN;
}

/* No string that follows in this function, or in the prelude of this rule, is a reference. */
static void expect_no_more(struct css *css) {
    css->rule = css->rule == CSS_IMPORT_RULE ? CSS_NO_RULE : css->rule;
    if (css->depth > 0 && css->depth <= CSS_DEPTH_MAX) {
        css->functions[css->depth - 1] = CSS_PLAIN;
    }
}

/* A "{", "}" or ";" ends a rule, and with it all that somebody forgot to close. */
static void css_end_rule(struct css *css) {
    css->rule = CSS_NO_RULE;
    css->depth = 0;
}

static bool string_is_reference(const struct css *css) {
    if (css->rule == CSS_NAMESPACE_RULE) {
        return false;
    }
    return innermost(css) != CSS_PLAIN || (css->rule == CSS_IMPORT_RULE && css->depth == 0);
}

/*
 * Strings and urls
 */

static void css_enter_string(struct css *css, uint8_t quote) {
    css->quote = quote;
    css->at++;
    css->from = css->at;
    css->state = string_is_reference(css) ? CSS_IN_VALUE : CSS_IN_STRING;
}

/* view[from, to) is the value of a reference, css->at is behind it. */
static enum css_step found(struct css *css, size_t to) {
    css->state = CSS_IN_NORMAL;
    if (css->rule == CSS_NAMESPACE_RULE || to == css->from) {
        return CSS_AGAIN;
    }
    css->to = to;
    css->has_reference = true;
    css->reference_kind = css->rule == CSS_IMPORT_RULE ? CSS_IMPORT : CSS_REFERENCE;
    if (innermost(css) != CSS_IMAGE_SET) {
        expect_no_more(css); /* an import and url() have one */
    }
    return CSS_AGAIN;
}

/* view[at] is a '\' in a string: over the escape or the line end behind it. */
static enum css_step step_string_escape(struct css *css, struct bytes view) {
    struct bytes text = bytes_skip(view, css->at);
    size_t size = css_escape_size(text, css->tape.is_last);
    if (size == 0) { /* "\" and a line end are nothing */
        size_t line_end = space_size(bytes_skip(text, 1), css->tape.is_last);
        size = line_end == INCOMPLETE ? INCOMPLETE : 1 + line_end;
    }
    return css_pass(css, size);
}

static bool is_plain_in_string(uint8_t byte, uint8_t quote) {
    return byte != quote && byte != '\\' && !css_is_newline(byte);
}

static enum css_step css_step_string(struct css *css, struct bytes view) {
    bool is_value = css->state == CSS_IN_VALUE;
    while (css->at < view.size && is_plain_in_string(view.data[css->at], css->quote)) {
        css->at++;
    }
    if (is_value && css->at - css->from > CSS_VALUE_SIZE_MAX) {
        return css_enter(css, CSS_IN_STRING);
    }
    if (css->at == view.size) {
        if (!is_value || !css->tape.is_last) {
            return CSS_MORE;
        }
        return found(css, css->at);
    }
    if (view.data[css->at] == '\\') {
        return step_string_escape(css, view);
    }
    size_t to = css->at;
    bool is_closed = view.data[to] == css->quote;
    if (!is_closed) { /* a line end makes it a bad string */
        expect_no_more(css);
        return css_enter(css, CSS_IN_NORMAL);
    }
    css->at++;
    return is_value ? found(css, to) : css_enter(css, CSS_IN_NORMAL);
}

static enum css_step css_step_url_start(struct css *css, struct bytes view) {
    while (css->at < view.size && css_is_space(view.data[css->at])) {
        css->at++;
    }
    if (css->at == view.size) {
        return CSS_MORE;
    }
    uint8_t byte = view.data[css->at];
    if (byte == '"' || byte == '\'') {
        css_open_function(css, CSS_URL);
        css_enter_string(css, byte);
    } else {
        css->state = CSS_IN_URL;
        css->quote = 0;
        css->from = css->at;
    }
    return CSS_AGAIN;
}

static bool is_plain_in_url(uint8_t byte) {
    bool is_printable = byte > 0x1f || byte == '\0'; /* which counts as U+FFFD */
    return is_printable && byte != ' ' && byte != '"' && byte != '\'' && byte != '(' && byte != ')' &&
           byte != '\\' && byte != 0x7f;
}

/* view[at] is a space: only spaces may stand between it and the ')'. */
static enum css_step step_url_space(struct css *css, struct bytes view) {
    size_t at = css->at;
    while (at < view.size && css_is_space(view.data[at])) {
        at++;
    }
    if (at - css->from > CSS_VALUE_SIZE_MAX) {
        return css_enter(css, CSS_IN_BAD_URL);
    }
    if (at == view.size && !css->tape.is_last) {
        return CSS_MORE;
    }
    size_t to = css->at;
    if (at < view.size && view.data[at] != ')') {
        return css_enter(css, CSS_IN_BAD_URL);
    }
    css->at = at < view.size ? at + 1 : at;
    return found(css, to);
}

static enum css_step css_step_url(struct css *css, struct bytes view) {
    while (css->at < view.size && is_plain_in_url(view.data[css->at])) {
        css->at++;
    }
    if (css->at - css->from > CSS_VALUE_SIZE_MAX) {
        return css_enter(css, CSS_IN_BAD_URL); /* which ends where a long one does */
    }
    if (css->at == view.size) {
        if (!css->tape.is_last) {
            return CSS_MORE;
        }
        return found(css, css->at);
    }
    uint8_t byte = view.data[css->at];
    if (byte == ')' || css_is_space(byte)) {
        return step_url_space(css, view);
    }
    size_t size = byte == '\\' ? css_escape_size(bytes_skip(view, css->at), css->tape.is_last) : 0;
    return size == 0 ? css_enter(css, CSS_IN_BAD_URL) : css_pass(css, size);
}

/* Up to the ')' that is not escaped. */
static enum css_step css_step_bad_url(struct css *css, struct bytes view) {
    while (css->at < view.size && view.data[css->at] != ')' && view.data[css->at] != '\\') {
        css->at++;
    }
    if (css->at == view.size) {
        return CSS_MORE;
    }
    if (view.data[css->at] == ')') {
        css->at++;
        return css_enter(css, CSS_IN_NORMAL);
    }
    size_t size = css_escape_size(bytes_skip(view, css->at), css->tape.is_last);
    return css_pass(css, size == 0 ? 1 : size);
}

/*
 * Names
 */

static void enter_function(struct css *css, struct bytes name) {
    if (css_name_equals(name, BYTES("url"))) {
        css->state = CSS_IN_URL_START;
    } else if (css_name_equals(name, BYTES("src"))) {
        css_open_function(css, CSS_URL);
    } else if (css_name_equals(name, BYTES("image-set")) ||
               css_name_equals(name, BYTES("-webkit-image-set"))) {
        css_open_function(css, CSS_IMAGE_SET);
    } else {
        css_open_function(css, CSS_PLAIN);
    }
}

static void enter_rule(struct css *css, struct bytes name) {
    if (css_name_equals(name, BYTES("import"))) {
        css->rule = CSS_IMPORT_RULE;
    } else {
        css->rule = css_name_equals(name, BYTES("namespace")) ? CSS_NAMESPACE_RULE : CSS_NO_RULE;
    }
}

/* view[at] starts a name, or '@' or '#' before one, or a number, whose unit is no function. */
static enum css_step step_name(struct css *css, struct bytes view) {
    uint8_t first = view.data[css->at];
    size_t from = css->at + (first == '@' || first == '#' ? 1 : 0);
    struct bytes text = bytes_skip(view, from);
    bool is_short = text.size <= CSS_NAME_SIZE_MAX;
    text.size = is_short ? text.size : CSS_NAME_SIZE_MAX;
    size_t size = css_name_size(text, css->tape.is_last && is_short);
    if (size == INCOMPLETE) {
        if (is_short) {
            return CSS_MORE;
        }
        css->at = from;
        return css_enter(css, CSS_IN_NAME);
    }
    if (size == 0 && from == css->at) {
        css->at++; /* a lonely '\' */
        return CSS_AGAIN;
    }
    struct bytes name = bytes_slice(text, 0, size);
    css->at = from + size;
    if (first == '@') {
        enter_rule(css, name);
    } else if (css->at < view.size && view.data[css->at] == '(' && first != '#' && !byte_is_digit(first)) {
        css->at++;
        enter_function(css, name);
    }
    return CSS_AGAIN;
}

/* Over the rest of a name that is too long; a '(' behind it opens a function that we do not know. */
static enum css_step step_long_name(struct css *css, struct bytes view) {
    while (css->at < view.size && css_is_name(view.data[css->at])) {
        css->at++;
    }
    if (css->at == view.size) {
        return CSS_MORE;
    }
    if (view.data[css->at] == '\\') {
        size_t size = css_escape_size(bytes_skip(view, css->at), css->tape.is_last);
        if (size > 0) {
            return css_pass(css, size);
        }
    }
    return css_enter(css, CSS_IN_NORMAL);
}

/*
 * What is between names
 */

static enum css_step step_delimiter(struct css *css, struct bytes view) {
    uint8_t byte = view.data[css->at];
    switch (byte) {
    case '"':
    case '\'':
        css_enter_string(css, byte);
        return CSS_AGAIN;
    case '(':
        css_open_function(css, CSS_PLAIN);
        break;
    case ')':
        css_close_function(css);
        break;
    default: /* '/' */
        if (css->at + 1 == view.size && !css->tape.is_last) {
            return CSS_MORE;
        }
        if (css->at + 1 < view.size && view.data[css->at + 1] == '*') {
            css->at++;
            css->state = CSS_IN_COMMENT;
        }
    }
    css->at++;
    return CSS_AGAIN;
}

/*
 * Nearly all names of a style sheet are followed by something else than '('; they are passed over here, where
 * nothing is called. Returns the index of what needs a closer look.
 */
static size_t skip_dull(struct css *css, struct bytes view) {
    const uint8_t *data = view.data;
    size_t at = css->at;
    while (at < view.size) {
        uint8_t class = classes[data[at]];
        if ((class & (NAME | SIGN | END | OTHER)) == 0) {
            at++;
        } else if (class == END) {
            css_end_rule(css);
            at++;
        } else if (class == NAME || data[at] == '#') {
            size_t end = at + 1;
            while (end < view.size && classes[data[end]] == NAME) {
                end++;
            }
            if (end == view.size || data[end] == '(' || data[end] == '\\') {
                break;
            }
            at = end;
        } else {
            break;
        }
    }
    return at;
}

static enum css_step step_normal(struct css *css, struct bytes view) {
    css->at = skip_dull(css, view);
    if (css->at == view.size) {
        return CSS_MORE;
    }
    return classes[view.data[css->at]] == OTHER ? step_delimiter(css, view) : step_name(css, view);
}

static enum css_step css_step_comment(struct css *css, struct bytes view) {
    css->at += bytes_find_byte(bytes_skip(view, css->at), '*');
    if (css->at == view.size || (css->at + 1 == view.size && !css->tape.is_last)) {
        return CSS_MORE;
    }
    css->at++;
    if (css->at < view.size && view.data[css->at] == '/') {
        css->at++;
        css->state = CSS_IN_NORMAL;
    }
    return CSS_AGAIN;
}

static enum css_step css_take_step(struct css *css, struct bytes view) {
    switch (css->state) {
    case CSS_IN_NORMAL:
        return step_normal(css, view);
    case CSS_IN_COMMENT:
        return css_step_comment(css, view);
    case CSS_IN_VALUE:
    case CSS_IN_STRING:
        return css_step_string(css, view);
    case CSS_IN_NAME:
        return step_long_name(css, view);
    case CSS_IN_URL_START:
        return css_step_url_start(css, view);
    case CSS_IN_URL:
        return css_step_url(css, view);
    case CSS_IN_BAD_URL:
        return css_step_bad_url(css, view);
    case CSS_AT_END:
        break;
    }
    return CSS_MORE;
}

/*
 * Tokens
 */

static bool css_give(struct css *css, struct css_token *token, enum css_token_kind kind, size_t size) {
    token->kind = kind;
    token->offset = css->tape.offset;
    token->source = bytes_slice(css->tape.view, 0, size);
    css->given = size;
    return true;
}

/* Where what cannot be given out yet starts: a value of which we do not know whether it will be one. */
static size_t held_from(const struct css *css) {
    bool is_value = css->state == CSS_IN_VALUE || css->state == CSS_IN_URL;
    return is_value ? css->from : css->at;
}

static bool give_reference(struct css *css, struct css_token *token) {
    if (css->from > 0) {
        return css_give(css, token, CSS_OTHER, css->from);
    }
    css->has_reference = false;
    token->quote = css->quote == 0 ? CSS_UNQUOTED : css->quote == '"' ? CSS_DOUBLE_QUOTED : CSS_SINGLE_QUOTED;
    return css_give(css, token, css->reference_kind, css->to);
}

static void consume(struct css *css) {
    tape_consume(&css->tape, css->given);
    css->at -= css->given;
    css->from -= css->from < css->given ? css->from : css->given;
    css->to -= css->to < css->given ? css->to : css->given;
    css->given = 0;
}

bool css_next(struct css *css, struct css_token *token) {
    consume(css);
    while (css->state != CSS_AT_END) {
        if (css->has_reference) {
            return give_reference(css, token);
        }
        if (css_take_step(css, css->tape.view) != CSS_MORE) {
            continue;
        }
        size_t size = held_from(css);
        if (size > 0) {
            return css_give(css, token, CSS_OTHER, size);
        }
        if (css->tape.is_last) {
            css->state = CSS_AT_END;
            return css_give(css, token, CSS_END, 0);
        }
        if (!tape_more(&css->tape)) {
            return false;
        }
    }
    return false;
}
