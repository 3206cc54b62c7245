/*
 * status - fills what the pages of the operator show of a node (replay/admin/node_status.h).
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

/* In the arena; it borrows the title and the routes too. NULL: no memory. */
const struct node_status *status_fill(const struct status_facts *facts, struct arena *arena);

/* What kind of page a route is, for people and for labels: "web", "cdx", "api" … */
struct bytes status_page_of(const char *route_path);

#endif
