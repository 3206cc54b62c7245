/*
 * memento - RFC 7089: TimeMaps of all captures of a URL, and the links that go with a memento.
 *
 *      /web/timemap/link/URL     application/link-format
 *      /web/timemap/json/URL     one object
 *      /web/timemap/cdx/URL      lines as /cdx/search/cdx writes them
 *      /web/timemap/cdxj/URL     lines as /cdx writes them
 *
 * A TimeMap holds up to MEMENTO_PAGE_MAX captures; if there are more, its last link leads to the next page
 * ("/web/timemap/link/TIME/URL": from that time on). It is written while it is sent, and no more of it is
 * held in memory than a few captures. The TimeGate is /web/URL (wayback.c).
 */
#ifndef MNEMON_REPLAY_WAYBACK_MEMENTO_H
#define MNEMON_REPLAY_WAYBACK_MEMENTO_H

#include "replay/site/replay.h"

enum { MEMENTO_ROUTES_MAX = 5, MEMENTO_PAGE_MAX = 100000 };

/* How many there are. */
size_t memento_routes(struct replay *replay, struct http_route out[MEMENTO_ROUTES_MAX]);

/*
 * Add the Link header: original, timegate and timemap; and if capture is not NULL, the first, previous,
 * this, next and last memento. work is cleared and used. URLs that would make the header too long are left
 * out.
 */
enum err memento_add_links(struct http_request *request, struct archive_reader *reader, struct bytes url,
                           const struct capture *capture, struct buf *work) MUST_CHECK;

/* Add Memento-Datetime. */
void memento_add_datetime(struct http_request *request, int64_t time_us);

#endif
