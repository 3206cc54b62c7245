/* connector: the list of volumes, and what is wrong with it. */
#include "store/instance/connector.h"

#include <string.h>

#include "base/buf.h"
#include "scratch.h"
#include "unit.h"

static struct connector parse(const char *text) {
    struct connector connector;
    struct err_detail detail = {0};
    enum err err = connector_parse(&connector, bytes_of_string(text), "/data", &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
    return connector;
}

static void expect_failure(const char *text, enum err expected, const char *words) {
    struct connector connector;
    struct err_detail detail = {0};
    assert_int_equal(connector_parse(&connector, bytes_of_string(text), "/data", &detail), expected);
    if (strstr(detail.text, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", detail.text, words);
    }
}

static void reads_local_and_remote_volumes_in_the_order_of_their_numbers(void **state) {
    (void)state;
    struct connector connector = parse("# two disks and a machine\n"
                                       "[volume-12]\n"
                                       "url = http://192.0.2.7:8080\n"
                                       "volume = 3\n"
                                       "token = \"secret\"\n"
                                       "timeout = 2 s\n"
                                       "writable = no\n"
                                       "[volume-0]\r\n"
                                       "path = volumes/0\n"
                                       "index = index/0\n"
                                       "[volume-5]\n"
                                       "path = /disk/5\n");
    assert_int_equal(connector.volumes_count, 3);
    const struct connector_volume *volumes = connector.volumes;
    assert_int_equal(volumes[0].number, 0);
    assert_string_equal(volumes[0].path, "/data/volumes/0");
    assert_string_equal(volumes[0].index, "/data/index/0");
    assert_true(volumes[0].is_made);
    assert_true(volumes[0].is_writable);
    assert_null(volumes[0].url);
    assert_int_equal(volumes[1].number, 5);
    assert_string_equal(volumes[1].path, "/disk/5");
    assert_string_equal(volumes[1].index, "/disk/5/index");
    assert_false(volumes[1].is_made); /* a missing directory is a missing disk */
    assert_int_equal(volumes[2].number, 12);
    assert_string_equal(volumes[2].url, "http://192.0.2.7:8080");
    assert_string_equal(volumes[2].token, "secret");
    assert_int_equal(volumes[2].remote_number, 3);
    assert_int_equal(volumes[2].timeout_ms, 2000);
    assert_false(volumes[2].is_writable);
    assert_null(volumes[2].path);
    connector_done(&connector);
}

static void has_one_volume_by_default(void **state) {
    (void)state;
    struct connector connector;
    assert_int_equal(connector_default(&connector, "/data"), ERR_OK);
    assert_int_equal(connector.volumes_count, 1);
    assert_int_equal(connector.volumes[0].number, 0);
    assert_string_equal(connector.volumes[0].path, "/data/volumes/0");
    assert_string_equal(connector.volumes[0].index, "/data/index/0");
    assert_true(connector.volumes[0].is_made);
    connector_done(&connector);
}

static void says_what_is_wrong_and_where(void **state) {
    (void)state;
    expect_failure("", ERR_INVALID, "there is no volume");
    expect_failure("# nothing\n", ERR_INVALID, "there is no volume");
    expect_failure("path = /a\n", ERR_INVALID, "line 1");
    expect_failure("[volum-0]\npath = /a\n", ERR_INVALID, "line 1, column 2");
    expect_failure("[volume-0]\npath = /a\n[volume-1024]\npath = /b\n", ERR_INVALID, "line 3");
    expect_failure("[volume-0]\npath = /a\n[volume-01]\npath = /b\n", ERR_INVALID, "line 3");
    expect_failure("[volume-0]\npth = /a\n", ERR_INVALID, "path");
    expect_failure("[volume-0]\npath = /a\npath = /b\n", ERR_INVALID, "line 3");
    expect_failure("[volume-0]\npath = /a\n[volume-0]\npath = /b\n", ERR_INVALID, "set already in line 2");
    expect_failure("[volume-0]\n", ERR_INVALID, "either path or url");
    expect_failure("[volume-0]\npath = /a\nurl = http://b\ntoken = t\n", ERR_INVALID, "either path or url");
    expect_failure("[volume-0]\npath = /a\ntoken = t\n", ERR_INVALID, "needs no token");
    expect_failure("[volume-0]\nurl = http://b\n", ERR_INVALID, "wants a token");
    expect_failure("[volume-0]\nurl = ftp://b\ntoken = t\n", ERR_INVALID, "neither http");
    expect_failure("[volume-0]\nurl = http://b\ntoken = \"a b\"\n", ERR_INVALID, "one word");
    expect_failure("[volume-0]\nurl = http://b\ntoken = t\ntoken_file = f\n", ERR_INVALID, "exclude");
    expect_failure("[volume-0]\nurl = http://b\ntoken = t\nindex = i\n", ERR_INVALID, "its own index");
    expect_failure("[volume-0]\nurl = http://b\ntoken = t\nvolume = 1024\n", ERR_INVALID, "line 4");
    expect_failure("[volume-0]\npath = /a\n[volume-1]\npath = /a\n", ERR_INVALID, "the same place");
    expect_failure("[volume-0]\nurl = http://b\ntoken = t\ntoken_file = \"\"\n"
                   "[volume-1]\nurl = http://b\ntoken = u\n",
                   ERR_INVALID, "the same place");
}

static void has_a_limit(void **state) {
    (void)state;
    struct buf text;
    buf_init(&text, 1 << 16);
    for (unsigned i = 0; i < CONNECTOR_VOLUMES_MAX; i++) {
        buf_put_format(&text, "[volume-%u]\npath = /disk/%u\n", i * 7 % 997, i);
    }
    struct connector connector = parse(buf_string(&text));
    assert_int_equal(connector.volumes_count, CONNECTOR_VOLUMES_MAX);
    for (size_t i = 1; i < connector.volumes_count; i++) {
        assert_true(connector.volumes[i - 1].number < connector.volumes[i].number);
    }
    connector_done(&connector);
    buf_put_string(&text, "[volume-999]\npath = /disk/999\n");
    expect_failure(buf_string(&text), ERR_LIMIT, "at most");
    buf_done(&text);
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void reads_files_with_tokens_beside_them(void **state) {
    char path[SCRATCH_PATH_SIZE];
    char token[SCRATCH_PATH_SIZE];
    char expected[SCRATCH_PATH_SIZE];
    struct connector connector;
    struct err_detail detail = {0};
    scratch_path(*state, "connector", path);
    assert_int_equal(connector_read(&connector, path, &detail), ERR_NOT_FOUND);
    write_file(path, "[volume-0]\npath = here\n[volume-1]\nurl = https://b\ntoken_file = token\n");
    assert_int_equal(connector_read(&connector, path, &detail), ERR_INVALID); /* the token is missing */
    assert_non_null(strstr(detail.text, "token"));
    write_file(scratch_path(*state, "token", token), "abc-123\n");
    assert_int_equal(connector_read(&connector, path, &detail), ERR_OK);
    assert_string_equal(connector.volumes[0].path, scratch_path(*state, "here", expected));
    assert_string_equal(connector.volumes[1].token, "abc-123");
    connector_done(&connector);
    write_file(path, "[volume-0]\npath = \n");
    assert_int_equal(connector_read(&connector, path, &detail), ERR_INVALID);
    assert_non_null(strstr(detail.text, path));
    assert_non_null(strstr(detail.text, "line 2"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_local_and_remote_volumes_in_the_order_of_their_numbers),
        cmocka_unit_test(has_one_volume_by_default),
        cmocka_unit_test(says_what_is_wrong_and_where),
        cmocka_unit_test(has_a_limit),
        cmocka_unit_test_setup_teardown(reads_files_with_tokens_beside_them, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
