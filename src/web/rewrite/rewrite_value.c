#include "web/html/refresh.h"
#include "web/html/srcset.h"
#include "web/rewrite/rewrite_state.h"
#include "web/url/input.h"

static enum err put_changed(void *context, struct bytes piece) {
    struct rewrite *rewrite = context;
    return buf_put(&rewrite->changed, piece);
}

/* Whether rewrite->changed is a new value, and whole. */
static bool has_changed(struct rewrite *rewrite, struct bytes value) {
    return rewrite_check(rewrite, rewrite->changed.err) && !bytes_equal(buf_bytes(&rewrite->changed), value);
}

bool rewrite_value_script(struct rewrite *rewrite, struct bytes value) {
    struct rewrite_script_place place = rewrite_script_place_of(rewrite, false, put_changed);
    buf_clear(&rewrite->changed);
    rewrite_script_start(&rewrite->value_script, &place);
    enum err err = rewrite_script_feed(&rewrite->value_script, value);
    err = err == ERR_OK ? rewrite_script_end(&rewrite->value_script) : err;
    return rewrite_check(rewrite, err) && has_changed(rewrite, value);
}

static bool is_javascript(struct bytes value) {
    value = input_trim(value);
    struct bytes scheme = BYTES("javascript:");
    return value.size > scheme.size && bytes_starts_with_ignore_case(value, scheme);
}

bool rewrite_value_url(struct rewrite *rewrite, enum rewrite_modifier modifier, struct bytes value) {
    if (is_javascript(value)) {
        return rewrite_value_script(rewrite, value); /* the scheme passes as a label */
    }
    struct bytes url;
    if (!rewrite_resolve(rewrite, modifier, value, &url)) {
        return false;
    }
    buf_clear(&rewrite->changed);
    return rewrite_check(rewrite, buf_put(&rewrite->changed, url));
}

bool rewrite_value_srcset(struct rewrite *rewrite, enum rewrite_modifier modifier, struct bytes value) {
    struct bytes rest = value;
    const uint8_t *copied = value.data;
    struct bytes text;
    buf_clear(&rewrite->changed);
    while (srcset_next(&rest, &text)) {
        struct bytes url;
        if (rewrite_resolve(rewrite, modifier, text, &url)) {
            buf_put(&rewrite->changed, bytes_of(copied, (size_t)(text.data - copied)));
            buf_put(&rewrite->changed, url);
            copied = text.data + text.size;
        }
    }
    if (value.size > 0) {
        buf_put(&rewrite->changed, bytes_of(copied, (size_t)(value.data + value.size - copied)));
    }
    return has_changed(rewrite, value);
}

bool rewrite_value_refresh(struct rewrite *rewrite, struct bytes value) {
    struct bytes text;
    struct bytes url;
    if (!refresh_url(value, &text) || !rewrite_resolve(rewrite, REWRITE_PAGE, text, &url)) {
        return false;
    }
    size_t from = (size_t)(text.data - value.data);
    uint8_t quote = from > 0 ? value.data[from - 1] : '\0';
    bool is_quoted = quote == '\'' || quote == '"';
    buf_clear(&rewrite->changed);
    buf_put(&rewrite->changed, bytes_slice(value, 0, from));
    for (size_t i = 0; i < url.size; i++) { /* there are no escapes in quotes */
        if (is_quoted && url.data[i] == quote) {
            buf_put_format(&rewrite->changed, "%%%02X", quote);
        } else {
            buf_put_byte(&rewrite->changed, url.data[i]);
        }
    }
    buf_put(&rewrite->changed, bytes_skip(value, from + text.size));
    return has_changed(rewrite, value);
}

bool rewrite_value_css(struct rewrite *rewrite, struct bytes value) {
    struct rewrite_css where = {
        .css = &rewrite->value_css, .put = put_changed, .context = rewrite, .is_utf8 = true};
    buf_clear(&rewrite->changed);
    css_start(&rewrite->value_css);
    rewrite_css_feed(rewrite, &where, value);
    rewrite_css_end(rewrite, &where);
    return has_changed(rewrite, value);
}

/* A document in the document, with a struct of its own, which is kept for the next. */
bool rewrite_value_html(struct rewrite *rewrite, struct bytes value) {
    if (rewrite->depth == REWRITE_DEPTH_MAX) {
        return false;
    }
    if (rewrite->inner == NULL) {
        rewrite->inner = rewrite_new();
    }
    if (rewrite->inner == NULL) {
        return rewrite_check(rewrite, ERR_MEMORY);
    }
    struct rewrite_place place = rewrite->place;
    place.url = rewrite->base;
    place.content_type = BYTES("text/html;charset=utf-8");
    place.format = REWRITE_HTML;
    rewrite->inner->depth = rewrite->depth + 1;
    buf_clear(&rewrite->changed);
    rewrite_start(rewrite->inner, &place, put_changed, rewrite);
    enum err err = rewrite_feed(rewrite->inner, value);
    err = err == ERR_OK ? rewrite_finish(rewrite->inner) : err;
    return rewrite_check(rewrite, err) && has_changed(rewrite, value);
}
