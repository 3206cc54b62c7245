/*
 * desk_work - does for replay/admin/desk.h what only the node can: jobs, saves, and how the node is.
 */
#ifndef MNEMON_NODE_ADMIN_DESK_WORK_H
#define MNEMON_NODE_ADMIN_DESK_WORK_H

#include "node/admin/pulse.h"
#include "node/crawl/crawling.h"
#include "node/crawl/saves.h"
#include "node/crowd/locating.h"
#include "node/together.h"
#include "node/transport/ringing.h"
#include "replay/admin/desk.h"

/* The context of the table. All of it outlives the server; pulse is set before the first request. */
struct desk_work {
    const char *directory; /* of the data */
    struct crawling *crawling;
    struct saves *saves;
    struct ringing *ringing;
    struct together *together;
    struct locating *locating;
    struct pulse *pulse;
};

extern const struct desk_table desk_work_table;

#endif
