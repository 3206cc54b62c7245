/*
 * wayback - captures as pages, under the URLs of the Wayback Machine: /web/20260102030405/http://example.org/
 *
 * What a target asks for is wayback_path.h. Pages are of exactly the time that their URL says; other times
 * lead there with a redirect. Parts of pages are the newest that is not newer than the page, and say which
 * one that is (Content-Location, Memento-Datetime). Redirects, failures and revisits are replayed as what
 * they were. Documents are rewritten (web/rewrite/rewrite.h) so that their references lead into the archive,
 * unless "id_" asks for the bytes as they were received. What archived content may do in a browser is
 * wayback_safety.h.
 */
#ifndef MNEMON_REPLAY_WAYBACK_WAYBACK_H
#define MNEMON_REPLAY_WAYBACK_WAYBACK_H

#include "replay/site/replay.h"

enum { WAYBACK_ROUTES_MAX = 5 };

/* How many there are. */
size_t wayback_routes(struct replay *replay, struct http_route out[WAYBACK_ROUTES_MAX]);

#endif
