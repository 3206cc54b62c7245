/*
 * route - which node fetches and keeps a URL. A node of a ring keeps only a part of the URLs that it finds;
 * the rest goes to others.
 *
 *      ROUTE_FETCH       ours: into the frontier, to be fetched
 *      ROUTE_ELSEWHERE   ours to keep, but another node fetches it: into the frontier, known and not waiting
 *      ROUTE_AWAY        not ours at all
 *
 * Whatever the verdict, a link that the ring shares goes to all its other holders too: it is put into the
 * outgoing links of the frontier (frontier.h) in the same batch as the page that it was found in, in the
 * order of positions, and stays there until they have it.
 *
 * Without a route (NULL) everything is ROUTE_FETCH and nothing is outgoing. docs/decisions/0011.
 */
#ifndef MNEMON_CRAWL_RULES_ROUTE_H
#define MNEMON_CRAWL_RULES_ROUTE_H

#include "base/bytes.h"

enum { ROUTE_POSITION_SIZE = 16 };

enum route_verdict { ROUTE_FETCH, ROUTE_ELSEWHERE, ROUTE_AWAY };

struct route {
    /* Any thread, without waiting. *ret_place: the position of the URL, for the order of outgoing links. */
    enum route_verdict (*ask)(void *context, struct bytes url, uint8_t ret_place[ROUTE_POSITION_SIZE]);
    /* Any thread, without waiting: may the ring archive it at all? NULL: anything. */
    bool (*allows)(void *context, struct bytes url);
    /* Any thread: there are outgoing links in the frontier of that job. */
    void (*outgoing)(void *context, const char *job);
    /* Any thread: several nodes fetch each URL, so that a capture counts only if this node made it. NULL:
     * any counts. */
    bool (*wants_own)(void *context);
    void *context;
};

#endif
