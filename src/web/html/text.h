/*
 * text - what a reader of an HTML page reads: its title and its text, from bytes that arrive by pieces of any
 * size.
 *
 *      text_start(text, content_type);
 *      text_feed(text, piece);              for each piece, until text_is_full()
 *      text_finish(text);
 *      text_title(text), text_body(text) …
 *
 * All of it comes out as valid UTF-8 whatever the encoding of the page, without control characters, with
 * single spaces between words. Scripts, styles, templates and elements that are hidden (by the attribute
 * `hidden`, by `display: none` in their own style) are left out, as are <noscript>, drawings, fallbacks of
 * media and the options of selections: nobody reads them as the text of the page. What style sheets and
 * scripts hide is not known here. Elements that do not stand in a line of text separate words.
 *
 * Bounds: TEXT_BODY_SIZE_MAX and so on, cut between characters. In application/xhtml+xml elements end as XML
 * has it.
 */
#ifndef MNEMON_WEB_HTML_TEXT_H
#define MNEMON_WEB_HTML_TEXT_H

#include "base/bytes.h"
#include "base/err.h"

enum {
    TEXT_BODY_SIZE_MAX = 256 << 10,
    TEXT_TITLE_SIZE_MAX = 1 << 10,
    TEXT_DESCRIPTION_SIZE_MAX = 1 << 10,
    TEXT_LANGUAGE_SIZE_MAX = 35, /* what RFC 5646 asks everybody to take */
};

struct text;

struct text *text_new(void);       /* NULL: out of memory */
void text_free(struct text *text); /* may be NULL */

/* A new page; content_type: the header as received, may be empty. Memory is kept. */
void text_start(struct text *text, struct bytes content_type);

/* ERR_MEMORY. */
enum err text_feed(struct text *text, struct bytes piece) MUST_CHECK;
enum err text_finish(struct text *text) MUST_CHECK;

/* Nothing that follows would be taken. */
bool text_is_full(const struct text *text);

enum text_part {
    TEXT_TITLE,
    TEXT_BODY,
    TEXT_DESCRIPTION, /* of <meta name=description>, else og:description */
    TEXT_LANGUAGE,    /* the lang of <html>: "en-GB" */
    TEXT_PARTS_COUNT,
};

/* May be empty; until the next text_start(). */
struct bytes text_part(const struct text *text, enum text_part part);

#endif
