/*
 * replica_exchange - the tasks of a keeper in a world of replicas: comparisons and the transfers that follow
 * from them, challenges, releases.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_REPLICA_EXCHANGE_H
#define MNEMON_SIM_EXPERIMENTS_REPLICA_EXCHANGE_H

#include "sim/experiments/replica_world.h"

/* Do what the node's keeper asks for. What takes time is reported to the keeper at its end. */
void replica_exchange_begin(struct replica_world *world, uint32_t owner, const struct copy_plan_task *task);

/* A transfer has ended. */
void replica_exchange_arrive(struct replica_world *world, uint32_t index);

/* The node goes down, or loses its disk: its exchanges end. What arrived of an object stays. */
void replica_exchange_cut(struct replica_world *world, uint32_t node);

#endif
