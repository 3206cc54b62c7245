#include "sim/experiments/group_rivals.h"

enum {
    STEPS_COUNT = 10000,
    TEMPERATURE_FIRST = 200000,
    COOLING_NUMERATOR = 9993, /* of 10,000 in each step: a thousandth is left at the end */
};

/* Energies: a million is the cost of the paper's tree. */
static const uint64_t COST_ENERGY = 1000000;
static const uint64_t HOP_ENERGY = 50000;
static const uint64_t WEAKNESS_ENERGY = 200000;
static const uint64_t APART_ENERGY = UINT64_C(1) << 60;

void group_rivals_make_ring(uint32_t members_count, struct prng *prng, struct graph *ret_graph) {
    uint32_t order[GROUP_MEMBERS_MAX];
    for (uint32_t i = 0; i < members_count; i++) {
        uint32_t other = (uint32_t)prng_below(prng, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    graph_init(ret_graph, members_count);
    for (uint32_t i = 0; i < members_count; i++) {
        graph_join(ret_graph, order[i], order[(i + 1) % members_count]);
    }
}

/* ---- annealing ---- */

static uint64_t energy_of(const struct costs *costs, uint64_t cost_us, const struct graph *graph) {
    uint32_t hops = graph_diameter(graph);
    if (hops == GRAPH_APART) {
        return APART_ENERGY;
    }
    struct graph_weakness weakness = graph_weakness(graph);
    double cost = (double)costs_of_graph(costs, graph, NULL) / (double)cost_us;
    return (uint64_t)(cost * (double)COST_ENERGY) + hops * HOP_ENERGY +
           (uint64_t)(weakness.bridges_count + weakness.articulations_count) * WEAKNESS_ENERGY;
}

static void toggle(struct graph *graph, uint32_t a, uint32_t b) {
    if (graph_is_joined(graph, a, b)) {
        graph_part(graph, a, b);
    } else {
        graph_join(graph, a, b);
    }
}

static uint32_t pick_other(struct prng *prng, uint32_t members_count, uint32_t member) {
    uint32_t other = (uint32_t)prng_below(prng, members_count - 1);
    return other < member ? other : other + 1;
}

/* An edge comes or goes, or one of a member changes its other end. */
static void change(struct graph *graph, struct prng *prng) {
    uint32_t a = (uint32_t)prng_below(prng, graph->nodes_count);
    uint32_t b = pick_other(prng, graph->nodes_count, a);
    toggle(graph, a, b);
    uint32_t start = (uint32_t)prng_below(prng, graph->nodes_count);
    uint32_t old = graph_set_next(&graph->neighbours[a], start);
    if (prng_chance_ppm(prng, 700000) && graph_is_joined(graph, a, b) && old != GRAPH_NODES_MAX && old != b) {
        graph_part(graph, a, old);
    }
}

void group_rivals_anneal(const struct costs *costs, uint64_t cost_us, struct prng *prng,
                         struct graph *ret_graph) {
    group_rivals_make_ring(costs->members_count, prng, ret_graph);
    uint64_t energy = energy_of(costs, cost_us, ret_graph);
    uint64_t temperature = (uint64_t)TEMPERATURE_FIRST * 10000;
    for (uint32_t step = 0; step < STEPS_COUNT; step++) {
        struct graph next = *ret_graph;
        change(&next, prng);
        uint64_t next_energy = energy_of(costs, cost_us, &next);
        /* Worse by d is taken with the chance exp(-d / temperature), as Metropolis has it. */
        if (next_energy <= energy + prng_exponential(prng, temperature / 10000)) {
            *ret_graph = next;
            energy = next_energy;
        }
        temperature = temperature / 10000 * COOLING_NUMERATOR;
    }
}
