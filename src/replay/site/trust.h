/*
 * trust - which captures a request wants to see: all, or only what members of the ring have fetched
 * (archive_provenance()).
 *
 *      /web/~members/2026/http://example.org/     the pages: "~members" or "~any" in front of the time
 *      /web/~KEY-members/…                        the same, asked by a replayed page
 * (wayback/wayback_safety.h) /details/~members/…, /compare/~members/… /api/v1/capture?url=…&trust=members the
 * interfaces, and the CDX servers (cdx/cdx_query.h) X-Mnemon-Trust: members                    any request
 *
 * Without one of these, as the operator has set it (http.trust). A query behind /web/ belongs to the archived
 * URL.
 */
#ifndef MNEMON_REPLAY_SITE_TRUST_H
#define MNEMON_REPLAY_SITE_TRUST_H

#include "replay/site/replay.h"

/* Take "~members/" or "~any/" off the front of a target, or "-members" off the end of a key. */
enum archive_trust trust_take_prefix(struct bytes *target);
enum archive_trust trust_take_suffix(struct bytes *key);

/* ARCHIVE_TRUST_INVALID is never returned: what is not understood is passed over. */
enum archive_trust trust_of_request(const struct http_request *request);

/* archive_reader_begin() with what the request wants. */
struct archive_reader *trust_reader_begin(const struct replay *replay, const struct http_request *request);

/* "members" or "any", as it stands in paths; NULL: the default, which is not named. */
const char *trust_word(enum archive_trust trust);

#endif
