/* Update topologies: what the generators guarantee, when one replaces another. */
#include "protocol/group/topology.h"

#include <stdlib.h>

#include "base/prng.h"
#include "unit.h"

enum { MATRICES_COUNT = UNIT_IS_SANITIZED ? 40 : 400, SIZE_MAX_SMALL = 24 };

/* Too large for a stack. */
struct fixture {
    struct costs costs;
    struct topology_work work;
    struct graph graph;
    struct graph other;
    struct topology topology;
    struct topology next;
};

static int set_up(void **state) {
    *state = calloc(1, sizeof(struct fixture));
    return *state == NULL;
}

static int tear_down(void **state) {
    free(*state);
    return 0;
}

/* ---- costs ---- */

/* From "all different" to "nearly all equal", with some unknown. */
static void make_costs(struct costs *costs, uint32_t members_count, struct prng *prng) {
    static const uint64_t spreads[] = {3, 100, 1000000, 4000000000};
    uint64_t spread = spreads[prng_below(prng, 4)];
    uint32_t unknown_ppm = prng_chance_ppm(prng, 500000) ? 0 : (uint32_t)prng_below(prng, 1000000);
    costs_init(costs, members_count);
    for (uint32_t a = 0; a < members_count; a++) {
        for (uint32_t b = 0; b < members_count; b++) {
            if (a != b && !prng_chance_ppm(prng, unknown_ppm)) {
                costs_set(costs, a, b, (uint32_t)prng_between(prng, 1, spread));
            }
        }
    }
}

static void set_both(struct costs *costs, uint32_t a, uint32_t b, uint32_t cost_us) {
    costs_set(costs, a, b, cost_us);
    costs_set(costs, b, a, cost_us);
}

static void an_edge_costs_what_its_dearer_direction_does(void **state) {
    struct fixture *f = *state;
    costs_init(&f->costs, 3);
    assert_int_equal(costs_of_edge(&f->costs, 0, 1), COSTS_UNKNOWN_US);
    costs_set(&f->costs, 0, 1, 10);
    assert_int_equal(costs_of_edge(&f->costs, 1, 0), 10);
    costs_set(&f->costs, 1, 0, 30);
    assert_int_equal(costs_of_edge(&f->costs, 0, 1), 30);
    costs_set(&f->costs, 1, 0, COSTS_UNKNOWN_US);
    assert_int_equal(costs_of_edge(&f->costs, 0, 1), 10);
}

static void an_update_is_handed_on_when_all_of_it_is_there(void **state) {
    struct fixture *f = *state;
    costs_init(&f->costs, 4);
    graph_init(&f->graph, 4); /* 0 -10- 1 -20- 2 -5- 3, and 0 -50- 2 */
    set_both(&f->costs, 0, 1, 10);
    set_both(&f->costs, 1, 2, 20);
    set_both(&f->costs, 2, 3, 5);
    set_both(&f->costs, 0, 2, 50);
    graph_join(&f->graph, 0, 1);
    graph_join(&f->graph, 1, 2);
    graph_join(&f->graph, 0, 2);
    assert_true(costs_propagation_us(&f->costs, &f->graph, 0) == UINT64_MAX); /* 3 is apart */
    graph_join(&f->graph, 2, 3);
    assert_int_equal(costs_propagation_us(&f->costs, &f->graph, 0), 35);
    assert_int_equal(costs_propagation_us(&f->costs, &f->graph, 1), 25);
    assert_int_equal(costs_of_graph(&f->costs, &f->graph, NULL), 85);
}

static void edges_are_sorted_by_cost(void **state) {
    struct fixture *f = *state;
    struct prng prng;
    prng_init(&prng, 3);
    make_costs(&f->costs, GROUP_MEMBERS_MAX, &prng);
    assert_int_equal(costs_sort_edges(&f->costs, f->work.edges), GRAPH_EDGES_MAX);
    graph_init(&f->graph, GROUP_MEMBERS_MAX);
    for (uint32_t i = 0; i < GRAPH_EDGES_MAX; i++) {
        uint32_t a = costs_edge_a(f->work.edges[i]);
        uint32_t b = costs_edge_b(f->work.edges[i]);
        assert_int_equal(f->work.edges[i] >> 32, costs_of_edge(&f->costs, a, b));
        assert_true(i == 0 || f->work.edges[i - 1] < f->work.edges[i]);
        graph_join(&f->graph, a, b);
    }
    assert_int_equal(graph_edges_count(&f->graph), GRAPH_EDGES_MAX);
}

/* ---- generators ---- */

/* Prim, to compare with. */
static uint64_t least_tree_us(const struct costs *costs) {
    uint32_t nearest[GROUP_MEMBERS_MAX];
    bool is_in[GROUP_MEMBERS_MAX] = {true};
    uint64_t sum = 0;
    for (uint32_t i = 1; i < costs->members_count; i++) {
        nearest[i] = costs_of_edge(costs, 0, i);
    }
    for (uint32_t round = 1; round < costs->members_count; round++) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < costs->members_count; i++) {
            best = !is_in[i] && (best == 0 || nearest[i] < nearest[best]) ? i : best;
        }
        is_in[best] = true;
        sum += nearest[best];
        for (uint32_t i = 1; i < costs->members_count; i++) {
            uint32_t cost_us = i == best ? COSTS_UNKNOWN_US : costs_of_edge(costs, best, i);
            nearest[i] = cost_us < nearest[i] ? cost_us : nearest[i];
        }
    }
    return sum;
}

static void check_made(const struct topology_rules *rules, struct fixture *f) {
    topology_make(rules, &f->costs, &f->work, &f->graph);
    assert_int_equal(f->graph.nodes_count, f->costs.members_count);
    assert_true(topology_keeps_rules(rules, &f->graph));
    struct topology_judgement judgement;
    topology_judge(&f->graph, &f->costs, &judgement);
    uint32_t k = topology_k(rules, f->costs.members_count);
    assert_true(judgement.degree_min >= k);
    if (rules->kind == TOPOLOGY_SPARSE) {
        assert_true(judgement.connectivity >= k);
        assert_true(judgement.hops_max <= topology_hops_max(f->costs.members_count));
        assert_true(k < 2 || judgement.weakness.bridges_count + judgement.weakness.articulations_count == 0);
    }
    topology_make(rules, &f->costs, &f->work, &f->other);
    assert_memory_equal(&f->graph, &f->other, sizeof f->graph);
}

static void made_topologies_keep_their_rules(void **state) {
    struct fixture *f = *state;
    struct prng prng;
    prng_init(&prng, 4);
    for (uint32_t i = 0; i < MATRICES_COUNT; i++) {
        make_costs(&f->costs, (uint32_t)prng_between(&prng, 1, SIZE_MAX_SMALL), &prng);
        struct topology_rules rules = {.kind = i % 4 == 0 ? TOPOLOGY_TREE : TOPOLOGY_SPARSE};
        rules.k = (uint32_t)prng_below(&prng, TOPOLOGY_K_MAX + 1) / (1 + i % 3);
        rules.degree_max = (uint32_t)prng_below(&prng, 12);
        check_made(&rules, f);
    }
}

/* The first edges are those of a spanning tree that none is cheaper than. */
static void a_tree_of_one_edge_each_is_the_cheapest(void **state) {
    struct fixture *f = *state;
    struct prng prng;
    prng_init(&prng, 5);
    struct topology_rules rules = {.kind = TOPOLOGY_TREE, .k = 1};
    for (uint32_t i = 0; i < 50; i++) {
        make_costs(&f->costs, (uint32_t)prng_between(&prng, 2, 40), &prng);
        topology_make(&rules, &f->costs, &f->work, &f->graph);
        assert_int_equal(graph_edges_count(&f->graph), f->costs.members_count - 1);
        assert_true(costs_of_graph(&f->costs, &f->graph, NULL) == least_tree_us(&f->costs));
    }
}

/* Without slow members and hubs, the generator does what it says: no edge is left that could be deleted. */
static void no_edge_of_a_sparse_topology_can_be_deleted(void **state) {
    struct fixture *f = *state;
    struct prng prng;
    prng_init(&prng, 6);
    struct topology_rules rules = {.degree_max = GROUP_MEMBERS_MAX};
    for (uint32_t round = 0; round < 20; round++) {
        costs_init(&f->costs, 18);
        for (uint32_t i = 0; i < 18 * 18; i++) {
            if (i / 18 != i % 18) {
                costs_set(&f->costs, i / 18, i % 18, (uint32_t)prng_between(&prng, 1000, 5000));
            }
        }
        rules.k = 1 + round % 3;
        topology_make(&rules, &f->costs, &f->work, &f->graph);
        for (uint32_t i = 0; i < 18 * 18; i++) {
            if (i / 18 < i % 18 && graph_is_joined(&f->graph, i / 18, i % 18)) {
                f->other = f->graph;
                graph_part(&f->other, i / 18, i % 18);
                assert_false(topology_keeps_rules(&rules, &f->other));
            }
        }
    }
}

static void the_smallest_groups_are_complete(void **state) {
    struct fixture *f = *state;
    struct prng prng;
    prng_init(&prng, 7);
    for (uint32_t members_count = 1; members_count <= 3; members_count++) {
        for (unsigned kind = 0; kind < 2; kind++) {
            struct topology_rules rules = {.kind = (enum topology_kind)kind};
            make_costs(&f->costs, members_count, &prng);
            check_made(&rules, f);
            assert_int_equal(graph_edges_count(&f->graph), members_count * (members_count - 1) / 2);
        }
    }
    assert_int_equal(topology_hops_max(1), 0);
    assert_int_equal(topology_hops_max(2), 1);
    assert_int_equal(topology_hops_max(20), 5);
    assert_int_equal(topology_hops_max(256), TOPOLOGY_HOPS_MAX);
}

/* Two sites of ten, near each other inside, far apart; a member behind a modem. */
static void make_sites(struct costs *costs, struct prng *prng) {
    costs_init(costs, 21);
    for (uint32_t a = 0; a < 21; a++) {
        for (uint32_t b = a + 1; b < 21; b++) {
            uint32_t cost_us = b == 20 ? 280000000 : a / 10 == b / 10 ? 100000 : 3000000;
            set_both(costs, a, b, cost_us + (uint32_t)prng_below(prng, cost_us / 10));
        }
    }
}

static void slow_links_and_slow_members_are_avoided(void **state) {
    struct fixture *f = *state;
    struct prng prng;
    struct topology_rules rules = {0};
    for (uint64_t seed = 0; seed < 20; seed++) {
        prng_init(&prng, seed);
        make_sites(&f->costs, &prng);
        topology_make(&rules, &f->costs, &f->work, &f->graph);
        uint32_t between_count = 0;
        for (uint32_t a = 0; a < 10; a++) {
            for (uint32_t b = 10; b < 20; b++) {
                between_count += graph_is_joined(&f->graph, a, b);
            }
        }
        assert_int_equal(between_count, 2);
        assert_int_equal(graph_degree(&f->graph, 20), 2);
        /* The modem's is the only slow way that an update goes. */
        assert_true(costs_propagation_us(&f->costs, &f->graph, 0) < 2 * UINT64_C(280000000));
        f->other = f->graph;
        graph_part(&f->other, 20, graph_set_next(&f->other.neighbours[20], 0));
        graph_part(&f->other, 20, graph_set_next(&f->other.neighbours[20], 0));
        f->other.nodes_count = 20;
        assert_true(graph_is_k_connected(&f->other, 2)); /* the others do not need the modem */
    }
}

static void nobody_relays_for_others_before_he_is_measured(void **state) {
    struct fixture *f = *state;
    struct prng prng;
    prng_init(&prng, 8);
    make_sites(&f->costs, &prng);
    for (uint32_t other = 0; other < 20; other++) {
        set_both(&f->costs, 20, other, COSTS_UNKNOWN_US);
    }
    struct topology_rules rules = {0};
    topology_make(&rules, &f->costs, &f->work, &f->graph);
    struct topology_judgement judgement;
    topology_judge(&f->graph, &f->costs, &judgement);
    assert_int_equal(graph_degree(&f->graph, 20), 2);
    assert_int_equal(judgement.unknown_count, 2);
    assert_true(topology_keeps_rules(&rules, &f->graph));
}

static void without_any_estimate_nobody_becomes_the_hub(void **state) {
    struct fixture *f = *state;
    struct topology_rules rules = {.degree_max = GROUP_MEMBERS_MAX};
    costs_init(&f->costs, 64);
    check_made(&rules, f);
    struct topology_judgement judgement;
    topology_judge(&f->graph, &f->costs, &judgement);
    assert_true(judgement.degree_max <= 16);
    assert_int_equal(judgement.unknown_count, judgement.edges_count);
    assert_int_equal(judgement.cost_us, 0);
}

static void the_cap_of_degrees_is_kept(void **state) {
    struct fixture *f = *state;
    struct prng prng;
    prng_init(&prng, 9);
    costs_init(&f->costs, 60); /* 0 is near to everybody: a hub, if it may */
    for (uint32_t i = 0; i < 60 * 60; i++) {
        uint32_t a = i / 60;
        uint32_t b = i % 60;
        if (a < b) {
            set_both(&f->costs, a, b, (a == 0 ? 1000 : 5000) + (uint32_t)prng_below(&prng, 1000));
        }
    }
    struct topology_rules rules = {.degree_max = GROUP_MEMBERS_MAX};
    check_made(&rules, f);
    assert_true(graph_degree(&f->graph, 0) > 20);
    rules.degree_max = 0;
    check_made(&rules, f);
    struct topology_judgement judgement;
    topology_judge(&f->graph, &f->costs, &judgement);
    assert_int_equal(judgement.degree_max, TOPOLOGY_DEGREE_DEFAULT);
}

/* ---- stability ---- */

static void name_members(struct topology *topology, uint32_t members_count) {
    topology->members_count = members_count;
    for (uint32_t i = 0; i < members_count; i++) {
        topology->members[i] = (struct peer){.address = address_ipv4(10, 0, 0, (uint8_t)(i + 1), 7070)};
        memset(topology->members[i].key, (int)(i + 1), PEER_KEY_SIZE);
        topology->members[i].key[0] = 1;
    }
}

/* A square, and each of its edges. */
static void make_square(struct fixture *f) {
    costs_init(&f->costs, 4);
    graph_init(&f->graph, 4);
    for (uint32_t a = 0; a < 4; a++) {
        set_both(&f->costs, a, (a + 1) % 4, 1000);
        graph_join(&f->graph, a, (a + 1) % 4);
    }
    set_both(&f->costs, 0, 2, 1000);
    set_both(&f->costs, 1, 3, 1000);
    name_members(&f->topology, 4);
    name_members(&f->next, 4);
    assert_int_equal(topology_set_edges(&f->topology, &f->graph, &f->costs), ERR_OK);
    f->other = f->graph; /* the same square with two crossed sides */
    graph_part(&f->other, 0, 1);
    graph_part(&f->other, 2, 3);
    graph_join(&f->other, 0, 2);
    graph_join(&f->other, 1, 3);
    assert_int_equal(topology_set_edges(&f->next, &f->other, &f->costs), ERR_OK);
}

static void a_topology_is_replaced_only_for_a_tenth_of_its_cost(void **state) {
    struct fixture *f = *state;
    struct topology_rules rules = {0};
    make_square(f);
    assert_false(topology_is_better(&f->next, &f->topology, &rules, &f->costs)); /* equal */
    set_both(&f->costs, 0, 2, 601);
    assert_false(topology_is_better(&f->next, &f->topology, &rules, &f->costs)); /* 3,601 of 4,000 */
    set_both(&f->costs, 0, 2, 600);
    assert_true(topology_is_better(&f->next, &f->topology, &rules, &f->costs));
    assert_false(topology_is_better(&f->topology, &f->next, &rules, &f->costs));
    set_both(&f->costs, 0, 1, COSTS_UNKNOWN_US);
    set_both(&f->costs, 0, 2, 1000);
    assert_true(topology_is_better(&f->next, &f->topology, &rules, &f->costs));
}

static void a_topology_is_replaced_for_members_and_for_rules(void **state) {
    struct fixture *f = *state;
    struct topology_rules rules = {0};
    make_square(f);
    f->next.members[3].key[5]++;
    assert_true(topology_is_better(&f->next, &f->topology, &rules, &f->costs));
    make_square(f);
    graph_part(&f->graph, 0, 1); /* what holds is a chain: cheaper, but broken by one failure */
    assert_int_equal(topology_set_edges(&f->topology, &f->graph, &f->costs), ERR_OK);
    assert_true(topology_is_better(&f->next, &f->topology, &rules, &f->costs));
    assert_false(topology_is_better(&f->topology, &f->next, &rules, &f->costs));
}

/* Estimates that vary by a twentieth, as damped ones do, change nothing. */
static void a_topology_stays_while_costs_vary_little(void **state) {
    struct fixture *f = *state;
    struct prng prng;
    struct topology_rules rules = {0};
    prng_init(&prng, 10);
    make_sites(&f->costs, &prng);
    struct costs *first = malloc(sizeof *first);
    assert_non_null(first);
    *first = f->costs;
    name_members(&f->topology, 21);
    name_members(&f->next, 21);
    topology_make(&rules, &f->costs, &f->work, &f->graph);
    assert_int_equal(topology_set_edges(&f->topology, &f->graph, &f->costs), ERR_OK);
    for (unsigned round = 0; round < 50; round++) {
        for (uint32_t a = 0; a < 21; a++) {
            for (uint32_t b = a + 1; b < 21; b++) {
                uint32_t cost_us = costs_of_edge(first, a, b);
                set_both(&f->costs, a, b, cost_us - cost_us / 20 + (uint32_t)prng_below(&prng, cost_us / 10));
            }
        }
        topology_make(&rules, &f->costs, &f->work, &f->other);
        assert_int_equal(topology_set_edges(&f->next, &f->other, &f->costs), ERR_OK);
        assert_false(topology_is_better(&f->next, &f->topology, &rules, &f->costs));
    }
    free(first);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_edge_costs_what_its_dearer_direction_does),
        cmocka_unit_test(an_update_is_handed_on_when_all_of_it_is_there),
        cmocka_unit_test(edges_are_sorted_by_cost),
        cmocka_unit_test(made_topologies_keep_their_rules),
        cmocka_unit_test(a_tree_of_one_edge_each_is_the_cheapest),
        cmocka_unit_test(no_edge_of_a_sparse_topology_can_be_deleted),
        cmocka_unit_test(the_smallest_groups_are_complete),
        cmocka_unit_test(slow_links_and_slow_members_are_avoided),
        cmocka_unit_test(nobody_relays_for_others_before_he_is_measured),
        cmocka_unit_test(without_any_estimate_nobody_becomes_the_hub),
        cmocka_unit_test(the_cap_of_degrees_is_kept),
        cmocka_unit_test(a_topology_is_replaced_only_for_a_tenth_of_its_cost),
        cmocka_unit_test(a_topology_is_replaced_for_members_and_for_rules),
        cmocka_unit_test(a_topology_stays_while_costs_vary_little),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
