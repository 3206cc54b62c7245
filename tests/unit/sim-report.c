#include "sim/report/report.h"

#include "sim/experiments/experiment.h"
#include "sim/report/plot.h"

#include "unit.h"

static void fill(struct report *report) {
    report_init(report, "Half & <half>", "value");
    report_column(report, "setting", 0, REPORT_TEXT);
    report_column(report, "n", 0, REPORT_X);
    report_column(report, "ours", 2, REPORT_Y);
    report_column(report, "paper", 1, REPORT_Y);
    report_text(report, "small, \"plain\"");
    report_number(report, 10);
    report_number(report, 1.005);
    report_number(report, NAN);
    report_text(report, "large");
    report_number(report, 1000);
    report_number(report, 12.5);
    report_number(report, 12.44);
}

static bool contains(const struct buf *buf, const char *text) {
    return bytes_find(buf_bytes(buf), bytes_of_string(text)) < buf->size;
}

static void writes_aligned_text_that_ends_with_the_digest(void **state) {
    (void)state;
    struct report report;
    struct buf out;
    fill(&report);
    buf_init(&out, 1 << 16);
    assert_int_equal(report_write_text(&report, &out), ERR_OK);
    assert_string_equal(buf_string(&out), "setting            n   ours  paper\n"
                                          "small, \"plain\"    10   1.00      -\n"
                                          "large           1000  12.50   12.4\n"
                                          "digest: 5692161d100b05e5ef30b01c2974aeeb\n");
    buf_done(&out);
    report_done(&report);
}

static void writes_csv_with_quotes_where_needed(void **state) {
    (void)state;
    struct report report;
    struct buf out;
    fill(&report);
    buf_init(&out, 1 << 16);
    assert_int_equal(report_write_csv(&report, &out), ERR_OK);
    assert_string_equal(buf_string(&out), "setting,n,ours,paper\r\n"
                                          "\"small, \"\"plain\"\"\",10,1.00,\r\n"
                                          "large,1000,12.50,12.4\r\n");
    buf_done(&out);
    report_done(&report);
}

static void plots_lines_with_ticks_and_legend(void **state) {
    (void)state;
    struct report report;
    struct buf out;
    fill(&report);
    buf_init(&out, 1 << 16);
    assert_int_equal(plot_write_svg(&report, &out), ERR_OK);
    assert_true(contains(&out, "Half &amp; &lt;half&gt;"));
    assert_true(contains(&out, ">800</text>") && contains(&out, ">1000</text>")); /* ticks of x */
    assert_true(contains(&out, ">ours</text>") && contains(&out, ">paper</text>"));
    assert_true(contains(&out, "d=\" M80.8") && contains(&out, " L560.0")); /* from 10 to 1000 of 1000 */
    buf_done(&out);
    report_done(&report);
}

static void plots_powers_of_two_at_equal_distances(void **state) {
    (void)state;
    struct report report;
    struct buf out;
    report_init(&report, "", "");
    report_column(&report, "n", 0, REPORT_X_LOGARITHMIC);
    report_column(&report, "ours", 0, REPORT_Y);
    report_column(&report, "paper", 0, REPORT_Y_EXPECTED);
    for (unsigned n = 256; n <= 4096; n *= 4) {
        report_number(&report, n);
        report_number(&report, 5);
        report_number(&report, 6);
    }
    buf_init(&out, 1 << 16);
    assert_int_equal(plot_write_svg(&report, &out), ERR_OK);
    assert_true(contains(&out, " M76.0 ") && contains(&out, " L318.0 ") && contains(&out, " L560.0 "));
    assert_true(contains(&out, ">512</text>") && contains(&out, ">2048</text>"));
    assert_true(contains(&out, "stroke-dasharray"));
    buf_done(&out);
    report_done(&report);
}

static void plots_a_line_for_each_number_of_a_series(void **state) {
    (void)state;
    struct report report;
    struct buf out;
    report_init(&report, "", "");
    report_column(&report, "loss", 0, REPORT_SERIES);
    report_column(&report, "n", 0, REPORT_X);
    report_column(&report, "ours", 0, REPORT_Y);
    for (unsigned i = 0; i < 4; i++) {
        report_number(&report, i / 2 * 10);
        report_number(&report, i % 2 * 100);
        report_number(&report, i);
    }
    buf_init(&out, 1 << 16);
    assert_int_equal(plot_write_svg(&report, &out), ERR_OK);
    assert_true(contains(&out, ">ours, loss 0</text>") && contains(&out, ">ours, loss 10</text>"));
    assert_true(contains(&out, "M76.0 380.0 L560.0 269.3\"/>")); /* from 0 to 1, and no further */
    buf_done(&out);
    report_done(&report);
}

static void plots_bars_where_rows_have_names(void **state) {
    (void)state;
    struct report report;
    struct buf out;
    report_init(&report, "Bars", "");
    report_column(&report, "name", 0, REPORT_TEXT);
    report_column(&report, "first", 1, REPORT_Y);
    report_column(&report, "hidden", 0, REPORT_SHOWN);
    report_column(&report, "second", 0, REPORT_Y);
    for (unsigned i = 1; i <= 2; i++) {
        report_text(&report, i == 1 ? "<one>" : "two");
        report_number(&report, 10.0 * i);
        report_number(&report, 77);
        report_number(&report, 0);
    }
    buf_init(&out, 1 << 16);
    assert_int_equal(plot_write_svg(&report, &out), ERR_OK);
    assert_true(contains(&out, ">&lt;one&gt;</text>") && contains(&out, ">first</text>"));
    assert_true(contains(&out, "width=\"87.5\"") && contains(&out, "width=\"175.0\"")); /* half, whole */
    assert_true(contains(&out, ">20.0</text>") && !contains(&out, ">77</text>"));
    buf_done(&out);
    report_done(&report);
}

static void refuses_to_plot_without_points(void **state) {
    (void)state;
    struct report report;
    struct buf out;
    report_init(&report, "", "");
    report_column(&report, "a", 0, REPORT_Y);
    report_number(&report, 1);
    buf_init(&out, 1 << 16);
    assert_int_equal(plot_write_svg(&report, &out), ERR_UNSUPPORTED);
    assert_int_equal(out.size, 0);
    buf_done(&out);
    report_done(&report);
}

static void sticks_at_its_limit_of_cells(void **state) {
    (void)state;
    struct report report;
    report_init(&report, "", "");
    report_column(&report, "a", 0, REPORT_SHOWN);
    for (unsigned i = 0; i < REPORT_CELLS_MAX; i++) {
        report_number(&report, i);
    }
    assert_int_equal(report.err, ERR_OK);
    report_number(&report, 0);
    assert_int_equal(report.err, ERR_LIMIT);
    report_done(&report);
}

static double number_at(const struct report *report, uint32_t row, uint32_t column) {
    return report_at(report, row, column)->number;
}

static bool is_of(const struct experiment *experiment, const char *family) {
    return strncmp(experiment->name, family, strlen(family)) == 0;
}

/* Few, so that it is quick; not too few, since nodes that have no full view join again and again. */
static uint32_t nodes_of(const struct experiment *experiment) {
    return is_of(experiment, "group-scale") ? 64 : is_of(experiment, "crowd-views") ? 16 : 8;
}

/* Sanitized, these take a minute; of each kind of world others are left. */
static bool is_left_out(const struct experiment *experiment) {
    static const char *const families[] = {
        "ring-partition", "crowd-theorem-1", "crowd-search-", "crowd-views",  "crowd-joined",
        "crowd-dropping", "crowd-absent",    "crowd-flood",   "crowd-timing", "group-scale-ways"};
    for (size_t i = 0; UNIT_IS_SANITIZED && i < sizeof families / sizeof families[0]; i++) {
        if (is_of(experiment, families[i])) {
            return true;
        }
    }
    /* Years take long, however few nodes there are: tests/sim/replicas.c. */
    return is_of(experiment, "ring-replicas") || is_of(experiment, "ring-sites") ||
           is_of(experiment, "ring-disks") || is_of(experiment, "ring-recruits-kept");
}

static void every_experiment_repeats_its_digest(void **state) {
    (void)state;
    enum { TIMES = UNIT_IS_SANITIZED ? 1 : 2 };
    for (size_t i = 0; i < experiments_count; i++) {
        if (is_left_out(&experiments[i])) {
            continue;
        }
        struct experiment_args args = {.seed = 3, .nodes = nodes_of(&experiments[i]), .runs = 1};
        char digests[TIMES][DIGEST_TEXT_SIZE_MAX];
        for (unsigned j = 0; j < TIMES; j++) {
            struct report report;
            assert_int_equal(experiment_start(&experiments[i], args, &report, NULL), ERR_OK);
            digest_format(&report.digest, digests[j]);
            report_done(&report);
        }
        assert_string_equal(digests[0], digests[TIMES - 1]);
    }
    if (TIMES == 1) {
        print_message("# sanitized: some experiments ran, once, and no digest was compared\n");
    }
}

static void the_network_measures_what_was_asked(void **state) {
    (void)state;
    struct report report;
    const struct experiment *experiment = experiment_find(BYTES("kernel-network"));
    assert_non_null(experiment);
    assert_int_equal(experiment_start(experiment, (struct experiment_args){.nodes = 100}, &report, NULL),
                     ERR_OK);
    for (uint32_t row = 0; row < report_rows_count(&report); row++) {
        for (uint32_t column = 0; column < 6; column += 2) {
            double difference = number_at(&report, row, column + 1) - number_at(&report, row, column);
            assert_true(difference < 1 && difference > -1);
        }
    }
    report_done(&report);
}

static void the_disk_loses_unsynced_records_and_no_others(void **state) {
    (void)state;
    struct report report;
    const struct experiment *experiment = experiment_find(BYTES("kernel-disk"));
    assert_non_null(experiment);
    assert_int_equal(experiment_start(experiment, (struct experiment_args){.nodes = 20}, &report, NULL),
                     ERR_OK);
    uint32_t last = report_rows_count(&report) - 1;
    for (uint32_t row = 0; row <= last; row++) {
        assert_true(number_at(&report, row, 2) > 0 && number_at(&report, row, 3) == 0);
    }
    assert_true(number_at(&report, 0, 5) == 0 && number_at(&report, last, 5) > 80);
    report_done(&report);
}

static void finds_experiments_by_name(void **state) {
    (void)state;
    assert_null(experiment_find(BYTES("kernel")));
    for (size_t i = 0; i < experiments_count; i++) {
        assert_ptr_equal(experiment_find(bytes_of_string(experiments[i].name)), &experiments[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_aligned_text_that_ends_with_the_digest),
        cmocka_unit_test(writes_csv_with_quotes_where_needed),
        cmocka_unit_test(plots_lines_with_ticks_and_legend),
        cmocka_unit_test(plots_powers_of_two_at_equal_distances),
        cmocka_unit_test(plots_a_line_for_each_number_of_a_series),
        cmocka_unit_test(plots_bars_where_rows_have_names),
        cmocka_unit_test(refuses_to_plot_without_points),
        cmocka_unit_test(sticks_at_its_limit_of_cells),
        cmocka_unit_test(every_experiment_repeats_its_digest),
        cmocka_unit_test(the_network_measures_what_was_asked),
        cmocka_unit_test(the_disk_loses_unsynced_records_and_no_others),
        cmocka_unit_test(finds_experiments_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
