/*
 * crowd_graph - the views of all members of a crowd as a directed graph, and what can be said of it.
 *
 * Taken at one moment of a world. Members are up and not still joining: a node that waits for its contact's
 * first answer is not in the graph. Edges to nodes that are not up lead nowhere and are left out.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_CROWD_GRAPH_H
#define MNEMON_SIM_EXPERIMENTS_CROWD_GRAPH_H

#include "sim/experiments/crowd_world.h"

struct crowd_graph {
    uint32_t nodes_max;
    uint32_t nodes_count; /* members: 0 … nodes_count - 1 here */
    uint32_t edges_max;
    uint32_t *place_of;    /* [node of the world]: here, UINT32_MAX if it is down */
    uint32_t *first_edges; /* [node], and one more: where its edges begin */
    uint32_t *edges;       /* to which node */
    uint32_t edges_count;
    uint64_t dangling_count; /* edges that lead nowhere */

    uint32_t *components; /* [node]: the strongly connected component it is in */
    uint32_t components_count;
    uint32_t *scratch;
};

/* The share of the other nodes that are up which a node can reach along directed edges: 0 … 1. */
struct crowd_reach {
    double minimum;
    double mean;
};

struct crowd_degrees {
    double mean;
    double deviation; /* standard deviation of how many know a node */
    uint32_t minimum;
    uint32_t maximum;
};

enum err crowd_graph_init(struct crowd_graph *graph, const struct crowd_world *world) MUST_CHECK;
void crowd_graph_done(struct crowd_graph *graph);

/* As the world is now. */
void crowd_graph_take(struct crowd_graph *graph, const struct crowd_world *world);

/* Can everybody reach everybody: along the edges, or without regard to their direction? */
bool crowd_graph_is_strong(const struct crowd_graph *graph);
bool crowd_graph_is_connected(struct crowd_graph *graph);

/* 1 if fewer than two nodes are up. */
struct crowd_reach crowd_graph_reach(struct crowd_graph *graph);

struct crowd_degrees crowd_graph_degrees(struct crowd_graph *graph);

#endif
