/* Bridges, articulation points and k-connectivity: graph.h. */
#include "protocol/group/graph.h"

enum { NOBODY = GRAPH_NODES_MAX };

/*
 * A walk in depth that numbers nodes as it finds them. `low` is the smallest number that is reached from a
 * node or from what was found behind it, by one edge beside the walk (Tarjan). What was found behind a node
 * and reaches nothing before it hangs on that node alone.
 */
struct walk {
    const struct graph *graph;
    uint32_t found_count;
    uint32_t numbers[GRAPH_NODES_MAX]; /* from 1 on; 0: not found yet */
    uint32_t lows[GRAPH_NODES_MAX];
    uint32_t parents[GRAPH_NODES_MAX];
    uint32_t next[GRAPH_NODES_MAX]; /* where to go on among the node's neighbours */
    struct graph_set articulations;
    uint32_t bridges_count;
};

static void enter(struct walk *walk, uint32_t node, uint32_t parent) {
    walk->numbers[node] = ++walk->found_count;
    walk->lows[node] = walk->numbers[node];
    walk->parents[node] = parent;
}

/* Back from a child to a node that is not the start of the walk. */
static void leave(struct walk *walk, uint32_t node, uint32_t child) {
    walk->lows[node] = walk->lows[child] < walk->lows[node] ? walk->lows[child] : walk->lows[node];
    walk->bridges_count += walk->lows[child] > walk->numbers[node];
    if (walk->parents[node] != NOBODY && walk->lows[child] >= walk->numbers[node]) {
        graph_set_add(&walk->articulations, node);
    }
}

/* All that can be reached from start. */
static void walk_from(struct walk *walk, uint32_t start) {
    uint32_t children_count = 0; /* of the start: with two of them, it holds them together */
    uint32_t node = start;
    enter(walk, start, NOBODY);
    while (node != NOBODY) {
        uint32_t other = graph_set_next(&walk->graph->neighbours[node], walk->next[node]);
        if (other == GRAPH_NODES_MAX) {
            uint32_t parent = walk->parents[node];
            if (parent != NOBODY) {
                leave(walk, parent, node);
                children_count += parent == start;
            }
            node = parent;
            continue;
        }
        walk->next[node] = other + 1;
        if (walk->numbers[other] == 0) {
            enter(walk, other, node);
            node = other;
        } else if (other != walk->parents[node] && walk->numbers[other] < walk->lows[node]) {
            walk->lows[node] = walk->numbers[other];
        }
    }
    if (children_count > 1) {
        graph_set_add(&walk->articulations, start);
    }
}

struct graph_weakness graph_weakness(const struct graph *graph) {
    struct walk walk = {.graph = graph};
    for (uint32_t node = 0; node < graph->nodes_count; node++) {
        if (walk.numbers[node] == 0) {
            walk_from(&walk, node);
        }
    }
    return (struct graph_weakness){.bridges_count = walk.bridges_count,
                                   .articulations_count = graph_set_count(&walk.articulations)};
}

/*
 * If fewer than k nodes held others apart, one of the first k nodes would not be among them, and would be
 * apart from some node that it is not joined to: so those pairs are all that must be looked at.
 */
bool graph_is_k_connected(const struct graph *graph, uint32_t k) {
    if (graph->nodes_count <= k) {
        return false;
    }
    if (k == 0) {
        return true;
    }
    if (k <= 2) {
        return graph_is_connected(graph) && (k == 1 || graph_weakness(graph).articulations_count == 0);
    }
    for (uint32_t a = 0; a < k; a++) {
        for (uint32_t b = 0; b < graph->nodes_count; b++) {
            if (a != b && !graph_is_joined(graph, a, b) && graph_paths(graph, NULL, a, b, k) < k) {
                return false;
            }
        }
    }
    return true;
}
