/*
 * request_key - method and body as arguments. Keys marked "js" are those of npm's warcio for the same
 * request; tests/system/test_exact.py compares more of them.
 */
#include "unit.h"
#include "warc/request_key.h"
#include "web/url/url.h"

static void check(const char *method, const char *type, struct bytes body, const char *key) {
    struct buf out;
    buf_init(&out, REQUEST_KEY_TEXT_SIZE_MAX);
    assert_int_equal(request_key_put_parts(&out, bytes_of_string(method), bytes_of_string(type), body),
                     ERR_OK);
    assert_bytes_equal(buf_bytes(&out), bytes_of_string(key));
    buf_done(&out);
}

static void bodies_become_arguments(void **state) {
    (void)state;
    check("GET", "application/json", BYTES("{\"a\": 1}"), "");
    check("GET x", "", BYTES(""), ""); /* no method */
    check("POST", "application/x-www-form-urlencoded; charset=utf-8", BYTES("a=1&B=%20"),
          "__wb_method=POST&a=1&B=%20"); /* js */
    check("POST", "application/x-www-form-urlencoded", BYTES("a=\r\n #\xc3\xa9"),
          "__wb_method=POST&a=%0D%0A%20%23%C3%A9");
    check("POST", "application/json", BYTES("{\"a\": [1, 2.5, true, null, \"\"], \"b\": {\"a\": \"x y\"}}"),
          "__wb_method=POST&a=1&a.2_=2.5&a.3_=true&a.4_=null&a.5_=x+y"); /* js */
    check("POST", "application/json", BYTES("no JSON"), "__wb_method=POST&");
    check("POST", "text/plain", BYTES("{\"a\": 1}"), "__wb_method=POST&a=1"); /* js */
    check("POST", "text/plain", BYTES("words"), "__wb_method=POST&__wb_post_data=d29yZHM=");
    check("PUT", "", BYTES("\x01\x02"), "__wb_method=PUT&__wb_post_data=AQI="); /* js */
    check("HEAD", "", BYTES(""), "__wb_method=HEAD&__wb_post_data=");           /* js */
    check("POST", "multipart/form-data; boundary=\"b\"",
          BYTES("--b\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\nv\r\n--b--\r\n"),
          "__wb_method=POST&n=v");
    check("POST", "multipart/form-data", BYTES("--b"), "__wb_method=POST&");
}

/* Whatever it is, it ends, and is no longer than the field of a record can be. */
static void bodies_of_any_size_are_bounded(void **state) {
    (void)state;
    static uint8_t body[2 * REQUEST_KEY_BODY_SIZE_MAX];
    static const char *const types[] = {"application/x-www-form-urlencoded", "application/json",
                                        "multipart/form-data; boundary=[", "text/plain", ""};
    struct buf out;
    buf_init(&out, REQUEST_KEY_TEXT_SIZE_MAX);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        for (int fill = 0; fill < 3; fill++) {
            memset(body, fill == 0 ? '[' : fill == 1 ? 0xff : '\n', sizeof body);
            for (size_t size = 1; size <= sizeof body; size *= 128) {
                buf_clear(&out);
                assert_int_equal(request_key_put_parts(&out, BYTES("POST"), bytes_of_string(types[i]),
                                                       bytes_of(body, size)),
                                 ERR_OK);
            }
        }
    }
    buf_done(&out);
}

static void urls_are_joined_and_split(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, URL_SIZE_MAX + 16);
    assert_int_equal(request_key_put_url(&out, BYTES("http://a/x?y=1#z"),
                                         BYTES("POST /x HTTP/1.1\r\ncontent-type: "
                                               "application/x-www-form-urlencoded\r\n\r\na=1")),
                     ERR_OK);
    assert_bytes_equal(buf_bytes(&out), BYTES("http://a/x?y=1&__wb_method=POST&a=1"));
    struct request_key key = request_key_split(buf_bytes(&out));
    assert_bytes_equal(key.url, BYTES("http://a/x?y=1"));
    assert_bytes_equal(key.method, BYTES("POST"));
    assert_bytes_equal(key.body, BYTES("a=1"));
    buf_clear(&out);
    assert_int_equal(request_key_put_url(&out, BYTES("http://a/#z"), BYTES("GET / HTTP/1.1\r\n\r\n")),
                     ERR_OK);
    assert_bytes_equal(buf_bytes(&out), BYTES("http://a/#z"));
    key = request_key_split(BYTES("http://a/x__wb_method=POST"));
    assert_int_equal(key.method.size, 0);
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_become_arguments),
        cmocka_unit_test(bodies_of_any_size_are_bounded),
        cmocka_unit_test(urls_are_joined_and_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
