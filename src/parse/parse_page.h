/*
 * parse_page - an archived document made to lead into the archive (web/rewrite/rewrite.h), without its
 * content encodings, as a job. What kind of document it is, its first bytes may have to say.
 *
 * The pieces that come out are the rewritten document. The note says what it was taken for, and how it
 * begins.
 */
#ifndef MNEMON_PARSE_PARSE_PAGE_H
#define MNEMON_PARSE_PARSE_PAGE_H

#include "base/buf.h"
#include "parse/parse_job.h"
#include "web/html/encoding.h"
#include "web/rewrite/rewrite.h"

enum { PARSE_PAGE_CHARSET_SIZE_MAX = 32 };

extern const struct parse_kind parse_page;

struct parse_page_params {
    struct bytes head; /* with the encodings, as warc/content.h wants it */
    struct bytes content_type;
    enum rewrite_modifier as; /* what it was asked for as */
    bool only_looks_at_html;  /* if it is HTML, nothing of it is wanted but to know that */
    bool is_xhtml;            /* by its type: the same goes for it */
    uint64_t size_max;        /* decoded; ERR_LIMIT */
    /* As struct rewrite_place has them. */
    struct bytes prefix;
    struct bytes timestamp;
    struct bytes url;
    struct bytes insert;
};

/* Replaces what is in *out. ERR_LIMIT: too long. */
enum err parse_page_params(struct buf *out, const struct parse_page_params *params) MUST_CHECK;

struct parse_page_note {
    enum rewrite_format format;
    bool is_rewritten;
    char charset[PARSE_PAGE_CHARSET_SIZE_MAX]; /* of what came out; empty: as rewrite_charset() says NULL */
    struct bytes head;           /* the first ENCODING_HEAD_SIZE bytes, decoded; a slice of the note */
    struct err_detail undecoded; /* why it cannot be decoded */
};

/* False: that is no such note. */
bool parse_page_read_note(struct bytes note, struct parse_page_note *ret_note);

#endif
