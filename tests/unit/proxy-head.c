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
    if (proxy_head_read(&fixture->head, bytes_of_string(text), &reason) != HTTP_HEAD_WHOLE ||
        proxy_head_url(&fixture->head, bytes_of(NULL, 0), &fixture->url, NULL) != ERR_OK) {
        return NULL;
    }
    assert_int_equal(proxy_head_put_request(&fixture->head, &fixture->url, &fixture->out), ERR_OK);
    return buf_string(&fixture->out);
}

static void begin(struct fixture *fixture) {
    assert_int_equal(proxy_head_init(&fixture->head), ERR_OK);
    url_init(&fixture->url);
    buf_init(&fixture->out, 4 * PROXY_HEAD_SIZE_MAX);
}

static void end(struct fixture *fixture) {
    proxy_head_done(&fixture->head);
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
    assert_int_equal(proxy_head_init(&head), ERR_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[200];
        const char *reason;
        snprintf(text, sizeof text, "GET http://a/ HTTP/%s\r\n%s\r\n\r\n", rows[i].version, rows[i].field);
        assert_int_equal(proxy_head_read(&head, bytes_of_string(text), &reason), HTTP_HEAD_WHOLE);
        assert_int_equal(head.keeps_connection, rows[i].keeps);
    }
    proxy_head_done(&head);
}

static void waits_for_the_whole_head(void **state) {
    (void)state;
    static struct proxy_head head;
    const char *reason;
    struct bytes text = BYTES("\r\n\r\nGET http://a/ HTTP/1.1\r\nX: y\r\n\r\nmore");
    size_t size = text.size - 4;
    assert_int_equal(proxy_head_init(&head), ERR_OK);
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(proxy_head_read(&head, bytes_slice(text, 0, i), &reason), HTTP_HEAD_READING);
    }
    assert_int_equal(proxy_head_read(&head, text, &reason), HTTP_HEAD_WHOLE);
    assert_int_equal(head.size, size);
    proxy_head_done(&head);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_on_what_is_about_the_request_and_not_about_the_connection),
        cmocka_unit_test(knows_who_keeps_the_connection),
        cmocka_unit_test(waits_for_the_whole_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
