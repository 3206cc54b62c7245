/*
 * parse_text - what a reader of an HTML page reads (web/html/text.h), without its content encodings, as a
 * job. Its params are those of parse_decode.h; the type is in the head, or given.
 *
 * What comes out are the parts, each a string, in the order of enum text_part.
 */
#ifndef MNEMON_PARSE_PARSE_TEXT_H
#define MNEMON_PARSE_PARSE_TEXT_H

#include "base/buf.h"
#include "parse/parse_job.h"
#include "web/html/text.h"

enum { PARSE_TEXT_SIZE_MAX = TEXT_BODY_SIZE_MAX + TEXT_TITLE_SIZE_MAX + TEXT_DESCRIPTION_SIZE_MAX + 128 };

extern const struct parse_kind parse_text;

struct parse_text_params {
    struct bytes head; /* as warc/content.h wants it */
    struct bytes content_type;
    uint64_t size_max; /* decoded; what is beyond is not read */
};

/* Replaces what is in *out. ERR_LIMIT: too long. */
enum err parse_text_params(struct buf *out, const struct parse_text_params *params) MUST_CHECK;

/* The parts, slices of what came out: UTF-8, and no longer than web/html/text.h has them. False: that is no
 * text. */
bool parse_text_read(struct bytes out, struct bytes ret_parts[TEXT_PARTS_COUNT]);

#endif
