#include "base/err.h"

#include <errno.h>

#include "aborts.h"
#include "base/assert.h"
#include "unit.h"

static void every_value_has_a_name_and_a_text_of_its_own(void **state) {
    (void)state;
    for (int a = 0; a >= ERR_LAST; a--) {
        const char *name = err_name((enum err)a);
        assert_string_not_equal(name, "unknown");
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
        assert_string_not_equal(err_text((enum err)a), "unknown error");
        for (int b = a - 1; b >= ERR_LAST; b--) {
            assert_string_not_equal(name, err_name((enum err)b));
            assert_string_not_equal(err_text((enum err)a), err_text((enum err)b));
        }
    }
}

static void values_outside_the_list_are_unknown(void **state) {
    (void)state;
    static const int outside[] = {1, ERR_LAST - 1, -1000};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        assert_string_equal(err_name((enum err)outside[i]), "unknown");
        assert_string_equal(err_text((enum err)outside[i]), "unknown error");
    }
}

/* They stand in logs and in JSON: a renumbering must fail here. */
static void values_are_stable(void **state) {
    (void)state;
    static const char *const names[] = {
        "ok",         "memory",  "limit",    "invalid", "truncated",   "unsupported", "not_found", "exists",
        "permission", "busy",    "timeout",  "refused", "unreachable", "closed",      "cancelled", "io",
        "no_space",   "corrupt", "mismatch", "system",  "files",       "threads",     "quota",     "deleted"};
    assert_int_equal(sizeof names / sizeof names[0], 1 - ERR_LAST);
    for (int i = 0; i >= ERR_LAST; i--) {
        assert_string_equal(err_name((enum err)i), names[-i]);
    }
}

static void translates_the_numbers_of_the_operating_system(void **state) {
    (void)state;
    static const struct {
        int number;
        enum err err;
    } rows[] = {{0, ERR_OK},
                {ENOMEM, ERR_MEMORY},
                {ENOENT, ERR_NOT_FOUND},
                {EEXIST, ERR_EXISTS},
                {EACCES, ERR_PERMISSION},
                {EROFS, ERR_PERMISSION},
                {EAGAIN, ERR_BUSY},
                {EWOULDBLOCK, ERR_BUSY},
                {EADDRINUSE, ERR_BUSY},
                {ETIMEDOUT, ERR_TIMEOUT},
                {ECONNREFUSED, ERR_REFUSED},
                {EHOSTUNREACH, ERR_UNREACHABLE},
                {ECONNRESET, ERR_CLOSED},
                {EPIPE, ERR_CLOSED},
                {ECANCELED, ERR_CANCELLED},
                {EIO, ERR_IO},
                {ENOSPC, ERR_NO_SPACE},
                {EDQUOT, ERR_NO_SPACE},
                {EMFILE, ERR_FILES},
                {EBADF, ERR_SYSTEM},
                {INT32_MAX, ERR_SYSTEM}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(err_from_errno(rows[i].number), rows[i].err);
    }
}

static void only_zero_means_no_error(void **state) {
    (void)state;
    for (int number = 1; number < 200; number++) {
        assert_true(err_from_errno(number) < 0);
    }
}

static void fills_the_detail_and_returns_the_error(void **state) {
    (void)state;
    struct err_detail detail = {.line = 9, .column = 9};
    assert_int_equal(err_set(&detail, ERR_IO, "%s %d", "sector", 7), ERR_IO);
    assert_int_equal(detail.err, ERR_IO);
    assert_string_equal(detail.text, "sector 7");
    assert_int_equal(detail.offset, 0);
    assert_int_equal(detail.line, 0);
    assert_int_equal(detail.column, 0);
    assert_int_equal(err_set_at(&detail, ERR_INVALID, 123, "odd"), ERR_INVALID);
    assert_int_equal(detail.offset, 123);
    assert_string_equal(detail.text, "odd");
}

static void needs_no_detail(void **state) {
    (void)state;
    assert_int_equal(err_set(NULL, ERR_IO, "unread"), ERR_IO);
    assert_int_equal(err_set_at(NULL, ERR_IO, 1, "unread"), ERR_IO);
}

static void cuts_long_texts(void **state) {
    (void)state;
    struct err_detail detail;
    err_set(&detail, ERR_IO, "%*d", 10000, 1);
    assert_int_equal(strlen(detail.text), ERR_TEXT_SIZE_MAX - 1);
}

static void explains_by_the_detail_only_where_it_is_about_this_error(void **state) {
    (void)state;
    struct err_detail detail;
    err_set(&detail, ERR_NO_SPACE, "7 bytes left");
    assert_string_equal(err_detail_text(&detail, ERR_NO_SPACE), "7 bytes left");
    assert_string_equal(err_detail_text(&detail, ERR_IO), err_text(ERR_IO));
    assert_string_equal(err_detail_text(NULL, ERR_IO), err_text(ERR_IO));
    detail.text[0] = '\0';
    assert_string_equal(err_detail_text(&detail, ERR_NO_SPACE), err_text(ERR_NO_SPACE));
}

static void assert_false_statement(void *argument) {
    ASSERT(argument == NULL && 1 + 1 == 3);
}

static void set_no_error(void *detail) {
    err_set(detail, ERR_OK, "fine");
}

static void failed_assertion_prints_place_and_condition_and_aborts(void **state) {
    (void)state;
    assert_true(aborts(assert_false_statement, NULL, "assertion failed: argument == NULL && 1 + 1 == 3\n"));
    assert_true(aborts(assert_false_statement, NULL, "err.c:"));
    assert_true(aborts(set_no_error, NULL, "err < 0"));
}

static void true_assertion_evaluates_once_and_goes_on(void **state) {
    (void)state;
    int evaluated = 0;
    ASSERT(++evaluated == 1);
    assert_int_equal(evaluated, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_has_a_name_and_a_text_of_its_own),
        cmocka_unit_test(values_outside_the_list_are_unknown),
        cmocka_unit_test(values_are_stable),
        cmocka_unit_test(translates_the_numbers_of_the_operating_system),
        cmocka_unit_test(only_zero_means_no_error),
        cmocka_unit_test(fills_the_detail_and_returns_the_error),
        cmocka_unit_test(needs_no_detail),
        cmocka_unit_test(cuts_long_texts),
        cmocka_unit_test(explains_by_the_detail_only_where_it_is_about_this_error),
        cmocka_unit_test(failed_assertion_prints_place_and_condition_and_aborts),
        cmocka_unit_test(true_assertion_evaluates_once_and_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
