/*
 * locating - what /api/v1/crowd/locate asks for: a few threads that wait for the crowd, so that no thread of
 * the HTTP server does.
 */
#ifndef MNEMON_NODE_CROWD_LOCATING_H
#define MNEMON_NODE_CROWD_LOCATING_H

#include "node/together.h"
#include "replay/admin/desk.h"

struct access;
struct locating;

enum { LOCATING_THREADS_COUNT = 4, LOCATING_WAITING_MAX = 256 };

/* ERR_MEMORY, ERR_SYSTEM. */
enum err locating_start(struct together *together, struct access *access,
                        struct locating **ret_locating) MUST_CHECK;

/* Those who wait, and all who come later, get ERR_CANCELLED. Before the parts of together end. */
void locating_stop(struct locating *locating);
void locating_free(struct locating *locating); /* when nobody asks any more */

/* Any thread: find->done() follows. */
void locating_ask(struct locating *locating, struct desk_find *find);

#endif
