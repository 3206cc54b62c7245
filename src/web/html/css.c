#include "web/html/css.h"

#include "web/html/css_escape.h"
#include "web/html/css_step.h"

void css_init(struct css *css) {
    *css = (struct css){.state = CSS_IN_NORMAL};
    tape_init(&css->tape, CSS_VALUE_SIZE_MAX + CSS_ESCAPE_SIZE_MAX);
}

void css_done(struct css *css) {
    tape_done(&css->tape);
}

void css_start(struct css *css) {
    tape_start(&css->tape);
    css->state = CSS_IN_NORMAL;
    css->rule = CSS_NO_RULE;
    css->has_ended = css->is_last = css->has_reference = false;
    css->given = css->at = css->from = css->to = css->depth = 0;
}

void css_feed(struct css *css, struct bytes piece) {
    ASSERT(!css->has_ended);
    tape_feed(&css->tape, piece);
}

void css_end(struct css *css) {
    css->has_ended = true;
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
    size_t size = css_name_size(text, css->is_last && is_short);
    if (size == CSS_INCOMPLETE) {
        if (is_short) {
            return CSS_MORE;
        }
        css->at = from;
        css->state = CSS_IN_NAME;
        return CSS_AGAIN;
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
        size_t size = css_escape_size(bytes_skip(view, css->at), css->is_last);
        if (size == CSS_INCOMPLETE) {
            return CSS_MORE;
        }
        if (size > 0) {
            css->at += size;
            return CSS_AGAIN;
        }
    }
    css->state = CSS_IN_NORMAL;
    return CSS_AGAIN;
}

/*
 * What is between names
 */

/* NAME: may be in a name. SIGN: '@', '#', '\\'. END: of a rule. OTHER: a delimiter that matters. */
enum { DULL = 0, NAME = 1, SIGN = 2, END = 4, OTHER = 8 };

static const uint8_t classes[256] = {
    ['\0'] = NAME,
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
        if (css->at + 1 == view.size && !css->is_last) {
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
        if (class == DULL) {
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

static enum css_step step_comment(struct css *css, struct bytes view) {
    css->at += bytes_find_byte(bytes_skip(view, css->at), '*');
    if (css->at == view.size || (css->at + 1 == view.size && !css->is_last)) {
        return CSS_MORE;
    }
    css->at++;
    if (css->at < view.size && view.data[css->at] == '/') {
        css->at++;
        css->state = CSS_IN_NORMAL;
    }
    return CSS_AGAIN;
}

static enum css_step step(struct css *css, struct bytes view) {
    switch (css->state) {
    case CSS_IN_NORMAL:
        return step_normal(css, view);
    case CSS_IN_COMMENT:
        return step_comment(css, view);
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

static bool give(struct css *css, struct css_token *token, enum css_token_kind kind, size_t size) {
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
        return give(css, token, CSS_OTHER, css->from);
    }
    css->has_reference = false;
    token->quote = css->quote == 0 ? CSS_UNQUOTED : css->quote == '"' ? CSS_DOUBLE_QUOTED : CSS_SINGLE_QUOTED;
    return give(css, token, css->reference_kind, css->to);
}

/* More bytes in the view, or the news that these are the last. False where it takes another piece. */
static bool more(struct css *css) {
    if (tape_more(&css->tape)) {
        return true;
    }
    if (!css->has_ended || css->is_last || css->tape.held.err != ERR_OK) {
        return false;
    }
    return css->is_last = true;
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
        if (step(css, css->tape.view) != CSS_MORE) {
            continue;
        }
        size_t size = held_from(css);
        if (size > 0) {
            return give(css, token, CSS_OTHER, size);
        }
        if (css->is_last) {
            css->state = CSS_AT_END;
            return give(css, token, CSS_END, 0);
        }
        if (!more(css)) {
            return false;
        }
    }
    return false;
}
