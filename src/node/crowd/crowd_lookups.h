/*
 * crowd_lookups - what /api/v1/crowd/locate asks for: a few threads that wait for the crowd, so that no
 * thread of the HTTP server does.
 */
#ifndef MNEMON_NODE_CROWD_CROWD_LOOKUPS_H
#define MNEMON_NODE_CROWD_CROWD_LOOKUPS_H

#include "base/err.h"
#include "node/crowd/crowd_parts.h"
#include "replay/admin/admin_pages.h"

struct access;
struct crowd_lookups;

enum { CROWD_LOOKUPS_THREADS_COUNT = 4, CROWD_LOOKUPS_WAITING_MAX = 256 };

/* ERR_MEMORY, ERR_SYSTEM. */
enum err crowd_lookups_start(const struct crowd_parts *crowd, struct access *access,
                             struct crowd_lookups **ret_crowd_lookups) MUST_CHECK;

/* Lookups that wait get ERR_CANCELLED, later ones ERR_BUSY. Before the services of the ring end. */
void crowd_lookups_stop(struct crowd_lookups *lookups);
void crowd_lookups_free(struct crowd_lookups *lookups); /* when nobody asks any more */

/* Any thread: find->done() follows. */
void crowd_lookups_ask(struct crowd_lookups *lookups, struct admin_pages_find *find);

#endif
