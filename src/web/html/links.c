#include "web/html/links_state.h"

#include <stdlib.h>

#include "web/html/refresh.h"
#include "web/type/mime_type.h"
#include "web/url/input.h"

/* ---- what was reported ---- */

enum { PROBES_MAX = 8 };

static uint64_t once_mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9fb21c651e98df25u;
    return hash ^ hash >> 32;
}

/* Not a keyed hash: all that a page can do by collisions is to hide its own links. */
static uint64_t once_hash_of(struct bytes bytes, unsigned kind) {
    uint64_t hash = once_mix(0x9e3779b97f4a7c15u + kind, bytes.size);
    uint64_t word;
    size_t at = 0;
    for (; at + sizeof word <= bytes.size; at += sizeof word) {
        memcpy(&word, bytes.data + at, sizeof word);
        hash = once_mix(hash, word);
    }
    word = 0;
    if (at < bytes.size) {
        memcpy(&word, bytes.data + at, bytes.size - at);
    }
    return once_mix(once_mix(hash, word), 0);
}

static void once_init(struct once *once) {
    memset(once, 0, sizeof *once);
    once->generation = 1;
}

static void once_clear(struct once *once) {
    once->generation++;
    if (once->generation == 0) {
        once_init(once);
    }
}

/* True if the bytes were added before, for the same kind. */
static bool once_add(struct once *once, struct bytes bytes, unsigned kind) {
    uint64_t hash = once_hash_of(bytes, kind);
    uint64_t entry = (hash & ~(uint64_t)UINT16_MAX) | once->generation;
    for (size_t i = 0; i < PROBES_MAX; i++) {
        uint64_t *slot = &once->slots[((hash >> 16) + i) % ONCE_SLOTS_COUNT];
        if (*slot == entry) {
            return true;
        }
        if ((*slot & UINT16_MAX) != once->generation) {
            *slot = entry;
            return false;
        }
    }
    return false;
}

/* ---- the machine ---- */

static void make_rules(struct links *links) {
    memset(links->rules, 0, sizeof links->rules);
    for (size_t i = 0; i < links_rules_count; i++) {
        const struct links_rule *rule = &links_rules[i];
        if (rule->element != LINKS_OTHER) {
            links->rules[rule->element][rule->attribute] = (uint8_t)(i + 1);
        }
    }
    for (size_t i = 0; i < links_rules_count; i++) {
        const struct links_rule *rule = &links_rules[i];
        for (size_t element = 0; element < LINKS_ELEMENTS_COUNT && rule->element == LINKS_OTHER; element++) {
            uint8_t *entry = &links->rules[element][rule->attribute];
            *entry = *entry == 0 ? (uint8_t)(i + 1) : *entry;
        }
    }
}

struct links *links_new(void) {
    struct links *links = calloc(1, sizeof *links);
    if (links == NULL) {
        return NULL;
    }
    url_init(&links->own_base);
    url_init(&links->url);
    once_init(&links->once);
    buf_init(&links->head, ENCODING_HEAD_SIZE);
    transcode_init(&links->transcode);
    buf_init(&links->converted, LINKS_CONVERTED_SIZE_MAX);
    html_init(&links->html);
    tree_init(&links->tree);
    css_init(&links->css);
    words_init(&links->elements, links_element_names, LINKS_ELEMENTS_COUNT);
    words_init(&links->attributes, links_attribute_names, LINKS_ATTRIBUTES_COUNT);
    make_rules(links);
    buf_init(&links->collected, LINKS_COLLECTED_SIZE_MAX);
    buf_init(&links->value, LINKS_TEXT_SIZE_MAX);
    buf_init(&links->utf8, LINKS_TEXT_SIZE_MAX);
    buf_init(&links->reference, URL_SIZE_MAX * 2);
    buf_init(&links->css_value, CSS_VALUE_SIZE_MAX * 2);
    buf_init(&links->inner, LINKS_INNER_SIZE_MAX);
    links->encoding = encoding_utf8;
    links->is_over = true; /* until links_start() */
    return links;
}

void links_free(struct links *links) {
    if (links == NULL) {
        return;
    }
    url_done(&links->own_base);
    url_done(&links->url);
    buf_done(&links->head);
    transcode_done(&links->transcode);
    buf_done(&links->converted);
    html_done(&links->html);
    css_done(&links->css);
    buf_done(&links->collected);
    buf_done(&links->value);
    buf_done(&links->utf8);
    buf_done(&links->reference);
    buf_done(&links->css_value);
    buf_done(&links->inner);
    free(links);
}

/*
 * Formats
 */

static const struct {
    const char *type;
    enum links_format format;
} types[] = {
    {"text/html", LINKS_HTML},
    {"text/css", LINKS_CSS},
    {"text/javascript", LINKS_SCRIPT},
    {"application/javascript", LINKS_SCRIPT},
    {"application/x-javascript", LINKS_SCRIPT},
    {"text/ecmascript", LINKS_SCRIPT},
    {"application/ecmascript", LINKS_SCRIPT},
    {"application/json", LINKS_JSON},
    {"text/json", LINKS_JSON},
    {"application/manifest+json", LINKS_MANIFEST},
    {"application/vnd.apple.mpegurl", LINKS_PLAYLIST},
    {"application/x-mpegurl", LINKS_PLAYLIST},
    {"application/mpegurl", LINKS_PLAYLIST},
    {"audio/mpegurl", LINKS_PLAYLIST},
    {"audio/x-mpegurl", LINKS_PLAYLIST},
    {"", LINKS_UNKNOWN},
    {"unknown/unknown", LINKS_UNKNOWN},
    {"application/unknown", LINKS_UNKNOWN},
};

enum links_format links_format_of(struct bytes content_type) {
    struct mime_type type;
    (void)mime_type_extract(&type, content_type); /* what is no type is unknown */
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (mime_type_is(&type, types[i].type)) {
            return types[i].format;
        }
    }
    if (mime_type_is_xml(&type)) {
        return LINKS_XML;
    }
    return bytes_ends_with(mime_type_essence(&type), BYTES("+json")) ? LINKS_JSON : LINKS_NONE;
}

enum links_format links_taken_for(const struct links *links) {
    return links->format;
}

const char *link_kind_name(enum link_kind kind) {
    static const char *const names[] = {
        [LINK_PAGE] = "page", [LINK_EMBED] = "embed", [LINK_REFRESH] = "refresh",
        [LINK_FORM] = "form", [LINK_GUESS] = "guess",
    };
    return names[kind];
}

enum links_format links_sniff(struct bytes head) {
    static const char *const html_starts[] = {
        "<!doctype html", "<html",  "<head", "<script", "<iframe", "<h1", "<div", "<font", "<table", "<a ",
        "<style",         "<title", "<b>",   "<body",   "<br",     "<p>", "<p ",  "<!--",
    };
    size_t bom_size = 0;
    encoding_of_bom(head, &bom_size);
    head = bytes_trim(bytes_skip(head, bom_size));
    if (bytes_starts_with_ignore_case(head, BYTES("#EXTM3U"))) {
        return LINKS_PLAYLIST;
    }
    if (bytes_starts_with_ignore_case(head, BYTES("<?xml")) ||
        bytes_starts_with_ignore_case(head, BYTES("<svg")) ||
        bytes_starts_with_ignore_case(head, BYTES("<rss")) ||
        bytes_starts_with_ignore_case(head, BYTES("<feed"))) {
        return LINKS_XML;
    }
    for (size_t i = 0; i < sizeof html_starts / sizeof *html_starts; i++) {
        if (bytes_starts_with_ignore_case(head, bytes_of_string(html_starts[i]))) {
            return LINKS_HTML;
        }
    }
    return LINKS_NONE;
}

/*
 * From the text of a reference to a report
 */

/* The bytes of a buffer that has just been written; nothing if they were too many. */
static struct bytes links_written(struct links *links, const struct buf *buf) {
    if (buf->err == ERR_OK) {
        return buf_bytes(buf);
    }
    links->err = buf->err == ERR_MEMORY ? ERR_MEMORY : links->err;
    return (struct bytes){NULL, 0};
}

/* The slice of the document in UTF-8: itself, or a copy in links->utf8. */
static struct bytes links_to_utf8(struct links *links, struct bytes raw) {
    if (links->encoding == encoding_utf8 || links->is_decoded || bytes_are_ascii(raw)) {
        return raw;
    }
    buf_clear(&links->utf8);
    transcode_put(&links->transcode, &links->utf8, raw);
    return links_written(links, &links->utf8);
}

struct bytes links_decode(struct links *links, struct bytes raw, unsigned decoding) {
    struct bytes text = links_to_utf8(links, raw);
    if (html_is_plain(text, decoding)) {
        return text;
    }
    buf_clear(&links->value);
    html_decode(&links->value, text, decoding);
    return links_written(links, &links->value);
}

/* Whether the text has a scheme, and one that is not fetched. */
static bool has_other_scheme(struct bytes text) {
    size_t size = input_scheme_length(text);
    struct bytes scheme = bytes_slice(text, 0, size);
    return size > 0 && !bytes_equal_ignore_case(scheme, BYTES("http")) &&
           !bytes_equal_ignore_case(scheme, BYTES("https"));
}

/* In the document's encoding if the standard wants that. */
static struct bytes encoded(struct links *links, struct bytes text) {
    if (links->encoding == encoding_utf8 || bytes_are_ascii(text)) {
        return text;
    }
    buf_clear(&links->reference);
    transcode_put_reference(&links->transcode, &links->reference, text);
    return links_written(links, &links->reference);
}

void links_report(struct links *links, const struct link *link, struct bytes text) {
    text = input_trim(text);
    if (text.size == 0 || text.data[0] == '#' || has_other_scheme(text)) {
        return;
    }
    struct url *url = &links->url;
    enum err err = url_parse(url, encoded(links, text), links->base, NULL);
    links->err = err == ERR_MEMORY ? err : links->err;
    if (err != ERR_OK || !url_is_web(url)) {
        return;
    }
    struct link report = *link;
    report.url = url;
    report.href = url_href(url);
    report.href.size = url_has_fragment(url) ? url->fragment.from - 1 : report.href.size;
    if (!once_add(&links->once, report.href, report.kind)) {
        links->found(links->context, &report);
    }
}

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

/* What is looked for, for links_report(). */
struct guessing {
    struct links *links;
    const struct link *link;
};

static void links_on_guess(void *context, struct bytes url) {
    const struct guessing *guessing = context;
    links_report(guessing->links, guessing->link, url);
}

void links_guess_text(struct links *links, const struct link *link, struct bytes text) {
    struct guessing guessing = {links, link};
    if (links->options.guesses) {
        guess_find(text, links_on_guess, &guessing);
    }
}

void links_guess_feed(struct links *links, struct bytes piece, const char *element) {
    struct guess_string string;
    while (guess_next(&links->guess, &piece, &string)) {
        struct link link = {
            .kind = LINK_GUESS, .element = element, .attribute = "text", .offset = string.offset};
        bool is_known = links->format == LINKS_MANIFEST && manifest_kind(string.key, &link.kind);
        if (is_known) {
            links_report(links, &link, links_to_utf8(links, string.text));
        } else {
            links_guess_text(links, &link, links_to_utf8(links, string.text));
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

static void links_playlist_end(struct links *links) {
    if (links->collected.err == ERR_OK) {
        playlist_line(links, links->text_offset - links->collected.size);
    }
    links->err = links->collected.err == ERR_MEMORY ? ERR_MEMORY : links->err;
    buf_clear(&links->collected);
}

static void links_playlist_feed(struct links *links, struct bytes piece) {
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

/*
 * Header fields: Link (RFC 8288) and Refresh
 */

static void skip_spaces(struct bytes *text) {
    while (text->size > 0 && (text->data[0] == ' ' || text->data[0] == '\t')) {
        *text = bytes_skip(*text, 1);
    }
}

/* A token, or a quoted string; a quote that is not closed goes to the end. */
static struct bytes links_take_value(struct bytes *text) {
    struct bytes value;
    if (text->size > 0 && text->data[0] == '"') {
        struct bytes inside = bytes_skip(*text, 1);
        size_t size = 0;
        while (size < inside.size && inside.data[size] != '"') {
            size += inside.data[size] == '\\' && size + 1 < inside.size ? 2 : 1;
        }
        value = bytes_slice(inside, 0, size);
        *text = bytes_skip(inside, size < inside.size ? size + 1 : size);
        return value;
    }
    size_t size = 0;
    while (size < text->size && text->data[size] != ';' && text->data[size] != ',') {
        size++;
    }
    value = bytes_trim(bytes_slice(*text, 0, size));
    *text = bytes_skip(*text, size);
    return value;
}

/* "; name=value": false if no parameter follows. */
static bool next_parameter(struct bytes *text, struct bytes *ret_name, struct bytes *ret_value) {
    skip_spaces(text);
    if (text->size == 0 || text->data[0] != ';') {
        return false;
    }
    *text = bytes_skip(*text, 1);
    size_t size = 0;
    while (size < text->size && text->data[size] != '=' && text->data[size] != ';' &&
           text->data[size] != ',') {
        size++;
    }
    *ret_name = bytes_trim(bytes_slice(*text, 0, size));
    *ret_value = (struct bytes){NULL, 0};
    *text = bytes_skip(*text, size);
    if (text->size > 0 && text->data[0] == '=') {
        *text = bytes_skip(*text, 1);
        skip_spaces(text);
        *ret_value = links_take_value(text);
    }
    return true;
}

/* One link behind its '<'; *text is moved to the ',' behind it. */
static void header_link(struct links *links, struct bytes *text) {
    size_t size = bytes_find_byte(*text, '>');
    if (size == text->size) {
        *text = bytes_skip(*text, size);
        return;
    }
    struct bytes reference = bytes_slice(*text, 0, size);
    *text = bytes_skip(*text, size + 1);
    struct bytes rel = {NULL, 0};
    struct bytes anchor = {NULL, 0};
    bool has_as = false;
    struct bytes name;
    struct bytes value;
    while (next_parameter(text, &name, &value)) {
        if (bytes_equal_ignore_case(name, BYTES("rel")) && rel.data == NULL) {
            rel = value;
        } else if (bytes_equal_ignore_case(name, BYTES("anchor"))) {
            anchor = value;
        }
        has_as = has_as || bytes_equal_ignore_case(name, BYTES("as"));
    }
    struct link link = {.element = "", .attribute = "header"};
    if (anchor.size == 0 && links_rel_kind(rel, has_as, &link.kind)) { /* else it is about another document */
        links_report(links, &link, reference);
    }
}

void links_header(struct links *links, struct bytes name, struct bytes value) {
    if (bytes_equal_ignore_case(name, BYTES("refresh"))) {
        struct link link = {.kind = LINK_REFRESH, .element = "", .attribute = "header"};
        struct bytes text;
        if (refresh_url(value, &text)) {
            links_report(links, &link, text);
        }
        return;
    }
    if (!bytes_equal_ignore_case(name, BYTES("link"))) {
        return;
    }
    struct bytes rest = value;
    while (rest.size > 0) {
        rest = bytes_skip(rest, bytes_find_byte(rest, '<'));
        if (rest.size > 0) {
            rest = bytes_skip(rest, 1);
            header_link(links, &rest);
        }
    }
}

/*
 * Documents
 */

void links_start(struct links *links, struct bytes content_type, const struct url *base,
                 const struct links_options *options, links_found *found, void *context) {
    links->options = options != NULL ? *options : (struct links_options){0};
    links->found = found;
    links->context = context;
    links->format = links_format_of(content_type);
    if ((links->format == LINKS_JSON || links->format == LINKS_SCRIPT) && !links->options.guesses) {
        links->format = LINKS_NONE;
    }
    links->err = ERR_OK;
    links->is_over = links->has_begun = links->is_inner = links->is_decoded = links->has_own_base = false;
    links->base = base;
    once_clear(&links->once);
    buf_clear(&links->head);
    links->header_encoding = encoding_of_type(content_type);
    links->encoding = encoding_utf8; /* of header fields */
    buf_clear(&links->inner);
    links->inner_places_count = 0;
}

/* The head is there: decide what the document is. */
static void links_begin(struct links *links, struct bytes head) {
    links->has_begun = true;
    if (links->format == LINKS_UNKNOWN) {
        links->format = links_sniff(head);
    }
    if (links->format == LINKS_NONE) {
        return;
    }
    enum encoding_document document = links->format == LINKS_HTML  ? ENCODING_HTML
                                      : links->format == LINKS_XML ? ENCODING_XML
                                                                   : ENCODING_TEXT;
    links->encoding = encoding_detect(links->header_encoding, head, document);
    links->is_decoded = links->encoding->is_wide;
    transcode_start(&links->transcode, links->encoding);
    buf_clear(&links->collected);
    links->text_offset = 0;
    switch (links->format) {
    case LINKS_HTML:
    case LINKS_XML:
        links_html_start(links);
        break;
    case LINKS_CSS:
        css_start(&links->css);
        break;
    case LINKS_MANIFEST:
    case LINKS_JSON:
    case LINKS_SCRIPT:
        guess_start(&links->guess, links->format == LINKS_SCRIPT, 0);
        break;
    default:
        break;
    }
}

static const struct links_css file_css = {.link = {.element = ""}};

static void links_feed_text(struct links *links, struct bytes text) {
    switch (links->format) {
    case LINKS_HTML:
    case LINKS_XML:
        links_html_feed(links, text);
        break;
    case LINKS_CSS:
        links_css_feed(links, text, &file_css);
        break;
    case LINKS_MANIFEST:
    case LINKS_JSON:
    case LINKS_SCRIPT:
        links_guess_feed(links, text, "");
        break;
    case LINKS_PLAYLIST:
        links_playlist_feed(links, text);
        break;
    case LINKS_NONE:
    case LINKS_UNKNOWN:
        break;
    }
}

/* UTF-16 and ISO-2022-JP become UTF-8 as a whole; of all others only the URLs do. */
static void feed_wide(struct links *links, struct bytes piece, bool is_last) {
    do {
        enum err err = transcode_step(&links->transcode, &links->converted, &piece, is_last);
        if (err != ERR_OK) {
            links->err = err;
            return;
        }
        links_feed_text(links, buf_bytes(&links->converted));
    } while (piece.size > 0 && links->err == ERR_OK);
}

static void links_feed_body(struct links *links, struct bytes piece) {
    if (links->encoding->is_wide) {
        feed_wide(links, piece, false);
    } else {
        links_feed_text(links, piece);
    }
}

enum err links_feed(struct links *links, struct bytes piece) {
    ASSERT(!links->is_over);
    if (links->err != ERR_OK || links->format == LINKS_NONE) {
        return links->err;
    }
    if (!links->has_begun && links->head.size == 0 && piece.size >= ENCODING_HEAD_SIZE) {
        links_begin(links, bytes_slice(piece, 0, ENCODING_HEAD_SIZE));
    } else if (!links->has_begun) {
        size_t room = ENCODING_HEAD_SIZE - links->head.size;
        size_t size = piece.size < room ? piece.size : room;
        links->err = buf_put(&links->head, bytes_slice(piece, 0, size));
        if (links->err != ERR_OK || size < room) {
            return links->err;
        }
        links_begin(links, buf_bytes(&links->head));
        links_feed_body(links, buf_bytes(&links->head));
        piece = bytes_skip(piece, size);
    }
    links_feed_body(links, piece);
    return links->err;
}

/* The documents that were in this one: of srcdoc attributes and feeds. */
static void run_inner(struct links *links) {
    if (links->inner.size == 0 || (links->format != LINKS_HTML && links->format != LINKS_XML)) {
        return;
    }
    links->is_inner = true;
    links->is_decoded = true;
    struct bytes inner = buf_bytes(&links->inner);
    for (size_t i = 0; i < links->inner_places_count; i++) {
        size_t to = i + 1 < links->inner_places_count ? links->inner_places[i + 1].at : inner.size;
        links->inner_offset = links->inner_places[i].offset;
        links_html_start(links);
        links_html_feed(links, bytes_slice(inner, links->inner_places[i].at, to));
        links_html_end(links);
    }
}

static void links_end_text(struct links *links) {
    switch (links->format) {
    case LINKS_HTML:
    case LINKS_XML:
        links_html_end(links);
        run_inner(links);
        break;
    case LINKS_CSS:
        links_css_end(links, &file_css);
        break;
    case LINKS_PLAYLIST:
        links_playlist_end(links);
        break;
    default:
        break;
    }
}

enum err links_finish(struct links *links) {
    if (links->err == ERR_OK && links->format != LINKS_NONE && !links->is_over) {
        if (!links->has_begun) {
            links_begin(links, buf_bytes(&links->head));
            links_feed_body(links, buf_bytes(&links->head));
        }
        if (links->encoding->is_wide) {
            feed_wide(links, (struct bytes){NULL, 0}, true);
        }
        if (links->err == ERR_OK) {
            links_end_text(links);
        }
    }
    links->is_over = true;
    return links->err;
}
