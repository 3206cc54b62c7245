/* The experiment that compares generators of update topologies: what must hold in every group. */
#include <stdlib.h>

#include "../unit/unit.h"
#include "sim/experiments/experiment.h"
#include "sim/experiments/group_costs.h"

enum { NODES_COUNT = 20, RUNS_COUNT = 20, TREE_ROW = 0, SPARSE_ROW = 1, RING_ROW = 2 };

static double value_of(const struct report *report, uint32_t row, const char *column) {
    for (uint32_t i = 0; i < report->columns_count; i++) {
        if (bytes_equal(bytes_of_string(report->columns[i].name), bytes_of_string(column))) {
            return report_at(report, row, i)->number;
        }
    }
    fail_msg("there is no column \"%s\"", column);
    return 0;
}

static void run(const char *name, uint64_t seed, struct report *report) {
    struct experiment_args args = {.seed = seed, .nodes = NODES_COUNT, .runs = RUNS_COUNT};
    struct err_detail detail = {0};
    const struct experiment *experiment = experiment_find(bytes_of_string(name));
    assert_non_null(experiment);
    assert_int_equal(experiment_start(experiment, args, report, &detail), ERR_OK);
    assert_int_equal(report_rows_count(report), 4);
}

static void ours_survives_any_failure_where_the_paper_s_does_not(void **state) {
    (void)state;
    struct report report;
    run("group-topology-plane", 1, &report);
    assert_true(value_of(&report, SPARSE_ROW, "bridges") == 0);
    assert_true(value_of(&report, SPARSE_ROW, "articulation points") == 0);
    assert_true(value_of(&report, SPARSE_ROW, "diameter (hops)") <= 5);
    assert_true(value_of(&report, TREE_ROW, "with a bridge (%)") >= 80);
    assert_true(value_of(&report, TREE_ROW, "diameter (hops)") > 7);
    assert_true(value_of(&report, RING_ROW, "diameter (hops)") == NODES_COUNT / 2);
    assert_true(value_of(&report, RING_ROW, "bridges") == 0);
    assert_true(value_of(&report, RING_ROW, "cost (s)") > value_of(&report, SPARSE_ROW, "cost (s)"));
    report_done(&report);
}

/* One slow hop at the end is what a modem costs; a second one would double the time. */
static void ours_does_not_pay_for_that_with_slow_links(void **state) {
    (void)state;
    struct report report;
    run("group-topology", 1, &report);
    double tree_s = value_of(&report, TREE_ROW, "update reaches all (s)");
    assert_true(value_of(&report, SPARSE_ROW, "update reaches all (s)") < 1.1 * tree_s);
    assert_true(value_of(&report, RING_ROW, "update reaches all (s)") > 1.5 * tree_s);
    assert_true(value_of(&report, SPARSE_ROW, "cost (of the tree's)") < 1.15);
    report_done(&report);
}

static void equal_seeds_give_equal_digests(void **state) {
    (void)state;
    struct report reports[3];
    char texts[3][DIGEST_TEXT_SIZE_MAX];
    for (unsigned i = 0; i < 3; i++) {
        run("group-topology", 7 + i / 2, &reports[i]);
        digest_format(&reports[i].digest, texts[i]);
        report_done(&reports[i]);
    }
    assert_string_equal(texts[0], texts[1]);
    assert_string_not_equal(texts[0], texts[2]);
}

static void refuses_groups_that_cannot_be(void **state) {
    (void)state;
    struct experiment_args args = {.seed = 1, .nodes = GROUP_MEMBERS_MAX + 1, .runs = 1};
    struct report report;
    assert_int_equal(experiment_group_topology(&args, &report, NULL), ERR_INVALID);
    report_done(&report);
}

/* What the model of the sites says of itself: near, far, overseas and modems are all there. */
static void the_sites_are_as_they_are_said_to_be(void **state) {
    (void)state;
    struct costs *costs = malloc(sizeof *costs);
    assert_non_null(costs);
    struct prng prng;
    prng_init(&prng, 1);
    group_costs_make(GROUP_COSTS_SITES, &prng, 200, costs);
    uint32_t counts[4] = {0};
    for (uint32_t a = 0; a < 200; a++) {
        for (uint32_t b = a + 1; b < 200; b++) {
            uint32_t cost_us = costs_of_edge(costs, a, b);
            assert_int_equal(cost_us, costs->us[b][a]);
            counts[cost_us < 300000 ? 0 : cost_us < 6000000 ? 1 : cost_us < 30000000 ? 2 : 3]++;
        }
    }
    for (unsigned i = 0; i < 4; i++) {
        assert_true(counts[i] > 200);
    }
    free(costs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ours_survives_any_failure_where_the_paper_s_does_not),
        cmocka_unit_test(ours_does_not_pay_for_that_with_slow_links),
        cmocka_unit_test(equal_seeds_give_equal_digests),
        cmocka_unit_test(refuses_groups_that_cannot_be),
        cmocka_unit_test(the_sites_are_as_they_are_said_to_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
