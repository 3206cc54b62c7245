/*
 * graph - who is joined to whom, as one bit for each pair: what update topologies are made of and judged by.
 *
 * Nodes are numbers from 0 on, edges have no direction, nobody is joined to itself. 8 KB, in the caller's
 * memory. A set of nodes is four words, so "all neighbours of all these" is a few instructions; everything
 * here is fast enough to be asked some ten thousand times for a topology of 256 members.
 */
#ifndef MNEMON_PROTOCOL_GROUP_GRAPH_H
#define MNEMON_PROTOCOL_GROUP_GRAPH_H

#include "base/peer.h"

enum {
    GROUP_MEMBERS_MAX = 256, /* estimates grow as the square: larger groups are split, with corner replicas */
    GRAPH_NODES_MAX = GROUP_MEMBERS_MAX,
    GRAPH_WORDS_COUNT = GRAPH_NODES_MAX / 64,
    GRAPH_EDGES_MAX = GRAPH_NODES_MAX * (GRAPH_NODES_MAX - 1) / 2,
};
static const uint32_t GRAPH_APART = UINT32_MAX; /* the distance of nodes that no path joins */

struct graph_set {
    uint64_t words[GRAPH_WORDS_COUNT];
};

struct graph {
    uint32_t nodes_count;
    struct graph_set neighbours[GRAPH_NODES_MAX]; /* symmetric; without the node itself */
};

/* ---- sets ---- */

static inline bool graph_set_has(const struct graph_set *set, uint32_t node) {
    return (set->words[node / 64] >> node % 64 & 1) != 0;
}

static inline void graph_set_add(struct graph_set *set, uint32_t node) {
    set->words[node / 64] |= UINT64_C(1) << node % 64;
}

static inline void graph_set_remove(struct graph_set *set, uint32_t node) {
    set->words[node / 64] &= ~(UINT64_C(1) << node % 64);
}

uint32_t graph_set_count(const struct graph_set *set);

/* Those in both. */
static inline struct graph_set graph_set_common(const struct graph_set *a, const struct graph_set *b) {
    struct graph_set common;
    for (uint32_t i = 0; i < GRAPH_WORDS_COUNT; i++) {
        common.words[i] = a->words[i] & b->words[i];
    }
    return common;
}

/* The first member that is not below `from`; GRAPH_NODES_MAX if there is none. */
static inline uint32_t graph_set_next(const struct graph_set *set, uint32_t from) {
    for (uint32_t word = from / 64; word < GRAPH_WORDS_COUNT; word++) {
        uint64_t bits = set->words[word];
        bits &= word == from / 64 ? UINT64_MAX << from % 64 : UINT64_MAX;
        if (bits != 0) {
            return word * 64 + (uint32_t)__builtin_ctzll(bits);
        }
    }
    return GRAPH_NODES_MAX;
}

/* ---- edges ---- */

/* nodes_count: 1 to GRAPH_NODES_MAX. */
void graph_init(struct graph *graph, uint32_t nodes_count);
void graph_init_complete(struct graph *graph, uint32_t nodes_count);

void graph_join(struct graph *graph, uint32_t a, uint32_t b);
void graph_part(struct graph *graph, uint32_t a, uint32_t b);

static inline bool graph_is_joined(const struct graph *graph, uint32_t a, uint32_t b) {
    return graph_set_has(&graph->neighbours[a], b);
}

static inline uint32_t graph_degree(const struct graph *graph, uint32_t node) {
    return graph_set_count(&graph->neighbours[node]);
}

uint32_t graph_edges_count(const struct graph *graph);

/* ---- distances, in hops ---- */

/*
 * The nodes at distance 0, 1, 2 … of `from` into levels[], by ways that lead through `relays` only (NULL: all
 * nodes are). Returns the distance of the farthest; GRAPH_APART if somebody is farther than hops_max, and
 * then levels[] holds hops_max + 1 levels all the same.
 */
uint32_t graph_levels(const struct graph *graph, const struct graph_set *relays, uint32_t from,
                      uint32_t hops_max, struct graph_set *levels);

/* The greatest distance of any two; GRAPH_APART if some are not joined by a path. */
uint32_t graph_diameter(const struct graph *graph);

bool graph_is_connected(const struct graph *graph);

/* ---- what failures do ---- */

struct graph_weakness {
    uint32_t bridges_count;       /* edges without which it falls apart */
    uint32_t articulations_count; /* nodes without which the others fall apart */
};

/* If the graph is in several parts: of all of them together. */
struct graph_weakness graph_weakness(const struct graph *graph);

/*
 * How many paths lead from a to b, a != b, that share no node in between, if all nodes in between are
 * `relays` (NULL: all nodes are); counting ends at paths_max.
 */
uint32_t graph_paths(const struct graph *graph, const struct graph_set *relays, uint32_t a, uint32_t b,
                     uint32_t paths_max);

/* Does it stay in one piece whichever k - 1 nodes fail? False if it has not more than k nodes. Exact. */
bool graph_is_k_connected(const struct graph *graph, uint32_t k);

#endif
