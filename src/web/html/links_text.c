#include "web/html/links_state.h"

/*
 * Style sheets
 */

/* The value of a reference, in UTF-8, escapes resolved. */
static struct bytes css_value(struct links *links, struct bytes raw, bool is_utf8) {
    struct bytes text = is_utf8 ? raw : links_to_utf8(links, raw);
    if (bytes_find_byte(text, '\\') == text.size) {
        return text;
    }
    buf_clear(&links->css_value);
    css_decode(&links->css_value, text);
    links->err = links->css_value.err == ERR_MEMORY ? ERR_MEMORY : links->err;
    return buf_bytes(&links->css_value);
}

static void css_drain(struct links *links, const struct links_css *where) {
    struct css_token token;
    while (css_next(&links->css, &token)) {
        if (token.kind != CSS_REFERENCE && token.kind != CSS_IMPORT) {
            continue;
        }
        struct link link = where->link;
        link.kind = LINK_EMBED;
        if (link.attribute == NULL) {
            link.attribute = token.kind == CSS_IMPORT ? "@import" : "url";
            link.offset += token.offset;
        }
        links_report(links, &link, css_value(links, token.source, where->is_utf8));
    }
    links->err = css_err(&links->css) != ERR_OK ? css_err(&links->css) : links->err;
}

void links_css_feed(struct links *links, struct bytes piece, const struct links_css *where) {
    css_feed(&links->css, piece);
    css_drain(links, where);
}

void links_css_end(struct links *links, const struct links_css *where) {
    css_end(&links->css);
    css_drain(links, where);
}

/*
 * Scripts and JSON
 */

/* In a manifest of a web application the keys say what a string is. */
static bool manifest_kind(struct bytes key, enum link_kind *ret_kind) {
    if (bytes_equal(key, BYTES("src"))) {
        *ret_kind = LINK_EMBED;
        return true;
    }
    if (bytes_equal(key, BYTES("start_url")) || bytes_equal(key, BYTES("url"))) {
        *ret_kind = LINK_PAGE;
        return true;
    }
    return false;
}

void links_guess_feed(struct links *links, struct bytes piece, const char *element) {
    struct guess_string string;
    while (guess_next(&links->guess, &piece, &string)) {
        struct link link = {
            .kind = LINK_GUESS, .element = element, .attribute = "text", .offset = string.offset};
        bool is_known = links->format == LINKS_MANIFEST && manifest_kind(string.key, &link.kind);
        if (is_known || (links->options.guesses && guess_is_url(string.text))) {
            links_report(links, &link, links_to_utf8(links, string.text));
        }
    }
}

/*
 * Playlists: a URL a line, and some in the attributes of lines that start with '#'
 */

static void playlist_line(struct links *links, uint64_t offset) {
    struct link link = {.kind = LINK_EMBED, .element = "", .attribute = "text", .offset = offset};
    struct bytes line = bytes_trim(buf_bytes(&links->collected));
    if (line.size > 0 && line.data[0] == '#') {
        size_t uri = bytes_find(line, BYTES("URI=\""));
        if (uri == line.size) {
            return;
        }
        link.attribute = "URI";
        link.offset += uri + 5;
        line = bytes_skip(line, uri + 5);
        line.size = bytes_find_byte(line, '"');
    }
    links_report(links, &link, links_to_utf8(links, line));
}

void links_playlist_end(struct links *links) {
    if (links->collected.err == ERR_OK) {
        playlist_line(links, links->text_offset - links->collected.size);
    }
    links->err = links->collected.err == ERR_MEMORY ? ERR_MEMORY : links->err;
    buf_clear(&links->collected);
}

void links_playlist_feed(struct links *links, struct bytes piece) {
    while (piece.size > 0) {
        size_t size = bytes_find_byte(piece, '\n');
        buf_put(&links->collected, bytes_slice(piece, 0, size));
        links->text_offset += size;
        if (size == piece.size) {
            return;
        }
        links_playlist_end(links);
        links->text_offset++;
        piece = bytes_skip(piece, size + 1);
    }
}
