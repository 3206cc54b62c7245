/*
 * copies_world_state - what the two files of copies_world share:
 *
 *      copies_world.c         the events, the nodes, their disks and lines, questions and answers
 *      copies_world_view.c    the ring as each node sees it, and what the machine of copies asks of that
 */
#ifndef MNEMON_SIM_EXPERIMENTS_COPIES_WORLD_STATE_H
#define MNEMON_SIM_EXPERIMENTS_COPIES_WORLD_STATE_H

#include "sim/experiments/copies_world.h"

uint32_t copies_world_index_of(const struct peer *peer);

/* The arc of a place and its holders, as the context, a struct copies_world_node, sees them. */
bool copies_world_know(void *context, struct ring_id place, struct holders_arc *ret_arc);

/* The functions of the ring for the machine of this node. */
void copies_world_put_view(struct copies_world_node *node, struct replicator_world *world);

#endif
