/*
 * status - /api/v1/status: what a node does, as JSON. docs/api.md describes each member.
 */
#ifndef MNEMON_NODE_ADMIN_STATUS_H
#define MNEMON_NODE_ADMIN_STATUS_H

#include "node/admin/bottlenecks.h"

struct status_facts {
    struct bottlenecks_facts why;
    const char *title;
    uint64_t started_us; /* monotonic */
    const struct http_route *routes;
    size_t routes_count;
    struct http_server *http; /* NULL: not yet there */
};

void status_put(const struct status_facts *facts, struct buf *out);

/* What kind of page a route is, for people and for labels: "web", "cdx", "api" … */
struct bytes status_page_of(const char *route_path);

#endif
