#include "http/message/http_body.h"

#include <stdio.h>

#include "base/prng.h"
#include "unit.h"

/* ---- chunks ---- */

struct body_row {
    const char *bytes;
    size_t taken;
    bool is_ended;
    bool is_wrong;
};

static void finds_the_end_of_strict_chunks_and_takes_no_others(void **state) {
    (void)state;
    static const struct body_row rows[] = {
        {"5\r\nhello\r\n0\r\n\r\nGET", 15, true, false},
        {"A;x=\"y\"\r\n0123456789\r\n00\r\nX: y\r\nZ: \r\n\r\n!", 38, true, false},
        {"5 \t;x\r\nhello\r\n0 \r\n\r\n", 20, true, false},
        {"5\r\nhel", 6, false, false},
        {"5\r\nhelloX", 8, false, true},
        {"5\r\nhello\n", 8, false, true},
        {"5\nhello", 1, false, true},
        {"5;x\nhello", 3, false, true},
        {"5 x\r\n", 2, false, true},
        {"\r\n", 0, false, true},
        {" 5\r\n", 0, false, true},
        {"0x5\r\n", 1, false, true},
        {"5\r\r", 2, false, true},
        {"0\r\n X: folded\r\n", 3, false, true},
        {"0\r\nX: y\nZ: a\r\n\r\n", 7, false, true},
        {"0\r\nX\001", 4, false, true},
        {"0\r\n\n", 3, false, true},
        {"1111111111111111\r\n", 15, false, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct http_body body;
        http_body_start(&body, (struct http_framing){HTTP_BODY_CHUNKED, 0});
        assert_int_equal(http_body_take(&body, bytes_of_string(rows[i].bytes)), rows[i].taken);
        assert_int_equal(body.is_ended, rows[i].is_ended);
        assert_int_equal(body.is_wrong, rows[i].is_wrong);
        assert_int_equal(http_body_finish(&body), rows[i].is_ended);
    }
}

static void bounds_strict_extensions_and_trailers(void **state) {
    (void)state;
    static const char *const starts[] = {"5;", "0\r\nX: "};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        struct chunked chunked;
        size_t taken = 0;
        chunked_start(&chunked, HTTP_RULES_STRICT);
        chunked_take(&chunked, bytes_of_string(starts[i]));
        while (taken <= CHUNKED_LINES_SIZE_MAX && chunked_take(&chunked, BYTES("x")) == 1) {
            taken++;
        }
        assert_in_range(taken, CHUNKED_LINES_SIZE_MAX - 8, CHUNKED_LINES_SIZE_MAX);
        assert_int_equal(chunked.state, CHUNKED_WRONG);
    }
}

static void finds_the_end_of_other_bodies(void **state) {
    (void)state;
    struct http_body body;
    http_body_start(&body, (struct http_framing){HTTP_BODY_LENGTH, 5});
    assert_int_equal(http_body_take(&body, BYTES("hel")), 3);
    assert_false(body.is_ended);
    assert_int_equal(http_body_take(&body, BYTES("lo GET")), 2);
    assert_true(body.is_ended);
    assert_int_equal(http_body_take(&body, BYTES("GET")), 0);
    http_body_start(&body, (struct http_framing){HTTP_BODY_LENGTH, 0});
    assert_true(body.is_ended);
    http_body_start(&body, (struct http_framing){HTTP_BODY_NONE, 0});
    assert_true(body.is_ended);
    assert_int_equal(http_body_take(&body, BYTES("GET")), 0);
    http_body_start(&body, (struct http_framing){HTTP_BODY_LENGTH, 5});
    assert_false(http_body_finish(&body));
    http_body_start(&body, (struct http_framing){HTTP_BODY_UNTIL_CLOSE, 0});
    assert_int_equal(http_body_take(&body, BYTES("all")), 3);
    assert_false(body.is_ended);
    assert_true(http_body_finish(&body));
}

/* How many bytes belong to the body, however they are cut. */
static void expect_end(struct bytes text, enum http_rules rules, size_t end) {
    for (size_t piece_size = 1; piece_size <= text.size; piece_size++) {
        struct chunked chunked;
        size_t taken = 0;
        chunked_start(&chunked, rules);
        for (size_t from = 0; from < text.size; from += piece_size) {
            size_t to = from + piece_size < text.size ? from + piece_size : text.size;
            taken += chunked_take(&chunked, bytes_slice(text, from, to));
        }
        if (taken != end) {
            fail_msg("%zu instead of %zu in pieces of %zu: %.*s", taken, end, piece_size, BYTES_ARG(text));
        }
    }
}

static void finds_the_end_of_recorded_chunks(void **state) {
    (void)state;
    static const struct {
        const char *body;
        const char *more;
    } rows[] = {
        {"0\r\n\r\n", "HTTP/1.1 200 OK\r\n"},
        {"5\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n"},
        {"5;a=b;c=\"d\"\r\nhello\r\n00000\r\n\r\n", "\r\n"},
        {"a\r\n0123456789\r\n0\r\nX-A: b\r\nX-C: d\r\n\r\n", "x"},
        {"A\n0123456789\n0\nX-A: b\n\n", "\n"},
        {"5\r\nhello\r\n0\r\n\n", "\r\n"},
        {" 5  \r\nhello\r\n0\r\n\r\n", "x"},
        {"2\r\n\r\n\r\n0\r\n\r\n", ""},
        /* Not chunks, or not to the end: everything. */
        {"5\r\nhelloXX\r\n0\r\n\r\n", ""},
        {"xyz", ""},
        {"-5\r\nhello\r\n0\r\n\r\nmore", ""},
        {"5x\r\nhello\r\n0\r\n\r\nmore", ""},
        {"ffffffffffffffffff\r\nhello\r\n0\r\n\r\nmore", ""},
        {"fffffffffffffff\r\nhello\r\n0\r\n\r\nmore", ""},
        {"5\r\nhello\r\n0\r\n\rX\r\nmore", ""},
        {"5\r\nhel", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "%s%s", rows[i].body, rows[i].more);
        expect_end(bytes_of_string(text), HTTP_RULES_RECORDED, strlen(rows[i].body));
    }
}

static void the_end_does_not_depend_on_the_cuts(void **state) {
    (void)state;
    static const char alphabet[] = "0015aF;\r\n\r\n\nX: ";
    struct prng prng;
    prng_init(&prng, 7);
    for (unsigned round = 0; round < 40000; round++) {
        enum http_rules rules = round % 2 == 0 ? HTTP_RULES_RECORDED : HTTP_RULES_STRICT;
        uint8_t text[24];
        size_t size = prng_between(&prng, 1, sizeof text);
        for (size_t i = 0; i < size; i++) {
            text[i] = (uint8_t)alphabet[prng_below(&prng, sizeof alphabet - 1)];
        }
        struct chunked chunked;
        chunked_start(&chunked, rules);
        expect_end(bytes_of(text, size), rules, chunked_take(&chunked, bytes_of(text, size)));
    }
}

/* ---- heads ---- */

/* Fed in pieces of that size. Returns what was taken. */
static size_t read_head(struct http_head *head, struct bytes text, size_t piece_size) {
    size_t taken = 0;
    http_head_start(head);
    while (taken < text.size && head->state == HTTP_HEAD_READING) {
        size_t to = taken + piece_size < text.size ? taken + piece_size : text.size;
        struct bytes piece = bytes_slice(text, taken, to);
        http_head_feed(head, &piece);
        taken = to - piece.size;
    }
    return taken;
}

static void reads_a_strict_request(void **state) {
    (void)state;
    static struct http_head head;
    struct bytes text = BYTES("\r\n\r\nGET /a HTTP/1.1\r\nHost: a\r\nX:\t y \r\n\r\nmore");
    assert_int_equal(http_head_init(&head), ERR_OK);
    head.rules = HTTP_RULES_STRICT;
    for (size_t piece_size = 1; piece_size <= text.size; piece_size++) {
        assert_int_equal(read_head(&head, text, piece_size), text.size - 4);
        assert_int_equal(head.state, HTTP_HEAD_WHOLE);
        assert_bytes_equal(head.method, BYTES("GET"));
        assert_bytes_equal(head.target, BYTES("/a"));
        assert_int_equal(head.minor_version, 1);
        assert_int_equal(head.fields.count, 2);
        assert_bytes_equal(fields_get(&head.fields, BYTES("x")), BYTES("y"));
    }
    read_head(&head, BYTES("GET / HTTP/1.0\r\nHost: a\r\n"), 1);
    assert_int_equal(head.state, HTTP_HEAD_READING);
    http_head_finish(&head);
    assert_int_equal(head.state, HTTP_HEAD_NONE);
    http_head_done(&head);
}

#define GET "GET / HTTP/1.1\r\n"

/* What the strict rules refuse; the others refuse nothing of it. */
static void refuses_requests_with_two_meanings(void **state) {
    (void)state;
    static const char *const rows[] = {
        "GET / HTTP/1.1\n\n",          "GET / HTTP/1.1\nX: y\r\n\r\n",
        "GET / HTTP/1.1 \r\n\r\n",     "GET / HTTP/2.0\r\n\r\n",
        "GET  / HTTP/1.1\r\n\r\n",     "GET / x HTTP/1.1\r\n\r\n",
        "G(T / HTTP/1.1\r\n\r\n",      "GET /\001 HTTP/1.1\r\n\r\n",
        " GET / HTTP/1.1\r\n\r\n",     "GGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGG / HTTP/1.1\r\n\r\n",
        GET "X : y\r\n\r\n",           GET " X: y\r\n\r\n",
        GET "X: y\r\n folded\r\n\r\n", GET "X: y\nZ: a\r\n\r\n",
        GET "X: y\rZ: a\r\n\r\n",      GET "X: y\r\n\n",
        GET "X: \013\r\n\r\n",         GET "no colon\r\n\r\n",
        GET ": no name\r\n\r\n",       GET "Host: a\r\nhost: a\r\n\r\n",
    };
    static struct http_head head;
    assert_int_equal(http_head_init(&head), ERR_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bytes text = bytes_of_string(rows[i]);
        head.rules = HTTP_RULES_STRICT;
        for (size_t piece_size = 1; piece_size <= text.size; piece_size++) {
            read_head(&head, text, piece_size);
            assert_int_equal(head.state, HTTP_HEAD_NONE);
            assert_non_null(head.reason);
        }
        head.rules = HTTP_RULES_RECORDED;
        read_head(&head, text, 1);
        assert_int_equal(head.state, HTTP_HEAD_WHOLE);
    }
    http_head_done(&head);
}

static void refuses_strict_heads_that_are_too_large(void **state) {
    (void)state;
    static struct http_head head;
    struct buf text;
    buf_init(&text, 2 * HTTP_HEAD_SIZE_MAX);
    assert_int_equal(http_head_init(&head), ERR_OK);
    head.rules = HTTP_RULES_STRICT;
    buf_put_string(&text, GET);
    for (size_t i = 0; i <= FIELDS_COUNT_MAX; i++) {
        buf_put_string(&text, "X: y\r\n");
    }
    buf_put_string(&text, "\r\n");
    read_head(&head, buf_bytes(&text), 1000);
    assert_string_equal(head.reason, "too many header fields");
    buf_clear(&text);
    buf_put_string(&text, GET "X: ");
    while (text.size <= HTTP_HEAD_SIZE_MAX) {
        buf_put_string(&text, "xxxxxxxx");
    }
    read_head(&head, buf_bytes(&text), 1000);
    assert_int_equal(head.state, HTTP_HEAD_NONE);
    http_head_done(&head);
    buf_done(&text);
}

/* ---- where the body ends ---- */

enum { REFUSED = -1 };

static int kind_of(struct http_head *head, const char *first_line, const char *fields,
                   enum http_message message, uint64_t *ret_size) {
    char text[512];
    struct http_framing framing = {HTTP_BODY_NONE, 0};
    snprintf(text, sizeof text, "%s\r\n%s\r\n", first_line, fields);
    head->rules = message == HTTP_MESSAGE_REQUEST ? HTTP_RULES_STRICT : HTTP_RULES_RECORDED;
    read_head(head, bytes_of_string(text), sizeof text);
    assert_int_equal(head->state, HTTP_HEAD_WHOLE);
    bool is_refused = http_head_framing(head, message, &framing) != NULL;
    *ret_size = framing.size;
    return is_refused ? REFUSED : (int)framing.kind;
}

static void says_where_a_body_ends(void **state) {
    (void)state;
    static const struct {
        const char *fields;
        int request;
        int answer;
        int recorded;
        uint64_t size;
    } rows[] = {
        {"", HTTP_BODY_NONE, HTTP_BODY_UNTIL_CLOSE, HTTP_BODY_UNTIL_CLOSE, 0},
        {"Content-Length: 007\r\n", HTTP_BODY_LENGTH, HTTP_BODY_LENGTH, HTTP_BODY_UNTIL_CLOSE, 7},
        {"content-length: 4\r\nContent-Length: 4\r\n", REFUSED, HTTP_BODY_LENGTH, HTTP_BODY_UNTIL_CLOSE, 4},
        {"Content-Length: 4, 4\r\n", REFUSED, HTTP_BODY_LENGTH, HTTP_BODY_UNTIL_CLOSE, 4},
        {"Content-Length: 4\r\nContent-Length: 5\r\n", REFUSED, REFUSED, HTTP_BODY_UNTIL_CLOSE, 0},
        {"Content-Length: +4\r\n", REFUSED, REFUSED, HTTP_BODY_UNTIL_CLOSE, 0},
        {"Content-Length: \r\n", REFUSED, REFUSED, HTTP_BODY_UNTIL_CLOSE, 0},
        {"Content-Length: 99999999999999999999\r\n", REFUSED, REFUSED, HTTP_BODY_UNTIL_CLOSE, 0},
        {"transfer-encoding: CHUNKED\r\n", HTTP_BODY_CHUNKED, HTTP_BODY_CHUNKED, HTTP_BODY_CHUNKED, 0},
        {"Transfer-Encoding: gzip, chunked\r\n", REFUSED, REFUSED, HTTP_BODY_CHUNKED, 0},
        {"Transfer-Encoding: identity\r\n", REFUSED, REFUSED, HTTP_BODY_UNTIL_CLOSE, 0},
        {"Transfer-Encoding: chunked;q=1\r\n", REFUSED, REFUSED, HTTP_BODY_UNTIL_CLOSE, 0},
        {"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", REFUSED, REFUSED,
         HTTP_BODY_UNTIL_CLOSE, 0},
        {"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", REFUSED, REFUSED, HTTP_BODY_CHUNKED,
         0},
        {"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", REFUSED, HTTP_BODY_CHUNKED, HTTP_BODY_CHUNKED,
         0},
    };
    static struct http_head head;
    uint64_t size;
    assert_int_equal(http_head_init(&head), ERR_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *fields = rows[i].fields;
        const char *line = "HTTP/1.1 200 OK";
        assert_int_equal(kind_of(&head, "PUT / HTTP/1.1", fields, HTTP_MESSAGE_REQUEST, &size),
                         rows[i].request);
        assert_true(rows[i].request != HTTP_BODY_LENGTH || size == rows[i].size);
        assert_int_equal(kind_of(&head, line, fields, HTTP_MESSAGE_ANSWER, &size), rows[i].answer);
        assert_true(rows[i].answer != HTTP_BODY_LENGTH || size == rows[i].size);
        assert_int_equal(kind_of(&head, line, fields, HTTP_MESSAGE_RECORDED, &size), rows[i].recorded);
        assert_int_equal(http_head_is_chunked(&head), rows[i].recorded == HTTP_BODY_CHUNKED);
    }
    static const char length[] = "Content-Length: 5\r\n";
    static const char chunks[] = "Transfer-Encoding: chunked\r\n";
    assert_int_equal(kind_of(&head, "HTTP/1.1 200 OK", length, HTTP_MESSAGE_ANSWER_TO_HEAD, &size),
                     HTTP_BODY_NONE);
    assert_int_equal(kind_of(&head, "HTTP/1.1 101 x", chunks, HTTP_MESSAGE_ANSWER, &size), HTTP_BODY_NONE);
    assert_int_equal(kind_of(&head, "HTTP/1.1 204 x", length, HTTP_MESSAGE_ANSWER, &size), HTTP_BODY_NONE);
    assert_int_equal(kind_of(&head, "HTTP/1.1 304 x", length, HTTP_MESSAGE_ANSWER, &size), HTTP_BODY_NONE);
    assert_int_equal(kind_of(&head, "HTTP/1.1 304 x", chunks, HTTP_MESSAGE_RECORDED, &size),
                     HTTP_BODY_CHUNKED);
    assert_int_equal(kind_of(&head, "PUT / HTTP/1.0", chunks, HTTP_MESSAGE_REQUEST, &size), REFUSED);
    http_head_done(&head);
}

/* Every byte at every place, among blanks, letters and bytes beyond ASCII: it looks at eight at a time. */
static void finds_every_control_character(void **state) {
    (void)state;
    static const uint8_t around[] = {' ', 'a', '~', 0x80, 0xff, '\t'};
    uint8_t text[19];
    for (size_t a = 0; a < sizeof around; a++) {
        for (size_t i = 0; i < sizeof text; i++) {
            for (unsigned byte = 0; byte <= UINT8_MAX; byte++) {
                memset(text, around[a], sizeof text);
                text[i] = (uint8_t)byte;
                bool is_control = (byte < ' ' && byte != '\t') || byte == 0x7f;
                assert_int_equal(http_has_controls(bytes_of(text, sizeof text)), is_control);
            }
        }
    }
    assert_false(http_has_controls(bytes_of(NULL, 0)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_end_of_strict_chunks_and_takes_no_others),
        cmocka_unit_test(bounds_strict_extensions_and_trailers),
        cmocka_unit_test(finds_the_end_of_other_bodies),
        cmocka_unit_test(finds_the_end_of_recorded_chunks),
        cmocka_unit_test(the_end_does_not_depend_on_the_cuts),
        cmocka_unit_test(reads_a_strict_request),
        cmocka_unit_test(refuses_requests_with_two_meanings),
        cmocka_unit_test(refuses_strict_heads_that_are_too_large),
        cmocka_unit_test(says_where_a_body_ends),
        cmocka_unit_test(finds_every_control_character),
    };
    return cmocka_run_group_tests_name("http-message", tests, NULL, NULL);
}
