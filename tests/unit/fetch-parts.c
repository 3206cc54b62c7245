#include "crawl/fetch/fetch_state.h"
#include <stdio.h>

#include "unit.h"

/* Addresses of IPv4, one or more, by their last byte. */
static struct dns_answer answer_of(const char *last_bytes) {
    struct dns_answer answer = {0};
    for (; *last_bytes != '\0'; last_bytes++) {
        answer.addresses[answer.count++] = address_ipv4(192, 0, 2, (uint8_t)(*last_bytes - '0'), 0);
    }
    return answer;
}

static struct fetch_host *use(struct fetch_hosts *hosts, const char *key, const char *last_bytes,
                              const char *told, const char *forgotten) {
    struct buf tell;
    struct buf forget;
    struct fetch_host *host = NULL;
    struct dns_answer answer = answer_of(last_bytes);
    buf_init(&tell, 1000);
    buf_init(&forget, 1000);
    assert_int_equal(fetch_hosts_use(hosts, bytes_of_string(key), &answer, &tell, &forget, &host), ERR_OK);
    assert_bytes_equal(buf_bytes(&tell), bytes_of_string(told));
    assert_bytes_equal(buf_bytes(&forget), bytes_of_string(forgotten));
    buf_done(&tell);
    buf_done(&forget);
    return host;
}

static void tells_addresses_only_when_they_change(void **state) {
    struct fetch_hosts hosts;
    (void)state;
    fetch_hosts_init(&hosts, 3, 1);
    struct fetch_host *a = use(&hosts, "a:80", "1", "a:80:192.0.2.1", "");
    assert_ptr_equal(use(&hosts, "a:80", "1", "", ""), a);
    assert_ptr_equal(use(&hosts, "a:80", "12", "a:80:192.0.2.1,192.0.2.2", ""), a);
    assert_ptr_equal(use(&hosts, "a:80", "21", "a:80:192.0.2.2,192.0.2.1", ""), a);
    assert_ptr_equal(use(&hosts, "a:80", "2", "a:80:192.0.2.2", ""), a);
    fetch_hosts_doubt(a);
    assert_ptr_equal(use(&hosts, "a:80", "2", "a:80:192.0.2.2", ""), a);
    struct fetch_host *other_port = use(&hosts, "a:81", "1", "a:81:192.0.2.1", "");
    assert_ptr_not_equal(other_port, a);
    fetch_hosts_doubt(NULL);
    fetch_hosts_leave(NULL);
    fetch_hosts_leave(other_port);
    use(&hosts, "-b:80", "1", "+-b:80:192.0.2.1", "");
    fetch_hosts_leave(use(&hosts, "-b:80", "1", "+-b:80:192.0.2.1", "")); /* not an order to forget b */
    use(&hosts, "c:80", "1", "c:80:192.0.2.1", "-a:81");
    fetch_hosts_done(&hosts);
}

static void forgets_hosts_that_nobody_uses(void **state) {
    struct fetch_hosts hosts;
    (void)state;
    fetch_hosts_init(&hosts, 3, 1);
    use(&hosts, "a:80", "1", "a:80:192.0.2.1", "");
    struct fetch_host *b = use(&hosts, "b:80", "1", "b:80:192.0.2.1", "");
    struct fetch_host *c = use(&hosts, "c:80", "1", "c:80:192.0.2.1", "");
    fetch_hosts_leave(c);
    fetch_hosts_leave(b);
    use(&hosts, "d:80", "1", "d:80:192.0.2.1", "-b:80"); /* a is older but in use */
    use(&hosts, "b:80", "1", "b:80:192.0.2.1", "-c:80");
    struct buf out;
    struct fetch_host *host = NULL;
    struct dns_answer answer = answer_of("1");
    buf_init(&out, 1000);
    assert_int_equal(fetch_hosts_use(&hosts, BYTES("e:80"), &answer, &out, &out, &host), ERR_LIMIT);
    assert_null(host);
    buf_done(&out);
    fetch_hosts_done(&hosts);
}

static void ipv6_addresses_are_told_in_brackets(void **state) {
    struct fetch_hosts hosts;
    struct buf tell;
    struct fetch_host *host = NULL;
    struct dns_answer answer = answer_of("1");
    (void)state;
    assert_true(address_parse(BYTES("2001:db8::1"), 1, &answer.addresses[answer.count++]));
    buf_init(&tell, 1000);
    fetch_hosts_init(&hosts, 3, 1);
    assert_int_equal(fetch_hosts_use(&hosts, BYTES("a:80"), &answer, &tell, &tell, &host), ERR_OK);
    assert_bytes_equal(buf_bytes(&tell), BYTES("a:80:192.0.2.1,[2001:db8::1]"));
    buf_done(&tell);
    fetch_hosts_done(&hosts);
}

/* What is recorded, and what is sent behind it. */
static void expect_blocks(struct fetch_config config, struct fetch_request request, const char *login,
                          const char *expected, const char *secret) {
    struct fetch_message message;
    struct buf block;
    struct err_detail detail;
    size_t public_size = 0;
    buf_init(&block, FETCH_MESSAGE_BLOCK_SIZE_MAX);
    config.user_agent = config.user_agent != NULL ? config.user_agent : "me";
    assert_int_equal(fetch_message_init(&message, &config, &detail), ERR_OK);
    assert_int_equal(
        fetch_message_put_block(&message, &request, bytes_of_string(login), &block, &public_size), ERR_OK);
    assert_bytes_equal(bytes_slice(buf_bytes(&block), 0, public_size), bytes_of_string(expected));
    assert_bytes_equal(bytes_skip(buf_bytes(&block), public_size), bytes_of_string(secret));
    buf_done(&block);
    fetch_message_done(&message);
}

static void expect_block(struct fetch_config config, struct fetch_request request, const char *expected) {
    expect_blocks(config, request, "", expected, "");
}

#define ENCODINGS "Accept-Encoding: gzip, deflate, br, zstd"

static void puts_own_headers_in_place_of_the_usual_ones(void **state) {
    (void)state;
    struct fetch_config config = {0};
    struct fetch_request none = {0};
    expect_block(config, none, "Accept: */*\r\n" ENCODINGS "\r\nUser-Agent: me");
    config.headers = (const char *const[]){"accept: text/html", "X-A: b ", "USER-AGENT: you", NULL};
    struct fetch_request request = {.accept = BYTES("image/*"), .if_none_match = BYTES(" \"x\" ")};
    expect_block(config, request,
                 "accept: text/html\r\n" ENCODINGS "\r\nX-A: b\r\nUSER-AGENT: you\r\nIf-None-Match: \"x\"");
    config.headers = (const char *const[]){"Accept-Encoding: identity", NULL};
    expect_block(config, request,
                 "Accept: image/*\r\nUser-Agent: me\r\nAccept-Encoding: identity\r\nIf-None-Match: \"x\"");
}

static void sends_secrets_that_are_not_recorded(void **state) {
    (void)state;
    struct fetch_config config = {0};
    struct fetch_request request = {.if_none_match = BYTES("\"x\"")};
    const char *usual = "Accept: */*\r\n" ENCODINGS "\r\nUser-Agent: me\r\nX-A: b\r\nIf-None-Match: \"x\"";
    config.headers =
        (const char *const[]){"authorization: Bearer t", "X-A: b", "Proxy-Authorization: p", NULL};
    expect_blocks(config, request, "", usual, "\r\nauthorization: Bearer t\r\nProxy-Authorization: p");
    expect_blocks(config, request, "Basic eA==", usual, "\r\nAuthorization: Basic eA==");
    config.headers = (const char *const[]){"X-A: b", NULL};
    expect_blocks(config, request, "Basic eA==", usual, "\r\nAuthorization: Basic eA==");
    assert_false(fetch_message_is_usual(&(struct fetch_request){0}, BYTES("Basic eA==")));
    assert_true(fetch_message_is_usual(&(struct fetch_request){0}, bytes_of(NULL, 0)));
}

static enum err add_login(struct logins *logins, const char *text, struct err_detail *detail) {
    struct url url;
    url_init(&url);
    enum err err = url_parse(&url, bytes_of_string(text), NULL, detail);
    err = err == ERR_OK ? logins_add(logins, &url, detail) : err;
    url_done(&url);
    return err;
}

static void expect_login(const struct logins *logins, const char *text, const char *expected) {
    struct url url;
    url_init(&url);
    assert_int_equal(url_parse(&url, bytes_of_string(text), NULL, NULL), ERR_OK);
    assert_bytes_equal(logins_find(logins, &url), bytes_of_string(expected));
    url_done(&url);
}

static void a_login_is_for_one_origin(void **state) {
    (void)state;
    struct logins logins;
    struct err_detail detail = {0};
    logins_init(&logins);
    expect_login(NULL, "http://a.example/", "");
    assert_int_equal(add_login(&logins, "http://a.example/", &detail), ERR_OK);
    assert_int_equal(logins.count, 0);
    assert_int_equal(add_login(&logins, "http://us%20er:p%40ss@A.example:80/x", &detail), ERR_OK);
    assert_int_equal(add_login(&logins, "https://only@a.example/", &detail), ERR_OK);
    assert_int_equal(add_login(&logins, "http://us%20er:p%40ss@a.example/again", &detail), ERR_OK);
    assert_int_equal(logins.count, 2);
    expect_login(&logins, "http://a.example/y?z", "Basic dXMgZXI6cEBzcw==");
    expect_login(&logins, "http://other:one@a.example/", "Basic dXMgZXI6cEBzcw==");
    expect_login(&logins, "https://a.example/", "Basic b25seTo=");
    const char *const others[] = {"http://a.example:8080/", "http://b.a.example/", "http://example/",
                                  "http://a.example./", "https://a.example:80/"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        expect_login(&logins, others[i], "");
    }
    assert_int_equal(add_login(&logins, "http://us%20er:hushhush@a.example/", &detail), ERR_INVALID);
    assert_null(strstr(detail.text, "hushhush"));
    logins_done(&logins);
}

static void too_many_or_too_long_logins_are_refused(void **state) {
    (void)state;
    struct logins logins;
    struct err_detail detail = {0};
    char text[LOGINS_TEXT_SIZE_MAX + 100];
    logins_init(&logins);
    snprintf(text, sizeof text, "http://%0*d@a/", LOGINS_TEXT_SIZE_MAX, 1);
    assert_int_equal(add_login(&logins, text, &detail), ERR_LIMIT);
    snprintf(text, sizeof text, "http://%0*d@a/", LOGINS_TEXT_SIZE_MAX - 1, 1);
    assert_int_equal(add_login(&logins, text, &detail), ERR_OK);
    for (unsigned i = 1; i < LOGINS_MAX; i++) {
        snprintf(text, sizeof text, "http://u:p@h%u.example/", i);
        assert_int_equal(add_login(&logins, text, &detail), ERR_OK);
    }
    assert_int_equal(add_login(&logins, "http://u:p@one.more/", &detail), ERR_LIMIT);
    assert_int_equal(logins.count, LOGINS_MAX);
    logins_done(&logins);
}

static void leaves_out_values_that_could_be_headers(void **state) {
    (void)state;
    static uint8_t longer[FETCH_MESSAGE_VALUE_SIZE_MAX + 1];
    const struct bytes bad[] = {BYTES("a\r\nX: b"), BYTES("a\nX: b"), BYTES("a\rb"),
                                BYTES("a\0b"),      BYTES("a\x7f"),   bytes_of(longer, sizeof longer)};
    memset(longer, 'x', sizeof longer);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct fetch_request request = {
            .accept = bad[i], .if_none_match = bad[i], .if_modified_since = bad[i]};
        expect_block((struct fetch_config){0}, request, "Accept: */*\r\n" ENCODINGS "\r\nUser-Agent: me");
    }
    struct fetch_request request = {.if_none_match = BYTES("\"\xc3\xa4\tb\"")};
    expect_block((struct fetch_config){0}, request,
                 "Accept: */*\r\n" ENCODINGS "\r\nUser-Agent: me\r\nIf-None-Match: \"\xc3\xa4\tb\"");
}

static void refuses_headers_that_are_none(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "a",
        "a b: c",
        ": c",
        "a:",
        "a: ",
        "a: b\r\nc: d",
        "a: b\rc",
        "a\n: b",
        "Host: x",
        "connection: close",
        "Content-Length: 5",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct fetch_message message;
        struct err_detail detail = {0};
        struct fetch_config config = {.headers = (const char *const[]){"X-A: b", bad[i], NULL}};
        assert_int_equal(fetch_message_init(&message, &config, &detail), ERR_INVALID);
        assert_true(detail.text[0] != '\0');
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_addresses_only_when_they_change),
        cmocka_unit_test(forgets_hosts_that_nobody_uses),
        cmocka_unit_test(ipv6_addresses_are_told_in_brackets),
        cmocka_unit_test(puts_own_headers_in_place_of_the_usual_ones),
        cmocka_unit_test(sends_secrets_that_are_not_recorded),
        cmocka_unit_test(a_login_is_for_one_origin),
        cmocka_unit_test(too_many_or_too_long_logins_are_refused),
        cmocka_unit_test(leaves_out_values_that_could_be_headers),
        cmocka_unit_test(refuses_headers_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
