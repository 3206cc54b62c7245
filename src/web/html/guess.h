/*
 * guess - strings in scripts and JSON that look like URLs, in bytes that arrive by pieces of any size.
 *
 * Not a parser of JavaScript: it knows quotes, escapes and comments, and a string that is not closed on its
 * line is none. What comes out is worth a try at low priority, no more.
 */
#ifndef MNEMON_WEB_HTML_GUESS_H
#define MNEMON_WEB_HTML_GUESS_H

#include "base/bytes.h"

enum { GUESS_SIZE_MAX = 2048, GUESS_KEY_SIZE_MAX = 32 };

enum guess_state {
    GUESS_IN_CODE,
    GUESS_AFTER_SLASH,
    GUESS_IN_LINE_COMMENT,
    GUESS_IN_COMMENT,
    GUESS_AFTER_STAR,
    GUESS_IN_STRING,
    GUESS_AFTER_BACKSLASH,
    GUESS_IN_HEX, /* of \uXXXX or \xXX */
};

struct guess {
    enum guess_state state;
    bool has_comments; /* a script, not JSON */
    uint8_t quote;
    unsigned hex_left;
    uint32_t hex_value;
    uint64_t offset;    /* of the next byte */
    uint64_t from;      /* where the string starts */
    size_t text_size;   /* GUESS_SIZE_MAX + 1: too long */
    size_t key_size;    /* of the string before the ':' that was just seen */
    bool is_after_text; /* only spaces since the last string */
    uint8_t key[GUESS_KEY_SIZE_MAX];
    uint8_t text[GUESS_SIZE_MAX + 4]; /* the string so far, escapes resolved */
};

struct guess_string {
    struct bytes text;
    struct bytes key; /* "src" in {"src": "text"}; empty if there is none */
    uint64_t offset;
};

/* A new text, whose first byte has this offset. */
void guess_start(struct guess *guess, bool has_comments, uint64_t offset);

/* Take from *piece; true with the next string, valid until the next call, false when the piece is used up. */
bool guess_next(struct guess *guess, struct bytes *piece, struct guess_string *ret_string);

/* Whether the text looks like a URL. */
bool guess_is_url(struct bytes text);

/*
 * Call found() with each URL that the text of a string or attribute may be or have in it: the whole of it,
 * the members of a list with commas ("/a.png 1x, /b.png 2x"), strings of JSON, attributes of HTML. One level
 * deep.
 */
typedef void guess_found(void *context, struct bytes url);
void guess_find(struct bytes text, guess_found *found, void *context);

#endif
