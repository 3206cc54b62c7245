#include "protocol/group/costs.h"

#include "base/prng.h"

_Static_assert(GROUP_MEMBERS_MAX <= 256, "a member is a byte of a sorted edge");

void costs_init(struct costs *costs, uint32_t members_count) {
    ASSERT(members_count > 0 && members_count <= GROUP_MEMBERS_MAX);
    costs->members_count = members_count;
    memset(costs->us, 0xff, sizeof costs->us); /* COSTS_UNKNOWN_US */
}

void costs_set(struct costs *costs, uint32_t from, uint32_t to, uint32_t cost_us) {
    ASSERT(from != to && from < costs->members_count && to < costs->members_count);
    costs->us[from][to] = cost_us;
}

uint32_t costs_of_edge(const struct costs *costs, uint32_t a, uint32_t b) {
    uint32_t there = costs->us[a][b];
    uint32_t back = costs->us[b][a];
    if (there == COSTS_UNKNOWN_US || back == COSTS_UNKNOWN_US) {
        return there < back ? there : back;
    }
    return there > back ? there : back;
}

/* ---- of a whole graph ---- */

uint64_t costs_of_graph(const struct costs *costs, const struct graph *graph, uint32_t *ret_unknown_count) {
    ASSERT(costs->members_count == graph->nodes_count);
    uint64_t sum_us = 0;
    uint32_t unknown_count = 0;
    for (uint32_t a = 0; a < graph->nodes_count; a++) {
        const struct graph_set *others = &graph->neighbours[a];
        for (uint32_t b = graph_set_next(others, a); b < GRAPH_NODES_MAX; b = graph_set_next(others, b + 1)) {
            uint32_t cost_us = costs_of_edge(costs, a, b);
            sum_us += cost_us;
            unknown_count += cost_us == COSTS_UNKNOWN_US;
        }
    }
    if (ret_unknown_count != NULL) {
        *ret_unknown_count = unknown_count;
    }
    return sum_us;
}

/* The member that is reached next; GRAPH_NODES_MAX: none is left. */
static uint32_t next_reached(const struct graph *graph, const uint64_t at_us[GRAPH_NODES_MAX],
                             const struct graph_set *done) {
    uint32_t next = GRAPH_NODES_MAX;
    for (uint32_t node = 0; node < graph->nodes_count; node++) {
        if (!graph_set_has(done, node) && at_us[node] != UINT64_MAX &&
            (next == GRAPH_NODES_MAX || at_us[node] < at_us[next])) {
            next = node;
        }
    }
    return next;
}

uint64_t costs_propagation_us(const struct costs *costs, const struct graph *graph, uint32_t from) {
    ASSERT(costs->members_count == graph->nodes_count && from < graph->nodes_count);
    uint64_t at_us[GRAPH_NODES_MAX];
    memset(at_us, 0xff, sizeof at_us);
    at_us[from] = 0;
    struct graph_set done = {0};
    uint64_t last_us = 0;
    uint32_t reached_count = 0;
    for (uint32_t node = from; node != GRAPH_NODES_MAX; node = next_reached(graph, at_us, &done)) {
        const struct graph_set *others = &graph->neighbours[node];
        graph_set_add(&done, node);
        last_us = at_us[node];
        reached_count++;
        for (uint32_t b = graph_set_next(others, 0); b < GRAPH_NODES_MAX; b = graph_set_next(others, b + 1)) {
            uint32_t cost_us = costs_of_edge(costs, node, b);
            if (cost_us != COSTS_UNKNOWN_US && at_us[node] + cost_us < at_us[b]) {
                at_us[b] = at_us[node] + cost_us;
            }
        }
    }
    return reached_count == graph->nodes_count ? last_us : UINT64_MAX;
}

/* ---- edges in order ---- */

/* Shell's sort with Ciura's gaps: in place, and 32,640 edges in some milliseconds. */
static void costs_sort(uint64_t *edges, uint32_t count) {
    static const uint32_t gaps[] = {18298, 8132, 3614, 1606, 701, 301, 132, 57, 23, 10, 4, 1};
    for (uint32_t g = 0; g < sizeof gaps / sizeof *gaps; g++) {
        uint32_t gap = gaps[g];
        for (uint32_t i = gap; i < count; i++) {
            uint64_t edge = edges[i];
            uint32_t place = i;
            while (place >= gap && edges[place - gap] > edge) {
                edges[place] = edges[place - gap];
                place -= gap;
            }
            edges[place] = edge;
        }
    }
}

uint32_t costs_sort_edges(const struct costs *costs, uint64_t out[GRAPH_EDGES_MAX]) {
    uint32_t count = 0;
    for (uint32_t a = 0; a < costs->members_count; a++) {
        for (uint32_t b = a + 1; b < costs->members_count; b++) {
            uint64_t lot = prng_mix(a << 8 | b) & 0xffff;
            out[count++] = (uint64_t)costs_of_edge(costs, a, b) << 32 | lot << 16 | a << 8 | b;
        }
    }
    costs_sort(out, count);
    return count;
}
