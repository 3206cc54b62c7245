#include "web/rewrite/rewrite_state.h"

#include <stdlib.h>

#include "web/html/links.h"
#include "web/type/mime_type.h"
#include "web/url/input.h"

struct rewrite *rewrite_new(void) {
    struct rewrite *rewrite = calloc(1, sizeof *rewrite);
    if (rewrite == NULL) {
        return NULL;
    }
    transcode_init(&rewrite->transcode);
    buf_init(&rewrite->head, ENCODING_HEAD_SIZE);
    buf_init(&rewrite->converted, REWRITE_CONVERTED_SIZE_MAX);
    buf_init(&rewrite->out, REWRITE_OUT_SIZE);
    url_init(&rewrite->own_base);
    url_init(&rewrite->url);
    buf_init(&rewrite->replay, URL_SIZE_MAX * 2);
    buf_init(&rewrite->utf8, REWRITE_VALUE_SIZE_MAX);
    buf_init(&rewrite->value, REWRITE_VALUE_SIZE_MAX);
    buf_init(&rewrite->reference, URL_SIZE_MAX * 2);
    buf_init(&rewrite->css_value, CSS_VALUE_SIZE_MAX * 2);
    buf_init(&rewrite->changed, REWRITE_CHANGED_SIZE_MAX);
    buf_init(&rewrite->collected, REWRITE_COLLECTED_SIZE_MAX);
    rewrite_rules_init(&rewrite->rules);
    rewrite_scan_words(&rewrite->words);
    html_init(&rewrite->html);
    tree_init(&rewrite->tree);
    css_init(&rewrite->css);
    css_init(&rewrite->value_css);
    rewrite_script_init(&rewrite->script, &rewrite->words);
    rewrite_script_init(&rewrite->value_script, &rewrite->words);
    rewrite->encoding = encoding_utf8;
    rewrite->is_over = true;
    return rewrite;
}

void rewrite_free(struct rewrite *rewrite) {
    while (rewrite != NULL) {
        struct rewrite *inner = rewrite->inner;
        transcode_done(&rewrite->transcode);
        buf_done(&rewrite->head);
        buf_done(&rewrite->converted);
        buf_done(&rewrite->out);
        url_done(&rewrite->own_base);
        url_done(&rewrite->url);
        buf_done(&rewrite->replay);
        buf_done(&rewrite->utf8);
        buf_done(&rewrite->value);
        buf_done(&rewrite->reference);
        buf_done(&rewrite->css_value);
        buf_done(&rewrite->changed);
        buf_done(&rewrite->collected);
        html_done(&rewrite->html);
        css_done(&rewrite->css);
        css_done(&rewrite->value_css);
        rewrite_script_done(&rewrite->script);
        rewrite_script_done(&rewrite->value_script);
        free(rewrite);
        rewrite = inner;
    }
}

/*
 * What a document is taken for
 */

/* How images, media, fonts and archives start. */
static bool is_binary(struct bytes head) {
    static const struct {
        size_t at;
        const char *magic;
    } magics[] = {
        {0, "\x89PNG"},          {0, "GIF8"}, {0, "\xff\xd8\xff"}, {0, "RIFF"},   {0, "%PDF-"}, {0, "PK\3\4"},
        {0, "\x1f\x8b"},         {0, "wOFF"}, {0, "wOF2"},         {0, "OTTO"},   {4, "ftyp"},  {0, "OggS"},
        {0, "\x1a\x45\xdf\xa3"}, {0, "ID3"},  {0, "fLaC"},         {0, "7z\xbc"}, {0, "Rar!"},  {0, "BZh"},
    };
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        struct bytes magic = bytes_of_string(magics[i].magic);
        if (head.size >= magics[i].at + magic.size &&
            bytes_starts_with(bytes_skip(head, magics[i].at), magic)) {
            return true;
        }
    }
    return false;
}

/* Types that servers give to anything. */
static bool is_vague(const struct mime_type *type) {
    static const char *const types[] = {"",
                                        "text/plain",
                                        "application/octet-stream",
                                        "binary/octet-stream",
                                        "unknown/unknown",
                                        "application/unknown",
                                        NULL};
    return bytes_is_one_of(mime_type_essence(type), types);
}

static bool is_dash(const struct mime_type *type, struct bytes head) {
    return mime_type_is(type, "application/dash+xml") ||
           bytes_find(bytes_slice(head, 0, head.size < 512 ? head.size : 512), BYTES("<MPD")) <
               (head.size < 512 ? head.size : 512);
}

static enum rewrite_format format_of_links(enum links_format format, const struct mime_type *type,
                                           struct bytes head) {
    switch (format) {
    case LINKS_HTML:
        return REWRITE_HTML;
    case LINKS_XML:
        return is_dash(type, head) ? REWRITE_DASH : REWRITE_XML;
    case LINKS_CSS:
        return REWRITE_CSS;
    case LINKS_MANIFEST:
    case LINKS_JSON:
        return REWRITE_JSON;
    case LINKS_SCRIPT:
        return REWRITE_CLASSIC_SCRIPT;
    case LINKS_PLAYLIST:
        return REWRITE_HLS;
    case LINKS_NONE:
    case LINKS_UNKNOWN:
        break;
    }
    return REWRITE_AS_IS;
}

/* The first byte that says something. */
static uint8_t first_byte(struct bytes head) {
    head = bytes_trim(bytes_starts_with(head, BYTES("\xef\xbb\xbf")) ? bytes_skip(head, 3) : head);
    return head.size > 0 ? head.data[0] : '\0';
}

/* From the type and the first bytes alone. */
static enum rewrite_format own_format(const struct mime_type *type, struct bytes head) {
    enum links_format stated = links_format_of(mime_type_essence(type));
    if (mime_type_is_script(type)) {
        return REWRITE_CLASSIC_SCRIPT;
    }
    if (!is_vague(type)) {
        return format_of_links(stated, type, head);
    }
    enum rewrite_format format = format_of_links(links_sniff(head), type, head);
    bool is_shown_as_text = type->essence[0] != '\0' && format != REWRITE_HLS && format != REWRITE_DASH;
    return is_shown_as_text && stated == LINKS_NONE ? REWRITE_AS_IS : format;
}

enum rewrite_format rewrite_format_of(struct bytes content_type, enum rewrite_modifier modifier,
                                      struct bytes head) {
    if (modifier == REWRITE_RAW || is_binary(head)) {
        return REWRITE_AS_IS;
    }
    struct mime_type type;
    (void)mime_type_extract(&type, content_type);
    enum rewrite_format format = own_format(&type, head);
    /* A browser takes what it asked for as a script for one whatever its type, but for media. */
    bool is_any_text = is_vague(&type) || format == REWRITE_HTML || format == REWRITE_JSON;
    uint8_t first = first_byte(head);
    switch (modifier) {
    case REWRITE_SCRIPT:
    case REWRITE_MODULE:
    case REWRITE_WORKER:
        if (format == REWRITE_JSON && (first == '{' || first == '[')) {
            return REWRITE_JSON;
        }
        if (format == REWRITE_CLASSIC_SCRIPT || (is_any_text && first != '<')) {
            return modifier == REWRITE_MODULE ? REWRITE_MODULE_SCRIPT : REWRITE_CLASSIC_SCRIPT;
        }
        return format;
    case REWRITE_STYLE:
        return is_any_text && first != '<' ? REWRITE_CSS : format;
    default:
        return format;
    }
}

/*
 * Text of the document
 */

bool rewrite_check(struct rewrite *rewrite, enum err err) {
    if (err != ERR_OK && err != ERR_LIMIT && rewrite->err == ERR_OK) {
        rewrite->err = err;
    }
    return err == ERR_OK;
}

/* The bytes of a buffer that has just been written; nothing if they were too many. */
static struct bytes rewrite_written(struct rewrite *rewrite, const struct buf *buf) {
    return rewrite_check(rewrite, buf->err) ? buf_bytes(buf) : (struct bytes){NULL, 0};
}

struct bytes rewrite_to_utf8(struct rewrite *rewrite, struct bytes raw) {
    if (rewrite_is_utf8(rewrite) || bytes_are_ascii(raw)) {
        return raw;
    }
    buf_clear(&rewrite->utf8);
    transcode_put(&rewrite->transcode, &rewrite->utf8, raw);
    return rewrite_written(rewrite, &rewrite->utf8);
}

struct bytes rewrite_decode(struct rewrite *rewrite, struct bytes raw, unsigned decoding) {
    struct bytes text = rewrite_to_utf8(rewrite, raw);
    if (html_is_plain(text, decoding)) {
        return text;
    }
    buf_clear(&rewrite->value);
    html_decode(&rewrite->value, text, decoding);
    return rewrite_written(rewrite, &rewrite->value);
}

/*
 * References
 */

static bool is_rewritten_scheme(struct bytes scheme) {
    return bytes_equal_ignore_case(scheme, BYTES("http")) ||
           bytes_equal_ignore_case(scheme, BYTES("https")) || bytes_equal_ignore_case(scheme, BYTES("ws")) ||
           bytes_equal_ignore_case(scheme, BYTES("wss"));
}

/* Whether the text is a replay URL: prefix, digits, modifier, '/', and a URL with its scheme. */
static bool is_replay_url(struct bytes text, struct bytes prefix) {
    if (prefix.size == 0 || !bytes_starts_with(text, prefix)) {
        return false;
    }
    text = bytes_skip(text, prefix.size);
    size_t digits = 0;
    while (digits < text.size && byte_is_digit(text.data[digits])) {
        digits++;
    }
    size_t at = digits;
    while (at < text.size && (byte_is_alpha(text.data[at]) || text.data[at] == '_')) {
        at++;
    }
    return digits > 0 && at < text.size && text.data[at] == '/' &&
           input_scheme_length(bytes_skip(text, at + 1)) > 0;
}

bool rewrite_is_absolute(struct bytes text) {
    return input_scheme_length(text) > 0 || (text.size > 0 && text.data[0] == '/');
}

/* The replay URL, in rewrite->replay; false if the text is left alone. */
static bool put_replay_url(struct rewrite *rewrite, enum rewrite_modifier modifier, struct bytes text) {
    const struct rewrite_place *place = &rewrite->place;
    struct buf *out = &rewrite->replay;
    struct bytes trimmed = input_trim(text);
    size_t scheme_size = input_scheme_length(trimmed);
    if (trimmed.size == 0 || trimmed.data[0] == '#' ||
        (scheme_size > 0 && !is_rewritten_scheme(bytes_slice(trimmed, 0, scheme_size))) ||
        is_replay_url(trimmed, place->prefix)) {
        return false;
    }
    struct url *url = &rewrite->url;
    enum err err = url_parse(url, trimmed, rewrite->base, NULL);
    rewrite_check(rewrite, err == ERR_INVALID ? ERR_OK : err);
    bool is_web = url->scheme_type >= URL_SCHEME_HTTP && url->scheme_type <= URL_SCHEME_WSS;
    if (err != ERR_OK || !is_web || url_href(url).size > text.size + REWRITE_GROWTH_MAX) {
        return false;
    }
    buf_clear(out);
    buf_put(out, place->prefix);
    buf_put(out, place->timestamp);
    buf_put_string(out, rewrite_modifier_name(modifier));
    buf_put_byte(out, '/');
    buf_put(out, url_href(url));
    return rewrite_check(rewrite, out->err);
}

/* In the document's encoding if the standard wants that. */
static struct bytes encoded(struct rewrite *rewrite, struct bytes text) {
    if (rewrite->encoding == encoding_utf8 || bytes_are_ascii(text)) {
        return text;
    }
    buf_clear(&rewrite->reference);
    transcode_put_reference(&rewrite->transcode, &rewrite->reference, text);
    return rewrite_written(rewrite, &rewrite->reference);
}

bool rewrite_resolve(struct rewrite *rewrite, enum rewrite_modifier modifier, struct bytes text,
                     struct bytes *ret_url) {
    if (text.size > URL_SIZE_MAX) {
        return false;
    }
    if (!put_replay_url(rewrite, modifier, encoded(rewrite, text))) {
        return false;
    }
    *ret_url = buf_bytes(&rewrite->replay);
    return true;
}

/*
 * Output
 */

static void rewrite_put_now(struct rewrite *rewrite, struct bytes text) {
    if (rewrite->err == ERR_OK && text.size > 0) {
        rewrite->err = rewrite->put(rewrite->context, text);
    }
}

static void rewrite_flush(struct rewrite *rewrite) {
    rewrite_put_now(rewrite, buf_bytes(&rewrite->out));
    buf_clear(&rewrite->out);
}

void rewrite_out(struct rewrite *rewrite, struct bytes text) {
    if (text.size > REWRITE_OUT_SIZE - rewrite->out.size) {
        rewrite_flush(rewrite);
    }
    if (text.size >= REWRITE_OUT_SIZE) {
        rewrite_put_now(rewrite, text);
    } else {
        rewrite_check(rewrite, buf_put(&rewrite->out, text));
    }
}

static enum err put_out(void *context, struct bytes piece) {
    struct rewrite *rewrite = context;
    rewrite_out(rewrite, piece);
    return rewrite->err;
}

/*
 * Documents
 */

void rewrite_start(struct rewrite *rewrite, const struct rewrite_place *place, rewrite_put *put_piece,
                   void *context) {
    rewrite->place = *place;
    rewrite->put = put_piece;
    rewrite->context = context;
    rewrite->err = ERR_OK;
    rewrite->is_over = rewrite->has_begun = rewrite->is_decoded = rewrite->is_declared = false;
    rewrite->has_own_base = false;
    rewrite->encoding = encoding_utf8;
    rewrite->base = place->url;
    buf_clear(&rewrite->head);
    buf_clear(&rewrite->out);
}

const char *rewrite_charset(const struct rewrite *rewrite) {
    if (rewrite->is_decoded) {
        return encoding_utf8->name;
    }
    return rewrite->is_declared ? rewrite->encoding->name : NULL;
}

static struct rewrite_css rewrite_css_of(struct rewrite *rewrite) {
    return (struct rewrite_css){.css = &rewrite->css, .put = put_out, .context = rewrite};
}

static void start_script(struct rewrite *rewrite) {
    bool is_module = rewrite->place.format == REWRITE_MODULE_SCRIPT;
    struct rewrite_script_place place = rewrite_script_place_of(rewrite, is_module, put_out);
    rewrite_script_start(&rewrite->script, &place);
}

/* The head is there: decide what the document is in. */
static void rewrite_begin(struct rewrite *rewrite, struct bytes head) {
    rewrite->has_begun = true;
    const struct encoding *header = encoding_of_type(rewrite->place.content_type);
    enum encoding_document document = rewrite->place.format == REWRITE_HTML ? ENCODING_HTML
                                      : rewrite_is_xml(rewrite)             ? ENCODING_XML
                                                                            : ENCODING_TEXT;
    rewrite->is_declared = encoding_declared(header, head, document) != NULL;
    rewrite->encoding = encoding_detect(header, head, document);
    rewrite->is_decoded = rewrite->encoding->is_wide;
    transcode_start(&rewrite->transcode, rewrite->encoding);
    buf_clear(&rewrite->collected);
    rewrite->is_collecting = true;
    switch (rewrite->place.format) {
    case REWRITE_HTML:
    case REWRITE_XML:
    case REWRITE_DASH:
        rewrite_html_start(rewrite);
        break;
    case REWRITE_CSS:
        css_start(&rewrite->css);
        break;
    case REWRITE_CLASSIC_SCRIPT:
    case REWRITE_MODULE_SCRIPT:
        start_script(rewrite);
        break;
    case REWRITE_HLS:
    case REWRITE_JSON:
    case REWRITE_AS_IS:
        break;
    }
}

static void rewrite_feed_text(struct rewrite *rewrite, struct bytes text) {
    struct rewrite_css css = rewrite_css_of(rewrite);
    switch (rewrite->place.format) {
    case REWRITE_HTML:
    case REWRITE_XML:
    case REWRITE_DASH:
        rewrite_html_feed(rewrite, text);
        break;
    case REWRITE_CSS:
        rewrite_css_feed(rewrite, &css, text);
        break;
    case REWRITE_CLASSIC_SCRIPT:
    case REWRITE_MODULE_SCRIPT:
        rewrite_check(rewrite, rewrite_script_feed(&rewrite->script, text));
        break;
    case REWRITE_HLS:
        rewrite_playlist_feed(rewrite, text);
        break;
    case REWRITE_JSON:
    case REWRITE_AS_IS:
        rewrite_out(rewrite, text);
        break;
    }
}

static void rewrite_end_text(struct rewrite *rewrite) {
    struct rewrite_css css = rewrite_css_of(rewrite);
    switch (rewrite->place.format) {
    case REWRITE_HTML:
    case REWRITE_XML:
    case REWRITE_DASH:
        rewrite_html_end(rewrite);
        break;
    case REWRITE_CSS:
        rewrite_css_end(rewrite, &css);
        break;
    case REWRITE_CLASSIC_SCRIPT:
    case REWRITE_MODULE_SCRIPT:
        rewrite_check(rewrite, rewrite_script_end(&rewrite->script));
        break;
    case REWRITE_HLS:
        rewrite_playlist_end(rewrite);
        break;
    case REWRITE_JSON:
    case REWRITE_AS_IS:
        break;
    }
}

/* UTF-16 and ISO-2022-JP become UTF-8 as a whole; of all others only the URLs do. */
static void feed_wide(struct rewrite *rewrite, struct bytes piece, bool is_last) {
    do {
        enum err err = transcode_step(&rewrite->transcode, &rewrite->converted, &piece, is_last);
        if (err != ERR_OK) {
            rewrite->err = err;
            return;
        }
        rewrite_feed_text(rewrite, buf_bytes(&rewrite->converted));
    } while (piece.size > 0 && rewrite->err == ERR_OK);
}

static void rewrite_feed_body(struct rewrite *rewrite, struct bytes piece) {
    if (rewrite->err != ERR_OK || piece.size == 0) {
        return;
    }
    if (rewrite->is_decoded) {
        feed_wide(rewrite, piece, false);
    } else {
        rewrite_feed_text(rewrite, piece);
    }
}

/* The bytes after which the head is whole go on from there. A mark before a script is no part of its code. */
static void feed_head(struct rewrite *rewrite, struct bytes head) {
    rewrite_begin(rewrite, head);
    bool is_script =
        rewrite->place.format == REWRITE_CLASSIC_SCRIPT || rewrite->place.format == REWRITE_MODULE_SCRIPT;
    size_t bom_size = 0;
    if (is_script && encoding_of_bom(head, &bom_size) == encoding_utf8) {
        rewrite_out(rewrite, bytes_slice(head, 0, bom_size));
        head = bytes_skip(head, bom_size);
    }
    rewrite_feed_body(rewrite, head);
}

static bool is_passed(const struct rewrite *rewrite) {
    return rewrite->place.format == REWRITE_AS_IS || rewrite->place.format == REWRITE_JSON;
}

enum err rewrite_feed(struct rewrite *rewrite, struct bytes piece) {
    ASSERT(!rewrite->is_over);
    if (rewrite->err != ERR_OK) {
        return rewrite->err;
    }
    if (is_passed(rewrite)) {
        rewrite_put_now(rewrite, piece);
        return rewrite->err;
    }
    if (!rewrite->has_begun) {
        size_t room = ENCODING_HEAD_SIZE - rewrite->head.size;
        size_t size = piece.size < room ? piece.size : room;
        rewrite->err = buf_put(&rewrite->head, bytes_slice(piece, 0, size));
        if (rewrite->err != ERR_OK || size < room) {
            return rewrite->err;
        }
        feed_head(rewrite, buf_bytes(&rewrite->head));
        piece = bytes_skip(piece, size);
    }
    rewrite_feed_body(rewrite, piece);
    rewrite_flush(rewrite);
    return rewrite->err;
}

enum err rewrite_finish(struct rewrite *rewrite) {
    if (rewrite->err == ERR_OK && !rewrite->is_over && !is_passed(rewrite)) {
        if (!rewrite->has_begun) {
            feed_head(rewrite, buf_bytes(&rewrite->head));
        }
        if (rewrite->is_decoded) {
            feed_wide(rewrite, (struct bytes){NULL, 0}, true);
        }
        if (rewrite->err == ERR_OK) {
            rewrite_end_text(rewrite);
        }
        rewrite_flush(rewrite);
    }
    rewrite->is_over = true;
    return rewrite->err;
}
