/*
 * replay - what every handler of the archive's paths gets as its context (replay/routes.h lists the paths).
 */
#ifndef MNEMON_REPLAY_SITE_REPLAY_H
#define MNEMON_REPLAY_SITE_REPLAY_H

#include "base/clock.h"
#include "http/message/status.h"
#include "http/server/http_request.h"
#include "http/server/http_server.h"
#include "replay/archive/archive.h"

struct rewritten;
struct search;
struct search_job;
struct search_ring_report;
struct survey;
struct admin_pages;

enum { REPLAY_KEY_SIZE = 33, REPLAY_NODE_KEY_SIZE = 53 }; /* with their zero bytes */

/* All of it outlives the server. */
struct replay {
    struct archive *archive;
    struct search *search;           /* NULL: full text is switched off */
    struct survey *survey;           /* NULL: nobody counts what the archive holds */
    struct rewritten *rewritten;     /* documents that were rewritten before; NULL: none is kept */
    struct admin_pages *admin_pages; /* NULL: nothing can be changed, as in tests of reading */
    const struct clock *clock;
    const char *title;                   /* of the archive, for its pages; "mnemon" */
    char node_key[REPLAY_NODE_KEY_SIZE]; /* by which nodes sign, as text; empty: it has none */
    /* Where readers of a SURT of which nothing is here are led to, an origin that is appended; false:
     * nowhere. Any thread; may wait for other nodes. NULL: they are led nowhere, and what others have is
     * fetched. */
    bool (*lead)(void *context, struct bytes surt, struct buf *out);
    /* With the same context: how many captures the ring has, about (0: not known), if other nodes may have
     * some that are not here; false: there are none. Any thread. NULL: there is no ring. */
    bool (*count_ring)(void *context, uint64_t *ret_count);
    /* Likewise: as search_ask(), of the whole ring, with what was searched. ERR_NOT_FOUND: there are no other
     * nodes; ERR_UNREACHABLE: they cannot be asked yet; ERR_BUSY: too many wait already. NULL: no ring. */
    enum err (*search_ring)(void *context, struct search_job *job, struct search_ring_report *report);
    void *lead_context;
    /* Tells the operator something, a line each; any thread; NULL: nobody is told. */
    void (*tell)(void *context, const char *sentence);
    void *tell_context;
    char frame_key[REPLAY_KEY_SIZE]; /* made by wayback_routes(): replay/wayback/wayback_safety.h */
};

/* Routes of a module, with the replay as their context. Returns how many there are. */
static inline size_t replay_put_routes(struct replay *replay, const struct http_route *routes, size_t count,
                                       struct http_route *out) {
    for (size_t i = 0; i < count; i++) {
        out[i] = routes[i];
        out[i].context = replay;
    }
    return count;
}

/* All of the target behind the route's path: the query belongs to the URL that it names. */
static inline struct bytes replay_target(const struct http_request *request) {
    struct bytes rest = http_request_rest(request);
    struct bytes query = http_request_query(request);
    return query.data == NULL ? rest : bytes_of(rest.data, (size_t)(query.data + query.size - rest.data));
}

#endif
