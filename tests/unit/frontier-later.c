/* frontier-later - more URLs are known than fingerprints fit into memory: all are visited once, none is lost.
 */
#include "frontier-fixture.h"

enum { HOSTS_COUNT = 20, URLS_COUNT = 20000, SEEN_SIZE_MAX = 96 << 10 };

static int later_set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    assert_int_equal(scratch_make((void **)&fixture->parent), 0);
    scratch_path(fixture->parent, "frontier", fixture->directory);
    fixture->config.seen_size_max = SEEN_SIZE_MAX;
    open_frontier(fixture);
    *state = fixture;
    return 0;
}

static int later_tear_down(void **state) {
    struct fixture *fixture = *state;
    if (fixture->frontier != NULL) {
        close_frontier(fixture);
    }
    scratch_remove((void **)&fixture->parent);
    free(fixture);
    return 0;
}

static void add_url(struct fixture *fixture, unsigned number) {
    char host[32], path[32], text[TEXT_SIZE];
    snprintf(host, sizeof host, "h%u.example.org", number % HOSTS_COUNT);
    snprintf(path, sizeof path, "%u", number);
    struct frontier_link link = link_of(text, host, path, FRONTIER_PAGE, 1);
    while (frontier_is_behind(fixture->frontier)) {
        poll_frontier(fixture);
    }
    assert_int_equal(frontier_add(fixture->frontier, &link, 1, NULL), ERR_OK);
}

/* Take some or all; each must be one that was not taken before. */
static unsigned take_some(struct fixture *fixture, uint8_t *taken, unsigned count_max) {
    unsigned count = 0;
    struct frontier_url *url;
    while (count < count_max && (url = take(fixture)) != NULL) {
        unsigned number = 0;
        char text[TEXT_SIZE];
        snprintf(text, sizeof text, "%.*s", BYTES_ARG(url->url));
        assert_int_equal(sscanf(strrchr(text, '/'), "/%u", &number), 1);
        assert_true(number < URLS_COUNT);
        assert_int_equal(taken[number]++, 0);
        finish(fixture, url, FRONTIER_DONE);
        count++;
        if (count % 5 == 0) {
            add_url(fixture, (number * 7) % URLS_COUNT); /* found again, or not yet */
        }
    }
    return count;
}

static void all_are_visited_once_in_little_memory(void **state) {
    struct fixture *fixture = *state;
    uint8_t *taken = calloc(1, URLS_COUNT);
    assert_non_null(taken);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < URLS_COUNT; i++) {
            add_url(fixture, i);
        }
    }
    assert_true(frontier_is_full(fixture->frontier));
    unsigned count = take_some(fixture, taken, URLS_COUNT / 3);
    reopen(fixture);
    assert_true(frontier_is_full(fixture->frontier));
    count += take_some(fixture, taken, UINT32_MAX);
    assert_int_equal(count, URLS_COUNT);
    struct frontier_stat stat;
    frontier_stat(fixture->frontier, &stat);
    assert_int_equal(stat.known_count, URLS_COUNT);
    assert_int_equal(stat.done_count, URLS_COUNT);
    assert_int_equal(stat.waiting_count, 0);
    assert_true(stat.memory_size < 8 << 20);

    /* With more memory all fingerprints are in it again, and the next visit has every URL once. */
    close_frontier(fixture);
    fixture->config.seen_size_max = 0;
    open_frontier(fixture);
    assert_false(frontier_is_full(fixture->frontier));
    frontier_start_visit(fixture->frontier, 10, INT64_MAX);
    memset(taken, 0, URLS_COUNT);
    assert_int_equal(take_some(fixture, taken, UINT32_MAX), URLS_COUNT);
    free(taken);
}

static void the_next_visit_has_those_on_the_disk_alone(void **state) {
    struct fixture *fixture = *state;
    uint8_t *taken = calloc(1, URLS_COUNT);
    assert_non_null(taken);
    for (unsigned i = 0; i < URLS_COUNT; i++) {
        add_url(fixture, i);
    }
    assert_int_equal(take_some(fixture, taken, UINT32_MAX), URLS_COUNT);
    memset(taken, 0, URLS_COUNT);
    frontier_start_visit(fixture->frontier, 10, INT64_MAX);
    assert_int_equal(take_some(fixture, taken, UINT32_MAX), URLS_COUNT);
    free(taken);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_are_visited_once_in_little_memory, later_set_up, later_tear_down),
        cmocka_unit_test_setup_teardown(the_next_visit_has_those_on_the_disk_alone, later_set_up,
                                        later_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
