/*
 * routes - the archive over HTTP: all its paths, put together.
 *
 *      wayback.h       /web/…                      replay, calendar and list of a URL (pages.h draws them)
 *      memento.h       /web/timemap/…              TimeMaps; the TimeGate is /web/URL
 *      cdx.h           /cdx /cdx/search/cdx /wayback/available
 *      pages.h         / /list /details /compare /holdings      for people
 *      find.h          /search                     full text
 *      admin_pages.h   /save /jobs /dashboard /login /metrics /api/v1/…   the node, for its operator
 *      assets.h        /static/                    style sheets and scripts, embedded in the program
 */
#ifndef MNEMON_REPLAY_ROUTES_H
#define MNEMON_REPLAY_ROUTES_H

#include "replay/site/replay.h"

enum { ROUTES_MAX = 80 };

/* Fill in the routes of all modules; how many there are. */
size_t routes_fill(struct replay *replay, struct http_route out[ROUTES_MAX]);

#endif
