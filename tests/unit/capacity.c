/* capacity: every figure of the thesis's chapters 3, 4.4 and 6, each formula, absurd inputs. */
#include "protocol/copies/capacity.h"

#include "unit.h"

#include <math.h>
#include <string.h>

static void assert_within(double value, double expected, double share, int line) {
    if (!(fabs(value - expected) <= share * fabs(expected))) {
        fail_msg("line %d: %.10g is not within %g of %.10g", line, value, share, expected);
    }
}

/* What the thesis prints, to be met within 1 %. */
#define assert_thesis(value, expected) assert_within((value), (expected), 0.01, __LINE__)
#define assert_exact(value, expected) assert_within((value), (expected), 1e-9, __LINE__)

static struct capacity compute(const struct capacity_inputs *inputs) {
    struct capacity capacity;
    struct err_detail detail = {0};
    if (capacity_compute(inputs, &capacity, &detail) != ERR_OK) {
        fail_msg("%s", detail.text);
    }
    return capacity;
}

static struct capacity compute_preset(enum capacity_preset preset) {
    struct capacity_inputs inputs;
    capacity_preset(preset, &inputs);
    return compute(&inputs);
}

/* ---- the thesis ---- */

static void gives_table_3_2(void **state) {
    (void)state;
    static const struct capacity_volume expected[CAPACITY_ROWS_COUNT] = {
        [CAPACITY_SNAPSHOT_PAGES] = {2e9, 24e12, 6e12},
        [CAPACITY_SNAPSHOT_EMBEDS] = {1.54e9, 50e12, 50e12},
        [CAPACITY_SNAPSHOT] = {3.54e9, 74e12, 56e12},
        [CAPACITY_DAY_PAGES_CHANGED] = {100e6, 1.2e12, 300e9},
        [CAPACITY_DAY_PAGES_ADDED] = {10e6, 120e9, 30e9},
        [CAPACITY_DAY_PAGES] = {110e6, 1.3e12, 330e9},
        [CAPACITY_DAY_EMBEDS] = {7.7e6, 250e9, 250e9},
        [CAPACITY_DAY] = {118e6, 1.6e12, 580e9},
        [CAPACITY_MONTH_PAGES] = {3.3e9, 40e12, 10e12},
        [CAPACITY_MONTH_EMBEDS] = {231e6, 7.5e12, 7.5e12},
        [CAPACITY_MONTH] = {3.5e9, 47.5e12, 17.5e12},
    };
    struct capacity capacity = compute_preset(CAPACITY_THESIS);
    for (size_t i = 0; i < CAPACITY_ROWS_COUNT; i++) {
        assert_thesis(capacity.rows[i].objects_count, expected[i].objects_count);
        assert_thesis(capacity.rows[i].size, expected[i].size);
        assert_thesis(capacity.rows[i].stored_size, expected[i].stored_size);
    }
}

static void gives_the_storage_and_nodes_of_chapters_3_3_and_6_1(void **state) {
    (void)state;
    struct capacity_inputs inputs;
    capacity_preset(CAPACITY_THESIS, &inputs);
    struct capacity capacity = compute(&inputs);
    assert_thesis(capacity.stored_size, 213.5e12);
    assert_thesis(capacity.replicated_size, 1281e12);
    assert_thesis(capacity.nodes_needed, 12810);
    assert_exact(capacity.nodes_count, 20000);
    assert_thesis(capacity.urls_per_node, 177000);
    assert_within(capacity.seen_list_size, 70e9, 0.012, __LINE__); /* 70.8: the thesis cuts */
    inputs.months = 12;
    capacity = compute(&inputs);
    assert_thesis(capacity.stored_size, 266e12);
    assert_thesis(capacity.replicated_size, 1.6e15);
    assert_thesis(capacity.nodes_needed, 16000);
}

static void gives_the_bandwidth_of_chapter_6_1(void **state) {
    (void)state;
    struct capacity capacity = compute_preset(CAPACITY_THESIS);
    assert_thesis(capacity.requests_count, 1062000);
    assert_thesis(capacity.downloads_size, 480e6);
    assert_thesis(capacity.requests_up_size, 85e6);
    assert_within(capacity.requests_down_size, 21e6, 0.012, __LINE__); /* 21.24: the thesis cuts */
    assert_thesis(capacity.downloads_size + capacity.requests_down_size, 501e6);
    assert_thesis(capacity.downloads.up_kbps, 8);
    assert_thesis(capacity.downloads.down_kbps, 46);
    assert_thesis(capacity.links.up_kbps, 7);
    assert_thesis(capacity.links.down_kbps, 7);
    assert_exact(capacity.copying.down_kbps, 0);
    assert_thesis(capacity.crawling.up_kbps, 15);
    assert_thesis(capacity.crawling.down_kbps, 53);
    assert_thesis(capacity.repair.down_kbps, 150);
    assert_thesis(capacity.repair.up_kbps, 75);
    assert_thesis(capacity.total.up_kbps, 90);
    assert_thesis(capacity.total.down_kbps, 203);
    assert_thesis(capacity.ring_down_kbps, 203 * 20000.0);
    assert_thesis(capacity.ring_down_kbps / 31e3, 132); /* against a central archive of 31 Mbit/s */
}

static void gives_the_times_and_chances_of_chapters_3_3_and_6_1(void **state) {
    (void)state;
    struct capacity capacity = compute_preset(CAPACITY_THESIS);
    assert_exact(capacity.repair_interval_days, 60);
    assert_exact(capacity.lifetime_needed_days, 360);
    assert_within(capacity.lost_in_repair, 0.00013, 0.012, __LINE__); /* 0.01286 %, printed as 0.013 % */
    assert_within(capacity.fill_days, 9, 0.03, __LINE__);             /* 9.26 days, "nine" */
    /* Corrected: not .3 %. */
    assert_exact(capacity.unavailable, 0.000064);
    assert_thesis(1 - capacity_all_among(5, 0.2), 0.9997);
}

static void gives_herodotus_light(void **state) {
    (void)state;
    struct capacity_inputs inputs;
    capacity_preset(CAPACITY_THESIS_LIGHT, &inputs);
    struct capacity capacity = compute(&inputs);
    assert_thesis(capacity.stored_size, 96e12);
    assert_thesis(capacity.replicated_size, 576e12);
    assert_thesis(capacity.nodes_needed, 5760);
    assert_exact(capacity.nodes_count, 6000);
    assert_exact(capacity.rows[CAPACITY_SNAPSHOT_EMBEDS].objects_count, 0);
    inputs.copies = 3;
    capacity = compute(&inputs);
    assert_thesis(capacity.nodes_needed, 2880); /* "3,000 nodes would do the job" */
    assert_true(capacity.nodes_needed <= 3000);
}

static void gives_the_bytes_a_link_of_chapter_4_4(void **state) {
    (void)state;
    struct capacity capacity = compute_preset(CAPACITY_THESIS);
    assert_thesis(capacity.link_direct_size, 920);
    assert_thesis(capacity.link_walk_size, 70);
    assert_exact(capacity.walk_links_count, 120000);
    assert_true(capacity.walk_buffer_size < 8e6); /* "a few megabytes" */
    assert_thesis(capacity.link_direct_size / capacity.link_walk_size, 13.1);
    /* 36 links of 59 bytes to six nodes. */
    struct capacity_inputs inputs;
    capacity_preset(CAPACITY_THESIS, &inputs);
    assert_thesis(inputs.links_per_page * inputs.link_size * inputs.copies, 12744);
}

static void rounds_only_where_asked(void **state) {
    (void)state;
    struct capacity_inputs inputs;
    capacity_preset(CAPACITY_THESIS, &inputs);
    inputs.rounding = 0;
    struct capacity capacity = compute(&inputs);
    assert_exact(capacity.rows[CAPACITY_DAY].size, 1.5664e12);
    assert_exact(capacity.rows[CAPACITY_MONTH_PAGES].size, 39.6e12);
    assert_exact(capacity.downloads_size, 1.5664e12 * 6 / 20000);
    assert_exact(capacity.repair.down_kbps, 100e9 * 8 / (60 * 86400) / 1000);
    assert_exact(capacity.rows[CAPACITY_MONTH].stored_size, 30 * (0.248 * 1.32e12 + 0.986 * 0.2464e12));
    /* All the rounding together makes 2.5 %. */
    assert_within(capacity.stored_size, 213.5e12, 0.025, __LINE__);
    assert_exact(capacity.links.up_kbps, (3000 + 30000 * 0.1) * 12744 * 8 / 86400 / 1000);
}

/* ---- formulas ---- */

static void chance_is_1_minus_e_to_the_minus_x(void **state) {
    (void)state;
    for (double x = 1e-12; x < 50; x *= 1.7) {
        assert_within(capacity_chance(x), -expm1(-x), 1e-11, __LINE__);
    }
    assert_exact(capacity_chance(0), 0);
    assert_exact(capacity_chance(1e9), 1);
}

static void changes_add_up_over_the_days_between_visits(void **state) {
    (void)state;
    assert_exact(capacity_changed_after(0.05, 1), 0.05);
    assert_exact(capacity_changed_after(0.05, 2), 1 - 0.95 * 0.95);
    assert_exact(capacity_changed_after(0.05, 30), 1 - pow(0.95, 30));
    assert_exact(capacity_changed_after(0.05, 0.25), 1 - pow(0.95, 0.25));
    assert_exact(capacity_changed_after(0, 30), 0);
    assert_exact(capacity_changed_after(1, 0.5), 1);
}

static void estimates_the_change_rate_from_visits(void **state) {
    (void)state;
    assert_exact(capacity_changed_per_day(100, 0, 1), 0);
    /* Many visits at a distance of a day: the share itself. */
    assert_within(capacity_changed_per_day(1e6, 5e4, 1), 0.05, 1e-4, __LINE__);
    /* A week apart, what 5 % a day become in a week. */
    assert_within(capacity_changed_per_day(1e6, 1e6 * (1 - pow(0.95, 7)), 7), 0.05, 1e-4, __LINE__);
    /* All changed: as much as so few visits can tell, and never more than everything. */
    double all = capacity_changed_per_day(3, 3, 1);
    assert_true(all > 0.8 && all < 1);
}

static void counts_hops_as_the_simulator_does(void **state) {
    (void)state;
    static const struct {
        double nodes;
        double hops;
    } rows[] = {{1024, 5.84}, {4096, 6.85}, {10000, 7.49}, {16384, 7.85}, {20000, 8.01}, {65536, 8.86}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_within(capacity_lookup_hops(rows[i].nodes), rows[i].hops, 0.005, __LINE__);
    }
    assert_exact(capacity_lookup_hops(1), 0);
}

/* The same chain, as a system of linear equations solved from the other end. */
static void time_to_loss_agrees_with_known_cases(void **state) {
    (void)state;
    /* One copy: its node's life. Two: (3 f + r) / (2 f^2), the mirrored disk of the textbooks. */
    assert_exact(capacity_time_to_loss_days(1, 360, 60), 360);
    double f = 1.0 / 360;
    double r = 1.0 / 60;
    assert_exact(capacity_time_to_loss_days(2, 360, 60), (3 * f + r) / (2 * f * f));
    /* Without repair: the harmonic sum. */
    assert_within(capacity_time_to_loss_days(3, 360, 1e12), 360 * (1 + 0.5 + 1.0 / 3), 1e-6, __LINE__);
    /* Each copy more helps, and nothing overflows. */
    double last = 0;
    for (double copies = 1; copies <= CAPACITY_COPIES_MAX; copies++) {
        double days = capacity_time_to_loss_days(copies, 36500, 0.0001);
        assert_true(days >= last && isfinite(days));
        last = days;
    }
}

static void repair_costs_less_than_the_thesis_budgets(void **state) {
    (void)state;
    struct capacity_inputs inputs;
    struct capacity_repair repair;
    capacity_preset(CAPACITY_THESIS, &inputs);
    /* A full disk: 100 GB in 60 days against 200 GB in 360. */
    capacity_repair(&inputs, 100e9, 100e9, 0, &repair);
    assert_exact(repair.thesis_size, 100e9 / 60);
    assert_exact(repair.moves_size, 200e9 / 360);
    assert_exact(repair.share, 1.0 / 3);
    /* A node that is up always misses nothing; one that is up 80 % fetches a fifth later. */
    capacity_repair(&inputs, 100e9, 100e9, 174e6, &repair);
    assert_exact(repair.catch_up_size, 34.8e6);
    inputs.uptime = 1;
    capacity_repair(&inputs, 100e9, 100e9, 174e6, &repair);
    assert_exact(repair.catch_up_size, 0);
}

static void comparing_neighbours_costs_what_the_thesis_pays(void **state) {
    (void)state;
    /* 100 million keys on a node: 1.3 MB, and 42 KB for each directory that differs. */
    struct capacity_inputs inputs;
    capacity_preset(CAPACITY_THESIS, &inputs);
    inputs.pages_count = 100e6;
    inputs.embeds_per_page = 0;
    inputs.nodes_count = 6;
    struct capacity capacity = compute(&inputs);
    assert_thesis(capacity.sync_thesis_size, 1.31e6);
    assert_thesis(capacity.sync_directory_size, 42.7e3);
}

/* ---- use ---- */

static void nodes_or_disk_may_be_left_open(void **state) {
    (void)state;
    struct capacity_inputs inputs;
    capacity_preset(CAPACITY_THESIS, &inputs);
    inputs.nodes_count = 0;
    struct capacity capacity = compute(&inputs);
    assert_exact(capacity.nodes_count, 12810);
    assert_within(capacity.months_until_full, 9, 0.01, __LINE__);
    inputs.nodes_count = 1000;
    inputs.disk_size = 0;
    capacity = compute(&inputs);
    assert_exact(capacity.disk_size, 1.281e12);
    assert_exact(capacity.nodes_needed, 1000);
    assert_within(capacity.months_until_full, 9, 0.01, __LINE__);
    inputs.reserve = 0.5;
    capacity = compute(&inputs);
    assert_exact(capacity.disk_needed, 2.562e12);
    /* Repairs copy what a node holds, not its free room. */
    assert_exact(capacity.filled_size, 1.281e12);
    assert_exact(capacity.fill_days, 1.281e12 * 8 / 1e6 / 86400);
    inputs.disk_size = 1e9;
    assert_exact(compute(&inputs).months_until_full, 0);
}

static void copies_are_no_more_than_nodes(void **state) {
    (void)state;
    struct capacity_inputs inputs;
    capacity_preset(CAPACITY_TODAY, &inputs);
    inputs.nodes_count = 3;
    assert_exact(compute(&inputs).copies, 3);
    /* And a small archive still needs as many nodes as copies. */
    inputs.nodes_count = 0;
    inputs.pages_count = 10;
    assert_exact(compute(&inputs).nodes_needed, 6);
}

static void witnesses_save_requests_and_cost_copies(void **state) {
    (void)state;
    struct capacity_inputs inputs;
    capacity_preset(CAPACITY_THESIS, &inputs);
    inputs.rounding = 0;
    struct capacity all = compute(&inputs);
    inputs.witnesses = 1;
    struct capacity one = compute(&inputs);
    assert_exact(one.requests_count, all.requests_count / 6);
    assert_exact(one.links_size, all.links_size / 6);
    assert_exact(one.copies_size, all.rows[CAPACITY_DAY].stored_size * 5 / 20000);
    inputs.witnesses = 60;
    assert_exact(compute(&inputs).requests_count, all.requests_count);
}

static void a_longer_period_asks_less_and_sees_fewer_versions(void **state) {
    (void)state;
    struct capacity_inputs inputs;
    capacity_preset(CAPACITY_THESIS, &inputs);
    inputs.rounding = 0;
    inputs.period_days = 7;
    struct capacity capacity = compute(&inputs);
    assert_exact(capacity.requests_count, 1062000.0 / 7);
    assert_exact(capacity.rows[CAPACITY_DAY_PAGES_CHANGED].objects_count, 2e9 * (1 - pow(0.95, 7)) / 7);
}

static void refuses_absurd_figures_by_name(void **state) {
    (void)state;
    static const double wrong[] = {-1, 1e30, NAN, INFINITY, -INFINITY};
    struct capacity_inputs inputs;
    struct capacity capacity;
    for (size_t i = 0; i < CAPACITY_FIELDS_COUNT; i++) {
        for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++) {
            struct err_detail detail = {0};
            capacity_preset(CAPACITY_TODAY, &inputs);
            *capacity_at(&inputs, (enum capacity_field)i) = wrong[j];
            assert_int_equal(capacity_compute(&inputs, &capacity, &detail), ERR_INVALID);
            assert_non_null(strstr(detail.text, capacity_fields[i].name));
        }
    }
    struct err_detail detail = {0};
    capacity_preset(CAPACITY_TODAY, &inputs);
    inputs.copies = 2.5;
    assert_int_equal(capacity_compute(&inputs, &capacity, &detail), ERR_INVALID);
    assert_string_equal(detail.text, "replicas must be a whole number");
    capacity_preset(CAPACITY_TODAY, &inputs);
    inputs.nodes_count = inputs.disk_size = 0;
    assert_int_equal(capacity_compute(&inputs, &capacity, &detail), ERR_INVALID);
    capacity_preset(CAPACITY_TODAY, &inputs);
    inputs.disk_size = 1;
    assert_int_equal(capacity_compute(&inputs, &capacity, &detail), ERR_INVALID);
    assert_string_equal(detail.text, "that would take more than 1e+12 nodes");
}

/* At the edges of what is allowed, one input at a time, every figure is a number. */
static void edges_give_finite_figures(void **state) {
    (void)state;
    for (size_t i = 0; i < 2 * (size_t)CAPACITY_FIELDS_COUNT; i++) {
        struct capacity_inputs inputs;
        struct capacity capacity;
        const struct capacity_field_rule *rule = &capacity_fields[i / 2];
        capacity_preset(CAPACITY_TODAY, &inputs);
        inputs.nodes_count = 1000;
        *capacity_at(&inputs, (enum capacity_field)(i / 2)) = i % 2 == 0 ? rule->min : rule->max;
        if (capacity_compute(&inputs, &capacity, NULL) != ERR_OK) {
            continue; /* more nodes than can be */
        }
        double figures[sizeof capacity / sizeof(double)];
        memcpy(figures, &capacity, sizeof figures);
        for (size_t j = 0; j < sizeof figures / sizeof *figures; j++) {
            if (!isfinite(figures[j]) || signbit(figures[j])) {
                fail_msg("%s: figure %zu is %g", rule->name, j, figures[j]);
            }
        }
    }
}

static void unchanged_visits_of_all_witnesses_are_stored(void **state) {
    (void)state;
    struct capacity_inputs inputs;
    struct capacity none, one, two;
    capacity_preset(CAPACITY_TODAY, &inputs);
    inputs.visit_size = 0;
    assert_int_equal(capacity_compute(&inputs, &none, NULL), ERR_OK);
    inputs.visit_size = 300;
    assert_int_equal(capacity_compute(&inputs, &one, NULL), ERR_OK);
    inputs.witnesses = 2;
    assert_int_equal(capacity_compute(&inputs, &two, NULL), ERR_OK);
    double urls_count = one.rows[CAPACITY_SNAPSHOT].objects_count;
    double changes_count = one.rows[CAPACITY_DAY].objects_count - inputs.added * urls_count;
    assert_true(none.visits_size == 0);
    assert_exact(one.visits_count, urls_count / 30 - changes_count);
    assert_exact(two.visits_count, urls_count / 30 * 2 - changes_count);
    assert_exact(one.stored_size - none.stored_size, 12 * 30 * 300 * one.visits_count);
    assert_exact(two.stored_size - one.stored_size, 12 * 30 * 300 * (urls_count / 30));
    assert_true(one.copies_size > none.copies_size);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unchanged_visits_of_all_witnesses_are_stored),
        cmocka_unit_test(gives_table_3_2),
        cmocka_unit_test(gives_the_storage_and_nodes_of_chapters_3_3_and_6_1),
        cmocka_unit_test(gives_the_bandwidth_of_chapter_6_1),
        cmocka_unit_test(gives_the_times_and_chances_of_chapters_3_3_and_6_1),
        cmocka_unit_test(gives_herodotus_light),
        cmocka_unit_test(gives_the_bytes_a_link_of_chapter_4_4),
        cmocka_unit_test(rounds_only_where_asked),
        cmocka_unit_test(chance_is_1_minus_e_to_the_minus_x),
        cmocka_unit_test(changes_add_up_over_the_days_between_visits),
        cmocka_unit_test(estimates_the_change_rate_from_visits),
        cmocka_unit_test(counts_hops_as_the_simulator_does),
        cmocka_unit_test(time_to_loss_agrees_with_known_cases),
        cmocka_unit_test(repair_costs_less_than_the_thesis_budgets),
        cmocka_unit_test(comparing_neighbours_costs_what_the_thesis_pays),
        cmocka_unit_test(nodes_or_disk_may_be_left_open),
        cmocka_unit_test(copies_are_no_more_than_nodes),
        cmocka_unit_test(witnesses_save_requests_and_cost_copies),
        cmocka_unit_test(a_longer_period_asks_less_and_sees_fewer_versions),
        cmocka_unit_test(refuses_absurd_figures_by_name),
        cmocka_unit_test(edges_give_finite_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
