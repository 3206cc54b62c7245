#include "warc/payload.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "unit.h"
#include "web/type/mime_type.h"

/* The payload of the block, fed in pieces of piece_size. */
static void collect(struct payload *payload, struct bytes block, bool is_http, size_t piece_size,
                    struct buf *out) {
    struct bytes part;
    payload_start(payload, is_http);
    buf_clear(out);
    while (block.size > 0) {
        size_t size = block.size < piece_size ? block.size : piece_size;
        struct bytes piece = bytes_slice(block, 0, size);
        block = bytes_skip(block, size);
        while (payload_next(payload, &piece, &part)) {
            buf_put(out, part);
        }
    }
    if (payload_finish(payload, &part)) {
        buf_put(out, part);
    }
}

/* The same however it is cut. */
static void expect_payload(const char *block, const char *expected) {
    struct payload payload;
    struct buf out;
    assert_int_equal(payload_init(&payload), ERR_OK);
    buf_init(&out, 1 << 20);
    for (size_t piece_size = 1; piece_size < 100; piece_size = piece_size * 2 + 1) {
        collect(&payload, bytes_of_string(block), true, piece_size, &out);
        assert_bytes_equal(buf_bytes(&out), bytes_of_string(expected));
    }
    buf_done(&out);
    payload_done(&payload);
}

static void splits_head_and_body(void **state) {
    (void)state;
    expect_payload("HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody\r\n\r\nmore", "body\r\n\r\nmore");
    expect_payload("HTTP/1.0 200\nA: b\n\nbody", "body");
    expect_payload("HTTP/1.1 200 OK\r\nA: b\n\r\nbody", "body");
    expect_payload("HTTP/1.1 304 Not Modified\r\nA: b\r\n\r\n", "");
    expect_payload("HTTP/1.1 200 OK\r\nA: b", ""); /* the head ends with the block */
    expect_payload("GET / HTTP/1.1\r\nHost: a\r\n\r\npost=1", "post=1");
}

static void takes_a_block_without_a_head_as_payload(void **state) {
    (void)state;
    expect_payload("", "");
    expect_payload("<html>\n\nno head", "<html>\n\nno head");
    expect_payload("abc", "abc");
    struct payload payload;
    struct buf block;
    struct buf out;
    assert_int_equal(payload_init(&payload), ERR_OK);
    buf_init(&block, 1 << 20);
    buf_init(&out, 1 << 20);
    buf_put_string(&block, "HTTP/1.1 200 OK\r\nX: ");
    while (block.size < 2 * HTTP_HEAD_SIZE_MAX) {
        buf_put_string(&block, "no end is in sight ");
    }
    collect(&payload, buf_bytes(&block), true, 1000, &out);
    assert_int_equal(payload.head.state, HTTP_HEAD_NONE);
    assert_bytes_equal(buf_bytes(&out), buf_bytes(&block));
    collect(&payload, BYTES("HTTP/1.1 200 OK\r\n\r\nx"), false, 1000, &out);
    assert_bytes_equal(buf_bytes(&out), BYTES("HTTP/1.1 200 OK\r\n\r\nx"));
    buf_done(&block);
    buf_done(&out);
    payload_done(&payload);
}

#define CHUNKED "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n"

static void undoes_chunks(void **state) {
    (void)state;
    expect_payload(CHUNKED "3\r\nabc\r\n0A;x=\"y\"\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n",
                   "abc0123456789");
    expect_payload(CHUNKED "00000003\nabc\n0\n\n", "abc");
    expect_payload(CHUNKED "0\r\n\r\n", "");
    expect_payload(CHUNKED, "");
    expect_payload("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", "x");
    expect_payload("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n1\r\nx", "1\r\nx");
}

/* Some writers undo the chunks and leave the header; some servers break off. */
static void passes_wrong_chunks_through(void **state) {
    (void)state;
    expect_payload(CHUNKED "<!doctype html>\n<p>", "<!doctype html>\n<p>");
    expect_payload(CHUNKED "not chunked and no line end", "not chunked and no line end");
    expect_payload(CHUNKED "3\r\nabcXY", "abcXY");
    expect_payload(CHUNKED "3\r\nabc\r\nzz\r\nrest", "abczz\r\nrest");
    expect_payload(CHUNKED "5\r\nab", "ab");
    expect_payload(CHUNKED "3\r\nabc\r\n5", "abc");
    expect_payload(CHUNKED "fffffffffffffffffff\r\nx", "fffffffffffffffffff\r\nx");
    char block[1024] = CHUNKED;
    char line[600];
    memset(line, '1', sizeof line);
    line[sizeof line - 1] = '\0';
    strcat(block, line);
    expect_payload(block, line);
}

static void reads_status_and_fields(void **state) {
    (void)state;
    static const struct {
        const char *text;
        unsigned status;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\n\r\n", 200}, {"HTTP/1.1  404  Not Found\r\n\r\n", 404},
        {"HTTP/2 301\r\n\r\n", 301},      {"ICY 200 OK\r\n\r\n", 200},
        {"HTTP/1.1 20x OK\r\n\r\n", 0},   {"HTTP/1.1\r\n\r\n", 0},
        {"HTTP/1.1 099 x\r\n\r\n", 0},    {"GET /200 HTTP/1.1\r\n\r\n", 0},
        {"POST 200 HTTP/1.1\r\n\r\n", 0}, {"HTTP/1.1 1000 x\r\n\r\n", 0},
    };
    struct http_head head;
    assert_int_equal(http_head_init(&head), ERR_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bytes text = bytes_of_string(cases[i].text);
        http_head_start(&head);
        http_head_feed(&head, &text);
        assert_int_equal(head.state, HTTP_HEAD_WHOLE);
        assert_int_equal(head.status, cases[i].status);
    }
    struct bytes text = BYTES("HTTP/1.1 200 OK\r\nA: 1\r\nb:\r\n\t2\r\nA: 3\r\njunk\r\n\r\nrest");
    http_head_start(&head);
    http_head_feed(&head, &text);
    assert_bytes_equal(text, BYTES("rest"));
    assert_int_equal(head.fields.count, 3);
    assert_int_equal(head.fields.odd_lines_count, 1);
    assert_bytes_equal(fields_get(&head.fields, BYTES("B")), BYTES("2"));
    http_head_done(&head);
}

static void keeps_the_first_fields_of_too_many(void **state) {
    (void)state;
    struct http_head head;
    struct buf text;
    buf_init(&text, HTTP_HEAD_SIZE_MAX);
    buf_put_string(&text, "HTTP/1.1 200 OK\r\n");
    for (size_t i = 0; i < 2 * FIELDS_COUNT_MAX; i++) {
        buf_put_format(&text, "f%zu: %zu\r\n", i, i);
    }
    buf_put_string(&text, "\r\n");
    assert_int_equal(http_head_init(&head), ERR_OK);
    struct bytes input = buf_bytes(&text);
    http_head_feed(&head, &input);
    assert_int_equal(head.state, HTTP_HEAD_WHOLE);
    assert_int_equal(head.fields.count, FIELDS_COUNT_MAX);
    assert_bytes_equal(fields_get(&head.fields, BYTES("f511")), BYTES("511"));
    http_head_done(&head);
    buf_done(&text);
}

static void several_types_are_one_header(void **state) {
    (void)state;
    static const struct {
        const char *head;
        const char *essence;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\n\r\n", ""},
        {"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n", "image/png"},
        {"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nX: y\r\ncontent-type: text/html\r\n\r\n",
         "text/html"},
        {"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Type: x\r\nContent-Type:\r\n\r\n",
         "text/html"},
        {"HTTP/1.1 200 OK\r\nContent-Type: image/png;x=\"\r\nContent-Type: text/html\r\n\r\n", "image/png"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct http_head head;
        struct mime_type type;
        struct bytes input = bytes_of_string(cases[i].head);
        assert_int_equal(http_head_init(&head), ERR_OK);
        http_head_start(&head);
        http_head_feed(&head, &input);
        assert_int_equal(http_type(&head.fields, &type), cases[i].essence[0] != '\0');
        assert_string_equal(type.essence, cases[i].essence);
        http_head_done(&head);
    }
}

static void joined_types_are_cut_off(void **state) {
    (void)state;
    static char text[4 * HTTP_TYPE_SIZE_MAX];
    char joined[HTTP_TYPE_SIZE_MAX];
    struct http_head head;
    size_t size = (size_t)snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 3; i++) {
        size += (size_t)snprintf(text + size, sizeof text - size, "Content-Type: %0*d\r\n",
                                 HTTP_TYPE_SIZE_MAX - 200, 0);
    }
    snprintf(text + size, sizeof text - size, "\r\n");
    struct bytes input = bytes_of_string(text);
    assert_int_equal(http_head_init(&head), ERR_OK);
    http_head_start(&head);
    http_head_feed(&head, &input);
    assert_int_equal(http_content_type(&head.fields, joined).size, HTTP_TYPE_SIZE_MAX);
    http_head_done(&head);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_head_and_body),
        cmocka_unit_test(takes_a_block_without_a_head_as_payload),
        cmocka_unit_test(undoes_chunks),
        cmocka_unit_test(passes_wrong_chunks_through),
        cmocka_unit_test(reads_status_and_fields),
        cmocka_unit_test(keeps_the_first_fields_of_too_many),
        cmocka_unit_test(several_types_are_one_header),
        cmocka_unit_test(joined_types_are_cut_off),
    };
    return cmocka_run_group_tests_name("warc-http", tests, NULL, NULL);
}
