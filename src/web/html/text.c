#include "web/html/text.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "web/html/transcode.h"
#include "web/html/tree.h"
#include "web/type/mime_type.h"

enum {
    CONVERT_STEP = 16 << 10,        /* of the page at a time */
    CONVERTED_SIZE_MAX = 128 << 10, /* a byte becomes at most a few */
    DECODED_SIZE_MAX = 2 << 20,     /* of one token, whose size html.h limits */
    STYLE_SIZE_MAX = 64 << 10,
};

/* The order counts. */
enum element {
    ELEMENT_OTHER,
    ELEMENT_HTML,
    ELEMENT_BODY,
    ELEMENT_TITLE,
    ELEMENT_META,
    /* Nothing in them is read. */
    ELEMENT_SCRIPT,
    ELEMENT_STYLE,
    ELEMENT_TEMPLATE,
    ELEMENT_NOSCRIPT,
    ELEMENT_IFRAME,
    ELEMENT_NOEMBED,
    ELEMENT_NOFRAMES,
    ELEMENT_SVG,
    ELEMENT_CANVAS,
    ELEMENT_AUDIO,
    ELEMENT_VIDEO,
    ELEMENT_SELECT,
    ELEMENT_DATALIST,
    /* A start tag of the same name ends them, since their end tags may be left out. */
    ELEMENT_P,
    ELEMENT_LI,
    ELEMENT_DT,
    ELEMENT_DD,
    ELEMENT_TR,
    ELEMENT_TD,
    ELEMENT_TH,
    ELEMENT_OPTION,
    /* They have no end. */
    ELEMENT_AREA,
    ELEMENT_BR,
    ELEMENT_COL,
    ELEMENT_EMBED,
    ELEMENT_HR,
    ELEMENT_IMG,
    ELEMENT_INPUT,
    ELEMENT_LINK,
    ELEMENT_SOURCE,
    ELEMENT_TRACK,
    ELEMENT_WBR,
    /* In a line of text: words go on through them. */
    ELEMENT_INLINE,
};

/* clang-format off */
static const char *const elements[] = {
    [ELEMENT_OTHER] = "", "html", "body", "title", "meta",
    [ELEMENT_SCRIPT] = "script", "style", "template", "noscript", "iframe", "noembed", "noframes", "svg", "canvas",
    "audio", "video", "select", "datalist",
    [ELEMENT_P] = "p", "li", "dt", "dd", "tr", "td", "th", "option",
    [ELEMENT_AREA] = "area", "br", "col", "embed", "hr", "img", "input", "link", "source", "track", "wbr",
    [ELEMENT_INLINE] = "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em",
    "font", "i", "ins", "kbd", "mark", "nobr", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup",
    "time", "tt", "u", "var",
};
/* clang-format on */
_Static_assert(sizeof elements / sizeof *elements <= WORDS_COUNT_MAX, "they fit");

/* A run of words with single spaces between them, up to a size. */
struct text_flow {
    struct buf out;
    size_t size_max;
    bool wants_space; /* before the next word */
    bool is_full;
};

static void text_flow_clear(struct text_flow *flow) {
    buf_clear(&flow->out);
    flow->wants_space = false;
    flow->is_full = false;
}

enum width { WIDTH_WORD, WIDTH_SPACE, WIDTH_NONE };

static enum width width_of(uint32_t code_point) {
    if (code_point <= 0x20 || (code_point >= 0x7f && code_point <= 0xa0)) {
        return WIDTH_SPACE;
    }
    if (code_point == 0xad || code_point == 0xfeff || (code_point >= 0x200b && code_point <= 0x200f) ||
        (code_point >= 0x202a && code_point <= 0x202e) || (code_point >= 0x2060 && code_point <= 0x2069)) {
        return WIDTH_NONE; /* soft hyphens, joiners, directions: a word is the same word without them */
    }
    bool is_space = (code_point >= 0x2000 && code_point <= 0x200a) || code_point == 0x2028 ||
                    code_point == 0x2029 || code_point == 0x202f || code_point == 0x205f ||
                    code_point == 0x3000 || code_point == 0x1680;
    return is_space ? WIDTH_SPACE : WIDTH_WORD;
}

/* A run of one word; it may be cut, between its characters. */
static void put_run(struct text_flow *flow, struct bytes run) {
    bool has_space = flow->wants_space && flow->out.size > 0;
    size_t room = flow->size_max - flow->out.size;
    if (run.size + has_space > room) {
        flow->is_full = true;
        size_t size = room > has_space ? room - has_space : 0;
        while (size > 0 && (run.data[size] & 0xc0) == 0x80) {
            size--;
        }
        run = bytes_slice(run, 0, size);
    }
    flow->wants_space = false;
    if (run.size == 0) {
        return;
    }
    if (has_space) {
        buf_put_byte(&flow->out, ' ');
    }
    buf_put(&flow->out, run);
}

/* Append text in UTF-8. All spaces and controls count as spaces; what has no width is dropped. */
static void text_flow_put(struct text_flow *flow, struct bytes text) {
    while (text.size > 0 && !flow->is_full) {
        size_t run_size = 0;
        size_t length = 0;
        enum width width = WIDTH_WORD;
        while (run_size < text.size) {
            uint8_t byte = text.data[run_size];
            length = 1;
            if (byte > 0x20 && byte < 0x7f) {
                run_size++;
                continue;
            }
            width = width_of(utf8_decode(bytes_skip(text, run_size), &length));
            if (width != WIDTH_WORD) {
                break;
            }
            run_size += length;
        }
        if (run_size > 0) {
            put_run(flow, bytes_slice(text, 0, run_size));
        }
        bool is_at_end = run_size == text.size;
        text = bytes_skip(text, is_at_end ? run_size : run_size + length);
        if (!is_at_end && width == WIDTH_SPACE) {
            flow->wants_space = true;
        }
    }
}

struct text {
    const struct encoding *header_encoding;
    bool is_xml;
    bool has_begun; /* the encoding is known */
    bool in_title;
    bool has_title;
    bool has_description; /* of its own, which og:description does not replace */
    unsigned skipped;     /* the element that is not read, or ELEMENT_OTHER */
    uint64_t skipped_key; /* its name */
    uint32_t skipped_depth;
    enum err err;
    struct html html;
    struct tree tree;
    struct words words;
    struct transcode transcode;
    struct buf head;      /* the first bytes, until the encoding is known */
    struct buf converted; /* to UTF-8 */
    struct buf valid; /* what was said to be UTF-8, and the character that the last piece left unfinished */
    struct buf decoded;
    struct text_flow flows[TEXT_PARTS_COUNT];
};

static const size_t sizes_max[TEXT_PARTS_COUNT] = {[TEXT_TITLE] = TEXT_TITLE_SIZE_MAX,
                                                   [TEXT_BODY] = TEXT_BODY_SIZE_MAX,
                                                   [TEXT_DESCRIPTION] = TEXT_DESCRIPTION_SIZE_MAX,
                                                   [TEXT_LANGUAGE] = TEXT_LANGUAGE_SIZE_MAX};

struct text *text_new(void) {
    struct text *text = calloc(1, sizeof *text);
    if (text == NULL) {
        return NULL;
    }
    html_init(&text->html);
    tree_init(&text->tree);
    words_init(&text->words, elements, sizeof elements / sizeof *elements);
    transcode_init(&text->transcode);
    buf_init(&text->head, ENCODING_HEAD_SIZE);
    buf_init(&text->converted, CONVERTED_SIZE_MAX);
    buf_init(&text->valid, CONVERTED_SIZE_MAX);
    buf_init(&text->decoded, DECODED_SIZE_MAX);
    for (size_t i = 0; i < TEXT_PARTS_COUNT; i++) {
        text->flows[i].size_max = sizes_max[i];
        buf_init(&text->flows[i].out, sizes_max[i]);
    }
    text_start(text, (struct bytes){NULL, 0});
    return text;
}

void text_free(struct text *text) {
    if (text == NULL) {
        return;
    }
    html_done(&text->html);
    transcode_done(&text->transcode);
    buf_done(&text->head);
    buf_done(&text->converted);
    buf_done(&text->valid);
    buf_done(&text->decoded);
    for (size_t i = 0; i < TEXT_PARTS_COUNT; i++) {
        buf_done(&text->flows[i].out);
    }
    free(text);
}

void text_start(struct text *text, struct bytes content_type) {
    struct mime_type type;
    (void)mime_type_extract(&type, content_type);
    text->is_xml = mime_type_is(&type, "application/xhtml+xml");
    text->header_encoding = encoding_of_label(mime_type_charset(&type));
    text->has_begun = text->in_title = text->has_title = text->has_description = false;
    text->skipped = ELEMENT_OTHER;
    text->err = ERR_OK;
    buf_clear(&text->head);
    buf_clear(&text->valid);
    for (size_t i = 0; i < TEXT_PARTS_COUNT; i++) {
        text_flow_clear(&text->flows[i]);
    }
    html_start(&text->html);
    html_set_cdata(&text->html, text->is_xml);
    tree_start(&text->tree);
}

/* What the slice means; until the next call. */
static struct bytes text_decode(struct text *text, struct bytes slice, unsigned decoding) {
    if (html_is_plain(slice, decoding)) {
        return slice;
    }
    buf_clear(&text->decoded);
    enum err err = html_decode(&text->decoded, slice, decoding);
    text->err = err == ERR_MEMORY ? err : text->err;
    return buf_bytes(&text->decoded);
}

/* ---- tags ---- */

/* "display: none", with spaces anywhere. */
static bool hides(struct bytes style) {
    static const char wanted[] = "display:none";
    size_t matched = 0;
    for (size_t i = 0; i < style.size && i < STYLE_SIZE_MAX; i++) {
        uint8_t byte = byte_lower(style.data[i]);
        if (byte == ' ' || byte == '\t' || byte == '\n') {
            continue;
        }
        matched = byte == (uint8_t)wanted[matched] ? matched + 1 : byte == 'd';
        if (wanted[matched] == '\0') {
            return true;
        }
    }
    return false;
}

/* <html> and <body> are often hidden only until a script has run. */
static bool text_is_hidden(const struct html_token *token, unsigned element) {
    if (element == ELEMENT_HTML || element == ELEMENT_BODY) {
        return false;
    }
    const struct html_attribute *style = html_find_attribute(token, BYTES("style"));
    return html_find_attribute(token, BYTES("hidden")) != NULL ||
           (style != NULL && hides(html_attribute_value(token, style)));
}

static bool is_of(unsigned element, unsigned first, unsigned behind) {
    return element >= first && element < behind;
}

static bool has_content(const struct text *text, const struct html_token *token, unsigned element) {
    bool is_closed =
        token->is_self_closing && (text->is_xml || tree_is_foreign(&text->tree) || element == ELEMENT_SVG);
    return !is_closed && element != ELEMENT_META && !is_of(element, ELEMENT_AREA, ELEMENT_INLINE);
}

static void text_put_value(struct text *text, struct text_flow *flow, const struct html_token *token,
                           const struct html_attribute *attribute) {
    text_flow_clear(flow);
    text_flow_put(flow, text_decode(text, html_attribute_value(token, attribute), HTML_DECODING_VALUE));
}

static void on_meta(struct text *text, const struct html_token *token) {
    const struct html_attribute *name = html_find_attribute(token, BYTES("name"));
    const struct html_attribute *property = html_find_attribute(token, BYTES("property"));
    const struct html_attribute *content = html_find_attribute(token, BYTES("content"));
    if (content == NULL || text->has_description) {
        return;
    }
    if (name != NULL &&
        bytes_equal_ignore_case(bytes_trim(html_attribute_value(token, name)), BYTES("description"))) {
        text->has_description = true;
        text_put_value(text, &text->flows[TEXT_DESCRIPTION], token, content);
    } else if (property != NULL && text->flows[TEXT_DESCRIPTION].out.size == 0 &&
               bytes_equal_ignore_case(bytes_trim(html_attribute_value(token, property)),
                                       BYTES("og:description"))) {
        text_put_value(text, &text->flows[TEXT_DESCRIPTION], token, content);
    }
}

static bool is_language(struct bytes tag) {
    for (size_t i = 0; i < tag.size; i++) {
        if (!byte_is_alpha(tag.data[i]) && !byte_is_digit(tag.data[i]) && tag.data[i] != '-') {
            return false;
        }
    }
    return tag.size > 0 && tag.size <= TEXT_LANGUAGE_SIZE_MAX;
}

static void on_html(struct text *text, const struct html_token *token) {
    const struct html_attribute *lang = html_find_attribute(token, BYTES("lang"));
    lang = lang != NULL ? lang : html_find_attribute(token, BYTES("xml:lang"));
    if (lang != NULL && text->flows[TEXT_LANGUAGE].out.size == 0 &&
        is_language(bytes_trim(html_attribute_value(token, lang)))) {
        text_put_value(text, &text->flows[TEXT_LANGUAGE], token, lang);
    }
}

static void separate(struct text *text, unsigned element) {
    if (element < ELEMENT_INLINE && element != ELEMENT_WBR) {
        text->flows[TEXT_BODY].wants_space = true; /* a word ends here */
    }
}

static void start_skipping(struct text *text, const struct html_token *token, unsigned element) {
    text->skipped = element == ELEMENT_OTHER ? ELEMENT_INLINE : element; /* any but none */
    text->skipped_key = token->name_key;
    text->skipped_depth = 1;
}

/* True if the tag is part of what is skipped. */
static bool skips_start_tag(struct text *text, const struct html_token *token, unsigned element) {
    if (text->skipped == ELEMENT_OTHER) {
        return false;
    }
    if (token->name_key != text->skipped_key) {
        return true;
    }
    if (is_of(text->skipped, ELEMENT_P, ELEMENT_AREA)) {
        text->skipped = ELEMENT_OTHER;
        return false;
    }
    text->skipped_depth += has_content(text, token, element);
    return true;
}

static void text_on_start_tag(struct text *text, const struct html_token *token) {
    bool was_foreign = tree_is_foreign(&text->tree);
    if (!text->is_xml) {
        tree_tag(&text->tree, &text->html, token);
    }
    unsigned element = words_find(&text->words, token->name_key, token->name);
    if (skips_start_tag(text, token, element)) {
        return;
    }
    separate(text, element);
    bool is_skipped = is_of(element, ELEMENT_SCRIPT, ELEMENT_P) || text_is_hidden(token, element);
    if (is_skipped && has_content(text, token, element)) {
        start_skipping(text, token, element);
    } else if (element == ELEMENT_TITLE && !was_foreign && !text->has_title) {
        text->in_title = has_content(text, token, element);
    } else if (element == ELEMENT_META) {
        on_meta(text, token);
    } else if (element == ELEMENT_HTML) {
        on_html(text, token);
    }
}

static void text_on_end_tag(struct text *text, const struct html_token *token) {
    if (!text->is_xml) {
        tree_tag(&text->tree, &text->html, token);
    }
    unsigned element = words_find(&text->words, token->name_key, token->name);
    if (text->skipped != ELEMENT_OTHER) {
        if (token->name_key == text->skipped_key && --text->skipped_depth == 0) {
            text->skipped = ELEMENT_OTHER;
        }
        return;
    }
    separate(text, element);
    if (element == ELEMENT_TITLE && text->in_title) {
        text->in_title = false;
        text->has_title = text->flows[TEXT_TITLE].out.size > 0;
    }
}

static void text_on_text(struct text *text, const struct html_token *token) {
    if (text->skipped == ELEMENT_OTHER) {
        text_flow_put(text->in_title ? &text->flows[TEXT_TITLE] : &text->flows[TEXT_BODY],
                      text_decode(text, token->text, token->decoding));
    }
}

/* ---- the page ---- */

static void text_drain(struct text *text) {
    struct html_token token;
    while (!text_is_full(text) && html_next(&text->html, &token)) {
        switch (token.kind) {
        case HTML_START_TAG:
            text_on_start_tag(text, &token);
            break;
        case HTML_END_TAG:
            text_on_end_tag(text, &token);
            break;
        case HTML_TEXT:
            text_on_text(text, &token);
            break;
        default:
            break;
        }
    }
    for (size_t i = 0; i < TEXT_PARTS_COUNT; i++) {
        text->err = text->flows[i].out.err != ERR_OK ? text->flows[i].out.err : text->err;
    }
    text->err = html_err(&text->html) != ERR_OK ? html_err(&text->html) : text->err;
}

/* How many bytes at the end are a character whose rest may come. */
static size_t unfinished_size(struct bytes input) {
    for (size_t size = 1; size < UTF8_LENGTH_MAX && size <= input.size; size++) {
        uint8_t byte = input.data[input.size - size];
        if (byte >= 0xc0) {
            size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
            return length > size ? size : 0;
        }
        if (byte < 0x80) {
            return 0;
        }
    }
    return 0;
}

/* Pages that call themselves UTF-8 need not be: what is not becomes U+FFFD, as in browsers. */
static enum err convert_utf8(struct text *text, struct bytes piece, bool is_last) {
    buf_put(&text->valid, piece);
    struct bytes input = buf_bytes(&text->valid);
    size_t size = input.size - (is_last ? 0 : unfinished_size(input));
    input = bytes_slice(input, 0, size);
    if (utf8_is_valid(input)) {
        buf_put(&text->converted, input);
        input.size = 0;
    }
    while (input.size > 0) {
        size_t length;
        uint8_t encoded[UTF8_LENGTH_MAX];
        uint32_t code_point = utf8_decode(input, &length);
        buf_put(&text->converted, bytes_of(encoded, utf8_encode(code_point, encoded)));
        input = bytes_skip(input, length);
    }
    enum err err = text->valid.err;
    buf_consume(&text->valid, size);
    return err != ERR_OK ? err : text->converted.err;
}

static void text_feed_body(struct text *text, struct bytes piece, bool is_last) {
    do {
        size_t size = piece.size < CONVERT_STEP ? piece.size : CONVERT_STEP;
        bool is_end = is_last && size == piece.size;
        struct bytes step = bytes_slice(piece, 0, size);
        buf_clear(&text->converted);
        text->err = text->transcode.encoding == encoding_utf8
                        ? convert_utf8(text, step, is_end)
                        : transcode_put_piece(&text->transcode, &text->converted, step, is_end);
        if (text->err != ERR_OK) {
            return;
        }
        html_feed(&text->html, buf_bytes(&text->converted));
        text_drain(text);
        piece = bytes_skip(piece, size);
    } while (piece.size > 0 && text->err == ERR_OK && !text_is_full(text));
}

static void text_begin(struct text *text) {
    struct bytes head = buf_bytes(&text->head);
    text->has_begun = true;
    transcode_start(&text->transcode, encoding_detect(text->header_encoding, head,
                                                      text->is_xml ? ENCODING_TEXT : ENCODING_HTML));
    text_feed_body(text, head, false);
}

enum err text_feed(struct text *text, struct bytes piece) {
    if (text->err == ERR_OK && !text->has_begun) {
        size_t room = ENCODING_HEAD_SIZE - text->head.size;
        size_t size = piece.size < room ? piece.size : room;
        text->err = buf_put(&text->head, bytes_slice(piece, 0, size));
        piece = bytes_skip(piece, size);
        if (text->err == ERR_OK && size == room) {
            text_begin(text);
        }
    }
    if (text->err == ERR_OK && piece.size > 0 && !text_is_full(text)) {
        text_feed_body(text, piece, false);
    }
    return text->err;
}

enum err text_finish(struct text *text) {
    if (text->err == ERR_OK && !text->has_begun) {
        text_begin(text);
    }
    if (text->err == ERR_OK && !text_is_full(text)) {
        text_feed_body(text, (struct bytes){NULL, 0}, true);
    }
    if (text->err == ERR_OK && !text_is_full(text)) {
        html_end(&text->html);
        text_drain(text);
    }
    return text->err;
}

bool text_is_full(const struct text *text) {
    return text->flows[TEXT_BODY].is_full;
}

struct bytes text_part(const struct text *text, enum text_part part) {
    return buf_bytes(&text->flows[part].out);
}
