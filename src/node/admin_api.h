/*
 * admin_api - does for replay/admin/admin_pages.h what only the node can: jobs, saves, and how the node is.
 */
#ifndef MNEMON_NODE_ADMIN_API_H
#define MNEMON_NODE_ADMIN_API_H

#include "net/port_mapper.h"
#include "node/admin/monitor.h"
#include "node/crawl/crawl_loop.h"
#include "node/crawl/save_requests.h"
#include "node/crowd/crowd_lookups.h"
#include "node/ring_services.h"
#include "node/transport/transport.h"
#include "replay/admin/admin_pages.h"

/* The context of the table. All of it outlives the server; monitor is set before the first request. */
struct admin_api {
    const char *directory; /* of the data */
    struct crawl_loop *crawl_loop;
    struct save_requests *save_requests;
    struct transport *transport;
    struct port_mapper *port_mapper; /* NULL: no port is to be mapped */
    struct crowd_lookups *crowd_lookups;
    struct monitor *monitor;
    struct ring_services *services;
};

extern const struct admin_pages_table admin_api_table;

#endif
