/*
 * html - anything as an HTML page. The first byte chooses how the rest is cut into pieces; whatever the
 * pieces, the tokens must mean the same, and their sources, one after the other, must be the input. Then
 * links are looked for in it.
 */
#include "web/html/html.h"

#include "fuzz.h"
#include "web/html/links.h"
#include "web/html/tree.h"

enum { TEXT_SIZE_MAX = 1 << 26 };

static void put_slice(struct buf *out, struct bytes text, unsigned decoding) {
    html_decode(out, text, decoding);
    buf_put_byte(out, '\1');
}

/* What a token means, so that parts of one text are the same as the whole. */
static void put_token(struct buf *out, const struct html_token *token, enum html_token_kind *last) {
    bool goes_on = *last == token->kind && (token->kind == HTML_TEXT || token->kind == HTML_COMMENT);
    if (!goes_on && token->kind != HTML_SKIPPED) {
        buf_put_format(out, "\n%d:", token->kind);
        *last = token->kind;
    }
    if (token->kind == HTML_TEXT || token->kind == HTML_COMMENT) {
        html_decode(out, token->text, token->decoding);
    }
    if (token->kind == HTML_COMMENT && token->is_end) {
        *last = HTML_END;
    }
    if (token->kind == HTML_START_TAG || token->kind == HTML_END_TAG) {
        put_slice(out, token->name, HTML_DECODING_NAME);
    }
    if (token->kind == HTML_START_TAG) {
        ASSERT(token->name_key == html_key(token->name));
        for (size_t i = 0; i < token->attributes_count; i++) {
            const struct html_attribute *attribute = &token->attributes[i];
            put_slice(out, html_attribute_name(token, attribute), HTML_DECODING_NAME);
            put_slice(out, html_attribute_value(token, attribute), HTML_DECODING_VALUE);
            ASSERT(attribute->name_key == html_key(html_attribute_name(token, attribute)));
            ASSERT(attribute->name_to <= attribute->value_from &&
                   attribute->value_from <= attribute->value_to);
        }
    }
}

static void tokenize(struct html *html, struct bytes input, size_t piece_size, struct buf *out) {
    static struct tree tree;
    struct html_token token;
    enum html_token_kind last = HTML_END;
    size_t offset = 0;
    tree_init(&tree);
    html_start(html);
    for (size_t from = 0; from <= input.size; from += piece_size) {
        size_t to = input.size - from < piece_size ? input.size : from + piece_size;
        html_feed(html, bytes_slice(input, from, to));
        bool is_last = to == input.size;
        if (is_last) {
            html_end(html);
        }
        while (html_next(html, &token)) {
            ASSERT(token.offset == offset);
            ASSERT(bytes_equal(token.source, bytes_slice(input, offset, offset + token.source.size)));
            offset += token.source.size;
            put_token(out, &token, &last);
            if (token.kind == HTML_START_TAG || token.kind == HTML_END_TAG) {
                tree_tag(&tree, html, &token);
            }
        }
        if (is_last) {
            break;
        }
    }
    ASSERT(offset == input.size && html->state == HTML_AT_END);
}

static void put_link(void *context, const struct link *link) {
    ASSERT(link->href.size > 0 && url_is_web(link->url));
    buf_put_format(context, "%d %s %s ", link->kind, link->element, link->attribute);
    buf_put(context, link->href);
    buf_put_byte(context, '\n');
}

static void find_links(struct links *links, struct bytes type, struct bytes input, size_t piece_size,
                       struct buf *out) {
    struct url base;
    url_init(&base);
    ASSERT(url_parse(&base, BYTES("http://a.example/b/c?d#e"), NULL, NULL) == ERR_OK);
    struct links_options options = {.forms = true, .guesses = true};
    links_start(links, type, &base, &options, put_link, out);
    links_header(links, BYTES("link"), input);
    links_header(links, BYTES("refresh"), input);
    for (size_t from = 0; from < input.size; from += piece_size) {
        size_t to = input.size - from < piece_size ? input.size : from + piece_size;
        ASSERT(links_feed(links, bytes_slice(input, from, to)) == ERR_OK);
    }
    ASSERT(links_finish(links) == ERR_OK);
    url_done(&base);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const types[] = {"text/html",
                                        "application/xml",
                                        "",
                                        "text/html;charset=shift_jis",
                                        "text/html;charset=utf-16",
                                        "application/manifest+json",
                                        "text/javascript",
                                        "audio/mpegurl"};
    if (size == 0) {
        return 0;
    }
    struct bytes input = bytes_of(data + 1, size - 1);
    size_t piece_size = 1 + data[0] % 31;
    struct bytes type = bytes_of_string(types[data[0] / 31 % 8]);
    static struct html html;
    struct links *links = links_new();
    struct buf whole;
    struct buf pieces;
    ASSERT(links != NULL);
    html_init(&html);
    buf_init(&whole, TEXT_SIZE_MAX);
    buf_init(&pieces, TEXT_SIZE_MAX);
    tokenize(&html, input, SIZE_MAX / 2, &whole);
    tokenize(&html, input, piece_size, &pieces);
    ASSERT(bytes_equal(buf_bytes(&whole), buf_bytes(&pieces)));
    buf_clear(&whole);
    buf_clear(&pieces);
    find_links(links, type, input, SIZE_MAX / 2, &whole);
    find_links(links, type, input, piece_size, &pieces);
    ASSERT(bytes_equal(buf_bytes(&whole), buf_bytes(&pieces)));
    buf_done(&pieces);
    buf_done(&whole);
    links_free(links);
    html_done(&html);
    return 0;
}
