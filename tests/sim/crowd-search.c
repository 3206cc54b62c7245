/* Searches in small crowds: nodes that limit their participation, how searches arrive, what is limited and
 * what not.
 */
#include "../unit/unit.h"
#include "sim/experiments/crowd_searches.h"
#include "sim/experiments/experiment.h"

enum { NODES_COUNT = 300, RUNS_COUNT = 2 };

static struct crowd_searches half(enum crowd_rules rules, enum crowd_part part) {
    return (struct crowd_searches){
        .seed = 1,
        .rules = rules,
        .nodes_count = NODES_COUNT,
        .runs_count = RUNS_COUNT,
        .view_size = 25,
        .fanout = 5,
        .part = part,
        .part_percent = 50,
    };
}

static struct crowd_searches_result run(const struct crowd_searches *searches) {
    struct crowd_searches_result result;
    struct digest digest;
    digest_init(&digest);
    assert_int_equal(crowd_searches_run(searches, &digest, &result), ERR_OK);
    assert_int_equal(result.asked_count, RUNS_COUNT * (NODES_COUNT - 1));
    if (searches->rules == CROWD_RULES_PAPER) {
        assert_int_equal(result.lost_room_count, 0);
    }
    return result;
}

static void everybody_finds_it_where_all_take_part(void **state) {
    (void)state;
    for (unsigned rules = CROWD_RULES_PAPER; rules <= CROWD_RULES_OURS; rules++) {
        struct crowd_searches searches = half(rules, CROWD_FULL);
        struct crowd_searches_result result = run(&searches);
        assert_int_equal(result.found_count, result.asked_count);
        /* A hop back for each hop there, and each failed try waits for both. */
        assert_true(crowd_searches_hops(&result) >= 1);
        assert_true(crowd_searches_hops_with_way_back(&result) >= 1.9 * crowd_searches_hops(&result));
    }
}

static void half_that_limit_themselves_cost_traffic_and_not_success(void **state) {
    (void)state;
    for (unsigned rules = CROWD_RULES_PAPER; rules <= CROWD_RULES_OURS; rules++) {
        struct crowd_searches all = half(rules, CROWD_FULL);
        struct crowd_searches query_only = half(rules, CROWD_QUERY_ONLY);
        struct crowd_searches mute = half(rules, CROWD_MUTE);
        struct crowd_searches_result of_all = run(&all);
        struct crowd_searches_result of_query_only = run(&query_only);
        struct crowd_searches_result of_mute = run(&mute);
        assert_int_equal(of_query_only.found_count, of_query_only.asked_count);
        assert_true(crowd_searches_success(&of_mute) > 97);
        assert_true(of_query_only.queries_count > of_all.queries_count);
        assert_true(of_query_only.queries_count < 3 * of_all.queries_count);
        assert_true(crowd_searches_hops(&of_mute) > crowd_searches_hops(&of_all));
    }
}

/* Beyond this share the crowd falls apart; if it did not, mute nodes would not be mute. */
static void nine_of_ten_mute_are_too_many(void **state) {
    (void)state;
    struct crowd_searches searches = half(CROWD_RULES_PAPER, CROWD_MUTE);
    searches.part_percent = 90;
    struct crowd_searches_result result = run(&searches);
    assert_true(crowd_searches_success(&result) < 80);
}

static void dropped_repeats_save_queries(void **state) {
    (void)state;
    struct crowd_searches paper = half(CROWD_RULES_PAPER, CROWD_QUERY_ONLY);
    struct crowd_searches ours = half(CROWD_RULES_OURS, CROWD_QUERY_ONLY);
    paper.part_percent = 90;
    ours.part_percent = 90;
    struct crowd_searches_result of_paper = run(&paper);
    struct crowd_searches_result of_ours = run(&ours);
    assert_int_equal(of_ours.found_count, of_ours.asked_count);
    assert_true(of_ours.queries_count < of_paper.queries_count);
}

/* Where it is not acknowledged: then another neighbour is asked instead. */
static void dropping_by_chance_is_kinder_than_mute_nodes(void **state) {
    (void)state;
    struct crowd_searches mute = half(CROWD_RULES_PAPER, CROWD_MUTE);
    struct crowd_searches dropping = half(CROWD_RULES_PAPER, CROWD_FULL);
    mute.part_percent = 70;
    dropping.part_percent = 0;
    dropping.drop_percent = 70;
    struct crowd_searches_result of_mute = run(&mute);
    struct crowd_searches_result of_dropping = run(&dropping);
    dropping.is_drop_acknowledged = true;
    struct crowd_searches_result of_silently_dropping = run(&dropping);
    assert_true(of_dropping.found_count > of_mute.found_count);
    assert_true(of_dropping.found_count > of_silently_dropping.found_count);
}

static void all_ring_services_find_it_too(void **state) {
    (void)state;
    for (unsigned rules = CROWD_RULES_PAPER; rules <= CROWD_RULES_OURS; rules++) {
        struct crowd_searches searches = half(rules, CROWD_FULL);
        searches.arrivals = CROWD_JOINED_AS_DESCRIBED;
        struct crowd_searches_result result = run(&searches);
        assert_int_equal(result.found_count, result.asked_count);
    }
}

static void equal_seeds_give_equal_worlds(void **state) {
    (void)state;
    struct digest digests[3];
    for (unsigned i = 0; i < 3; i++) {
        struct crowd_searches searches = half(CROWD_RULES_OURS, CROWD_MUTE);
        struct crowd_searches_result result;
        searches.seed = i == 2 ? 8 : 7;
        searches.nodes_count = 60;
        digest_init(&digests[i]);
        assert_int_equal(crowd_searches_run(&searches, &digests[i], &result), ERR_OK);
    }
    assert_memory_equal(&digests[0], &digests[1], sizeof digests[0]);
    assert_memory_not_equal(&digests[0], &digests[2], sizeof digests[0]);
}

/* ---- whole experiments ---- */

static double cell(const struct report *report, uint32_t row, uint32_t column) {
    const struct report_cell *found = report_at(report, row, column);
    assert_false(found->is_missing);
    return found->number;
}

static void a_try_that_is_not_waited_for_costs_queries(void **state) {
    (void)state;
    struct report report;
    struct err_detail detail = {0};
    struct experiment_args args = {.seed = 1, .runs = 1};
    assert_int_equal(experiment_crowd_timing(&args, &report, &detail), ERR_OK);
    for (uint32_t column = 1; column <= 4; column++) {
        double last = cell(&report, report_rows_count(&report) - 1, column);
        assert_true(last < 25);
        assert_true(cell(&report, 0, column) > 1.5 * last);
    }
    report_done(&report);
}

static void what_nobody_has_floods_less_where_it_is_remembered(void **state) {
    (void)state;
    struct report report;
    struct err_detail detail = {0};
    struct experiment_args args = {.seed = 1, .nodes = 150, .runs = 20};
    assert_int_equal(experiment_crowd_absent(&args, &report, &detail), ERR_OK);
    assert_true(3 * cell(&report, 1, 1) < cell(&report, 0, 1)); /* repeats dropped */
    assert_true(2 * cell(&report, 2, 1) < cell(&report, 1, 1)); /* and remembered */
    report_done(&report);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_finds_it_where_all_take_part),
        cmocka_unit_test(half_that_limit_themselves_cost_traffic_and_not_success),
        cmocka_unit_test(nine_of_ten_mute_are_too_many),
        cmocka_unit_test(dropped_repeats_save_queries),
        cmocka_unit_test(dropping_by_chance_is_kinder_than_mute_nodes),
        cmocka_unit_test(all_ring_services_find_it_too),
        cmocka_unit_test(equal_seeds_give_equal_worlds),
        cmocka_unit_test(a_try_that_is_not_waited_for_costs_queries),
        cmocka_unit_test(what_nobody_has_floods_less_where_it_is_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
