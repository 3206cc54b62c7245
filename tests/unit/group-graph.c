/* Graphs of groups: against what counting says, on all small graphs and on random larger ones. */
#include "protocol/group/graph.h"

#include "base/prng.h"
#include "unit.h"

enum { SMALL_MAX = 6, LARGER_MAX = 12, LARGER_GRAPHS_COUNT = 300 };

/* ---- the naive way ---- */

/* In how many parts is the graph without the nodes whose bits are set in `gone`? */
static uint32_t count_parts(const struct graph *graph, uint32_t gone) {
    uint32_t seen = gone;
    uint32_t parts = 0;
    for (uint32_t start = 0; start < graph->nodes_count; start++) {
        if ((seen >> start & 1) != 0) {
            continue;
        }
        parts++;
        seen |= 1u << start;
        for (bool has_grown = true; has_grown;) {
            has_grown = false;
            for (uint32_t a = 0; a < graph->nodes_count; a++) {
                uint32_t more = (uint32_t)graph->neighbours[a].words[0] & ~seen;
                bool is_here = (seen >> a & 1) != 0 && (gone >> a & 1) == 0;
                if (is_here && more != 0) {
                    seen |= more;
                    has_grown = true;
                }
            }
        }
    }
    return parts;
}

static struct graph_weakness naive_weakness(const struct graph *graph) {
    struct graph_weakness weakness = {0};
    uint32_t parts = count_parts(graph, 0);
    for (uint32_t a = 0; a < graph->nodes_count; a++) {
        weakness.articulations_count += count_parts(graph, 1u << a) > parts;
        for (uint32_t b = a + 1; b < graph->nodes_count; b++) {
            if (graph_is_joined(graph, a, b)) {
                struct graph without = *graph;
                graph_part(&without, a, b);
                weakness.bridges_count += count_parts(&without, 0) > parts;
            }
        }
    }
    return weakness;
}

/* The fewest nodes without which it is in several parts, or a single node. */
static uint32_t naive_connectivity(const struct graph *graph) {
    uint32_t least = graph->nodes_count - 1;
    for (uint32_t gone = 0; gone < 1u << graph->nodes_count; gone++) {
        uint32_t count = (uint32_t)__builtin_popcount(gone);
        if (count < least && count_parts(graph, gone) > 1) {
            least = count;
        }
    }
    return least;
}

/* Floyd and Warshall. */
static uint32_t naive_diameter(const struct graph *graph) {
    uint32_t hops[LARGER_MAX][LARGER_MAX];
    uint32_t count = graph->nodes_count;
    for (uint32_t i = 0; i < count * count; i++) {
        uint32_t a = i / count;
        uint32_t b = i % count;
        hops[a][b] = a == b ? 0 : graph_is_joined(graph, a, b) ? 1 : 1000;
    }
    for (uint32_t middle = 0; middle < count; middle++) {
        for (uint32_t i = 0; i < count * count; i++) {
            uint32_t way = hops[i / count][middle] + hops[middle][i % count];
            hops[i / count][i % count] = way < hops[i / count][i % count] ? way : hops[i / count][i % count];
        }
    }
    uint32_t diameter = 0;
    for (uint32_t i = 0; i < count * count; i++) {
        diameter = hops[i / count][i % count] > diameter ? hops[i / count][i % count] : diameter;
    }
    return diameter >= 1000 ? GRAPH_APART : diameter;
}

/* The fewest nodes between a and b, who are not joined, without which no path leads from one to the other. */
static uint32_t naive_paths(const struct graph *graph, uint32_t relays, uint32_t a, uint32_t b) {
    uint32_t least = graph->nodes_count;
    uint32_t ends = 1u << a | 1u << b;
    uint32_t all = (1u << graph->nodes_count) - 1;
    struct graph rest = *graph;
    for (uint32_t gone = all & ~ends;; gone = (gone - 1) & all & ~ends) {
        uint32_t count = (uint32_t)__builtin_popcount(gone & relays);
        bool is_barred = (gone | relays | ends) == all; /* all that are no relays are gone in any case */
        if (is_barred && count < least) {
            for (uint32_t node = 0; node < graph->nodes_count; node++) {
                uint64_t kept = (gone >> node & 1) != 0 ? 0 : ~(uint64_t)gone;
                rest.neighbours[node].words[0] = graph->neighbours[node].words[0] & kept;
            }
            struct graph_set levels[GRAPH_NODES_MAX];
            graph_levels(&rest, NULL, a, graph->nodes_count - 1, levels);
            bool is_reached = false;
            for (uint32_t hops = 0; hops < graph->nodes_count; hops++) {
                is_reached = is_reached || graph_set_has(&levels[hops], b);
            }
            least = is_reached ? least : count;
        }
        if (gone == 0) {
            return least;
        }
    }
}

/* ---- both ways ---- */

static void compare(const struct graph *graph) {
    struct graph_weakness found = graph_weakness(graph);
    struct graph_weakness expected = naive_weakness(graph);
    assert_int_equal(found.bridges_count, expected.bridges_count);
    assert_int_equal(found.articulations_count, expected.articulations_count);
    assert_int_equal(graph_is_connected(graph), count_parts(graph, 0) == 1);
    assert_int_equal(graph_diameter(graph), naive_diameter(graph));
    uint32_t connectivity = naive_connectivity(graph);
    for (uint32_t k = 0; k <= graph->nodes_count; k++) {
        assert_int_equal(graph_is_k_connected(graph, k), k <= connectivity);
    }
}

static void make_graph(struct graph *graph, uint32_t nodes_count, uint32_t edges) {
    graph_init(graph, nodes_count);
    uint32_t bit = 0;
    for (uint32_t a = 0; a < nodes_count; a++) {
        for (uint32_t b = a + 1; b < nodes_count; b++, bit++) {
            if ((edges >> bit & 1) != 0) {
                graph_join(graph, a, b);
            }
        }
    }
    assert_int_equal(graph_edges_count(graph), __builtin_popcount(edges));
}

static void make_random(struct graph *graph, uint32_t nodes_count, struct prng *prng) {
    uint32_t density_ppm = (uint32_t)prng_between(prng, 150000, 800000);
    graph_init(graph, nodes_count);
    for (uint32_t a = 0; a < nodes_count; a++) {
        for (uint32_t b = a + 1; b < nodes_count; b++) {
            if (prng_chance_ppm(prng, density_ppm)) {
                graph_join(graph, a, b);
            }
        }
    }
}

static void agrees_with_counting_on_all_graphs_of_up_to_six_nodes(void **state) {
    (void)state;
    struct graph graph;
    uint32_t nodes_max = UNIT_IS_SANITIZED ? SMALL_MAX - 1 : SMALL_MAX;
    for (uint32_t nodes_count = 1; nodes_count <= nodes_max; nodes_count++) {
        for (uint32_t edges = 0; edges < 1u << nodes_count * (nodes_count - 1) / 2; edges++) {
            make_graph(&graph, nodes_count, edges);
            compare(&graph);
        }
    }
}

static void agrees_with_counting_on_random_graphs_of_up_to_twelve_nodes(void **state) {
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    struct graph graph;
    uint32_t count = UNIT_IS_SANITIZED ? LARGER_GRAPHS_COUNT / 10 : LARGER_GRAPHS_COUNT;
    for (uint32_t i = 0; i < count; i++) {
        make_random(&graph, (uint32_t)prng_between(&prng, 7, LARGER_MAX), &prng);
        compare(&graph);
    }
}

/* Menger: as many paths as nodes are needed to cut them all. */
static void counts_as_many_paths_as_nodes_are_needed_to_cut_them(void **state) {
    (void)state;
    struct prng prng;
    prng_init(&prng, 2);
    struct graph graph;
    uint32_t pairs_count = 0;
    for (uint32_t i = 0; i < 60; i++) {
        make_random(&graph, 8, &prng);
        struct graph_set relays = {.words = {prng_u64(&prng)}};
        for (uint32_t b = 1; b < 8; b++) {
            if (!graph_is_joined(&graph, 0, b)) {
                uint32_t paths = naive_paths(&graph, 0xff, 0, b);
                assert_int_equal(graph_paths(&graph, NULL, 0, b, 8), paths);
                assert_int_equal(graph_paths(&graph, &relays, 0, b, 8),
                                 naive_paths(&graph, (uint32_t)relays.words[0] & 0xff, 0, b));
                pairs_count++;
                graph_join(&graph, 0, b);
                assert_int_equal(graph_paths(&graph, NULL, 0, b, 8), paths + 1);
                graph_part(&graph, 0, b);
            }
        }
    }
    assert_true(pairs_count > 100);
}

/* Long ways, on which paths must be turned back: sparse graphs, and ends without common neighbours. */
static void counts_paths_that_must_make_room_for_each_other(void **state) {
    (void)state;
    struct prng prng;
    prng_init(&prng, 3);
    struct graph graph;
    uint32_t several_count = 0;
    for (uint32_t i = 0; i < (UNIT_IS_SANITIZED ? 200 : 3000); i++) {
        graph_init(&graph, LARGER_MAX);
        for (uint32_t edge = 0; edge < 24; edge++) {
            uint32_t a = (uint32_t)prng_below(&prng, LARGER_MAX);
            uint32_t b = (a + 1 + (uint32_t)prng_below(&prng, 4)) % LARGER_MAX;
            graph_join(&graph, a, b);
        }
        uint32_t end = LARGER_MAX / 2;
        struct graph_set common = graph_set_common(&graph.neighbours[0], &graph.neighbours[end]);
        if (!graph_is_joined(&graph, 0, end) && graph_set_count(&common) == 0) {
            uint32_t paths = naive_paths(&graph, (1u << LARGER_MAX) - 1, 0, end);
            assert_int_equal(graph_paths(&graph, NULL, 0, end, LARGER_MAX), paths);
            several_count += paths > 2;
        }
    }
    assert_true(several_count > (UNIT_IS_SANITIZED ? 0 : 10));
}

static void join_all(struct graph *graph, const uint8_t *way, uint32_t count) {
    for (uint32_t i = 0; i + 1 < count; i++) {
        graph_join(graph, way[i], way[i + 1]);
    }
}

/*
 * The first path found from 0 to 1 is 2 3 4. The second must come in at 4 and go out at 2, so that 3 is on
 * none any more, which a third, much longer, then goes through.
 */
static void a_node_that_a_path_gave_up_is_free_again(void **state) {
    (void)state;
    static const uint8_t first[] = {0, 2, 3, 4, 1};
    static const uint8_t in[] = {0, 5, 6, 7, 4};
    static const uint8_t out[] = {2, 8, 9, 10, 1};
    static const uint8_t third[] = {0, 11, 12, 21, 22, 23, 24, 3, 13, 14, 15, 16, 17, 18, 19, 20, 1};
    struct graph graph;
    graph_init(&graph, 25);
    join_all(&graph, first, sizeof first);
    assert_int_equal(graph_paths(&graph, NULL, 0, 1, 9), 1);
    join_all(&graph, in, sizeof in);
    assert_int_equal(graph_paths(&graph, NULL, 0, 1, 9), 1);
    join_all(&graph, out, sizeof out);
    assert_int_equal(graph_paths(&graph, NULL, 0, 1, 9), 2);
    join_all(&graph, third, sizeof third);
    assert_int_equal(graph_paths(&graph, NULL, 0, 1, 9), 3);
}

static void ways_lead_through_relays_only(void **state) {
    (void)state;
    struct graph graph;
    struct graph_set levels[8];
    struct graph_set relays = {.words = {1u << 2}};
    make_graph(&graph, 4, 0);
    graph_join(&graph, 0, 1); /* 0 - 1 - 3 and 0 - 2 - 3 */
    graph_join(&graph, 1, 3);
    graph_join(&graph, 0, 2);
    graph_join(&graph, 2, 3);
    assert_int_equal(graph_paths(&graph, &relays, 0, 3, 2), 1);
    assert_int_equal(graph_levels(&graph, &relays, 0, 3, levels), 2);
    graph_part(&graph, 2, 3);
    assert_int_equal(graph_paths(&graph, &relays, 0, 3, 2), 0);
    assert_int_equal(graph_levels(&graph, &relays, 0, 3, levels), GRAPH_APART);
    assert_int_equal(graph_levels(&graph, &relays, 1, 3, levels), GRAPH_APART); /* 2 is behind 0 */
}

static void counts_to_the_last_of_256_nodes(void **state) {
    (void)state;
    struct graph graph;
    graph_init(&graph, GRAPH_NODES_MAX);
    for (uint32_t node = 0; node + 1 < GRAPH_NODES_MAX; node++) {
        graph_join(&graph, node, node + 1);
    }
    assert_int_equal(graph_diameter(&graph), 255);
    assert_int_equal(graph_weakness(&graph).bridges_count, 255);
    assert_int_equal(graph_weakness(&graph).articulations_count, 254);
    graph_join(&graph, 0, GRAPH_NODES_MAX - 1);
    assert_int_equal(graph_diameter(&graph), 128);
    assert_true(graph_is_k_connected(&graph, 2));
    assert_false(graph_is_k_connected(&graph, 3));
    graph_init_complete(&graph, GRAPH_NODES_MAX);
    assert_int_equal(graph_edges_count(&graph), GRAPH_EDGES_MAX);
    assert_true(graph_is_k_connected(&graph, 8));
    assert_int_equal(graph_paths(&graph, NULL, 0, 255, 300), 255);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_counting_on_all_graphs_of_up_to_six_nodes),
        cmocka_unit_test(agrees_with_counting_on_random_graphs_of_up_to_twelve_nodes),
        cmocka_unit_test(counts_as_many_paths_as_nodes_are_needed_to_cut_them),
        cmocka_unit_test(counts_paths_that_must_make_room_for_each_other),
        cmocka_unit_test(a_node_that_a_path_gave_up_is_free_again),
        cmocka_unit_test(ways_lead_through_relays_only),
        cmocka_unit_test(counts_to_the_last_of_256_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
