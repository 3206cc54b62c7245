/*
 * wacz_title - what the start of an HTML document says in its <title>, for a list of pages.
 *
 * Not a parser: comments, scripts, styles and drawings (whose titles are their own) are passed over, the
 * first title that is left is taken. Character references are decoded as far as titles have them: numbers,
 * and amp, lt, gt, quot, apos, nbsp. White space is one space. Text that is not UTF-8 is windows-1252 if
 * the document does not name another encoding; then there is no title.
 */
#ifndef MNEMON_WARC_WACZ_TITLE_H
#define MNEMON_WARC_WACZ_TITLE_H

#include "base/buf.h"

enum {
    WACZ_TITLE_SIZE_MAX = 512,      /* in UTF-8; what is more is cut */
    WACZ_TITLE_HTML_SIZE = 64 << 10 /* so much of a document is worth looking at */
};

/* Append it to out; nothing if there is none. content_type: of the HTTP head, may be empty. */
enum err wacz_title_put(struct buf *out, struct bytes html, struct bytes content_type);

#endif
