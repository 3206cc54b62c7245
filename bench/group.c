/*
 * How long the master of a group takes to compute a topology (protocol/group/topology.h), in processor time
 * of one core: the paper's generator, ours, and ours with a cap of degrees. The costs are those of
 * sim/experiments/group_costs.h.
 */
#include <stdlib.h>

#include "bench.h"
#include "protocol/group/topology.h"
#include "sim/experiments/group_costs.h"

enum { ROUNDS_COUNT = 3 };

struct state {
    struct costs costs;
    struct topology_work work;
    struct graph graph;
};

static double cpu_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The worst of some groups: a figure that must hold. */
static double measure_ms(struct state *state, const struct topology_rules *rules, uint32_t members_count,
                         enum group_costs_world world) {
    double worst_s = 0;
    for (uint64_t seed = 0; seed < ROUNDS_COUNT; seed++) {
        struct prng prng;
        prng_init(&prng, seed);
        group_costs_make(world, &prng, members_count, &state->costs);
        double start_s = cpu_s();
        topology_make(rules, &state->costs, &state->work, &state->graph);
        double seconds = cpu_s() - start_s;
        worst_s = seconds > worst_s ? seconds : worst_s;
    }
    return worst_s * 1e3;
}

static double measure_unknown_ms(struct state *state, uint32_t members_count) {
    struct topology_rules rules = {.kind = TOPOLOGY_SPARSE};
    costs_init(&state->costs, members_count);
    double start_s = cpu_s();
    topology_make(&rules, &state->costs, &state->work, &state->graph);
    return (cpu_s() - start_s) * 1e3;
}

int main(void) {
    static const struct {
        const char *name;
        struct topology_rules rules;
    } ways[] = {
        {"tree", {.kind = TOPOLOGY_TREE}},
        {"sparse", {.kind = TOPOLOGY_SPARSE}},
        {"sparse, k = 3", {.kind = TOPOLOGY_SPARSE, .k = 3}},
        {"sparse, at most 6 edges each", {.kind = TOPOLOGY_SPARSE, .degree_max = 6}},
    };
    struct state *state = malloc(sizeof *state);
    if (state == NULL) {
        fprintf(stderr, "bench-group: out of memory\n");
        return 1;
    }
    for (uint32_t members = 200; members <= 256; members += 56) {
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            char what[64];
            snprintf(what, sizeof what, "%u members at sites, %s", members, ways[i].name);
            bench_row(what, measure_ms(state, &ways[i].rules, members, GROUP_COSTS_SITES), "ms", 0);
            snprintf(what, sizeof what, "%u members in a plane, %s", members, ways[i].name);
            bench_row(what, measure_ms(state, &ways[i].rules, members, GROUP_COSTS_PLANE), "ms", 0);
        }
        char what[64];
        snprintf(what, sizeof what, "%u members, nothing known, sparse", members);
        bench_row(what, measure_unknown_ms(state, members), "ms", 0);
    }
    free(state);
    return 0;
}
