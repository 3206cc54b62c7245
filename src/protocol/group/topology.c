#include "protocol/group/topology_state.h"

enum { GAIN_TENTHS = 9 }; /* of the cost that is left, where a change is worth it */

/* ---- graphs ---- */

uint32_t topology_k(const struct topology_rules *rules, uint32_t members_count) {
    ASSERT(rules->k <= TOPOLOGY_K_MAX);
    uint32_t k = rules->k == 0 ? TOPOLOGY_K_DEFAULT : rules->k;
    return k < members_count ? k : members_count - 1;
}

uint32_t topology_hops_max(uint32_t members_count) {
    uint32_t hops = 0;
    while (1u << hops < members_count) {
        hops++;
    }
    return hops;
}

static uint32_t degree_cap(const struct topology_rules *rules, uint32_t k) {
    uint32_t usual = 2 * k > TOPOLOGY_DEGREE_DEFAULT ? 2 * k : TOPOLOGY_DEGREE_DEFAULT;
    uint32_t cap = rules->degree_max == 0 ? usual : rules->degree_max;
    uint32_t least = k + 1 > 3 ? k + 1 : 3; /* below, there are only rings */
    return cap > least ? cap : least;
}

void topology_make(const struct topology_rules *rules, const struct costs *costs, struct topology_work *work,
                   struct graph *ret_graph) {
    uint32_t k = topology_k(rules, costs->members_count);
    switch (rules->kind) {
    case TOPOLOGY_SPARSE:
        topology_make_sparse(k, degree_cap(rules, k), costs, work, ret_graph);
        break;
    case TOPOLOGY_TREE:
        topology_make_tree(k, costs, work, ret_graph);
        break;
    }
}

static bool has_degrees(const struct graph *graph, uint32_t degree_min) {
    uint32_t node = 0;
    while (node < graph->nodes_count && graph_degree(graph, node) >= degree_min) {
        node++;
    }
    return node == graph->nodes_count;
}

bool topology_keeps_rules(const struct topology_rules *rules, const struct graph *graph) {
    uint32_t k = topology_k(rules, graph->nodes_count);
    if (rules->kind == TOPOLOGY_TREE) {
        return graph_is_connected(graph) && has_degrees(graph, k);
    }
    return graph_is_k_connected(graph, k) && graph_diameter(graph) <= topology_hops_max(graph->nodes_count);
}

static uint32_t connectivity_of(const struct graph *graph) {
    uint32_t k = 0;
    while (k < TOPOLOGY_K_MAX && graph_is_k_connected(graph, k + 1)) {
        k++;
    }
    return k;
}

void topology_judge(const struct graph *graph, const struct costs *costs,
                    struct topology_judgement *ret_judgement) {
    struct topology_judgement judgement = {
        .edges_count = graph_edges_count(graph),
        .degree_min = GRAPH_NODES_MAX,
        .hops_max = graph_diameter(graph),
        .connectivity = connectivity_of(graph),
        .weakness = graph_weakness(graph),
    };
    for (uint32_t node = 0; node < graph->nodes_count; node++) {
        uint32_t degree = graph_degree(graph, node);
        judgement.degree_min = degree < judgement.degree_min ? degree : judgement.degree_min;
        judgement.degree_max = degree > judgement.degree_max ? degree : judgement.degree_max;
    }
    judgement.cost_us = costs_of_graph(costs, graph, &judgement.unknown_count);
    judgement.cost_us -= (uint64_t)judgement.unknown_count * COSTS_UNKNOWN_US;
    *ret_judgement = judgement;
}

/* ---- topologies ---- */

enum err topology_set_edges(struct topology *topology, const struct graph *graph, const struct costs *costs) {
    ASSERT(topology->members_count == graph->nodes_count && costs->members_count == graph->nodes_count);
    if (graph_edges_count(graph) > TOPOLOGY_EDGES_MAX) {
        return ERR_LIMIT;
    }
    uint32_t count = 0;
    for (uint32_t a = 0; a < graph->nodes_count; a++) {
        const struct graph_set *others = &graph->neighbours[a];
        for (uint32_t b = graph_set_next(others, a); b < GRAPH_NODES_MAX; b = graph_set_next(others, b + 1)) {
            topology->edges[count++] = (struct topology_edge){
                .a = (uint16_t)a, .b = (uint16_t)b, .cost_us = costs_of_edge(costs, a, b)};
        }
    }
    topology->edges_count = count;
    return ERR_OK;
}

void topology_get_graph(const struct topology *topology, struct graph *ret_graph) {
    graph_init(ret_graph, topology->members_count);
    for (uint32_t i = 0; i < topology->edges_count; i++) {
        graph_join(ret_graph, topology->edges[i].a, topology->edges[i].b);
    }
}

uint32_t topology_find(const struct topology *topology, const struct address *address) {
    uint32_t index = 0;
    while (index < topology->members_count && !address_equal(&topology->members[index].address, address)) {
        index++;
    }
    return index;
}

static bool has_same_members(const struct topology *a, const struct topology *b) {
    uint32_t i = 0;
    while (i < a->members_count && i < b->members_count && peer_equal(&a->members[i], &b->members[i])) {
        i++;
    }
    return i == a->members_count && i == b->members_count;
}

bool topology_is_better(const struct topology *next, const struct topology *current,
                        const struct topology_rules *rules, const struct costs *costs) {
    if (!has_same_members(next, current)) {
        return true;
    }
    struct graph next_graph;
    struct graph current_graph;
    topology_get_graph(next, &next_graph);
    topology_get_graph(current, &current_graph);
    bool is_next_good = topology_keeps_rules(rules, &next_graph);
    bool is_current_good = topology_keeps_rules(rules, &current_graph);
    if (is_next_good != is_current_good) {
        return is_next_good;
    }
    uint64_t next_us = costs_of_graph(costs, &next_graph, NULL);
    uint64_t current_us = costs_of_graph(costs, &current_graph, NULL);
    return next_us < current_us && next_us * 10 <= current_us * GAIN_TENTHS;
}
