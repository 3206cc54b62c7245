/*
 * replay - the archive over HTTP: all its paths, put together.
 *
 *      wayback.h    /web/…              replay, calendar and list of a URL (pages.h draws them)
 *      memento.h    /web/timemap/…      TimeMaps; the TimeGate is /web/URL
 *      cdx.h        /cdx /cdx/search/cdx /wayback/available
 *      pages.h      / /list /details /compare /holdings    for people
 *      find.h       /search             full text
 *      desk.h       /save /jobs /dashboard /login /metrics /api/v1/…    what the node does, and may be told
 *      assets.h     /static/            style sheets and scripts, embedded in the program
 */
#ifndef MNEMON_REPLAY_REPLAY_H
#define MNEMON_REPLAY_REPLAY_H

#include "base/clock.h"
#include "replay/archive.h"
#include "replay/http_server.h"

struct search;
struct survey;
struct desk;

enum { REPLAY_KEY_SIZE = 33 }; /* with its zero byte */

/* What every handler gets as its context. All of it outlives the server. */
struct replay {
    struct archive *archive;
    struct search *search; /* NULL: full text is switched off */
    struct survey *survey; /* NULL: nobody counts what the archive holds */
    struct desk *desk;     /* NULL: nothing can be changed, as in tests of reading */
    const struct clock *clock;
    const char *title; /* of the archive, for its pages; "mnemon" */
    /* Where readers of a SURT of which nothing is here are led to, an origin that is appended; false:
     * nowhere. Any thread; may wait for other nodes. NULL: they are led nowhere, and what others have is
     * fetched. */
    bool (*lead)(void *context, struct bytes surt, struct buf *out);
    void *lead_context;
    /* Of what its operator should know, a line each; any thread; NULL: nobody is told. */
    void (*tell)(void *context, const char *sentence);
    void *tell_context;
    char frame_key[REPLAY_KEY_SIZE]; /* made by wayback_routes(): replay/wayback_safety.h */
};

enum { REPLAY_ROUTES_MAX = 80 };

/* Fill in the routes of all modules; how many there are. */
size_t replay_routes(struct replay *replay, struct http_route out[REPLAY_ROUTES_MAX]);

#endif
