/*
 * Our generator: topology.h. Edges are tried from the dearest to the cheapest, once each: what cannot be
 * deleted then cannot be later either, when there are fewer.
 */
#include "protocol/group/topology_state.h"

enum {
    SLOW_FACTOR = 10, /* a modem is slower by a thousand, a lone site by ten to thirty */
    TRIES_MAX = 4000, /* to move edges; some hundred are usual, a second is what these take at the most */
};

/* ---- distances ---- */

/* How far is the node from `from`? */
static uint32_t hops_between(const struct topology_work *work, uint32_t from, uint32_t node) {
    uint32_t hops = 0;
    while (!graph_set_has(&work->levels[from][hops], node)) {
        hops++;
        ASSERT(hops <= TOPOLOGY_HOPS_MAX);
    }
    return hops;
}

/* Did every shortest way from `from` to one of the two lead over the edge between them, now deleted? */
static bool is_affected(const struct graph *graph, const struct topology_work *work, uint32_t from,
                        uint32_t a, uint32_t b) {
    uint32_t hops_a = hops_between(work, from, a);
    uint32_t hops_b = hops_between(work, from, b);
    if (hops_a == hops_b) {
        return false;
    }
    uint32_t farther = hops_a > hops_b ? a : b;
    uint32_t hops = hops_a > hops_b ? hops_b : hops_a;
    struct graph_set before = graph_set_common(&graph->neighbours[farther], &work->levels[from][hops]);
    before = hops == 0 ? before : graph_set_common(&before, &work->relays);
    return graph_set_next(&before, 0) == GRAPH_NODES_MAX;
}

/* The edge is deleted from the graph already. True: everybody is near enough still, and levels are as they
 * are now. */
static bool stays_near(const struct graph *graph, struct topology_work *work, uint32_t hops_max, uint32_t a,
                       uint32_t b) {
    struct graph_set affected = {0};
    struct graph_set levels[TOPOLOGY_HOPS_MAX + 1];
    for (uint32_t from = 0; from < graph->nodes_count; from++) {
        if (is_affected(graph, work, from, a, b)) {
            if (graph_levels(graph, &work->relays, from, hops_max, levels) == GRAPH_APART) {
                return false;
            }
            graph_set_add(&affected, from);
        }
    }
    for (uint32_t from = graph_set_next(&affected, 0); from < GRAPH_NODES_MAX;
         from = graph_set_next(&affected, from + 1)) {
        graph_levels(graph, &work->relays, from, hops_max, work->levels[from]);
    }
    return true;
}

/* ---- deleting ---- */

/* Delete the edge, or keep it for good. */
static void try_edge(uint32_t k, uint32_t hops_max, uint64_t edge, struct topology_work *work,
                     struct graph *graph) {
    uint32_t a = costs_edge_a(edge);
    uint32_t b = costs_edge_b(edge);
    graph_part(graph, a, b);
    if (graph_paths(graph, &work->relays, a, b, k) < k || !stays_near(graph, work, hops_max, a, b)) {
        graph_join(graph, a, b);
    }
}

/* ---- relays ---- */

/* What the member's cheapest edge costs. */
static uint32_t nearest_us(const struct costs *costs, uint32_t member) {
    uint32_t nearest = COSTS_UNKNOWN_US;
    for (uint32_t other = 0; other < costs->members_count; other++) {
        uint32_t cost_us = other == member ? COSTS_UNKNOWN_US : costs_of_edge(costs, member, other);
        nearest = cost_us < nearest ? cost_us : nearest;
    }
    return nearest;
}

/* So many members have a nearest neighbour that is not dearer than this one's. */
static uint32_t rank_of(const uint32_t *nearest, uint32_t count, uint32_t member) {
    uint32_t rank = 0;
    for (uint32_t i = 0; i < count; i++) {
        rank += nearest[i] <= nearest[member];
    }
    return rank;
}

/*
 * Everybody but those far from all others by SLOW_FACTOR times what is usual: behind a modem, or not measured
 * yet. Hops through them would look as good as any, and good edges would be deleted for them.
 */
static void choose_relays(uint32_t k, const struct costs *costs, struct graph_set *ret_relays) {
    uint32_t nearest[GROUP_MEMBERS_MAX];
    uint32_t count = costs->members_count;
    for (uint32_t i = 0; i < count; i++) {
        nearest[i] = nearest_us(costs, i);
    }
    uint32_t usual_us = COSTS_UNKNOWN_US; /* the median */
    for (uint32_t i = 0; i < count; i++) {
        bool is_half = rank_of(nearest, count, i) * 2 >= count;
        usual_us = is_half && nearest[i] < usual_us ? nearest[i] : usual_us;
    }
    struct graph_set relays = {0};
    for (uint32_t i = 0; i < count; i++) {
        if (nearest[i] / SLOW_FACTOR <= usual_us &&
            (nearest[i] != COSTS_UNKNOWN_US || usual_us == nearest[i])) {
            graph_set_add(&relays, i);
        }
    }
    if (graph_set_count(&relays) <= k) {
        memset(&relays, 0xff, sizeof relays);
    }
    *ret_relays = relays;
}

/* ---- the cap ---- */

/* The cheapest that may still take an edge of the member and was not tried; GRAPH_NODES_MAX: none. */
static uint32_t cheapest_other(const struct costs *costs, uint32_t member, uint32_t degree_max,
                               const struct graph *graph, const struct graph_set *tried) {
    uint32_t best = GRAPH_NODES_MAX;
    for (uint32_t other = 0; other < graph->nodes_count; other++) {
        if (!graph_set_has(tried, other) && graph_degree(graph, other) < degree_max &&
            (best == GRAPH_NODES_MAX ||
             costs_of_edge(costs, member, other) < costs_of_edge(costs, member, best))) {
            best = other;
        }
    }
    return best;
}

/* The graph was good with the edge between a and b, and has one edge more since. Is it without? */
static bool is_good_without(uint32_t k, const struct topology_work *work, uint32_t a, uint32_t b,
                            const struct graph *graph) {
    uint32_t hops_max = topology_hops_max(graph->nodes_count);
    struct graph_set levels[TOPOLOGY_HOPS_MAX + 1];
    if (graph_paths(graph, &work->relays, a, b, k) < k) {
        return false;
    }
    uint32_t from = 0;
    while (from < graph->nodes_count &&
           graph_levels(graph, &work->relays, from, hops_max, levels) != GRAPH_APART) {
        from++;
    }
    return from == graph->nodes_count;
}

/*
 * Take `member` off `hub`, which has too many, and give it the cheapest other edge with which all is good.
 * *tries are those left.
 */
static bool move_member(uint32_t k, uint32_t degree_max, const struct costs *costs, uint32_t hub,
                        uint32_t member, const struct topology_work *work, struct graph *graph,
                        uint32_t *tries) {
    struct graph_set tried = graph->neighbours[member];
    graph_set_add(&tried, member);
    graph_part(graph, hub, member);
    while (*tries > 0) {
        uint32_t other = cheapest_other(costs, member, degree_max, graph, &tried);
        if (other == GRAPH_NODES_MAX) {
            break;
        }
        graph_set_add(&tried, other);
        (*tries)--;
        graph_join(graph, member, other);
        if (is_good_without(k, work, hub, member, graph)) {
            return true;
        }
        graph_part(graph, member, other);
    }
    graph_join(graph, hub, member);
    return false;
}

/* Members with too many edges give some away. True where one did. */
static bool relieve_hubs(uint32_t k, uint32_t degree_max, const struct costs *costs,
                         const struct topology_work *work, struct graph *graph, uint32_t *tries) {
    bool is_relieved = false;
    for (uint32_t hub = 0; hub < graph->nodes_count; hub++) {
        struct graph_set members = graph->neighbours[hub];
        for (uint32_t member = graph_set_next(&members, 0);
             member < GRAPH_NODES_MAX && graph_degree(graph, hub) > degree_max;
             member = graph_set_next(&members, member + 1)) {
            is_relieved |= move_member(k, degree_max, costs, hub, member, work, graph, tries);
        }
    }
    return is_relieved;
}

void topology_make_sparse(uint32_t k, uint32_t degree_max, const struct costs *costs,
                          struct topology_work *work, struct graph *ret_graph) {
    uint32_t hops_max = topology_hops_max(costs->members_count);
    choose_relays(k, costs, &work->relays);
    graph_init_complete(ret_graph, costs->members_count);
    for (uint32_t node = 0; node < costs->members_count; node++) {
        graph_levels(ret_graph, &work->relays, node, hops_max, work->levels[node]);
    }
    for (uint32_t i = costs_sort_edges(costs, work->edges); i-- > 0;) {
        try_edge(k, hops_max, work->edges[i], work, ret_graph);
    }
    uint32_t tries = TRIES_MAX;
    while (relieve_hubs(k, degree_max, costs, work, ret_graph, &tries)) {
        /* What could not be given away may be now, when others have edges that they had not. */
    }
}
