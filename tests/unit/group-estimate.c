/* Estimates of paths: damping, what counts, costs, and reports on the wire. */
#include "protocol/group/estimate.h"

#include <stdio.h>
#include <stdlib.h>

#include "group-vectors.h"
#include "unit.h"

static const uint64_t SECOND_US = 1000000;

/* ---- learning ---- */

static void takes_the_first_value_as_it_is_and_damps_the_next(void **state) {
    (void)state;
    struct estimate estimate = {0};
    assert_false(estimate_is_known(&estimate));
    assert_true(estimate_learn_round_trip(&estimate, 100000, 5));
    assert_int_equal(estimate.round_trip_us, 100000);
    assert_true(estimate_learn_round_trip(&estimate, 200000, 7));
    assert_int_equal(estimate.round_trip_us, 110000);
    assert_int_equal(estimate.round_trips_count, 2);
    assert_int_equal(estimate.round_trip_at_us, 7);
    assert_true(estimate_learn_transfer(&estimate, 1 << 20, SECOND_US, 9));
    assert_int_equal(estimate.bandwidth, 1 << 20);
    assert_true(estimate_learn_transfer(&estimate, 2 << 20, SECOND_US, 9));
    assert_int_equal(estimate.bandwidth, ((9 << 20) + (2 << 20) + 5) / 10);
    assert_int_equal(estimate.transfers_count, 2);
}

/* After a lasting change two thirds of the way are gone after ten values, all but a percent after 44. */
static void follows_a_lasting_change(void **state) {
    (void)state;
    struct estimate estimate = {0};
    estimate_learn_round_trip(&estimate, 1000000, 0);
    for (unsigned i = 1; i <= 44; i++) {
        estimate_learn_round_trip(&estimate, 10000, i);
        if (i == 10) {
            assert_in_range(estimate.round_trip_us, 350000, 360000);
        }
    }
    assert_in_range(estimate.round_trip_us, 10000, 20000);
}

static void short_transfers_say_nothing_about_bandwidth(void **state) {
    (void)state;
    struct estimate estimate = {0};
    assert_false(estimate_learn_transfer(&estimate, ESTIMATE_TRANSFER_SIZE_MIN - 1, 1000, 1));
    assert_false(estimate_is_known(&estimate));
    assert_true(estimate_learn_transfer(&estimate, ESTIMATE_TRANSFER_SIZE_MIN, 1000, 1));
    assert_int_equal(estimate.bandwidth, ESTIMATE_TRANSFER_SIZE_MIN * 1000);
}

static void extreme_values_stay_in_bounds(void **state) {
    (void)state;
    struct estimate estimate = {0};
    assert_false(estimate_learn_round_trip(&estimate, UINT64_MAX, 1));
    assert_true(estimate_learn_round_trip(&estimate, 0, 1));
    assert_int_equal(estimate.round_trip_us, 1); /* 0 means unknown */
    assert_true(estimate_learn_transfer(&estimate, UINT64_C(1) << 40, 0, 1));
    assert_int_equal(estimate.bandwidth, ESTIMATE_BANDWIDTH_MAX);
    assert_false(estimate_learn_transfer(&estimate, UINT64_MAX, 1, 1));
    estimate = (struct estimate){0};
    assert_true(estimate_learn_transfer(&estimate, 1 << 20, UINT64_MAX, 1));
    assert_int_equal(estimate.bandwidth, 1);
    assert_int_equal(estimate_cost_us(&estimate, UINT64_MAX), COSTS_US_MAX);
}

static void cost_is_delay_and_size_by_bandwidth(void **state) {
    (void)state;
    struct estimate estimate = {.round_trip_us = 50000, .bandwidth = 2000000};
    assert_int_equal(estimate_cost_us(&estimate, ESTIMATE_SIZE_REFERENCE), 550000);
    assert_int_equal(estimate_cost_us(&estimate, 0), 50000);
    struct estimate modem = {.round_trip_us = 300000, .bandwidth = 3600};
    struct estimate half = {.round_trip_us = 1000};
    struct estimate other_half = {.bandwidth = 10000000};
    struct estimate none = {0};
    assert_int_equal(estimate_cost_us(&half, ESTIMATE_SIZE_REFERENCE), 1000 + 277777777);
    assert_true(estimate_cost_us(&half, 1000000) < estimate_cost_us(&modem, 1000000));
    assert_int_equal(estimate_cost_us(&other_half, ESTIMATE_SIZE_REFERENCE), 1100000);
    assert_int_equal(estimate_cost_us(&none, ESTIMATE_SIZE_REFERENCE), COSTS_UNKNOWN_US);
}

/* ---- reports ---- */

static void make_entries(struct estimate_entry entries[3]) {
    uint64_t now_us = 1000 * SECOND_US;
    memset(entries, 0, 3 * sizeof *entries);
    entries[0].about = address_ipv4(192, 0, 2, 1, 7070);
    estimate_learn_round_trip(&entries[0].estimate, 20000, now_us - 60 * SECOND_US);
    estimate_learn_transfer(&entries[0].estimate, 1000000, SECOND_US, now_us - 600 * SECOND_US);
    assert_true(address_parse(BYTES("[2001:db8::1]:443"), 0, &entries[1].about));
    estimate_learn_round_trip(&entries[1].estimate, 150000, now_us);
    entries[2].about = address_ipv4(192, 0, 2, 2, 7070);
    estimate_learn_transfer(&entries[2].estimate, 65536, SECOND_US, now_us);
}

static void keeps_the_vectors_of_the_specification(void **state) {
    (void)state;
    struct estimate_entry entries[3];
    uint8_t memory[256];
    struct bytes report;
    uint64_t now_us = 1000 * SECOND_US;
    make_entries(entries);
    assert_int_equal(estimate_write_report(entries, 3, now_us, memory, sizeof memory, &report), 3);
    vector_check("report", report);
    assert_int_equal(estimate_write_report(entries, 0, now_us, memory, sizeof memory, &report), 0);
    vector_check("report-empty", report);
}

static void reads_what_was_written(void **state) {
    (void)state;
    struct estimate_entry entries[3];
    static struct estimate_entry again[GROUP_MEMBERS_MAX];
    uint8_t memory[256];
    struct bytes report;
    uint64_t now_us = 10000 * SECOND_US;
    size_t count;
    make_entries(entries);
    assert_int_equal(estimate_write_report(entries, 3, now_us, memory, sizeof memory, &report), 3);
    assert_int_equal(estimate_read_report(report, now_us + 5, again, &count), ERR_OK);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < count; i++) {
        assert_true(address_equal(&again[i].about, &entries[i].about));
        assert_int_equal(again[i].estimate.round_trip_us, entries[i].estimate.round_trip_us);
        assert_int_equal(again[i].estimate.bandwidth, entries[i].estimate.bandwidth);
    }
    assert_int_equal(again[0].estimate.round_trip_at_us, 940 * SECOND_US + 5);
    assert_int_equal(again[1].estimate.bandwidth_at_us, 0);
    for (size_t size = 1; size < report.size; size++) {
        enum err err = estimate_read_report(bytes_slice(report, 0, size), now_us, again, &count);
        assert_true(err == ERR_OK || err == ERR_TRUNCATED); /* an end between two entries is a report */
    }
}

static void refuses_reports_that_make_no_sense(void **state) {
    (void)state;
    static struct estimate_entry again[GROUP_MEMBERS_MAX];
    size_t count;
    static const struct {
        const char *bytes;
        size_t size;
    } reports[] = {
        {"", 0},
        {"\2", 1},                                                    /* another version */
        {"\1\0\300\0\2\1\236\33\0\0", 10},                            /* nothing is known */
        {"\1\0\300\0\2\1\0\0\1\0\0", 11},                             /* port 0 */
        {"\1\0\340\0\2\1\236\33\1\0\0", 11},                          /* multicast */
        {"\1\2\300\0\2\1\236\33\1\0\0", 11},                          /* neither IPv4 nor IPv6 */
        {"\1\0\300\0\2\1\236\33\1\0\0\0\300\0\2\1\236\33\1\0\0", 21}, /* twice */
        {"\1\0\300\0\2\1\236\33\201\234\316\34\0\0", 14},             /* more than a minute */
        {"\1\0\300\0\2\1\236\33\201\0\0\0", 12},                      /* a varint that is too long */
    };
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
        enum err err = estimate_read_report(bytes_of(reports[i].bytes, reports[i].size), 0, again, &count);
        assert_int_not_equal(err, ERR_OK);
    }
    assert_int_equal(estimate_read_report(BYTES("\1\0\300\0\2\1\236\33\1\0\0"), 0, again, &count), ERR_OK);
}

static void writes_as_many_as_fit(void **state) {
    (void)state;
    static struct estimate_entry entries[GROUP_MEMBERS_MAX];
    static struct estimate_entry again[GROUP_MEMBERS_MAX];
    for (unsigned i = 0; i < GROUP_MEMBERS_MAX; i++) {
        entries[i].about = address_ipv4(10, 0, 0, (uint8_t)i, 7070);
        entries[i].estimate.round_trip_us = 1 + i;
    }
    uint8_t memory[1000];
    struct bytes report;
    size_t done = 0;
    unsigned reports_count = 0;
    while (done < GROUP_MEMBERS_MAX) {
        size_t count = 0;
        size_t written = estimate_write_report(entries + done, GROUP_MEMBERS_MAX - done, 0, memory,
                                               sizeof memory, &report);
        assert_int_equal(estimate_read_report(report, 0, again, &count), ERR_OK);
        assert_int_equal(count, written);
        assert_true(address_equal(&again[0].about, &entries[done].about));
        done += written;
        reports_count++;
    }
    assert_in_range(reports_count, 2, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_first_value_as_it_is_and_damps_the_next),
        cmocka_unit_test(follows_a_lasting_change),
        cmocka_unit_test(short_transfers_say_nothing_about_bandwidth),
        cmocka_unit_test(extreme_values_stay_in_bounds),
        cmocka_unit_test(cost_is_delay_and_size_by_bandwidth),
        cmocka_unit_test(keeps_the_vectors_of_the_specification),
        cmocka_unit_test(reads_what_was_written),
        cmocka_unit_test(refuses_reports_that_make_no_sense),
        cmocka_unit_test(writes_as_many_as_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
