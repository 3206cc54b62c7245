/*
 * group-topology, group-topology-plane, group-topology-random: the paper's generator, ours, a random ring and
 * simulated annealing on the same made-up groups (sim/experiments/group_costs.h).
 *
 * --nodes: only groups of this size, 3 to 256; --runs: groups of each size. Annealing is slow: of groups
 * above 50 only every tenth is annealed. Each of our topologies must keep its rules, or the experiment fails.
 */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/group/topology.h"
#include "sim/experiments/experiment.h"
#include "sim/experiments/group_costs.h"

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

/* At least three members. */
static void group_rivals_make_ring(uint32_t members_count, struct prng *prng, struct graph *ret_graph) {
    uint32_t order[GROUP_MEMBERS_MAX] = {0};
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
static void topology_change(struct graph *graph, struct prng *prng) {
    uint32_t a = (uint32_t)prng_below(prng, graph->nodes_count);
    uint32_t b = pick_other(prng, graph->nodes_count, a);
    toggle(graph, a, b);
    uint32_t start = (uint32_t)prng_below(prng, graph->nodes_count);
    uint32_t old = graph_set_next(&graph->neighbours[a], start);
    if (prng_chance_ppm(prng, 700000) && graph_is_joined(graph, a, b) && old != GRAPH_NODES_MAX && old != b) {
        graph_part(graph, a, old);
    }
}

/* cost_us: of the paper's tree, which everything is weighed against; not 0. At least three members. */
static void group_rivals_anneal(const struct costs *costs, uint64_t cost_us, struct prng *prng,
                                struct graph *ret_graph) {
    group_rivals_make_ring(costs->members_count, prng, ret_graph);
    uint64_t energy = energy_of(costs, cost_us, ret_graph);
    uint64_t temperature = (uint64_t)TEMPERATURE_FIRST * 10000;
    for (uint32_t step = 0; step < STEPS_COUNT; step++) {
        struct graph next = *ret_graph;
        topology_change(&next, prng);
        uint64_t next_energy = energy_of(costs, cost_us, &next);
        /* Worse by d is taken with the chance exp(-d / temperature), as Metropolis has it. */
        if (next_energy <= energy + prng_exponential(prng, temperature / 10000)) {
            *ret_graph = next;
            energy = next_energy;
        }
        temperature = temperature / 10000 * COOLING_NUMERATOR;
    }
}

enum {
    SIZES_COUNT = 5,
    ANNEALED_ALL_MAX = 50, /* members; beyond, only some groups */
    ANNEALED_SHARE = 10,
};
static const uint32_t sizes[SIZES_COUNT] = {10, 20, 50, 100, 200};

enum way { WAY_TREE, WAY_SPARSE, WAY_RING, WAY_ANNEALED, WAYS_COUNT };
static const char *const way_names[WAYS_COUNT] = {"tree (paper)", "sparse", "random ring", "annealed"};

struct sums {
    uint32_t count;
    uint32_t with_bridge_count;
    double cost_s;
    double edges;
    double hops;
    double bridges;
    double articulations;
    double degree;
    double propagation_s;
};

/* Too large for a stack. */
struct bench {
    struct costs costs;
    struct topology_work work;
    struct graph graph;
    uint64_t tree_cost_us;
    struct sums sums[WAYS_COUNT];
};

static void topology_add(struct bench *bench, enum way way, struct digest *digest) {
    struct topology_judgement judgement;
    topology_judge(&bench->graph, &bench->costs, &judgement);
    uint64_t propagation_us = costs_propagation_us(&bench->costs, &bench->graph, 0);
    struct sums *sums = &bench->sums[way];
    sums->count++;
    sums->with_bridge_count += judgement.weakness.bridges_count > 0;
    sums->cost_s += (double)judgement.cost_us / 1e6;
    sums->edges += judgement.edges_count;
    sums->hops += judgement.hops_max;
    sums->bridges += judgement.weakness.bridges_count;
    sums->articulations += judgement.weakness.articulations_count;
    sums->degree += judgement.degree_max;
    sums->propagation_s += (double)propagation_us / 1e6;
    if (way == WAY_TREE) {
        bench->tree_cost_us = judgement.cost_us;
    }
    digest_u64(digest, judgement.cost_us);
    digest_u64(digest, propagation_us);
}

static bool topology_compare(struct bench *bench, const struct experiment_args *args, uint32_t members_count,
                             uint32_t run, struct digest *digest) {
    struct prng prng;
    prng_init_stream(&prng, args->seed, (uint64_t)members_count << 32 | run);
    group_costs_make((enum group_costs_world)args->variant, &prng, members_count, &bench->costs);
    struct topology_rules tree = {.kind = TOPOLOGY_TREE};
    struct topology_rules sparse = {.kind = TOPOLOGY_SPARSE};
    topology_make(&tree, &bench->costs, &bench->work, &bench->graph);
    bool is_well = topology_keeps_rules(&tree, &bench->graph);
    topology_add(bench, WAY_TREE, digest);
    topology_make(&sparse, &bench->costs, &bench->work, &bench->graph);
    is_well = is_well && topology_keeps_rules(&sparse, &bench->graph);
    topology_add(bench, WAY_SPARSE, digest);
    group_rivals_make_ring(members_count, &prng, &bench->graph);
    topology_add(bench, WAY_RING, digest);
    if (members_count <= ANNEALED_ALL_MAX || run % ANNEALED_SHARE == 0) {
        group_rivals_anneal(&bench->costs, bench->tree_cost_us, &prng, &bench->graph);
        topology_add(bench, WAY_ANNEALED, digest);
    }
    return is_well;
}

/* ---- the report ---- */

static void write_columns(struct report *report, const char *title) {
    report_init(report, title, "");
    REPORT_COLUMNS(report, {"topology", 0, REPORT_TEXT}, {"members", 0, REPORT_SHOWN},
                   {"groups", 0, REPORT_SHOWN}, {"edges", 1, REPORT_SHOWN}, {"cost (s)", 2, REPORT_SHOWN},
                   {"cost (of the tree's)", 2, REPORT_Y}, {"diameter (hops)", 1, REPORT_Y},
                   {"with a bridge (%)", 0, REPORT_Y}, {"bridges", 2, REPORT_SHOWN},
                   {"articulation points", 2, REPORT_SHOWN}, {"most edges of one", 1, REPORT_SHOWN},
                   {"update reaches all (s)", 2, REPORT_Y});
}

static void write_rows(struct report *report, const struct bench *bench, uint32_t members_count) {
    double tree_cost_s = bench->sums[WAY_TREE].cost_s / bench->sums[WAY_TREE].count;
    for (unsigned way = 0; way < WAYS_COUNT; way++) {
        const struct sums *sums = &bench->sums[way];
        double count = sums->count;
        char name[REPORT_TEXT_SIZE_MAX];
        snprintf(name, sizeof name, "%s, %u", way_names[way], members_count);
        report_text(report, name);
        REPORT_NUMBERS(report, members_count, count, sums->edges / count, sums->cost_s / count,
                       sums->cost_s / count / tree_cost_s, sums->hops / count,
                       100.0 * sums->with_bridge_count / count, sums->bridges / count,
                       sums->articulations / count, sums->degree / count, sums->propagation_s / count);
    }
}

static enum err run_size(struct bench *bench, uint32_t members_count, const struct experiment_args *args,
                         struct report *report, struct err_detail *detail) {
    memset(bench->sums, 0, sizeof bench->sums);
    for (uint32_t run = 0; run < args->runs; run++) {
        if (!topology_compare(bench, args, members_count, run, &report->digest)) {
            return err_set(detail, ERR_MISMATCH, "seed %llu, run %u: %u members break their rules",
                           (unsigned long long)args->seed, run, members_count);
        }
    }
    write_rows(report, bench, members_count);
    return report->err;
}

enum err experiment_group_topology(const struct experiment_args *args, struct report *report,
                                   struct err_detail *detail) {
    static const char *const titles[] = {
        [GROUP_COSTS_SITES] = "Update topologies of groups at sites",
        [GROUP_COSTS_PLANE] = "Update topologies of groups in a plane",
        [GROUP_COSTS_RANDOM] = "Update topologies of groups with random costs",
    };
    write_columns(report, titles[args->variant]);
    if (args->nodes != 0 && (args->nodes < 3 || args->nodes > GROUP_MEMBERS_MAX)) {
        return err_set(detail, ERR_INVALID, "groups have 3 to %d members", GROUP_MEMBERS_MAX);
    }
    struct bench *bench = malloc(sizeof *bench);
    if (bench == NULL) {
        return ERR_MEMORY;
    }
    enum err err = ERR_OK;
    for (unsigned i = 0; i < (args->nodes != 0 ? 1 : SIZES_COUNT) && err == ERR_OK; i++) {
        err = run_size(bench, args->nodes != 0 ? args->nodes : sizes[i], args, report, detail);
    }
    free(bench);
    return err;
}
