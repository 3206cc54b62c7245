/* ring-links in the small: every link reaches its holders (the experiment checks it), and costs what it may.
 */
#include "sim/experiments/experiment.h"

#include "../unit/unit.h"

enum { NODES = 150, ROWS = 4, COLUMN_BYTES = 1, COLUMN_FOUND = 4 };

static void run(struct report *report) {
    const struct experiment *experiment = experiment_find(BYTES("ring-links"));
    struct experiment_args args = {.seed = 1, .nodes = NODES, .runs = 2};
    struct err_detail detail = {0};
    assert_non_null(experiment);
    if (experiment_start(experiment, args, report, &detail) != ERR_OK) {
        fail_msg("%s", detail.text);
    }
    assert_int_equal(report_rows_count(report), ROWS);
}

static void links_cost_little_and_runs_repeat(void **state) {
    (void)state;
    struct report first;
    struct report second;
    run(&first);
    run(&second);
    assert_true(report_at(&first, 0, COLUMN_BYTES)->number > 400); /* a lookup for each */
    assert_true(report_at(&first, 1, COLUMN_BYTES)->number > 60);
    assert_true(report_at(&first, 2, COLUMN_BYTES)->number <= 27);
    assert_true(report_at(&first, 3, COLUMN_FOUND)->number < report_at(&first, 2, COLUMN_FOUND)->number);
    assert_memory_equal(&first.digest, &second.digest, sizeof first.digest);
    report_done(&first);
    report_done(&second);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_cost_little_and_runs_repeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
