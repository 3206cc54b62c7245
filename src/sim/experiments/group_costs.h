/*
 * group_costs - made-up groups for experiments: what members of them would measure.
 *
 *      sites       members at sites of about five, sites on three continents. At a site 0.2 to 1 ms and
 *                  5 to 10 MB/s; on a continent 10 to 60 ms and 0.2 to 1 MB/s; overseas 80 to 250 ms and
 *                  50 to 200 KB/s. One member in ten is behind a modem of 28.8 kbit/s, whatever lies beyond.
 *      plane       members anywhere in a square, costs are distances: nothing special about it
 *      random      costs are drawn evenly, each for itself: nobody is near anybody
 *
 * Two members of two sites see nearly what others of the same sites see, within a tenth.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_GROUP_COSTS_H
#define MNEMON_SIM_EXPERIMENTS_GROUP_COSTS_H

#include "base/prng.h"
#include "protocol/group/costs.h"

enum group_costs_world { GROUP_COSTS_SITES, GROUP_COSTS_PLANE, GROUP_COSTS_RANDOM };

/* The costs of an update of ESTIMATE_SIZE_REFERENCE bytes. Equal in both directions; all are known. */
void group_costs_make(enum group_costs_world world, struct prng *prng, uint32_t members_count,
                      struct costs *ret_costs);

#endif
