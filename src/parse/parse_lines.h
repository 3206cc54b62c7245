/*
 * parse_lines - the start of a text document in UTF-8, whatever its encoding, without its content encodings;
 * of HTML on request the lines that a reader of the page reads: one for each paragraph, heading, item, row …,
 * with single spaces between words; scripts, styles and hidden heads left out. As a job.
 *
 * The pieces that come out are the text. The note says whether there is more of the document: a byte.
 */
#ifndef MNEMON_PARSE_PARSE_LINES_H
#define MNEMON_PARSE_PARSE_LINES_H

#include "base/buf.h"
#include "parse/parse_job.h"

enum { PARSE_LINES_SIZE_MAX = 1 << 20 /* so much of a document is read */ };

extern const struct parse_kind parse_lines;

struct parse_lines_params {
    struct bytes head; /* as warc/content.h wants it */
    struct bytes content_type;
    bool is_html;
    bool wants_lines; /* of HTML */
};

/* Replaces what is in *out. ERR_LIMIT: too long. */
enum err parse_lines_params(struct buf *out, const struct parse_lines_params *params) MUST_CHECK;

/* For jobs: append the lines of HTML that is in UTF-8. */
enum err parse_lines_put(struct buf *out, struct bytes html) MUST_CHECK;

#endif
