#include "web/html/css_escape.h"
#include "web/html/css_step.h"

/*
 * Functions and rules
 */

void css_open_function(struct css *css, enum css_function function) {
    if (css->depth < CSS_DEPTH_MAX) {
        css->functions[css->depth] = (uint8_t)function;
    }
    css->depth++;
}

void css_close_function(struct css *css) {
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

/* Of "{", "}" and ";": a rule is over, and so is what somebody forgot to close. */
void css_end_rule(struct css *css) {
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

void css_enter_string(struct css *css, uint8_t quote) {
    css->quote = quote;
    css->at++;
    css->from = css->at;
    css->state = string_is_reference(css) ? CSS_IN_VALUE : CSS_IN_STRING;
}

/* view[from, to) is the value of a reference, css->at is behind it. */
static enum css_step found(struct css *css, size_t to) {
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
    size_t size = css_escape_size(text, css->is_last);
    if (size == 0) { /* "\" and a line end are nothing */
        bool is_open = text.size == 2 && text.data[1] == '\r' && !css->is_last;
        bool has_crlf = text.size > 2 && text.data[1] == '\r' && text.data[2] == '\n';
        size = is_open ? CSS_INCOMPLETE : has_crlf ? 3 : 2;
    }
    if (size == CSS_INCOMPLETE) {
        return CSS_MORE;
    }
    css->at += size;
    return CSS_AGAIN;
}

static bool is_plain_in_string(uint8_t byte, uint8_t quote) {
    return byte != quote && byte != '\\' && !css_is_newline(byte);
}

enum css_step css_step_string(struct css *css, struct bytes view) {
    bool is_value = css->state == CSS_IN_VALUE;
    while (css->at < view.size && is_plain_in_string(view.data[css->at], css->quote)) {
        css->at++;
    }
    if (is_value && css->at - css->from > CSS_VALUE_SIZE_MAX) {
        css->state = CSS_IN_STRING;
        return CSS_AGAIN;
    }
    if (css->at == view.size) {
        if (!is_value || !css->is_last) {
            return CSS_MORE;
        }
        css->state = CSS_IN_NORMAL;
        return found(css, css->at);
    }
    if (view.data[css->at] == '\\') {
        return step_string_escape(css, view);
    }
    css->state = CSS_IN_NORMAL;
    size_t to = css->at;
    bool is_closed = view.data[to] == css->quote;
    if (!is_closed) { /* a line end makes it a bad string */
        expect_no_more(css);
        return CSS_AGAIN;
    }
    css->at++;
    return is_value ? found(css, to) : CSS_AGAIN;
}

enum css_step css_step_url_start(struct css *css, struct bytes view) {
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
        css->state = CSS_IN_BAD_URL;
        return CSS_AGAIN;
    }
    if (at == view.size && !css->is_last) {
        return CSS_MORE;
    }
    size_t to = css->at;
    if (at < view.size && view.data[at] != ')') {
        css->state = CSS_IN_BAD_URL;
        return CSS_AGAIN;
    }
    css->at = at < view.size ? at + 1 : at;
    css->state = CSS_IN_NORMAL;
    return found(css, to);
}

enum css_step css_step_url(struct css *css, struct bytes view) {
    while (css->at < view.size && is_plain_in_url(view.data[css->at])) {
        css->at++;
    }
    if (css->at - css->from > CSS_VALUE_SIZE_MAX) {
        css->state = CSS_IN_BAD_URL; /* which ends where a long one does */
        return CSS_AGAIN;
    }
    if (css->at == view.size) {
        if (!css->is_last) {
            return CSS_MORE;
        }
        css->state = CSS_IN_NORMAL;
        return found(css, css->at);
    }
    uint8_t byte = view.data[css->at];
    if (byte == ')' || css_is_space(byte)) {
        return step_url_space(css, view);
    }
    size_t size = byte == '\\' ? css_escape_size(bytes_skip(view, css->at), css->is_last) : 0;
    if (size == CSS_INCOMPLETE) {
        return CSS_MORE;
    }
    css->at += size;
    css->state = size == 0 ? CSS_IN_BAD_URL : css->state;
    return CSS_AGAIN;
}

/* Up to the ')' that is not escaped. */
enum css_step css_step_bad_url(struct css *css, struct bytes view) {
    while (css->at < view.size && view.data[css->at] != ')' && view.data[css->at] != '\\') {
        css->at++;
    }
    if (css->at == view.size) {
        return CSS_MORE;
    }
    if (view.data[css->at] == ')') {
        css->at++;
        css->state = CSS_IN_NORMAL;
        return CSS_AGAIN;
    }
    size_t size = css_escape_size(bytes_skip(view, css->at), css->is_last);
    if (size == CSS_INCOMPLETE) {
        return CSS_MORE;
    }
    css->at += size == 0 ? 1 : size;
    return CSS_AGAIN;
}
