#include <stdio.h>

#include "base/uninitialized.h"
#include "base/utf8.h"
#include "web/rewrite/rewrite_state.h"

/*
 * Escapes
 */

/* What has to stand for the byte at text[at], and how many bytes it stands for; NULL if it may stay. */
static const char *escape_of(const struct rewrite *rewrite, struct bytes text, size_t at,
                             enum html_quote quote, char number[16], size_t *ret_size) {
    uint8_t byte = text.data[at];
    *ret_size = 1;
    switch (byte) {
    case '&':
        return "&amp;";
    case '"':
        return quote == HTML_DOUBLE_QUOTED ? "&quot;" : NULL;
    case '\'':
        return quote == HTML_SINGLE_QUOTED ? "&#39;" : NULL;
    case '<':
        return quote == HTML_NO_VALUE || rewrite_is_xml(rewrite) ? "&lt;" : NULL;
    case '>': /* "]]>" must not stand in XML */
        return quote == HTML_NO_VALUE && (at > 0 ? text.data[at - 1] == ']' : rewrite->is_after_bracket)
                   ? "&gt;"
                   : NULL;
    default:
        break;
    }
    if (byte < 0x80 || rewrite_is_utf8(rewrite)) {
        return NULL;
    }
    snprintf(number, 16, "&#x%x;", (unsigned)utf8_decode(bytes_skip(text, at), ret_size));
    return number;
}

/* The bytes that escape_of() may have something to say about. */
static const bool is_special[256] = {
    ['&'] = true, ['"'] = true, ['\''] = true, ['<'] = true, ['>'] = true, [0x80 ... 0xff] = true};

void rewrite_out_escaped(struct rewrite *rewrite, struct bytes text, enum html_quote quote) {
    size_t copied = 0;
    for (size_t at = 0; at < text.size;) {
        if (!is_special[text.data[at]]) {
            at++;
            continue;
        }
        char number[16];
        size_t size;
        const char *escape = escape_of(rewrite, text, at, quote, number, &size);
        if (escape != NULL) {
            rewrite_out(rewrite, bytes_slice(text, copied, at));
            rewrite_out(rewrite, bytes_of_string(escape));
            copied = at + size;
        }
        at += size;
    }
    rewrite_out(rewrite, bytes_skip(text, copied));
}

/*
 * Text that means something
 */

static enum err rewrite_put_text(void *context, struct bytes piece) {
    struct rewrite *rewrite = context;
    if (rewrite->is_escaped) {
        rewrite_out_escaped(rewrite, piece, HTML_NO_VALUE);
        rewrite->is_after_bracket =
            piece.size > 0 ? piece.data[piece.size - 1] == ']' : rewrite->is_after_bracket;
    } else {
        rewrite_out(rewrite, piece);
    }
    return rewrite->err;
}

static struct rewrite_css rewrite_css_of(struct rewrite *rewrite) {
    return (struct rewrite_css){.css = &rewrite->css, .put = rewrite_put_text, .context = rewrite};
}

/* What was collected was not too long: it is dealt with as a whole. */
static void end_collected(struct rewrite *rewrite) {
    struct bytes text = buf_bytes(&rewrite->collected);
    struct bytes url;
    bool is_url = rewrite->text != REWRITE_TEXT_IMPORT_MAP;
    if (!is_url) {
        rewrite_import_map(rewrite, text);
    } else {
        struct bytes value = rewrite_decode(rewrite, text, rewrite->is_escaped ? HTML_DECODE_REFERENCES : 0);
        bool is_meant = rewrite->text == REWRITE_TEXT_URL || rewrite_is_absolute(bytes_trim(value));
        enum rewrite_modifier modifier = rewrite->text == REWRITE_TEXT_URL ? REWRITE_PAGE : REWRITE_OBJECT;
        if (bytes_trim(value).size > 0 && is_meant && rewrite_resolve(rewrite, modifier, value, &url)) {
            rewrite_put_text(rewrite, url);
        } else {
            rewrite_out(rewrite, text);
        }
    }
    buf_clear(&rewrite->collected);
}

void rewrite_collect(struct rewrite *rewrite, struct bytes text) {
    if (rewrite->is_collecting && text.size <= REWRITE_COLLECTED_SIZE_MAX - rewrite->collected.size) {
        rewrite_check(rewrite, buf_put(&rewrite->collected, text));
        return;
    }
    rewrite_out(rewrite, buf_bytes(&rewrite->collected));
    rewrite_out(rewrite, text);
    buf_clear(&rewrite->collected);
    rewrite->is_collecting = false;
}

/* A token that is no text ends a run of it. */
static void end_run(struct rewrite *rewrite) {
    if (rewrite->is_collecting && rewrite->collected.size > 0) {
        end_collected(rewrite);
    }
    rewrite->is_collecting = true;
}

static void rewrite_end_text(struct rewrite *rewrite) {
    struct rewrite_css css = rewrite_css_of(rewrite);
    switch (rewrite->text) {
    case REWRITE_TEXT_STYLE:
        rewrite_css_end(rewrite, &css);
        break;
    case REWRITE_TEXT_SCRIPT:
        rewrite_check(rewrite, rewrite_script_end(&rewrite->script));
        break;
    case REWRITE_TEXT_IMPORT_MAP:
    case REWRITE_TEXT_URL:
    case REWRITE_TEXT_ABSOLUTE_URL:
        end_run(rewrite);
        break;
    case REWRITE_TEXT_PLAIN:
        break;
    }
    rewrite->text = REWRITE_TEXT_PLAIN;
}

static void rewrite_feed_text(struct rewrite *rewrite, struct bytes text) {
    struct rewrite_css css = rewrite_css_of(rewrite);
    if (rewrite->text == REWRITE_TEXT_STYLE) {
        rewrite_css_feed(rewrite, &css, text);
    } else {
        rewrite_check(rewrite, rewrite_script_feed(&rewrite->script, text));
    }
}

/*
 * In HTML the text of a style or script is as it is. In XML and SVG it has character references: they are
 * resolved before it is read, and what comes out is escaped again.
 */
static void rewrite_on_text(struct rewrite *rewrite, const struct html_token *token) {
    rewrite->is_escaped = (token->decoding & HTML_DECODE_REFERENCES) != 0;
    switch (rewrite->text) {
    case REWRITE_TEXT_STYLE:
    case REWRITE_TEXT_SCRIPT:
        rewrite_feed_text(rewrite, rewrite->is_escaped ? rewrite_decode(rewrite, token->text, token->decoding)
                                                       : token->text);
        break;
    case REWRITE_TEXT_IMPORT_MAP:
    case REWRITE_TEXT_URL:
    case REWRITE_TEXT_ABSOLUTE_URL:
        rewrite_collect(rewrite, token->text);
        break;
    case REWRITE_TEXT_PLAIN:
        rewrite_out(rewrite, token->source);
        break;
    }
}

/*
 * What the text behind a start tag is
 */

static bool is_script_type(struct bytes type) {
    static const char *const types[] = {
        "",
        "text/javascript",
        "application/javascript",
        "application/x-javascript",
        "text/ecmascript",
        "application/ecmascript",
        "application/x-ecmascript",
        "text/x-javascript",
        "text/x-ecmascript",
        "text/jscript",
        "text/livescript",
        "text/javascript1.0",
        "text/javascript1.1",
        "text/javascript1.2",
        "text/javascript1.3",
        "text/javascript1.4",
        "text/javascript1.5",
        NULL,
    };
    return bytes_is_one_of(type, types);
}

static enum rewrite_text start_script(struct rewrite *rewrite, struct bytes type) {
    if (bytes_equal_ignore_case(type, BYTES("importmap"))) {
        return REWRITE_TEXT_IMPORT_MAP;
    }
    bool is_module = bytes_equal_ignore_case(type, BYTES("module"));
    if (!is_module && !is_script_type(type)) {
        return REWRITE_TEXT_PLAIN; /* data, templates */
    }
    struct rewrite_script_place place = rewrite_script_place_of(rewrite, is_module, rewrite_put_text);
    rewrite_script_start(&rewrite->script, &place);
    return REWRITE_TEXT_SCRIPT;
}

static enum rewrite_text start_style(struct rewrite *rewrite, struct bytes type) {
    if (type.size > 0 && !bytes_equal_ignore_case(type, BYTES("text/css"))) {
        return REWRITE_TEXT_PLAIN;
    }
    css_start(&rewrite->css);
    return REWRITE_TEXT_STYLE;
}

/* In feeds and DASH the text of some elements is a URL. */
static enum rewrite_text start_url(const struct rewrite *rewrite, const struct rewrite_tag *tag) {
    bool is_dash = rewrite->place.format == REWRITE_DASH;
    switch (tag->element) {
    case LINKS_LINK:
        return rewrite_tag_has(tag, LINKS_HREF) ? REWRITE_TEXT_PLAIN : REWRITE_TEXT_URL;
    case LINKS_COMMENTS:
    case LINKS_URL:
        return REWRITE_TEXT_URL;
    case REWRITE_BASEURL:
    case REWRITE_LOCATION:
        return is_dash ? REWRITE_TEXT_ABSOLUTE_URL : REWRITE_TEXT_PLAIN;
    default:
        return REWRITE_TEXT_PLAIN;
    }
}

/*
 * Text with references in an old encoding is not rewritten: its pieces cannot be decoded one by one.
 */
static void start_text(struct rewrite *rewrite, const struct rewrite_tag *tag) {
    bool is_xml = rewrite_is_xml(rewrite);
    bool has_references = is_xml || tree_is_foreign(&rewrite->tree);
    if (has_references && (tag->token->is_self_closing || !rewrite_is_utf8(rewrite))) {
        return;
    }
    if (tag->element == LINKS_SCRIPT_ELEMENT) {
        rewrite->text = start_script(rewrite, rewrite_tag_word(tag, LINKS_TYPE));
    } else if (tag->element == LINKS_STYLE_ELEMENT) {
        rewrite->text = start_style(rewrite, rewrite_tag_word(tag, LINKS_TYPE));
    } else if (is_xml) {
        rewrite->text = start_url(rewrite, tag);
    }
    rewrite->text_element = tag->element;
    rewrite->is_escaped = has_references;
    rewrite->is_after_bracket = false;
    rewrite->is_collecting = true;
}

/*
 * The replay script
 */

static void insert(struct rewrite *rewrite) {
    if (!rewrite->is_inserted) {
        rewrite->is_inserted = true;
        rewrite_out(rewrite, rewrite->place.insert);
    }
}

static size_t space_size(struct bytes text) {
    size_t size = 0;
    while (size < text.size &&
           (text.data[size] == ' ' || (text.data[size] >= '\t' && text.data[size] <= '\r'))) {
        size++;
    }
    return size;
}

/* Spaces and a byte order mark may stand before it; in XML there is no place before the root. */
static void insert_before_text(struct rewrite *rewrite, struct html_token *token) {
    size_t size = token->offset == 0 && bytes_starts_with(token->text, BYTES("\xef\xbb\xbf")) ? 3 : 0;
    size += space_size(bytes_skip(token->text, size));
    if (size == token->text.size || (rewrite_is_xml(rewrite) && !rewrite->has_root)) {
        return;
    }
    rewrite_out(rewrite, bytes_slice(token->source, 0, size));
    token->text = bytes_skip(token->text, size);
    token->source = bytes_skip(token->source, size);
    insert(rewrite);
}

static void insert_before_tag(struct rewrite *rewrite, const struct rewrite_tag *tag) {
    if (rewrite_is_xml(rewrite) && !rewrite->has_root) {
        rewrite->has_root = true;
        rewrite->is_inserted = tag->element != REWRITE_HTML_ELEMENT;
    }
    if (tag->element != REWRITE_HTML_ELEMENT && tag->element != REWRITE_HEAD) {
        insert(rewrite);
    }
}

/*
 * Tokens
 */

static void rewrite_on_start_tag(struct rewrite *rewrite, const struct html_token *token) {
    UNINITIALIZED struct rewrite_tag tag;
    rewrite_end_text(rewrite); /* a tag in a style or script, in XML */
    if (!rewrite_is_xml(rewrite)) {
        tree_tag(&rewrite->tree, &rewrite->html, token);
    }
    rewrite_tag_find(rewrite, &tag, token);
    if (!rewrite->is_inserted) {
        insert_before_tag(rewrite, &tag);
    }
    rewrite_tag_out(rewrite, &tag);
    if (tag.element != LINKS_OTHER) {
        start_text(rewrite, &tag);
    }
}

static void rewrite_on_end_tag(struct rewrite *rewrite, const struct html_token *token) {
    if (!rewrite_is_xml(rewrite)) {
        tree_tag(&rewrite->tree, &rewrite->html, token);
    }
    rewrite_end_text(rewrite);
    if (!rewrite->is_inserted && rewrite->has_root) {
        insert(rewrite);
    }
    rewrite_out(rewrite, token->source);
}

/* <?xml-stylesheet href="…"?>, which the tokenizer takes for a comment. */
static void out_instruction(struct rewrite *rewrite, struct bytes source) {
    size_t href = bytes_find(source, BYTES("href="));
    struct bytes url;
    if (!bytes_starts_with(source, BYTES("<?xml-stylesheet")) || href + 6 >= source.size) {
        rewrite_out(rewrite, source);
        return;
    }
    uint8_t quote = source.data[href + 5];
    struct bytes value = bytes_skip(source, href + 6);
    value.size = bytes_find_byte(value, quote);
    bool is_quoted = quote == '"' || quote == '\'';
    bool is_changed = is_quoted && rewrite_resolve(rewrite, REWRITE_STYLE,
                                                   rewrite_decode(rewrite, value, HTML_DECODING_VALUE), &url);
    rewrite_out(rewrite, bytes_slice(source, 0, href + 6));
    if (is_changed) {
        rewrite_out_escaped(rewrite, url, quote == '"' ? HTML_DOUBLE_QUOTED : HTML_SINGLE_QUOTED);
    } else {
        rewrite_out(rewrite, value);
    }
    rewrite_out(rewrite, bytes_skip(source, href + 6 + value.size));
}

/* The frame of a CDATA section in a text that means something: what is before it comes out before it. */
static void on_frame(struct rewrite *rewrite) {
    struct rewrite_css css = rewrite_css_of(rewrite);
    if (rewrite->text == REWRITE_TEXT_SCRIPT) {
        rewrite_check(rewrite, rewrite_script_flush(&rewrite->script));
    } else if (rewrite->text == REWRITE_TEXT_STYLE) {
        rewrite_css_end(rewrite, &css);
        css_start(&rewrite->css);
    }
    rewrite->is_after_bracket = false;
}

static void rewrite_on_comment(struct rewrite *rewrite, const struct html_token *token) {
    bool is_first = rewrite_is_xml(rewrite) && bytes_starts_with(token->source, BYTES("<?"));
    if (rewrite->text != REWRITE_TEXT_PLAIN || (!is_first && !rewrite->in_instruction)) {
        on_frame(rewrite);
        rewrite_out(rewrite, token->source);
        return;
    }
    rewrite->is_collecting = rewrite->is_collecting || is_first;
    rewrite->in_instruction = !token->is_end;
    rewrite_collect(rewrite, token->source);
    if (token->is_end && rewrite->is_collecting) {
        out_instruction(rewrite, buf_bytes(&rewrite->collected));
        buf_clear(&rewrite->collected);
    }
}

/* Comments and instructions inside of a text that means something are copied; what they cut in two stays so.
 */
static void on_token(struct rewrite *rewrite, struct html_token *token) {
    bool is_run = rewrite->text >= REWRITE_TEXT_IMPORT_MAP && token->kind != HTML_TEXT;
    if (is_run) {
        end_run(rewrite);
    }
    switch (token->kind) {
    case HTML_START_TAG:
        rewrite_on_start_tag(rewrite, token);
        break;
    case HTML_END_TAG:
        rewrite_on_end_tag(rewrite, token);
        break;
    case HTML_TEXT:
        if (!rewrite->is_inserted) {
            insert_before_text(rewrite, token);
        }
        rewrite_on_text(rewrite, token);
        break;
    case HTML_COMMENT:
        rewrite_on_comment(rewrite, token);
        break;
    case HTML_DOCTYPE:
        rewrite_out(rewrite, token->source);
        break;
    case HTML_SKIPPED:
        if (!rewrite->is_inserted && rewrite->has_root) {
            insert(rewrite);
        }
        on_frame(rewrite);
        rewrite_out(rewrite, token->source);
        break;
    case HTML_END:
        rewrite_end_text(rewrite);
        if (!rewrite_is_xml(rewrite)) {
            insert(rewrite);
        }
        break;
    }
}

static void rewrite_drain(struct rewrite *rewrite) {
    struct html_token token;
    while (rewrite->err == ERR_OK && html_next(&rewrite->html, &token)) {
        on_token(rewrite, &token);
    }
    rewrite_check(rewrite, html_err(&rewrite->html));
}

void rewrite_html_start(struct rewrite *rewrite) {
    html_start(&rewrite->html);
    tree_start(&rewrite->tree);
    html_set_cdata(&rewrite->html, rewrite_is_xml(rewrite));
    rewrite->text = REWRITE_TEXT_PLAIN;
    rewrite->in_instruction = false;
    rewrite->is_escaped = false;
    rewrite->is_inserted = rewrite->place.insert.size == 0;
    rewrite->has_root = !rewrite_is_xml(rewrite);
}

void rewrite_html_feed(struct rewrite *rewrite, struct bytes piece) {
    html_feed(&rewrite->html, piece);
    rewrite_drain(rewrite);
}

void rewrite_html_end(struct rewrite *rewrite) {
    html_end(&rewrite->html);
    rewrite_drain(rewrite);
}
