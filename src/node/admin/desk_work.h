/*
 * desk_work - does for replay/admin/desk.h what only the node can: jobs, saves, and how the node is.
 */
#ifndef MNEMON_NODE_ADMIN_DESK_WORK_H
#define MNEMON_NODE_ADMIN_DESK_WORK_H

#include "node/admin/pulse.h"
#include "node/crawl/crawl_loop.h"
#include "node/crawl/saves.h"
#include "node/crowd/crowd_lookups.h"
#include "node/together.h"
#include "node/transport/transport.h"
#include "replay/admin/desk.h"

/* The context of the table. All of it outlives the server; pulse is set before the first request. */
struct desk_work {
    const char *directory; /* of the data */
    struct crawl_loop *crawl_loop;
    struct saves *saves;
    struct transport *transport;
    struct together *together;
    struct crowd_lookups *crowd_lookups;
    struct pulse *pulse;
};

extern const struct desk_table desk_work_table;

#endif
