/*
 * group_rivals - other ways to make an update topology, to compare those of protocol/group/topology.h with.
 *
 *      ring        a Hamiltonian cycle in random order: what is configured without any measurement
 *      annealed    simulated annealing of cost and diameter, as flood-d's first generator did. The paper
 *                  gives neither moves nor weights. Ours: edges come, go and change an end; a hop of
 *                  diameter is worth a twentieth of the cost of the paper's tree, a bridge or articulation
 *                  point a fifth; 10,000 steps from a random ring on.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_GROUP_RIVALS_H
#define MNEMON_SIM_EXPERIMENTS_GROUP_RIVALS_H

#include "base/prng.h"
#include "protocol/group/costs.h"

/* At least three members. */
void group_rivals_make_ring(uint32_t members_count, struct prng *prng, struct graph *ret_graph);

/* cost_us: of the paper's tree, which everything is weighed against; not 0. At least three members. */
void group_rivals_anneal(const struct costs *costs, uint64_t cost_us, struct prng *prng,
                         struct graph *ret_graph);

#endif
