/*
 * pages_content - the start of a capture's document as its author wrote it: without content encodings, and on
 * request as UTF-8 or as the lines that a reader of the page reads.
 *
 * Private to pages*.c.
 */
#ifndef MNEMON_REPLAY_PAGES_PAGES_CONTENT_H
#define MNEMON_REPLAY_PAGES_PAGES_CONTENT_H

#include "base/buf.h"
#include "replay/archive/archive.h"

enum { PAGES_CONTENT_SIZE_MAX = 1 << 20 };

struct pages_content {
    struct archive_record record; /* lasts until the next open of the reader */
    struct buf text;              /* bytes of the document, PAGES_CONTENT_SIZE_MAX at most */
    bool is_cut;                  /* there is more */
};

/* The errors of archive_open(). What cannot be decoded counts as the end of the document. */
enum err pages_content_read(struct pages_content *content, struct archive_reader *reader,
                            const struct capture *capture, struct err_detail *detail) MUST_CHECK;
void pages_content_done(struct pages_content *content);

bool pages_content_is_html(const struct pages_content *content);

/* Can it be compared by lines? By its type. */
bool pages_content_is_text(const struct pages_content *content);

/* Append it as UTF-8, whatever its encoding. */
enum err pages_content_put_utf8(const struct pages_content *content, struct buf *out) MUST_CHECK;

/*
 * Append the lines that a reader of the HTML text, in UTF-8, reads: a line for each paragraph, heading, item,
 * row …, with single spaces between words; scripts, styles and hidden heads left out.
 */
enum err pages_put_lines(struct buf *out, struct bytes html) MUST_CHECK;

#endif
