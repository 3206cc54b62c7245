#include "web/html/refresh.h"
#include "web/html/srcset.h"
#include "web/rewrite/rewrite_state.h"
#include "web/url/input.h"

/*
 * Style sheets
 */

static enum err put_css_url(const struct rewrite_css *where, const struct css_token *token,
                            struct bytes url) {
    enum err err = ERR_OK;
    size_t from = 0;
    uint8_t quote = token->quote == CSS_DOUBLE_QUOTED ? '"' : '\'';
    for (size_t i = 0; i < url.size && err == ERR_OK; i++) {
        uint8_t byte = url.data[i];
        bool is_special = byte == '\\' || (token->quote == CSS_UNQUOTED
                                               ? byte == '(' || byte == ')' || byte == '\'' || byte == '"'
                                               : byte == quote);
        if (is_special) {
            err = where->put(where->context, bytes_slice(url, from, i));
            err = err == ERR_OK ? where->put(where->context, BYTES("\\")) : err;
            from = i;
        }
    }
    return err == ERR_OK ? where->put(where->context, bytes_skip(url, from)) : err;
}

/* False if the token is to be copied. */
static bool resolve_css(struct rewrite *rewrite, const struct rewrite_css *where,
                        const struct css_token *token, struct bytes *ret_url) {
    if (token->kind == CSS_OTHER || token->kind == CSS_END) {
        return false;
    }
    struct bytes value = where->is_utf8 ? token->source : rewrite_to_utf8(rewrite, token->source);
    buf_clear(&rewrite->css_value);
    /* fonts and images cannot be told apart here */
    return rewrite_check(rewrite, css_decode(&rewrite->css_value, value)) &&
           rewrite_resolve(rewrite, token->kind == CSS_IMPORT ? REWRITE_STYLE : REWRITE_OBJECT,
                           buf_bytes(&rewrite->css_value), ret_url);
}

static void drain_css(struct rewrite *rewrite, const struct rewrite_css *where) {
    struct css_token token;
    while (rewrite->err == ERR_OK && css_next(where->css, &token)) {
        struct bytes url;
        enum err err = resolve_css(rewrite, where, &token, &url) ? put_css_url(where, &token, url)
                                                                 : where->put(where->context, token.source);
        if (!rewrite_check(rewrite, err)) {
            return;
        }
    }
    rewrite_check(rewrite, css_err(where->css));
}

void rewrite_css_feed(struct rewrite *rewrite, const struct rewrite_css *where, struct bytes piece) {
    css_feed(where->css, piece);
    drain_css(rewrite, where);
}

void rewrite_css_end(struct rewrite *rewrite, const struct rewrite_css *where) {
    css_end(where->css);
    drain_css(rewrite, where);
}

/*
 * Scripts
 */

static bool resolve_specifier(void *context, struct bytes text, struct bytes *ret_url) {
    struct rewrite *rewrite = context;
    return rewrite_is_absolute(text) &&
           rewrite_resolve(rewrite, REWRITE_MODULE, rewrite_to_utf8(rewrite, text), ret_url);
}

struct rewrite_script_place rewrite_script_place_of(struct rewrite *rewrite, bool is_module,
                                                    rewrite_put *put) {
    struct bytes base = url_href(rewrite->base);
    base.size = url_has_fragment(rewrite->base) ? rewrite->base->fragment.from - 1 : base.size;
    return (struct rewrite_script_place){
        .is_module = is_module, .base = base, .specifier = resolve_specifier, .put = put, .context = rewrite};
}

/*
 * Import maps: {"imports": {"name": "URL"}, "scopes": {"URL": {"name": "URL"}}}. All their strings but the
 * names of the first level are names or URLs, and names that are no URLs are those that do not look like one.
 */

/* Behind the closing quote of the string that text[at] opens, or text.size. */
static size_t json_string_end(struct bytes text, size_t at) {
    for (at++; at < text.size; at++) {
        if (text.data[at] == '"') {
            return at + 1;
        }
        at += text.data[at] == '\\' ? 1 : 0;
    }
    return text.size;
}

static bool looks_like_url(struct bytes text) {
    return rewrite_is_absolute(text) || bytes_starts_with(text, BYTES("./")) ||
           bytes_starts_with(text, BYTES("../"));
}

static void out_json_string(struct rewrite *rewrite, struct bytes string) {
    struct bytes text = bytes_slice(string, 1, string.size > 1 ? string.size - 1 : 1);
    struct bytes url;
    bool is_plain = string.size > 1 && bytes_find_byte(text, '\\') == text.size;
    if (!is_plain || !looks_like_url(text) ||
        !rewrite_resolve(rewrite, REWRITE_MODULE, rewrite_to_utf8(rewrite, text), &url)) {
        rewrite_out(rewrite, string);
        return;
    }
    buf_clear(&rewrite->changed);
    rewrite_script_quote(&rewrite->changed, url, '"');
    rewrite_out(rewrite, BYTES("\""));
    rewrite_out(rewrite, buf_bytes(&rewrite->changed));
    rewrite_out(rewrite, BYTES("\""));
}

void rewrite_import_map(struct rewrite *rewrite, struct bytes text) {
    size_t depth = 0;
    size_t copied = 0;
    bool is_integrity = false; /* hashes of what the scripts were; they will match no URL */
    for (size_t at = 0; at < text.size;) {
        uint8_t byte = text.data[at];
        depth += byte == '{' ? 1 : 0;
        depth -= byte == '}' && depth > 0 ? 1 : 0;
        if (byte != '"') {
            at++;
            continue;
        }
        size_t end = json_string_end(text, at);
        struct bytes string = bytes_slice(text, at, end);
        is_integrity = depth == 1 ? bytes_equal(string, BYTES("\"integrity\"")) : is_integrity;
        if (depth > 1 && !is_integrity) {
            rewrite_out(rewrite, bytes_slice(text, copied, at));
            out_json_string(rewrite, string);
            copied = end;
        }
        at = end;
    }
    rewrite_out(rewrite, bytes_skip(text, copied));
}

/*
 * Playlists: a URL a line, or URI="…" in a line that starts with '#'. What is relative stays right.
 */

static void out_line(struct rewrite *rewrite, struct bytes line) {
    struct bytes text = bytes_trim(line);
    size_t from = (size_t)(text.size > 0 ? text.data - line.data : 0);
    if (text.size > 0 && text.data[0] == '#') {
        size_t key = bytes_find(text, BYTES("URI=\""));
        if (key == text.size) {
            rewrite_out(rewrite, line);
            return;
        }
        from += key + 5;
        text = bytes_skip(text, key + 5);
        text.size = bytes_find_byte(text, '"');
    }
    struct bytes url;
    bool is_changed = rewrite_is_absolute(text) &&
                      rewrite_resolve(rewrite, REWRITE_OBJECT, rewrite_to_utf8(rewrite, text), &url);
    rewrite_out(rewrite, bytes_slice(line, 0, from));
    rewrite_out(rewrite, is_changed ? url : text);
    rewrite_out(rewrite, bytes_skip(line, from + text.size));
}

void rewrite_playlist_end(struct rewrite *rewrite) {
    if (rewrite->is_collecting) {
        out_line(rewrite, buf_bytes(&rewrite->collected));
    }
    buf_clear(&rewrite->collected);
    rewrite->is_collecting = true;
}

void rewrite_playlist_feed(struct rewrite *rewrite, struct bytes piece) {
    while (piece.size > 0 && rewrite->err == ERR_OK) {
        size_t size = bytes_find_byte(piece, '\n');
        bool is_whole = size < piece.size;
        size += is_whole ? 1 : 0;
        rewrite_collect(rewrite, bytes_slice(piece, 0, size));
        if (is_whole) {
            rewrite_playlist_end(rewrite);
        }
        piece = bytes_skip(piece, size);
    }
}

/*
 * Values of attributes that are more than a URL
 */

static enum err put_changed(void *context, struct bytes piece) {
    struct rewrite *rewrite = context;
    return buf_put(&rewrite->changed, piece);
}

/* Whether rewrite->changed is a new value, and whole. */
static bool rewrite_has_changed(struct rewrite *rewrite, struct bytes value) {
    return rewrite_check(rewrite, rewrite->changed.err) && !bytes_equal(buf_bytes(&rewrite->changed), value);
}

bool rewrite_value_script(struct rewrite *rewrite, struct bytes value) {
    struct rewrite_script_place place = rewrite_script_place_of(rewrite, false, put_changed);
    buf_clear(&rewrite->changed);
    rewrite_script_start(&rewrite->value_script, &place);
    enum err err = rewrite_script_feed(&rewrite->value_script, value);
    err = err == ERR_OK ? rewrite_script_end(&rewrite->value_script) : err;
    return rewrite_check(rewrite, err) && rewrite_has_changed(rewrite, value);
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
    return rewrite_has_changed(rewrite, value);
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
    return rewrite_has_changed(rewrite, value);
}

bool rewrite_value_css(struct rewrite *rewrite, struct bytes value) {
    struct rewrite_css where = {
        .css = &rewrite->value_css, .put = put_changed, .context = rewrite, .is_utf8 = true};
    buf_clear(&rewrite->changed);
    css_start(&rewrite->value_css);
    rewrite_css_feed(rewrite, &where, value);
    rewrite_css_end(rewrite, &where);
    return rewrite_has_changed(rewrite, value);
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
    return rewrite_check(rewrite, err) && rewrite_has_changed(rewrite, value);
}
