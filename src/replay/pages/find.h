/*
 * find - full-text search over the archived pages, for people and programs (replay/search/search.h).
 *
 *      GET /search?q=&host=&from=&to=&page=                   a page, which needs no script
 *      GET /api/v1/search?q=&host=&from=&to=&offset=&limit=   JSON
 *
 * from and to are 1 to 14 digits or an ISO date: "2026", "20260131", "2026-01-31". A request waits without a
 * thread while its question is answered.
 */
#ifndef MNEMON_REPLAY_PAGES_FIND_H
#define MNEMON_REPLAY_PAGES_FIND_H

#include "replay/site/replay.h"

enum { FIND_ROUTES_MAX = 4 };

/* How many there are. */
size_t find_routes(struct replay *replay, struct http_route out[FIND_ROUTES_MAX]);

#endif
