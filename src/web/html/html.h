/*
 * html - the tokenizer of the HTML standard, for bytes that arrive by pieces of any size.
 *
 *      html_start(&html);
 *      html_feed(&html, piece);              again for each piece; after the last one html_end(&html)
 *      while (html_next(&html, &token)) …    until it is false, then the next piece
 *
 * Every token carries its source, the exact bytes it was made of. The sources of all tokens, one after the
 * other, are the input, so whoever rewrites a page copies the sources and changes only parts of them, such as
 * the value of an attribute, whose place and quotes are given. Text, names and values are slices of the
 * source; html_decode() turns them into what they mean (character references, line ends, lower case), and
 * only callers that want it pay for it.
 *
 * Text and comments come in as many tokens as the pieces make of them, but never cut in the middle of a
 * character reference or of CR LF. A tag is always whole. Its size is limited: if it is above
 * HTML_TAG_SIZE_MAX, its start is reported with the attributes that end in it (is_cut), the rest up to
 * its '>' as HTML_SKIPPED. If it has more than HTML_ATTRIBUTES_MAX attributes, only the first are reported. A
 * character reference of more than HTML_REFERENCE_SIZE_MAX bytes is text.
 *
 * The input is UTF-8 or any encoding whose bytes below 0x80 mean ASCII in tags; other bytes pass untouched.
 * Names and text are compared with the standard in tests/unit/html-data.c. Parse errors are not reported.
 *
 * How text is to be read after a start tag (script, title …) is decided by the tree builder in the standard,
 * and by the caller here: html_set_model() after that token, before the next; tree.h does it by name.
 *
 * https://html.spec.whatwg.org/multipage/parsing.html#tokenization
 */
#ifndef MNEMON_WEB_HTML_HTML_H
#define MNEMON_WEB_HTML_HTML_H

#include "web/html/html_decode.h"
#include "web/html/html_tag.h"
#include "web/html/tape.h"

enum {
    HTML_TAG_SIZE_MAX = 1 << 20,
    HTML_END_NAME_SIZE_MAX = 32,
};

/* How text is read: the state of the standard that a run of text starts in. */
enum html_model {
    HTML_DATA,
    HTML_RCDATA,    /* title, textarea: references, but no tags before the end tag */
    HTML_RAWTEXT,   /* style, xmp, iframe, noembed, noframes: neither */
    HTML_SCRIPT,    /* script: like RAWTEXT, but <!-- <script> … </script> --> may be inside */
    HTML_PLAINTEXT, /* nothing ends it */
    HTML_CDATA,     /* up to "]]>", then HTML_DATA */
};

enum html_token_kind {
    HTML_TEXT,
    HTML_START_TAG,
    HTML_END_TAG,
    HTML_COMMENT, /* in parts; the last one has is_end */
    HTML_DOCTYPE,
    HTML_SKIPPED, /* means nothing: "</>", the frame of a CDATA section, a tag that the input ends in */
    HTML_END,     /* of the input */
};

struct html_token {
    enum html_token_kind kind;
    uint64_t offset; /* of the source in the input */
    struct bytes source;
    struct bytes text; /* of text and comments; decode with .decoding */
    unsigned decoding;
    struct bytes name; /* of tags; decode with HTML_DECODING_NAME */
    uint64_t name_key; /* html_key() of the name of a tag */
    bool is_self_closing;
    bool is_cut;
    bool is_end; /* of a comment */
    const struct html_attribute *attributes;
    size_t attributes_count; /* as written: a name may be there again, only the first one counts */
};

enum html_state {
    HTML_IN_TEXT,
    HTML_IN_TAG,
    HTML_IN_COMMENT,
    HTML_IN_BOGUS_COMMENT,
    HTML_IN_DOCTYPE,
    HTML_IN_CUT_TAG,
    HTML_IN_CUT_DOCTYPE,
    HTML_AT_END,
};

enum html_escape { HTML_NOT_ESCAPED, HTML_ESCAPED, HTML_DOUBLE_ESCAPED };

struct html {
    struct tape tape;
    enum html_state state;
    enum html_model model;
    size_t given;    /* size of the token given out, to be consumed by the next call */
    size_t at;       /* how far the doctype has been looked at */
    size_t intro;    /* bytes before the text of a comment that has just begun */
    bool is_sparse;  /* see html_set_sparse() */
    bool has_cdata;  /* "<![CDATA[" is understood: in foreign content and XML */
    unsigned dashes; /* in a row before the next byte of an escaped script */
    enum html_escape escape;
    size_t end_name_size;
    uint8_t end_name[HTML_END_NAME_SIZE_MAX]; /* in lower case: which end tag ends the model */
    struct html_tag tag;
};

void html_init(struct html *html);
void html_done(struct html *html);

/* A new input; memory is kept. */
void html_start(struct html *html);

/* The next piece, borrowed until html_next() is false. */
void html_feed(struct html *html, struct bytes piece);

/* There are no more pieces. */
void html_end(struct html *html);

/*
 * The next token; it and its slices hold until the next call. False if the piece is used up, after
 * HTML_END, and if memory ran out: html_err() then says so.
 */
bool html_next(struct html *html, struct html_token *token);

static inline enum err html_err(const struct html *html) {
    return html->tape.held.err;
}

/*
 * From here on text is read by this model. end_name: the element, in any case, whose end tag ends it. One of
 * more than HTML_END_NAME_SIZE_MAX bytes is never found.
 */
void html_set_model(struct html *html, enum html_model model, struct bytes end_name);

/* Whether CDATA sections are understood; off at first. */
void html_set_cdata(struct html *html, bool has_cdata);

/*
 * Whether the caller can do without ordinary text and without end tags; off at first. The tokenizer then runs
 * over them instead of giving them out, wherever that saves time; some may still come, and the sources are
 * not the whole input any more.
 */
static inline void html_set_sparse(struct html *html, bool is_sparse) {
    html->is_sparse = is_sparse;
}

/*
 * A number for a name, whatever its case: names of up to 8 bytes have different numbers, of longer ones most
 * have. For tables of names, words.h.
 */
static inline uint64_t html_key(struct bytes name) {
    uint64_t key = 0;
    for (size_t i = 0; i < name.size; i++) {
        key = (key << 8 | key >> 56) ^ byte_lower(name.data[i]);
    }
    return key;
}

static inline struct bytes html_attribute_name(const struct html_token *tag,
                                               const struct html_attribute *attribute) {
    return bytes_slice(tag->source, attribute->name_from, attribute->name_to);
}

/* As written, without its quotes; decode with HTML_DECODING_VALUE. */
static inline struct bytes html_attribute_value(const struct html_token *tag,
                                                const struct html_attribute *attribute) {
    return bytes_slice(tag->source, attribute->value_from, attribute->value_to);
}

/* The first attribute of that name, or NULL. */
const struct html_attribute *html_find_attribute(const struct html_token *tag, struct bytes name);

#endif
