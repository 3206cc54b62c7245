#include <stdio.h>
#include <stdlib.h>

#include "cli/line_runs.h"
#include "scratch.h"
#include "unit.h"

enum { LINE_SIZE = 128 };

/* Lines of these runs, each sorted; the keys of all runs interleave. */
static uint64_t put_runs(struct line_runs *runs, size_t runs_count, size_t lines_count) {
    uint64_t size = 0;
    for (size_t i = 0; i < runs_count; i++) {
        for (size_t j = 0; j < lines_count; j++) {
            char line[LINE_SIZE];
            int length = snprintf(line, sizeof line, "key%06zu 20260102030405 {\"run\": %zu}\n",
                                  j * runs_count + i, i);
            assert_int_equal(line_runs_put(runs, bytes_of(line, (size_t)length)), ERR_OK);
            size += (size_t)length;
        }
    }
    return size;
}

static void expect_sorted(struct line_runs *runs, size_t count) {
    struct bytes line;
    for (size_t i = 0; i < count; i++) {
        char start[LINE_SIZE];
        snprintf(start, sizeof start, "key%06zu ", i);
        assert_int_equal(line_runs_next(runs, &line), ERR_OK);
        assert_true(bytes_starts_with(line, bytes_of_string(start)));
        assert_true(bytes_ends_with(line, BYTES("}\n")));
    }
    assert_int_equal(line_runs_next(runs, &line), ERR_NOT_FOUND);
    assert_int_equal(line_runs_next(runs, &line), ERR_NOT_FOUND);
}

static void merges_any_number_of_runs(void **state) {
    static const size_t counts[][2] = {
        {1, 1},    {1, 1000}, {2, 500}, {LINE_RUNS_MERGE_MAX, 10}, {LINE_RUNS_MERGE_MAX + 1, 10},
        {5000, 1}, {300, 300}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct line_runs *runs = malloc(sizeof *runs);
        assert_non_null(runs);
        line_runs_init(runs, *state);
        uint64_t size = put_runs(runs, counts[i][0], counts[i][1]);
        assert_int_equal(line_runs_sort(runs), ERR_OK);
        assert_int_equal(line_runs_size(runs), size);
        expect_sorted(runs, counts[i][0] * counts[i][1]);
        line_runs_done(runs);
        free(runs);
    }
}

static void nothing_sorts_to_nothing(void **state) {
    struct line_runs *runs = malloc(sizeof *runs);
    assert_non_null(runs);
    line_runs_init(runs, *state);
    assert_int_equal(line_runs_sort(runs), ERR_OK);
    assert_int_equal(line_runs_size(runs), 0);
    expect_sorted(runs, 0);
    line_runs_done(runs);
    free(runs);
}

/* "a b" before "a)/b": a key ends before a longer one that it begins. Equal places keep their order. */
static void the_order_is_that_of_an_index(void **state) {
    static const char *const lines[] = {"org,a)/b 2020 {1}\n", "org,a)/b 2021 {2}\n", "org,a)/ 2022 {3}\n",
                                        "org,a)/b 2020 {4}\n", "org,a)/ 2022 {5}\n"};
    static const char *const sorted[] = {"org,a)/ 2022 {3}\n", "org,a)/ 2022 {5}\n", "org,a)/b 2020 {1}\n",
                                         "org,a)/b 2020 {4}\n", "org,a)/b 2021 {2}\n"};
    struct line_runs *runs = malloc(sizeof *runs);
    struct bytes line;
    assert_non_null(runs);
    line_runs_init(runs, *state);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(line_runs_put(runs, bytes_of_string(lines[i])), ERR_OK);
    }
    assert_int_equal(line_runs_sort(runs), ERR_OK);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(line_runs_next(runs, &line), ERR_OK);
        assert_bytes_equal(line, bytes_of_string(sorted[i]));
    }
    line_runs_done(runs);
    free(runs);
}

static void lines_of_all_lengths_pass(void **state) {
    struct line_runs *runs = malloc(sizeof *runs);
    struct buf line;
    struct bytes found;
    assert_non_null(runs);
    buf_init(&line, 512 << 10);
    line_runs_init(runs, *state);
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < 40; i++) {
            buf_clear(&line);
            buf_put_format(&line, "key%02zu%zu 2020 ", i, pass);
            for (size_t j = 0; j < i * 10000; j++) {
                buf_put_byte(&line, 'x');
            }
            buf_put_byte(&line, '\n');
            assert_int_equal(line_runs_put(runs, buf_bytes(&line)), ERR_OK);
        }
    }
    assert_int_equal(line_runs_sort(runs), ERR_OK);
    for (size_t i = 0; i < 80; i++) {
        assert_int_equal(line_runs_next(runs, &found), ERR_OK);
        assert_int_equal(found.size, 12 + i / 2 * 10000 + 1);
    }
    assert_int_equal(line_runs_next(runs, &found), ERR_NOT_FOUND);
    line_runs_done(runs);
    free(runs);
    buf_done(&line);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(merges_any_number_of_runs, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(nothing_sorts_to_nothing, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(the_order_is_that_of_an_index, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(lines_of_all_lengths_pass, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
