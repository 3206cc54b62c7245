/* The paper's generator (flood-d, section 3.3): topology.h. */
#include "protocol/group/topology_state.h"

/* Kruskal: the cheapest edge that joins two parts, until there is one. */
static void span(const uint64_t *edges, uint32_t edges_count, struct graph *graph) {
    uint8_t parts[GRAPH_NODES_MAX];
    for (uint32_t node = 0; node < GRAPH_NODES_MAX; node++) {
        parts[node] = (uint8_t)node;
    }
    for (uint32_t i = 0; i < edges_count; i++) {
        uint32_t a = costs_edge_a(edges[i]);
        uint32_t b = costs_edge_b(edges[i]);
        uint8_t merged = parts[b];
        if (parts[a] == merged) {
            continue;
        }
        graph_join(graph, a, b);
        for (uint32_t node = 0; node < graph->nodes_count; node++) {
            parts[node] = parts[node] == merged ? parts[a] : parts[node];
        }
    }
}

/* The node's cheapest edges, until it has k. */
static void fill(const uint64_t *edges, uint32_t edges_count, uint32_t node, uint32_t k,
                 struct graph *graph) {
    uint32_t degree = graph_degree(graph, node);
    for (uint32_t i = 0; i < edges_count && degree < k; i++) {
        uint32_t a = costs_edge_a(edges[i]);
        uint32_t b = costs_edge_b(edges[i]);
        if ((a == node || b == node) && !graph_is_joined(graph, a, b)) {
            graph_join(graph, a, b);
            degree++;
        }
    }
}

void topology_make_tree(uint32_t k, const struct costs *costs, struct topology_work *work,
                        struct graph *ret_graph) {
    graph_init(ret_graph, costs->members_count);
    uint32_t edges_count = costs_sort_edges(costs, work->edges);
    span(work->edges, edges_count, ret_graph);
    for (uint32_t node = 0; node < costs->members_count; node++) {
        fill(work->edges, edges_count, node, k, ret_graph);
    }
}
