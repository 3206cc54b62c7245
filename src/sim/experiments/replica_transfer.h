/*
 * replica_transfer - objects on the lines between the nodes of a world of replicas, as
 * protocol/copies/transfer_order.h has it.
 *
 * A node receives one object at a time and sends one at a time, each at the full rate of its line. An
 * exchange that finds something missing waits until its receiver takes nothing else and a node that has the
 * object gives nothing else: the other of the two, or if that one is busy another holder.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_REPLICA_TRANSFER_H
#define MNEMON_SIM_EXPERIMENTS_REPLICA_TRANSFER_H

#include "sim/experiments/replica_world.h"

/* How many objects of the arc one of the two has and the other has not, unless they come from somebody else.
 * What the owner's own disk has no room for is no reason to stay: nothing would come of it. *ret_takes: of
 * the first one, that the owner lacks it. */
uint64_t replica_transfer_missing(const struct replica_world *world, const struct replica_exchange *exchange,
                                  bool *ret_takes);

bool replica_transfer_is_full(const struct replica_world *world, uint32_t node);

/* Does somebody send it to the node already? */
bool replica_transfer_is_coming(const struct replica_world *world, uint32_t node, uint32_t object);

/* An exchange begins, and waits; false: there are too many. Then see which ones can go on. */
bool replica_transfer_open(struct replica_world *world, const struct replica_exchange *meant);

/* It leaves the lines, and what came of its object stays; or it ends. What it leaves is free for others:
 * replica_transfer_go_on(). */
void replica_transfer_pause(struct replica_world *world, uint32_t index);
void replica_transfer_close(struct replica_world *world, uint32_t index);

/* Lines of the node may be free: what waits for them begins. */
void replica_transfer_go_on(struct replica_world *world, uint32_t node);

#endif
