#include "replay/archive/wayback_path.h"

#include <stdlib.h>

#include "base/utc.h"
#include "unit.h"

struct row {
    const char *target;
    enum wayback_kind kind;
    const char *digits;
    const char *modifier;
    enum rewrite_modifier as;
    const char *url;
};

static const struct row rows[] = {
    {"20260102030405/http://example.org/a?b=c", WAYBACK_CAPTURE, "20260102030405", "", REWRITE_PAGE,
     "http://example.org/a?b=c"},
    {"20260102030405id_/http://example.org/", WAYBACK_CAPTURE, "20260102030405", "id_", REWRITE_RAW,
     "http://example.org/"},
    {"2026im_/https://example.org/x", WAYBACK_CAPTURE, "2026", "im_", REWRITE_IMAGE, "https://example.org/x"},
    {"2026esm_/https://example.org/x", WAYBACK_CAPTURE, "2026", "esm_", REWRITE_MODULE,
     "https://example.org/x"},
    {"2026xy_/https://example.org/x", WAYBACK_CAPTURE, "2026", "xy_", REWRITE_PAGE, "https://example.org/x"},
    {"cs_/https://example.org/x", WAYBACK_CAPTURE, "", "cs_", REWRITE_STYLE, "https://example.org/x"},
    {"2026///http://example.org/", WAYBACK_CAPTURE, "2026", "", REWRITE_PAGE, "http://example.org/"},
    {"2026/http:/example.org/", WAYBACK_CAPTURE, "2026", "", REWRITE_PAGE, "http://example.org/"},
    {"2026/http:///example.org/", WAYBACK_CAPTURE, "2026", "", REWRITE_PAGE, "http://example.org/"},
    {"2026/example.org/x", WAYBACK_CAPTURE, "2026", "", REWRITE_PAGE, "http://example.org/x"},
    {"2026/example.org:8080/x", WAYBACK_CAPTURE, "2026", "", REWRITE_PAGE, "http://example.org:8080/x"},
    {"2026/localhost:8080/x", WAYBACK_CAPTURE, "2026", "", REWRITE_PAGE, "http://localhost:8080/x"},
    {"2026/http%3A%2F%2Fexample.org%2Fa%20b%3Fq%3D1%23top", WAYBACK_CAPTURE, "2026", "", REWRITE_PAGE,
     "http://example.org/a%20b?q=1"},
    {"2026/http://example.org/%2F%3Fa", WAYBACK_CAPTURE, "2026", "", REWRITE_PAGE,
     "http://example.org/%2F%3Fa"},
    {"2026/http%3a%2f%2fexample.org%2f%0d%0aX:%20y", WAYBACK_CAPTURE, "2026", "", REWRITE_PAGE,
     "http://example.org/%0D%0AX:%20y"},
    {"2026/http://example.org/\"<>\xc3\xbc", WAYBACK_CAPTURE, "2026", "", REWRITE_PAGE,
     "http://example.org/%22%3C%3E%C3%BC"},
    {"http://example.org/", WAYBACK_CAPTURE, "", "", REWRITE_PAGE, "http://example.org/"},
    {"/http://example.org/", WAYBACK_CAPTURE, "", "", REWRITE_PAGE, "http://example.org/"},
    {"example.org", WAYBACK_CAPTURE, "", "", REWRITE_PAGE, "http://example.org"},
    {"127.0.0.1/x", WAYBACK_CAPTURE, "", "", REWRITE_PAGE, "http://127.0.0.1/x"},
    {"2026.example.org/x", WAYBACK_CAPTURE, "", "", REWRITE_PAGE, "http://2026.example.org/x"},
    {"dns:example.org", WAYBACK_CAPTURE, "", "", REWRITE_PAGE, "dns:example.org"},
    {"*/http://example.org/", WAYBACK_CALENDAR, "", "", REWRITE_PAGE, "http://example.org/"},
    {"2026*/example.org", WAYBACK_CALENDAR, "2026", "", REWRITE_PAGE, "http://example.org"},
    {"2009-2015/http://example.org/", WAYBACK_CALENDAR, "", "", REWRITE_PAGE, "http://example.org/"},
    {"2009-201506*/example.org", WAYBACK_CALENDAR, "", "", REWRITE_PAGE, "http://example.org"},
    {"2009-/example.org", WAYBACK_CALENDAR, "", "", REWRITE_PAGE, "http://example.org"},
    {"-2015/example.org", WAYBACK_CALENDAR, "", "", REWRITE_PAGE, "http://example.org"},
    {"2009-2015.example.org/x", WAYBACK_CAPTURE, "", "", REWRITE_PAGE, "http://2009-2015.example.org/x"},
    {"*/http://example.org/a*", WAYBACK_LIST, "", "", REWRITE_PAGE, "http://example.org/a*"},
    {"*/*.example.org", WAYBACK_LIST, "", "", REWRITE_PAGE, "*.example.org"},
    {"*/*", WAYBACK_LIST, "", "", REWRITE_PAGE, "*"},
};

static void reads_all_spellings(void **state) {
    (void)state;
    struct wayback_path path;
    wayback_path_init(&path);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err_detail detail = {0};
        enum err err = wayback_path_parse(&path, bytes_of_string(rows[i].target), &detail);
        if (err != ERR_OK) {
            fail_msg("%s: %s", rows[i].target, err_detail_text(&detail, err));
        }
        assert_int_equal(path.kind, rows[i].kind);
        assert_bytes_equal(path.digits, bytes_of_string(rows[i].digits));
        assert_bytes_equal(path.modifier, bytes_of_string(rows[i].modifier));
        assert_int_equal(path.as, rows[i].as);
        assert_bytes_equal(buf_bytes(&path.url), bytes_of_string(rows[i].url));
        assert_int_equal(path.key.size, 0);
    }
    wayback_path_done(&path);
}

static void takes_a_part_of_a_time_for_its_end(void **state) {
    (void)state;
    struct wayback_path path;
    char text[UTC_DIGITS_SIZE];
    wayback_path_init(&path);
    assert_int_equal(wayback_path_parse(&path, BYTES("202602/http://a.example/"), NULL), ERR_OK);
    assert_string_equal(utc_format_digits(path.time_us, text), "20260228235959");
    assert_int_equal(wayback_path_parse(&path, BYTES("20260102030405/http://a.example/"), NULL), ERR_OK);
    assert_int_equal(path.time_us % 1000000, 0);
    assert_int_equal(wayback_path_parse(&path, BYTES("http://a.example/"), NULL), ERR_OK);
    assert_true(path.time_us == INT64_MAX && wayback_path_is_gate(&path));
    wayback_path_done(&path);
}

static void a_range_has_both_its_ends(void **state) {
    (void)state;
    struct wayback_path path;
    char text[UTC_DIGITS_SIZE];
    wayback_path_init(&path);
    assert_int_equal(wayback_path_parse(&path, BYTES("2009-201502/http://a.example/"), NULL), ERR_OK);
    assert_string_equal(utc_format_digits(path.from_us, text), "20090101000000");
    assert_string_equal(utc_format_digits(path.time_us, text), "20150228235959");
    assert_int_equal(path.time_us % 1000000, 999999);
    assert_int_equal(wayback_path_parse(&path, BYTES("2009-/http://a.example/"), NULL), ERR_OK);
    assert_true(path.time_us == INT64_MAX);
    wayback_path_done(&path);
}

static void finds_the_secret(void **state) {
    (void)state;
    struct wayback_path path;
    wayback_path_init(&path);
    assert_int_equal(wayback_path_parse(&path, BYTES("~0123abcd/2026js_/http://a.example/"), NULL), ERR_OK);
    assert_bytes_equal(path.key, BYTES("0123abcd"));
    assert_int_equal(path.as, REWRITE_SCRIPT);
    assert_int_equal(wayback_path_parse(&path, BYTES("~0123abcd"), NULL), ERR_NOT_FOUND);
    wayback_path_done(&path);
}

static void says_what_is_wrong(void **state) {
    (void)state;
    static const struct {
        const char *target;
        enum err err;
        const char *text;
    } wrong[] = {
        {"", ERR_NOT_FOUND, "no URL is given"},
        {"2026/", ERR_INVALID, "no URL follows the time"},
        {"2026", ERR_INVALID, "no URL follows the time"},
        {"*/", ERR_INVALID, "no URL follows the time"},
        {"202601020304051/http://a.example/", ERR_INVALID, "a time has up to 14 digits, this one has 15"},
        {"20261301/http://a.example/", ERR_INVALID, "there is no such time: 20261301"},
        {"2015-2009/http://a.example/", ERR_INVALID, "there are no such times: 2015-2009"},
        {"2009-2015/", ERR_INVALID, "no URL follows the times"},
    };
    struct wayback_path path;
    wayback_path_init(&path);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct err_detail detail = {0};
        assert_int_equal(wayback_path_parse(&path, bytes_of_string(wrong[i].target), &detail), wrong[i].err);
        assert_string_equal(detail.text, wrong[i].text);
    }
    wayback_path_done(&path);
}

static void bounds_the_url(void **state) {
    (void)state;
    struct wayback_path path;
    size_t size = 2 * URL_SIZE_MAX;
    char *long_url = malloc(size);
    assert_non_null(long_url);
    memset(long_url, '<', size);
    wayback_path_init(&path);
    assert_int_equal(wayback_path_parse(&path, bytes_of(long_url, size), NULL), ERR_LIMIT);
    assert_int_equal(wayback_path_parse(&path, BYTES("2026/http://a.example/"), NULL), ERR_OK);
    wayback_path_done(&path);
    free(long_url);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_all_spellings),       cmocka_unit_test(takes_a_part_of_a_time_for_its_end),
        cmocka_unit_test(a_range_has_both_its_ends), cmocka_unit_test(finds_the_secret),
        cmocka_unit_test(says_what_is_wrong),        cmocka_unit_test(bounds_the_url),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
