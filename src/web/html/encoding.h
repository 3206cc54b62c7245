/*
 * encoding - which character encoding a document is in, as the standards have browsers find out.
 *
 * In this order: a byte order mark; the charset of the Content-Type header; for HTML a <meta> in the first
 * 1,024 bytes (the standard's "prescan"), for XML its declaration; else windows-1252 for HTML and UTF-8 for
 * everything newer. Labels are those of the Encoding standard, https://encoding.spec.whatwg.org; transcode.h
 * converts.
 */
#ifndef MNEMON_WEB_HTML_ENCODING_H
#define MNEMON_WEB_HTML_ENCODING_H

#include "base/bytes.h"

enum { ENCODING_HEAD_SIZE = 1024 }; /* how much of a document is looked at */

struct encoding {
    const char *name;
    const char *iconv_name; /* NULL for UTF-8, and if all that is not ASCII is undecodable */
    const char *labels;     /* in lower case, separated by spaces */
    bool is_wide;           /* '<' may be part of another character: UTF-16, ISO-2022-JP */
};

extern const struct encoding *const encoding_utf8;

/* All of them, from 0 on; NULL behind the last. */
const struct encoding *encoding_at(size_t index);

/* The encoding of that label, in any case, or NULL. */
const struct encoding *encoding_of_label(struct bytes label);

/* The encoding that a byte order mark shows and how long the mark is, or NULL. */
const struct encoding *encoding_of_bom(struct bytes head, size_t *ret_size);

/* The encoding that the charset of a Content-Type header names, or NULL. */
const struct encoding *encoding_of_type(struct bytes content_type);

enum encoding_document { ENCODING_HTML, ENCODING_XML, ENCODING_TEXT };

/*
 * What a document says of its encoding, or NULL. header: the encoding that its Content-Type names, or NULL.
 * head: the first ENCODING_HEAD_SIZE bytes, or all if there are fewer.
 */
const struct encoding *encoding_declared(const struct encoding *header, struct bytes head,
                                         enum encoding_document document);

/* The same, or the default of such documents. Never NULL. */
const struct encoding *encoding_detect(const struct encoding *header, struct bytes head,
                                       enum encoding_document document);

#endif
