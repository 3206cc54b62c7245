#include "web/rewrite/rewrite_state.h"

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

/* False where the token is to be copied. */
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

/* A line that is too long passes. */
static void collect_line(struct rewrite *rewrite, struct bytes part) {
    if (rewrite->is_collecting && part.size <= REWRITE_COLLECTED_SIZE_MAX - rewrite->collected.size) {
        rewrite_check(rewrite, buf_put(&rewrite->collected, part));
        return;
    }
    rewrite_out(rewrite, buf_bytes(&rewrite->collected));
    rewrite_out(rewrite, part);
    buf_clear(&rewrite->collected);
    rewrite->is_collecting = false;
}

static void end_line(struct rewrite *rewrite) {
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
        collect_line(rewrite, bytes_slice(piece, 0, size));
        if (is_whole) {
            end_line(rewrite);
        }
        piece = bytes_skip(piece, size);
    }
}

void rewrite_playlist_end(struct rewrite *rewrite) {
    end_line(rewrite);
}
