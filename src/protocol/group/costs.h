/*
 * costs - what it costs to bring an update from one member of a group to another: the master's matrix.
 *
 * A cost is a time in microseconds: delay + size / bandwidth, for a reference size
 * (protocol/group/estimate.h). What a member reports about another is kept by direction; an edge carries
 * updates either way, so it costs what the dearer direction does, or what the only known one does. Unknown is
 * the dearest of all.
 *
 * 256 KB, in the caller's memory.
 */
#ifndef MNEMON_PROTOCOL_GROUP_COSTS_H
#define MNEMON_PROTOCOL_GROUP_COSTS_H

#include "protocol/group/graph.h"

static const uint32_t COSTS_UNKNOWN_US = UINT32_MAX;
static const uint32_t COSTS_US_MAX = UINT32_MAX - 1; /* 71 minutes */

struct costs {
    uint32_t members_count;
    uint32_t us[GROUP_MEMBERS_MAX][GROUP_MEMBERS_MAX]; /* [who reports][about whom] */
};

/* Nothing is known. */
void costs_init(struct costs *costs, uint32_t members_count);

/* COSTS_UNKNOWN_US takes a report back. */
void costs_set(struct costs *costs, uint32_t from, uint32_t to, uint32_t cost_us);

/* The cost of the edge between the two, whichever is named first. */
uint32_t costs_of_edge(const struct costs *costs, uint32_t a, uint32_t b);

/* ---- of a whole graph ---- */

/* The sum over its edges; unknown ones count as UINT32_MAX each, and are counted (may be NULL). */
uint64_t costs_of_graph(const struct costs *costs, const struct graph *graph, uint32_t *ret_unknown_count);

/*
 * How long until the last member has an update that begins at `from`, if each hands it on to all its
 * neighbours at once as soon as it has all of it, and the costs are those of the update's size. UINT64_MAX
 * if it does not reach everybody over known edges.
 */
uint64_t costs_propagation_us(const struct costs *costs, const struct graph *graph, uint32_t from);

/* ---- edges in order ---- */

/*
 * All edges of the complete graph, cheapest first, as cost << 32 | lot << 16 | a << 8 | b with a < b. The lot
 * decides between equal costs: fixed for a pair, but without pattern, because equal costs (all unknown, at
 * the start) taken in the order of members would make the last one the hub of all. Returns how many there
 * are.
 */
uint32_t costs_sort_edges(const struct costs *costs, uint64_t out[GRAPH_EDGES_MAX]);

static inline uint32_t costs_edge_a(uint64_t edge) {
    return (uint32_t)(edge >> 8 & 0xff);
}

static inline uint32_t costs_edge_b(uint64_t edge) {
    return (uint32_t)(edge & 0xff);
}

#endif
