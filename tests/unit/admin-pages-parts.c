/* desk-parts: what the desk is made of, where it needs no node: names of hosts, forms. */
#include "http/server/form.h"
#include "replay/admin/admin.h"
#include "unit.h"

static void names_of_this_machine_are_known(void **state) {
    (void)state;
    struct bytes listed[] = {BYTES("archive.example"), BYTES("other.example:99")};
    const struct config_list others = {.items = listed, .count = 2};
    static const char *const good[] = {"",
                                       "localhost",
                                       "localhost:8080",
                                       "LocalHost",
                                       "a.localhost",
                                       "127.0.0.1",
                                       "127.255.255.254:1",
                                       "[::1]",
                                       "[::1]:65535",
                                       "archive.example",
                                       "ARCHIVE.example:1",
                                       "other.example:99"};
    static const char *const bad[] = {"example.org",
                                      "localhost.example",
                                      "127.0.0.1.example",
                                      "128.0.0.1",
                                      "[::2]:80",
                                      "0.0.0.0",
                                      "localhost:65536",
                                      "localhost:",
                                      "other.example",
                                      "other.example:9",
                                      ".localhost",
                                      "localhost ",
                                      ":80",
                                      "[::1",
                                      "127.0.0.1:1:1",
                                      "::ffff:8.8.8.8"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (!admin_host_is_own(bytes_of_string(good[i]), &others)) {
            fail_msg("%s", good[i]);
        }
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (admin_host_is_own(bytes_of_string(bad[i]), &others)) {
            fail_msg("%s", bad[i]);
        }
    }
    struct bytes star[] = {BYTES("*")};
    const struct config_list any = {.items = star, .count = 1};
    assert_true(admin_host_is_own(BYTES("example.org"), &any));
}

static void expect_field(const char *form, const char *name, const char *value) {
    struct buf out;
    buf_init(&out, 1000);
    bool is_there = form_get(bytes_of_string(form), name, &out);
    assert_int_equal(is_there, value != NULL);
    assert_bytes_equal(buf_bytes(&out), bytes_of_string(value != NULL ? value : ""));
    buf_done(&out);
}

static void fields_of_a_form_are_decoded(void **state) {
    (void)state;
    expect_field("url=http%3A%2F%2Fa%2F%3Fb%3Dc%26d&x=1", "url", "http://a/?b=c&d");
    expect_field("a=1&b=two+words%2B&a=3", "a", "1");
    expect_field("a=1&b=two+words%2B&a=3", "b", "two words+");
    expect_field("a&b=", "a", "");
    expect_field("a&b=", "b", "");
    expect_field("a=%zz%4", "a", "%zz%4");
    expect_field("", "a", NULL);
    expect_field("&&==&", "a", NULL);
    expect_field("aa=1", "a", NULL);
}

static void a_field_that_is_too_long_is_an_error(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 3);
    assert_true(form_get(BYTES("a=1234"), "a", &out));
    assert_int_equal(out.err, ERR_LIMIT);
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_this_machine_are_known),
        cmocka_unit_test(fields_of_a_form_are_decoded),
        cmocka_unit_test(a_field_that_is_too_long_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
