/*
 * css - finds the URLs in a style sheet, in bytes that arrive by pieces of any size.
 *
 *      css_start(&css);
 *      css_feed(&css, piece);              again for each piece; after the last one css_end(&css)
 *      while (css_next(&css, &token)) …    until it is false, then the next piece
 *
 * A tokenizer after CSS Syntax Level 3 (https://www.w3.org/TR/css-syntax-3/) that only tells apart what it
 * must: strings, comments, names with escapes, url() in both forms, bad urls and bad strings. Its tokens are
 * the values of references, without quotes, and the bytes between them; their sources, one after the other,
 * are the input, so that a style sheet can be rewritten in place. References are:
 *
 *      url(x)  url("x")  src("x")  @import "x"  @import url(x)  image-set("x" 1x, …)
 *
 * Not one of them: the names of @namespace. A value above CSS_VALUE_SIZE_MAX (no URL is as long, but data:
 * may be) is not reported. An end of the input inside a value ends it, as in browsers.
 */
#ifndef MNEMON_WEB_HTML_CSS_H
#define MNEMON_WEB_HTML_CSS_H

#include "web/html/tape.h"

enum { CSS_VALUE_SIZE_MAX = 1 << 16, CSS_NAME_SIZE_MAX = 128, CSS_DEPTH_MAX = 64 };

enum css_token_kind {
    CSS_OTHER,     /* to be copied */
    CSS_REFERENCE, /* to an image, a font …: the value alone */
    CSS_IMPORT,    /* to a style sheet */
    CSS_END,       /* of the input */
};

enum css_quote { CSS_UNQUOTED, CSS_SINGLE_QUOTED, CSS_DOUBLE_QUOTED };

struct css_token {
    enum css_token_kind kind;
    enum css_quote quote; /* of a reference; the quotes are part of its neighbours */
    uint64_t offset;
    struct bytes source; /* of a reference: decode with css_decode() */
};

enum css_state {
    CSS_IN_NORMAL,
    CSS_IN_COMMENT,
    CSS_IN_STRING,    /* one that is no reference */
    CSS_IN_NAME,      /* one that is too long to mean anything */
    CSS_IN_URL_START, /* behind "url(" */
    CSS_IN_URL,
    CSS_IN_BAD_URL,
    CSS_IN_VALUE, /* a string that is a reference */
    CSS_AT_END,
};

/* What a '(' opened. */
enum css_function { CSS_PLAIN, CSS_URL, CSS_IMAGE_SET };

/* What is known of the at-rule that we are in the prelude of. */
enum css_rule { CSS_NO_RULE, CSS_IMPORT_RULE, CSS_NAMESPACE_RULE };

struct css {
    struct tape tape;
    enum css_state state;
    enum css_rule rule;
    uint8_t quote;      /* that ends the string, or 0 */
    bool has_reference; /* [from, to) of the view is one, to be given out */
    enum css_token_kind reference_kind;
    size_t given; /* size of the token given out, to be consumed by the next call */
    size_t at;    /* next byte of the view */
    size_t from;  /* start of the value */
    size_t to;
    size_t depth;                     /* of parentheses */
    uint8_t functions[CSS_DEPTH_MAX]; /* enum css_function */
};

void css_init(struct css *css);
void css_done(struct css *css);

/* A new input; memory is kept. */
void css_start(struct css *css);

/* The next piece, borrowed until css_next() is false. */
void css_feed(struct css *css, struct bytes piece);

/* There are no more pieces. */
void css_end(struct css *css);

/* The next token, valid until the next call. False if the piece is used up, after CSS_END, and after
 * css_err(). */
bool css_next(struct css *css, struct css_token *token);

static inline enum err css_err(const struct css *css) {
    return css->tape.held.err;
}

/* Append what the value of a reference means: its escapes resolved. */
enum err css_decode(struct buf *out, struct bytes value);

#endif
