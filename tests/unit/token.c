/* token: a secret is made once, kept, and refused when it is none any more. */
#include "node/admin/token.h"

#include <string.h>
#include <sys/stat.h>

#include "scratch.h"
#include "unit.h"

static void write_token(const char *directory, const char *text, mode_t mode) {
    char path[SCRATCH_PATH_SIZE];
    FILE *file = fopen(scratch_path(directory, "token", path), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

static void is_made_once_for_its_owner_alone(void **state) {
    struct token first;
    struct token second;
    struct stat status;
    struct err_detail detail = {0};
    assert_int_equal(token_load(&first, *state, &detail), ERR_OK);
    assert_int_equal(token_load(&second, *state, &detail), ERR_OK);
    assert_int_equal(strlen(first.text), 64);
    assert_string_equal(first.text, second.text);
    assert_int_equal(stat(first.path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
}

static void differs_from_place_to_place(void **state) {
    struct token first;
    struct token second;
    char other[SCRATCH_PATH_SIZE];
    assert_int_equal(mkdir(scratch_path(*state, "other", other), 0700), 0);
    assert_int_equal(token_load(&first, *state, NULL), ERR_OK);
    assert_int_equal(token_load(&second, other, NULL), ERR_OK);
    assert_string_not_equal(first.text, second.text);
}

static void one_that_somebody_chose_is_taken(void **state) {
    struct token token;
    write_token(*state, "  my-very-own-token \n", 0600);
    assert_int_equal(token_load(&token, *state, NULL), ERR_OK);
    assert_string_equal(token.text, "my-very-own-token");
}

static void one_that_others_may_read_is_refused(void **state) {
    struct token token;
    struct err_detail detail = {0};
    write_token(*state, "my-very-own-token", 0640);
    assert_int_equal(token_load(&token, *state, &detail), ERR_PERMISSION);
    assert_non_null(strstr(detail.text, "can be read by others"));
}

static void what_is_no_token_is_refused(void **state) {
    static const char *const texts[] = {"", "short", "two words are none", "0123456789abcdef\ntwo lines"};
    struct token token;
    struct err_detail detail = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_token(*state, texts[i], 0600);
        assert_int_equal(token_load(&token, *state, &detail), ERR_INVALID);
    }
    char longest[600];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    write_token(*state, longest, 0600);
    assert_int_equal(token_load(&token, *state, &detail), ERR_INVALID);
    assert_int_equal(token_load(&token, "/nowhere/at/all", &detail), ERR_NOT_FOUND);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(is_made_once_for_its_owner_alone, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(differs_from_place_to_place, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(one_that_somebody_chose_is_taken, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(one_that_others_may_read_is_refused, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(what_is_no_token_is_refused, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
