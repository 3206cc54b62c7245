/*
 * admin_api - does for replay/admin/admin_pages.h what only the node can: jobs, saves, and how the node is.
 */
#ifndef MNEMON_NODE_ADMIN_API_H
#define MNEMON_NODE_ADMIN_API_H

#include "node/admin/monitor.h"
#include "node/crawl/crawl_loop.h"
#include "node/crawl/save_requests.h"
#include "node/crowd/crowd_lookups.h"
#include "node/transport/transport.h"
#include "replay/admin/admin_pages.h"

struct group_driver;

/* The context of the table. All of it outlives the server; monitor is set before the first request. */
struct admin_api {
    const char *directory; /* of the data */
    struct crawl_loop *crawl_loop;
    struct save_requests *save_requests;
    struct transport *transport;
    struct group_driver *groups;
    struct crowd_lookups *crowd_lookups;
    struct monitor *monitor;

    /* Append what the services of the ring, the crowd and the mirrors say of themselves (docs/api.md). */
    void (*put_services)(void *services, const struct ring_view *view, struct json *json);
    void (*put_crowd)(void *services, struct buf *out);
    void (*put_mirrors)(void *services, struct buf *out);

    /* The part of it that pages show. */
    void (*view_services)(void *services, struct arena *arena, struct ring_view *view);
    void (*view_crowd)(void *services, struct arena *arena, struct crowd_view *ret_crowd);
    size_t (*list_mirrors)(void *services, struct arena *arena, struct mirror_view **ret_mirrors);
    void *services;
};

extern const struct admin_pages_table admin_api_table;

#endif
