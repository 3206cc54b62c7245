/* progress: what the line says, and when it is written. */
#include "clock-manual.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/progress.h"

enum { SECOND_US = 1000000 };

struct fixture {
    struct clock_manual manual;
    struct progress progress;
    int pipe[2];
    char text[65536];
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (fixture == NULL || pipe(fixture->pipe) != 0) {
        return -1;
    }
    clock_manual_init(&fixture->manual, 0);
    clock_manual_advance(&fixture->manual, 1000 * (uint64_t)SECOND_US);
    progress_init(&fixture->progress, "archiving", fixture->pipe[1], false, &fixture->manual.clock);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    close(fixture->pipe[0]);
    free(fixture);
    return 0;
}

/* Everything that was written; afterwards nothing more can be. */
static const char *written(struct fixture *fixture) {
    close(fixture->pipe[1]);
    size_t size = 0;
    ssize_t got;
    while ((got = read(fixture->pipe[0], fixture->text + size, sizeof fixture->text - 1 - size)) > 0) {
        size += (size_t)got;
    }
    fixture->text[size] = '\0';
    return fixture->text;
}

static void work(struct fixture *fixture, uint64_t seconds, uint64_t per_second) {
    for (uint64_t i = 0; i < seconds * 10; i++) {
        clock_manual_advance(&fixture->manual, SECOND_US / 10);
        fixture->progress.done_count += per_second / 10;
        progress_update(&fixture->progress, NULL);
    }
}

static void writes_a_plain_line_every_ten_seconds(void **state) {
    struct fixture *fixture = *state;
    fixture->progress.total_count = 10000;
    work(fixture, 25, 100);
    assert_string_equal(written(fixture), "archiving: 1,000 of 10,000, 10%, 100/s, 1:30 left\n"
                                          "archiving: 2,000 of 10,000, 20%, 100/s, 1:20 left\n");
}

static void leaves_out_what_nobody_knows(void **state) {
    struct fixture *fixture = *state;
    fixture->progress.bytes_count = 1500000;
    work(fixture, 10, 50);
    assert_string_equal(written(fixture), "archiving: 500, 50/s, 1.5 MB\n");
}

static void rate_follows_the_last_seconds(void **state) {
    struct fixture *fixture = *state;
    work(fixture, 19, 1000);
    work(fixture, 11, 10);
    const char *last = strstr(strchr(written(fixture), '\n') + 1, "\n") + 1;
    assert_non_null(strstr(last, "10/s"));
}

static void finishes_with_the_overall_rate(void **state) {
    struct fixture *fixture = *state;
    work(fixture, 5, 100);
    progress_finish(&fixture->progress);
    assert_string_equal(written(fixture), "archiving: 500, 100/s, in 5.0 s\n");
}

static void is_silent_when_quiet(void **state) {
    struct fixture *fixture = *state;
    progress_init(&fixture->progress, "archiving", fixture->pipe[1], true, &fixture->manual.clock);
    work(fixture, 60, 100);
    progress_finish(&fixture->progress);
    assert_string_equal(written(fixture), "");
}

static void redraws_a_terminal_at_most_ten_times_a_second_and_cuts_to_its_width(void **state) {
    struct fixture *fixture = *state;
    fixture->progress.mode = PROGRESS_TERMINAL;
    fixture->progress.columns = 20;
    for (int i = 0; i < 1000; i++) {
        clock_manual_advance(&fixture->manual, SECOND_US / 1000);
        fixture->progress.done_count++;
        progress_update(&fixture->progress, "süß süß süß süß süß süß");
    }
    progress_finish(&fixture->progress);
    const char *text = written(fixture);
    size_t redraws = 0;
    for (const char *at = strchr(text, '\r'); at != NULL; at = strchr(at + 1, '\r')) {
        const char *end = strstr(at, "\x1b[K");
        assert_non_null(end);
        assert_true(end - at - 1 <= 24); /* 19 characters, some of two bytes */
        redraws++;
    }
    assert_in_range(redraws, 10, 12);
    assert_int_equal(text[strlen(text) - 1], '\n');
}

static void survives_a_closed_pipe_and_a_total_that_was_too_low(void **state) {
    struct fixture *fixture = *state;
    fixture->progress.total_count = 5;
    work(fixture, 10, 10);
    assert_string_equal(written(fixture), "archiving: 100 of 5, 100%, 10/s\n");
    progress_finish(&fixture->progress); /* the descriptor is closed by now */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_a_plain_line_every_ten_seconds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leaves_out_what_nobody_knows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rate_follows_the_last_seconds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(finishes_with_the_overall_rate, set_up, tear_down),
        cmocka_unit_test_setup_teardown(is_silent_when_quiet, set_up, tear_down),
        cmocka_unit_test_setup_teardown(redraws_a_terminal_at_most_ten_times_a_second_and_cuts_to_its_width,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(survives_a_closed_pipe_and_a_total_that_was_too_low, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
