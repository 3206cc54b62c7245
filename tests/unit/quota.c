/* Quotas of disk: what fits, and what a node does when it gets tight. */
#include <stdio.h>

#include "base/whole_file.h"
#include "scratch.h"
#include "store/volume/quota.h"
#include "unit.h"

static void documents_end_before_the_quota_and_removals_behind_it(void **state) {
    (void)state;
    struct quota quota = {.size_max = 1000000};
    uint64_t part = 0;
    quota_count(&quota, &part, 990000);
    assert_true(quota_admits(&quota, 2000, false));
    assert_false(quota_admits(&quota, 5000, false));
    assert_true(quota_admits(&quota, 15000, true));
    assert_false(quota_admits(&quota, 15001, true));
    assert_int_equal(quota_permille(&quota), 990);
    quota_count(&quota, &part, 500000); /* compacted */
    assert_int_equal(quota_used(&quota), 500000);
    assert_true(quota_admits(&quota, 490000, false));
}

static void parts_of_volumes_add_up(void **state) {
    (void)state;
    struct quota quota = {.size_max = 1000};
    uint64_t first = 0;
    uint64_t second = 0;
    quota_count(&quota, &first, 300);
    quota_count(&quota, &second, 400);
    quota_count(&quota, &first, 100);
    assert_int_equal(quota_used(&quota), 500);
    assert_false(quota_admits(&quota, 600, true));
}

static void what_lies_in_directories_is_measured(void **state) {
    char path[512];
    struct err_detail detail = {0};
    assert_int_equal(quota_measure(*state), 0);
    snprintf(path, sizeof path, "%s/below", (const char *)*state);
    assert_int_equal(whole_file_make_directory(path, &detail), ERR_OK);
    snprintf(path, sizeof path, "%s/below/a", (const char *)*state);
    assert_int_equal(whole_file_replace(path, BYTES("twelve bytes"), 0600, &detail), ERR_OK);
    assert_int_equal(quota_measure(*state), 12);
    assert_int_equal(quota_measure("/nowhere/at/all"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_end_before_the_quota_and_removals_behind_it),
        cmocka_unit_test(parts_of_volumes_add_up),
        TEST(what_lies_in_directories_is_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
