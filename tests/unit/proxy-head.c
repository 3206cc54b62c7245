#include "node/proxy/proxy_head.h"

#include <stdio.h>

#include "unit.h"

struct fixture {
    struct proxy_head head;
    struct url url;
    struct buf out;
};

/* What the server gets of a request; NULL: it is refused. */
static const char *passed_on(struct fixture *fixture, const char *text) {
    const char *reason;
    buf_clear(&fixture->out);
    if (proxy_head_read(&fixture->head, bytes_of_string(text), &reason) != PROXY_HEAD_WHOLE ||
        proxy_head_url(&fixture->head, bytes_of(NULL, 0), &fixture->url, NULL) != ERR_OK) {
        return NULL;
    }
    assert_int_equal(proxy_head_put_request(&fixture->head, &fixture->url, &fixture->out), ERR_OK);
    return buf_string(&fixture->out);
}

static void begin(struct fixture *fixture) {
    url_init(&fixture->url);
    buf_init(&fixture->out, 4 * PROXY_HEAD_SIZE_MAX);
}

static void end(struct fixture *fixture) {
    url_done(&fixture->url);
    buf_done(&fixture->out);
}

static void passes_on_what_is_about_the_request_and_not_about_the_connection(void **state) {
    (void)state;
    static struct fixture fixture;
    begin(&fixture);
    assert_string_equal(passed_on(&fixture, "GET http://Example.org:80/a?b#c HTTP/1.1\r\nHost: other\r\n"
                                            "Connection: X-Hop, keep-alive\r\nX-Hop: 1\r\nTE: trailers\r\n"
                                            "Proxy-Authorization: secret\r\nCookie:  a=b \r\n\r\n"),
                        "GET /a?b HTTP/1.1\r\nHost: example.org\r\nCookie: a=b\r\nConnection: close\r\n\r\n");
    assert_string_equal(passed_on(&fixture, "POST http://u:p@a:81/ HTTP/1.0\r\nContent-Length: 007\r\n\r\n"),
                        "POST / HTTP/1.0\r\nHost: a:81\r\nContent-Length: 7\r\nConnection: close\r\n\r\n");
    assert_string_equal(passed_on(&fixture, "PUT http://[::1]/ HTTP/1.1\r\ntransfer-encoding: CHUNKED\r\n"
                                            "Expect: 100-continue\r\n\r\n"),
                        "PUT / HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n"
                        "Connection: close\r\n\r\n");
    end(&fixture);
}

static void knows_who_keeps_the_connection(void **state) {
    (void)state;
    static const struct {
        const char *version;
        const char *field;
        bool keeps;
    } rows[] = {
        {"1.1", "X: y", true},
        {"1.1", "Connection: close", false},
        {"1.1", "Proxy-Connection: Close", false},
        {"1.0", "X: y", false},
        {"1.0", "Connection: Keep-Alive", true},
        {"1.0", "Connection: keep-alive, close", false},
    };
    static struct proxy_head head;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[200];
        const char *reason;
        snprintf(text, sizeof text, "GET http://a/ HTTP/%s\r\n%s\r\n\r\n", rows[i].version, rows[i].field);
        assert_int_equal(proxy_head_read(&head, bytes_of_string(text), &reason), PROXY_HEAD_WHOLE);
        assert_int_equal(head.keeps_connection, rows[i].keeps);
    }
}

static void waits_for_the_whole_head(void **state) {
    (void)state;
    static struct proxy_head head;
    const char *reason;
    struct bytes text = BYTES("\r\n\r\nGET http://a/ HTTP/1.1\r\nX: y\r\n\r\nmore");
    size_t size = text.size - 4;
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(proxy_head_read(&head, bytes_slice(text, 0, i), &reason), PROXY_HEAD_PART);
    }
    assert_int_equal(proxy_head_read(&head, text, &reason), PROXY_HEAD_WHOLE);
    assert_int_equal(head.size, size);
}

struct body_row {
    const char *bytes;
    size_t taken;
    bool is_ended;
    bool is_wrong;
};

static void finds_the_end_of_chunks_and_takes_no_others(void **state) {
    (void)state;
    static const struct body_row rows[] = {
        {"5\r\nhello\r\n0\r\n\r\nGET", 15, true, false},
        {"A;x=\"y\"\r\n0123456789\r\n00\r\nX: y\r\nZ: \r\n\r\n!", 38, true, false},
        {"5\r\nhel", 6, false, false},
        {"5\r\nhelloX", 8, false, true},
        {"5\nhello", 1, false, true},
        {"\r\n", 0, false, true},
        {" 5\r\n", 0, false, true},
        {"0x5\r\n", 1, false, true},
        {"5\r\r", 2, false, true},
        {"0\r\n X: folded\r\n", 3, false, true},
        {"0\r\nX\001", 4, false, true},
        {"1111111111111111\r\n", 15, false, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct proxy_body body;
        proxy_body_start(&body, PROXY_BODY_CHUNKED, 0);
        assert_int_equal(proxy_body_take(&body, bytes_of_string(rows[i].bytes)), rows[i].taken);
        assert_int_equal(body.is_ended, rows[i].is_ended);
        assert_int_equal(body.is_wrong, rows[i].is_wrong);
        assert_int_equal(proxy_body_finish(&body), rows[i].is_ended);
    }
}

static void finds_the_end_of_other_bodies(void **state) {
    (void)state;
    struct proxy_body body;
    proxy_body_start(&body, PROXY_BODY_LENGTH, 5);
    assert_int_equal(proxy_body_take(&body, BYTES("hel")), 3);
    assert_false(body.is_ended);
    assert_int_equal(proxy_body_take(&body, BYTES("lo GET")), 2);
    assert_true(body.is_ended);
    proxy_body_start(&body, PROXY_BODY_LENGTH, 0);
    assert_true(body.is_ended);
    proxy_body_start(&body, PROXY_BODY_LENGTH, 5);
    assert_false(proxy_body_finish(&body));
    proxy_body_start(&body, PROXY_BODY_UNTIL_CLOSE, 0);
    assert_int_equal(proxy_body_take(&body, BYTES("all")), 3);
    assert_false(body.is_ended);
    assert_true(proxy_body_finish(&body));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_on_what_is_about_the_request_and_not_about_the_connection),
        cmocka_unit_test(knows_who_keeps_the_connection),
        cmocka_unit_test(waits_for_the_whole_head),
        cmocka_unit_test(finds_the_end_of_chunks_and_takes_no_others),
        cmocka_unit_test(finds_the_end_of_other_bodies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
