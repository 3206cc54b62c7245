#include "crawl/rules/revisit.h"

#include <math.h>

#include "sim/experiments/experiment.h"
#include "unit.h"

static const uint64_t DAY_US = UINT64_C(86400) * 1000000;
static const int64_t START_US = INT64_C(1767322800) * 1000000;

/* Visits at equal distances. */
static struct revisit regular(uint32_t visits, uint32_t changes, uint64_t distance_us) {
    struct revisit revisit = {.visits_count = visits, .changes_count = changes, .first_us = START_US};
    revisit.last_us = START_US + (int64_t)(distance_us * (visits - 1));
    revisit.previous_us = visits > 1 ? revisit.last_us - (int64_t)distance_us : 0;
    return revisit;
}

static uint64_t wait_us(const struct revisit *revisit) {
    return (uint64_t)(revisit_due_us(revisit, DAY_US, 0) - revisit->last_us);
}

static void the_rate_is_that_of_the_formula(void **state) {
    (void)state;
    for (uint32_t n = 1; n < 3000; n = n * 3 / 2 + 1) {
        for (uint32_t x = 1; x <= n; x += n / 7 + 1) {
            struct revisit revisit = regular(n + 1, x, DAY_US);
            double rate = -log((n - x + 0.5) / (n + 0.5)) / (double)DAY_US;
            double interval = (double)revisit_change_interval_us(&revisit);
            assert_true(fabs(interval * rate - 1) < 1e-6);
        }
    }
    struct revisit still = regular(100, 0, DAY_US);
    assert_true(revisit_change_interval_us(&still) == UINT64_MAX);
}

static void the_second_visit_is_due_after_one_period(void **state) {
    (void)state;
    struct revisit revisit = regular(1, 0, DAY_US);
    assert_int_equal(wait_us(&revisit), DAY_US);
}

static void what_always_changes_is_visited_each_period(void **state) {
    (void)state;
    for (uint32_t visits = 2; visits < 1000; visits++) {
        struct revisit revisit = regular(visits, visits - 1, DAY_US);
        assert_int_equal(wait_us(&revisit), DAY_US);
    }
}

static void what_never_changes_is_trusted_little_by_little(void **state) {
    (void)state;
    struct revisit revisit = regular(1, 0, DAY_US);
    for (uint64_t expected_us = DAY_US; expected_us < 32 * DAY_US; expected_us *= 2) {
        assert_int_equal(wait_us(&revisit), expected_us);
        revisit.previous_us = revisit.last_us;
        revisit.last_us += (int64_t)expected_us;
        revisit.visits_count++;
    }
    for (int i = 0; i < 100; i++) {
        assert_int_equal(wait_us(&revisit), 32 * DAY_US);
        revisit.previous_us = revisit.last_us;
        revisit.last_us += 32 * (int64_t)DAY_US;
        revisit.visits_count++;
    }
}

static void a_change_brings_it_back_sooner(void **state) {
    (void)state;
    struct revisit still = regular(20, 1, 8 * DAY_US);
    struct revisit moving = regular(20, 6, 8 * DAY_US);
    assert_true(wait_us(&moving) < wait_us(&still));
    /* 6 of 19 in eight days each: about one change in 20 days; due after half of that. */
    assert_true(wait_us(&moving) > 9 * DAY_US && wait_us(&moving) < 12 * DAY_US);
}

static void target_and_bounds_hold_whatever_the_history(void **state) {
    (void)state;
    static const struct revisit odd[] = {
        {.visits_count = 2, .changes_count = 1, .first_us = 5, .previous_us = 5, .last_us = 5},
        {.visits_count = 2, .changes_count = 9, .first_us = 0, .previous_us = 0, .last_us = 0},
        {.visits_count = UINT32_MAX, .changes_count = 1, .first_us = 0, .previous_us = 1, .last_us = 2},
        {.visits_count = UINT32_MAX, .changes_count = UINT32_MAX, .first_us = 0, .last_us = INT64_C(1) << 60},
        {.visits_count = 3, .changes_count = 1, .first_us = 0, .previous_us = 9, .last_us = INT64_C(1) << 60},
        {.visits_count = 3, .changes_count = 0, .first_us = 7, .previous_us = 9, .last_us = 8},
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        for (uint32_t target = 0; target <= 1000; target += 100) {
            uint64_t us = (uint64_t)(revisit_due_us(&odd[i], DAY_US, target) - odd[i].last_us);
            assert_true(us >= DAY_US && us <= 32 * DAY_US);
        }
    }
}

/* In the simulated year of docs/experiments.md: most fetches are saved, few versions are lost. */
static void saves_most_fetches_and_loses_few_versions(void **state) {
    (void)state;
    struct report report;
    const struct experiment *experiment = experiment_find(BYTES("revisit"));
    assert_non_null(experiment);
    struct experiment_args args = {.seed = 9, .nodes = 100, .runs = 1};
    assert_int_equal(experiment_start(experiment, args, &report, NULL), ERR_OK);
    bool is_default_there = false;
    for (uint32_t row = 0; row < report_rows_count(&report); row++) {
        if (report_at(&report, row, 0)->number == REVISIT_TARGET_PERCENT) {
            is_default_there = true;
            assert_true(report_at(&report, row, 2)->number > 60); /* fetches saved */
            assert_true(report_at(&report, row, 5)->number < 8);  /* of what daily sees */
        }
    }
    assert_true(is_default_there);
    report_done(&report);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rate_is_that_of_the_formula),
        cmocka_unit_test(the_second_visit_is_due_after_one_period),
        cmocka_unit_test(what_always_changes_is_visited_each_period),
        cmocka_unit_test(what_never_changes_is_trusted_little_by_little),
        cmocka_unit_test(a_change_brings_it_back_sooner),
        cmocka_unit_test(target_and_bounds_hold_whatever_the_history),
        cmocka_unit_test(saves_most_fetches_and_loses_few_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
