/*
 * parse_links - the URLs that a document refers to (web/html/links.h), without its content encodings, as a
 * job.
 *
 * What comes out is a list:
 *
 *      u8       enum link_kind
 *      string   the URL, absolute and without its fragment
 */
#ifndef MNEMON_PARSE_PARSE_LINKS_H
#define MNEMON_PARSE_PARSE_LINKS_H

#include "base/buf.h"
#include "http/message/fields.h"
#include "parse/parse_job.h"
#include "web/html/links.h"

extern const struct parse_kind parse_links;

struct parse_links_params {
    struct bytes head; /* as warc/content.h wants it */
    bool has_chunks;   /* the body is as it was received */
    struct bytes content_type;
    struct bytes base;
    const struct fields *fields; /* of the response: some name URLs; may be NULL */
    struct links_options options;
    uint64_t size_max; /* decoded; what is beyond has no links */
};

/* Replaces what is in *out. ERR_LIMIT: too long. */
enum err parse_links_params(struct buf *out, const struct parse_links_params *params) MUST_CHECK;

/* The next of the list. False: that was the last one, or what follows is no link. The slice is of *rest. */
bool parse_links_read(struct bytes *rest, enum link_kind *ret_kind, struct bytes *ret_href);

#endif
