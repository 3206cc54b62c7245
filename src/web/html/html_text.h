/*
 * html_text - where text ends and what begins there, for each way of reading text.
 */
#ifndef MNEMON_WEB_HTML_HTML_TEXT_H
#define MNEMON_WEB_HTML_HTML_TEXT_H

#include "web/html/html.h"

enum html_markup {
    HTML_NO_MARKUP, /* all of the view is text, as far as can be said */
    HTML_UNDECIDED, /* too few bytes behind the '<' */
    HTML_MARKUP_START_TAG,
    HTML_MARKUP_END_TAG,
    HTML_MARKUP_COMMENT,
    HTML_MARKUP_BOGUS_COMMENT,
    HTML_MARKUP_DOCTYPE,
    HTML_MARKUP_CDATA,
    HTML_MARKUP_CDATA_END,
    HTML_MARKUP_EMPTY_END_TAG, /* "</>" */
};

/*
 * How much of the view is text, and what follows it. Advances html->escape and html->dashes over that text,
 * which must then be consumed.
 */
enum html_markup html_text_scan(struct html *html, struct bytes view, size_t *ret_size);

#endif
