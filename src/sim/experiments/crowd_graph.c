#include "sim/experiments/crowd_graph.h"

#include <stdlib.h>

#include "base/assert.h"

static const uint32_t NOBODY = UINT32_MAX;

/* Pieces of graph->scratch, each as long as there are nodes. */
enum scratch_piece { SCRATCH_FIRST, SCRATCH_SECOND, SCRATCH_THIRD, SCRATCH_FOURTH, SCRATCH_PIECES_COUNT };

static uint32_t *piece(const struct crowd_graph *graph, enum scratch_piece which) {
    return &graph->scratch[(size_t)which * (graph->nodes_max + 1)];
}

enum err crowd_graph_init(struct crowd_graph *graph, const struct crowd_world *world) {
    size_t nodes_max = world->nodes_count;
    size_t edges_max = nodes_max * world->config.view_size;
    *graph = (struct crowd_graph){.nodes_max = (uint32_t)nodes_max, .edges_max = (uint32_t)edges_max};
    graph->place_of = calloc(nodes_max, sizeof *graph->place_of);
    graph->first_edges = calloc(nodes_max + 1, sizeof *graph->first_edges);
    graph->edges = calloc(edges_max, sizeof *graph->edges);
    graph->components = calloc(nodes_max, sizeof *graph->components);
    graph->scratch = calloc((nodes_max + 1) * SCRATCH_PIECES_COUNT, sizeof *graph->scratch);
    bool is_made = graph->place_of != NULL && graph->first_edges != NULL && graph->edges != NULL &&
                   graph->components != NULL && graph->scratch != NULL;
    return is_made ? ERR_OK : ERR_MEMORY;
}

void crowd_graph_done(struct crowd_graph *graph) {
    free(graph->place_of);
    free(graph->first_edges);
    free(graph->edges);
    free(graph->components);
    free(graph->scratch);
    *graph = (struct crowd_graph){0};
}

/* ---- strongly connected components: Tarjan's, with a stack of its own ---- */

struct tarjan {
    struct crowd_graph *graph;
    uint32_t *numbers; /* [node]: when it was first seen, from 1; 0: not yet */
    uint32_t *lowest;  /* [node]: the least number that it leads back to; NOBODY: its component is done */
    uint32_t *path;    /* nodes whose component is not done */
    uint32_t *calls;   /* nodes whose edges are being followed; each one's next edge: graph_see() */
    uint32_t path_count;
    uint32_t calls_count;
    uint32_t seen_count;
};

static void graph_see(struct tarjan *tarjan, uint32_t node) {
    tarjan->numbers[node] = ++tarjan->seen_count;
    tarjan->lowest[node] = tarjan->seen_count;
    tarjan->path[tarjan->path_count++] = node;
    tarjan->calls[tarjan->calls_count++] = node;
    tarjan->graph->components[node] = tarjan->graph->first_edges[node]; /* meanwhile: its next edge */
}

static void finish_component(struct tarjan *tarjan, uint32_t root) {
    uint32_t node;
    do {
        node = tarjan->path[--tarjan->path_count];
        tarjan->lowest[node] = NOBODY;
        tarjan->graph->components[node] = tarjan->graph->components_count;
    } while (node != root);
    tarjan->graph->components_count++;
}

static void lower(struct tarjan *tarjan, uint32_t node, uint32_t number) {
    tarjan->lowest[node] = number < tarjan->lowest[node] ? number : tarjan->lowest[node];
}

/* The next edge of the node on top of the calls, or its return. */
static void graph_advance(struct tarjan *tarjan) {
    struct crowd_graph *graph = tarjan->graph;
    uint32_t node = tarjan->calls[tarjan->calls_count - 1];
    if (graph->components[node] < graph->first_edges[node + 1]) {
        uint32_t other = graph->edges[graph->components[node]++];
        if (tarjan->numbers[other] == 0) {
            graph_see(tarjan, other);
        } else if (tarjan->lowest[other] != NOBODY) {
            lower(tarjan, node, tarjan->numbers[other]);
        }
        return;
    }
    uint32_t lowest = tarjan->lowest[node];
    if (lowest == tarjan->numbers[node]) {
        finish_component(tarjan, node);
    }
    if (--tarjan->calls_count > 0) {
        lower(tarjan, tarjan->calls[tarjan->calls_count - 1], lowest);
    }
}

/* Numbered in an order in which edges lead only to components with lower numbers. */
static void find_components(struct crowd_graph *graph) {
    struct tarjan tarjan = {
        .graph = graph,
        .numbers = piece(graph, SCRATCH_FIRST),
        .lowest = piece(graph, SCRATCH_SECOND),
        .path = piece(graph, SCRATCH_THIRD),
        .calls = piece(graph, SCRATCH_FOURTH),
    };
    graph->components_count = 0;
    memset(tarjan.numbers, 0, graph->nodes_count * sizeof *tarjan.numbers);
    for (uint32_t node = 0; node < graph->nodes_count; node++) {
        if (tarjan.numbers[node] == 0) {
            graph_see(&tarjan, node);
        }
        while (tarjan.calls_count > 0) {
            graph_advance(&tarjan);
        }
    }
}

void crowd_graph_take(struct crowd_graph *graph, const struct crowd_world *world) {
    graph->nodes_count = 0;
    graph->edges_count = 0;
    graph->dangling_count = 0;
    for (uint32_t node = 0; node < world->nodes_count; node++) {
        graph->place_of[node] = crowd_world_is_member(world, node) ? graph->nodes_count++ : NOBODY;
    }
    for (uint32_t node = 0; node < world->nodes_count; node++) {
        if (graph->place_of[node] == NOBODY) {
            continue;
        }
        struct crowd_neighbour view[CROWD_VIEW_MAX];
        size_t count = crowd_neighbours(crowd_world_crowd(world, node), view);
        graph->first_edges[graph->place_of[node]] = graph->edges_count;
        for (size_t i = 0; i < count; i++) {
            uint32_t other;
            if (sim_node_of(world->sim, &view[i].peer.address, &other) && graph->place_of[other] != NOBODY) {
                ASSERT(graph->edges_count < graph->edges_max);
                graph->edges[graph->edges_count++] = graph->place_of[other];
            } else {
                graph->dangling_count++;
            }
        }
    }
    graph->first_edges[graph->nodes_count] = graph->edges_count;
    find_components(graph);
}

bool crowd_graph_is_strong(const struct crowd_graph *graph) {
    return graph->components_count <= 1;
}

static uint32_t root_of(uint32_t *parents, uint32_t node) {
    while (parents[node] != node) {
        parents[node] = parents[parents[node]];
        node = parents[node];
    }
    return node;
}

bool crowd_graph_is_connected(struct crowd_graph *graph) {
    uint32_t *parents = piece(graph, SCRATCH_FIRST);
    uint32_t parts_count = graph->nodes_count;
    for (uint32_t node = 0; node < graph->nodes_count; node++) {
        parents[node] = node;
    }
    for (uint32_t node = 0; node < graph->nodes_count; node++) {
        for (uint32_t i = graph->first_edges[node]; i < graph->first_edges[node + 1]; i++) {
            uint32_t root = root_of(parents, node);
            uint32_t other = root_of(parents, graph->edges[i]);
            parts_count -= root != other;
            parents[root] = other;
        }
    }
    return parts_count <= 1;
}

/* ---- reachability ---- */

/* Nodes in the order of their components, and where each component begins. */
static void sort_by_component(const struct crowd_graph *graph, uint32_t *nodes, uint32_t *begins) {
    memset(begins, 0, (graph->components_count + 1) * sizeof *begins);
    for (uint32_t node = 0; node < graph->nodes_count; node++) {
        begins[graph->components[node] + 1]++;
    }
    for (uint32_t i = 0; i < graph->components_count; i++) {
        begins[i + 1] += begins[i];
    }
    for (uint32_t node = 0; node < graph->nodes_count; node++) {
        nodes[begins[graph->components[node]]++] = node;
    }
    for (uint32_t i = graph->components_count; i > 0; i--) {
        begins[i] = begins[i - 1];
    }
    begins[0] = 0;
}

/*
 * All nodes of a component reach the same. From each component the graph is searched once: with one large
 * component and few small ones, as views have it after some shuffles, that is about the number of edges for
 * each. reached[i] == component + 1: i was seen in this search.
 */
static uint32_t count_reached(const struct crowd_graph *graph, uint32_t component, const uint32_t *nodes,
                              const uint32_t *begins, uint32_t *reached, uint32_t *stack) {
    uint32_t stack_count = 0;
    uint32_t count = 0;
    stack[stack_count++] = component;
    reached[component] = component + 1;
    while (stack_count > 0) {
        uint32_t at = stack[--stack_count];
        count += begins[at + 1] - begins[at];
        for (uint32_t i = begins[at]; i < begins[at + 1]; i++) {
            for (uint32_t j = graph->first_edges[nodes[i]]; j < graph->first_edges[nodes[i] + 1]; j++) {
                uint32_t next = graph->components[graph->edges[j]];
                if (reached[next] != component + 1) {
                    reached[next] = component + 1;
                    stack[stack_count++] = next;
                }
            }
        }
    }
    return count - 1; /* without oneself */
}

struct crowd_reach crowd_graph_reach(struct crowd_graph *graph) {
    if (graph->nodes_count < 2) {
        return (struct crowd_reach){.minimum = 1, .mean = 1};
    }
    uint32_t *nodes = piece(graph, SCRATCH_FIRST);
    uint32_t *begins = piece(graph, SCRATCH_SECOND);
    uint32_t *reached = piece(graph, SCRATCH_THIRD);
    uint32_t *stack = piece(graph, SCRATCH_FOURTH);
    sort_by_component(graph, nodes, begins);
    memset(reached, 0, graph->components_count * sizeof *reached);
    uint64_t least = graph->nodes_count;
    uint64_t sum = 0;
    for (uint32_t component = 0; component < graph->components_count; component++) {
        uint64_t count = count_reached(graph, component, nodes, begins, reached, stack);
        least = count < least ? count : least;
        sum += count * (begins[component + 1] - begins[component]);
    }
    double others = graph->nodes_count - 1;
    return (struct crowd_reach){.minimum = (double)least / others,
                                .mean = (double)sum / others / graph->nodes_count};
}

/* ---- degrees ---- */

/* Newton's, so that no libm is needed. */
static double graph_square_root(double value) {
    double root = value > 1 ? value : 1;
    for (unsigned i = 0; i < 64; i++) {
        root = (root + value / root) / 2;
    }
    return root;
}

struct crowd_degrees crowd_graph_degrees(struct crowd_graph *graph) {
    uint32_t *degrees = piece(graph, SCRATCH_FIRST);
    struct crowd_degrees found = {.minimum = graph->nodes_count == 0 ? 0 : UINT32_MAX};
    memset(degrees, 0, graph->nodes_count * sizeof *degrees);
    for (uint32_t i = 0; i < graph->edges_count; i++) {
        degrees[graph->edges[i]]++;
    }
    uint64_t sum = 0;
    uint64_t squares = 0;
    for (uint32_t node = 0; node < graph->nodes_count; node++) {
        uint32_t degree = degrees[node];
        sum += degree;
        squares += (uint64_t)degree * degree;
        found.minimum = degree < found.minimum ? degree : found.minimum;
        found.maximum = degree > found.maximum ? degree : found.maximum;
    }
    if (graph->nodes_count > 0) {
        found.mean = (double)sum / graph->nodes_count;
        found.deviation = graph_square_root((double)squares / graph->nodes_count - found.mean * found.mean);
    }
    return found;
}
