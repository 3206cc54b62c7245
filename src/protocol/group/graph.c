#include "protocol/group/graph.h"

_Static_assert(GRAPH_NODES_MAX % 64 == 0, "sets are whole words");

/* In pairs, fours, bytes, then all: where the processor may lack the instruction, compilers call out for it,
 * and nothing here calls out. */
static uint32_t count_bits(uint64_t word) {
    word -= word >> 1 & UINT64_C(0x5555555555555555);
    word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
    word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (uint32_t)(word * UINT64_C(0x0101010101010101) >> 56);
}

uint32_t graph_set_count(const struct graph_set *set) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < GRAPH_WORDS_COUNT; i++) {
        count += count_bits(set->words[i]);
    }
    return count;
}

/* ---- edges ---- */

void graph_init(struct graph *graph, uint32_t nodes_count) {
    ASSERT(nodes_count > 0 && nodes_count <= GRAPH_NODES_MAX);
    memset(graph, 0, sizeof *graph);
    graph->nodes_count = nodes_count;
}

void graph_init_complete(struct graph *graph, uint32_t nodes_count) {
    graph_init(graph, nodes_count);
    for (uint32_t a = 0; a < nodes_count; a++) {
        for (uint32_t b = 0; b < nodes_count; b++) {
            if (a != b) {
                graph_set_add(&graph->neighbours[a], b);
            }
        }
    }
}

void graph_join(struct graph *graph, uint32_t a, uint32_t b) {
    ASSERT(a != b && a < graph->nodes_count && b < graph->nodes_count);
    graph_set_add(&graph->neighbours[a], b);
    graph_set_add(&graph->neighbours[b], a);
}

void graph_part(struct graph *graph, uint32_t a, uint32_t b) {
    ASSERT(a != b && a < graph->nodes_count && b < graph->nodes_count);
    graph_set_remove(&graph->neighbours[a], b);
    graph_set_remove(&graph->neighbours[b], a);
}

uint32_t graph_edges_count(const struct graph *graph) {
    uint32_t ends = 0;
    for (uint32_t node = 0; node < graph->nodes_count; node++) {
        ends += graph_degree(graph, node);
    }
    return ends / 2;
}

/* ---- distances ---- */

/* All neighbours of the set that are not seen yet, which then are. False where there is none. */
static bool expand(const struct graph *graph, const struct graph_set *set, struct graph_set *seen,
                   struct graph_set *ret_next) {
    struct graph_set next = {0};
    for (uint32_t word = 0; word < GRAPH_WORDS_COUNT; word++) {
        for (uint64_t bits = set->words[word]; bits != 0; bits &= bits - 1) {
            const struct graph_set *more = &graph->neighbours[word * 64 + (uint32_t)__builtin_ctzll(bits)];
            for (uint32_t i = 0; i < GRAPH_WORDS_COUNT; i++) {
                next.words[i] |= more->words[i];
            }
        }
    }
    uint64_t any = 0;
    for (uint32_t i = 0; i < GRAPH_WORDS_COUNT; i++) {
        next.words[i] &= ~seen->words[i];
        seen->words[i] |= next.words[i];
        any |= next.words[i];
    }
    *ret_next = next;
    return any != 0;
}

uint32_t graph_levels(const struct graph *graph, const struct graph_set *relays, uint32_t from,
                      uint32_t hops_max, struct graph_set *levels) {
    struct graph_set seen = {0};
    memset(levels, 0, (hops_max + 1) * sizeof *levels);
    graph_set_add(&seen, from);
    graph_set_add(&levels[0], from);
    uint32_t hops = 0;
    struct graph_set ends = levels[0];
    while (hops < hops_max && expand(graph, &ends, &seen, &levels[hops + 1])) {
        hops++;
        ends = relays == NULL ? levels[hops] : graph_set_common(&levels[hops], relays);
    }
    return graph_set_count(&seen) == graph->nodes_count ? hops : GRAPH_APART;
}

uint32_t graph_diameter(const struct graph *graph) {
    struct graph_set levels[GRAPH_NODES_MAX];
    uint32_t diameter = 0;
    for (uint32_t node = 0; node < graph->nodes_count; node++) {
        uint32_t farthest = graph_levels(graph, NULL, node, graph->nodes_count - 1, levels);
        diameter = farthest > diameter ? farthest : diameter;
    }
    return diameter;
}

bool graph_is_connected(const struct graph *graph) {
    struct graph_set levels[GRAPH_NODES_MAX];
    return graph_levels(graph, NULL, 0, graph->nodes_count - 1, levels) != GRAPH_APART;
}
