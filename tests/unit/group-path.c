/* path_rule, case_watch: nothing in a collection leads out of it. */
#include "protocol/mirror/path_rule.h"

#include "protocol/mirror/case_watch.h"
#include "unit.h"

static const char *fault(const char *path) {
    return path_rule_fault(bytes_of_string(path));
}

static void names_of_any_bytes_are_kept(void **state) {
    (void)state;
    static const char *const good[] = {
        "a",           "a/b", "...",  "..a",   "a..",      ".hidden",
        "a b",         "-rf", "a\\b", "C:",    "\xff\xfe", "gr\xc3\xbc\xc3\x9f",
        "line\nbreak", "*",   "con",  "a/...", "~root",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_null(fault(good[i]));
    }
}

static void paths_that_lead_elsewhere_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",   "/",    "/etc/passwd", "//a",    "a//b",  "a/",  ".",
        "..", "../a", "a/..",        "a/../b", "a/./b", "./a", "a/.",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_non_null(fault(bad[i]));
    }
    assert_non_null(path_rule_fault(BYTES("a\0b")));
    assert_non_null(path_rule_fault(BYTES("\0")));
    assert_non_null(path_rule_fault(BYTES("../a\0")));
}

static void lengths_end_where_file_systems_end(void **state) {
    (void)state;
    uint8_t path[PATH_RULE_SIZE_MAX + 1];
    memset(path, 'x', sizeof path);
    assert_null(path_rule_fault(bytes_of(path, 255)));
    assert_non_null(path_rule_fault(bytes_of(path, 256)));
    for (size_t i = 200; i < sizeof path; i += 201) {
        path[i] = '/';
    }
    assert_null(path_rule_fault(bytes_of(path, PATH_RULE_SIZE_MAX)));
    assert_non_null(path_rule_fault(bytes_of(path, PATH_RULE_SIZE_MAX + 1)));
    for (size_t i = 0; i < sizeof path; i++) {
        path[i] = i % 2 == 0 ? 'x' : '/';
    }
    assert_null(path_rule_fault(bytes_of(path, 2 * PATH_RULE_DEPTH_MAX - 1)));
    assert_non_null(path_rule_fault(bytes_of(path, 2 * PATH_RULE_DEPTH_MAX + 1)));
}

/* ---- links ---- */

static const char *link_fault(const char *path, const char *target) {
    return path_rule_link_fault(bytes_of_string(path), bytes_of_string(target));
}

static void links_stay_inside(void **state) {
    (void)state;
    assert_null(link_fault("a", "b"));
    assert_null(link_fault("a", "."));
    assert_null(link_fault("a", "./b/"));
    assert_null(link_fault("d/a", ".."));
    assert_null(link_fault("d/a", "../b"));
    assert_null(link_fault("d/e/a", "./../../b/c"));
    assert_null(link_fault("a", "b/./c"));
    assert_null(link_fault("a", "..b"));

    assert_non_null(link_fault("a", ""));
    assert_non_null(link_fault("a", "/etc/passwd"));
    assert_non_null(link_fault("a", "/"));
    assert_non_null(link_fault("a", ".."));
    assert_non_null(link_fault("a", "../a"));
    assert_non_null(link_fault("d/a", "../.."));
    assert_non_null(link_fault("d/a", ".././../x"));
    assert_non_null(link_fault("d/a", "..//../x"));
    assert_non_null(path_rule_link_fault(BYTES("a"), BYTES("b\0c")));
}

/* "x/y/l" leads to "a", one deep; "x/y/l/../.." would be above the root, though it looks like "x". */
static void a_link_does_not_go_up_through_another(void **state) {
    (void)state;
    assert_null(link_fault("x/y/l", "../../a"));
    assert_non_null(link_fault("t", "x/y/l/../.."));
    assert_non_null(link_fault("d/t", "../x/.."));
    assert_non_null(link_fault("d/e/f/t", "l/..")); /* though it would be inside if l were a directory */
}

/* ---- order ---- */

static const char *order_fault(const char *previous, bool is_directory, const char *path) {
    return path_rule_order_fault(bytes_of_string(previous), is_directory, bytes_of_string(path));
}

static void a_directory_is_finished_before_what_follows(void **state) {
    (void)state;
    static const char *const sorted[] = {"a",  "a/b",   "a/b/c", "a/z", "a\x01",
                                         "a-", "a.txt", "ab",    "b",   "\xff"};
    for (size_t i = 0; i + 1 < sizeof sorted / sizeof *sorted; i++) {
        struct bytes one = bytes_of_string(sorted[i]);
        struct bytes other = bytes_of_string(sorted[i + 1]);
        assert_true(path_rule_compare(one, other) < 0);
        assert_true(path_rule_compare(other, one) > 0);
        assert_int_equal(path_rule_compare(one, one), 0);
    }
}

static void only_a_listed_directory_is_a_parent(void **state) {
    (void)state;
    assert_null(order_fault("", false, "a"));
    assert_null(order_fault("a", true, "a/b"));
    assert_null(order_fault("a/b", false, "a/c"));
    assert_null(order_fault("a/b/c/d", false, "a/c"));
    assert_null(order_fault("a/b/c/d", true, "b"));
    assert_null(order_fault("a", false, "b"));

    assert_non_null(order_fault("", false, "a/b"));      /* where is a? */
    assert_non_null(order_fault("a", false, "a/b"));     /* a file or a link as a parent */
    assert_non_null(order_fault("a/b", false, "a/b/c")); /* the same, deeper */
    assert_non_null(order_fault("ab", true, "abc/d"));
    assert_non_null(order_fault("a/bc", true, "a/bcd/e"));
    assert_non_null(order_fault("a/b/c", true, "a/d/e"));
    assert_non_null(order_fault("b", false, "a"));
    assert_non_null(order_fault("a", true, "a"));
    assert_non_null(
        order_fault("a.txt", false, "a/b")); /* after which a cannot have been the last directory */
}

/* ---- case ---- */

static void names_that_differ_by_case_alone_are_seen(void **state) {
    (void)state;
    uint64_t slots[16];
    struct case_watch watch;
    case_watch_init(&watch, slots, 16, 7);
    assert_false(case_watch_meets(&watch, BYTES("Readme")));
    assert_false(case_watch_meets(&watch, BYTES("readme.txt")));
    assert_true(case_watch_meets(&watch, BYTES("README")));
    assert_false(case_watch_meets(&watch, BYTES("d/readme")));
    assert_true(case_watch_meets(&watch, BYTES("D/readme")));
    for (uint8_t i = 0; i < 100; i++) { /* more than it has room for */
        uint8_t name[2] = {'0', (uint8_t)(0x80 + i)};
        assert_false(case_watch_meets(&watch, bytes_of(name, sizeof name)));
    }
    assert_true(watch.unwatched_count > 0 && watch.used_count <= 12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_any_bytes_are_kept),
        cmocka_unit_test(paths_that_lead_elsewhere_are_refused),
        cmocka_unit_test(lengths_end_where_file_systems_end),
        cmocka_unit_test(links_stay_inside),
        cmocka_unit_test(a_link_does_not_go_up_through_another),
        cmocka_unit_test(a_directory_is_finished_before_what_follows),
        cmocka_unit_test(only_a_listed_directory_is_a_parent),
        cmocka_unit_test(names_that_differ_by_case_alone_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
