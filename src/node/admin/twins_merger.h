/*
 * twins_merger - merges what an outage of a volume has left stored twice (store/instance/twins.h), while the
 * node runs.
 *
 * On a thread of its own, behind everybody else: every few seconds it looks whether something was stored
 * while a volume was down, by this node or a command on its directory, and whether all volumes are up again.
 * Only then does it walk over the archive.
 */
#ifndef MNEMON_NODE_ADMIN_TWINS_MERGER_H
#define MNEMON_NODE_ADMIN_TWINS_MERGER_H

#include "store/instance/instance.h"

struct twins_merger;

/* note: tells the operator what was done; its thread. ERR_MEMORY, ERR_SYSTEM. */
enum err twins_merger_start(struct instance *instance, void (*note)(void *context, const char *sentence),
                            void *context, struct twins_merger **ret_merger) MUST_CHECK;

/* What is under way is cut off; the next node goes on with it. May be NULL. */
void twins_merger_stop(struct twins_merger *merger);

#endif
