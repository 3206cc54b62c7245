/* topology_state - the generators behind topology_make(). For topology*.c only. */
#ifndef MNEMON_PROTOCOL_GROUP_TOPOLOGY_STATE_H
#define MNEMON_PROTOCOL_GROUP_TOPOLOGY_STATE_H

#include "protocol/group/topology.h"

void topology_make_tree(uint32_t k, const struct costs *costs, struct topology_work *work,
                        struct graph *ret_graph);

void topology_make_sparse(uint32_t k, uint32_t degree_max, const struct costs *costs,
                          struct topology_work *work, struct graph *ret_graph);

#endif
