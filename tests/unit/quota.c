/* Quotas of disk: what fits, and what a node does when it gets tight. */
#include <stdio.h>

#include "base/whole_file.h"
#include "node/copies/disk_room.h"
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

static void a_node_gives_up_its_part_step_by_step_and_takes_it_again(void **state) {
    (void)state;
    assert_int_equal(disk_room_vnodes(850, 8, 8), 8);
    assert_int_equal(disk_room_vnodes(900, 8, 8), 7);
    assert_int_equal(disk_room_vnodes(975, 7, 8), 4);
    assert_int_equal(disk_room_vnodes(999, 1, 8), 1);
    assert_int_equal(disk_room_vnodes(700, 4, 8), 4); /* neither: it must not swing */
    assert_int_equal(disk_room_vnodes(500, 4, 8), 5);
    assert_int_equal(disk_room_vnodes(0, 8, 8), 8);
}

static void a_part_that_was_too_large_is_not_taken_again(void **state) {
    (void)state;
    assert_int_equal(disk_room_vnodes_max(1000000, 0, 0, 8), 8);
    assert_int_equal(disk_room_vnodes_max(1000000, 900000, 8, 8), 7);
    assert_int_equal(disk_room_vnodes_max(1000000, 970000, 8, 8), 7);
    assert_int_equal(disk_room_vnodes_max(1000000, 900000, 7, 8), 6);
    assert_int_equal(disk_room_vnodes_max(2000000, 900000, 7, 8), 8); /* a larger quota */
    assert_int_equal(disk_room_vnodes_max(1000000, 990000, 1, 8), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_end_before_the_quota_and_removals_behind_it),
        cmocka_unit_test(parts_of_volumes_add_up),
        TEST(what_lies_in_directories_is_measured),
        cmocka_unit_test(a_node_gives_up_its_part_step_by_step_and_takes_it_again),
        cmocka_unit_test(a_part_that_was_too_large_is_not_taken_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
