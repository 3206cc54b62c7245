#include "warc/cdxj.h"

#include "cdxj-indexer.h"
#include "unit.h"
#include "warc-fixture.h"

#define LINE                                                                                      \
    "org,example)/b 20260102030405 {\"url\": \"http://example.org/B\", \"mime\": \"text/html\", " \
    "\"status\": \"200\", "                                                                       \
    "\"digest\": \"B2LT\", \"length\": \"2258\", \"offset\": \"334\", \"filename\": \"a.warc.gz\"}"

static void writes_a_line(void **state) {
    (void)state;
    struct cdxj cdxj = {.key = BYTES("org,example)/b"),
                        .time_us = INT64_C(1767323045000000),
                        .url = BYTES("http://example.org/B"),
                        .mime = BYTES("text/html"),
                        .status = 200,
                        .digest = BYTES("B2LT"),
                        .has_place = true,
                        .length = 2258,
                        .offset = 334,
                        .filename = BYTES("a.warc.gz")};
    struct buf out;
    buf_init(&out, 1 << 16);
    assert_int_equal(cdxj_put(&out, &cdxj), ERR_OK);
    assert_bytes_equal(buf_bytes(&out), BYTES(LINE "\n"));
    buf_done(&out);
}

/* A comma stood before the first value: found by fuzzing. */
static void writes_entries_that_lack_a_url(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 1 << 16);
    assert_int_equal(cdxj_put(&out, &(struct cdxj){.key = BYTES("a)/"), .has_place = true, .length = 7}),
                     ERR_OK);
    assert_int_equal(cdxj_put(&out, &(struct cdxj){.key = BYTES("a)/"), .status = 200}), ERR_OK);
    assert_int_equal(cdxj_put(&out, &(struct cdxj){.key = BYTES("a)/")}), ERR_OK);
    assert_string_equal(buf_string(&out), "a)/ 19700101000000 {\"length\": \"7\", \"offset\": \"0\"}\n"
                                          "a)/ 19700101000000 {\"status\": \"200\"}\n"
                                          "a)/ 19700101000000 {}\n");
    buf_done(&out);
}

static void escapes_what_json_and_lines_cannot_hold(void **state) {
    (void)state;
    struct cdxj cdxj = {.key = BYTES("a)/"),
                        .url = BYTES("http://a/\"\\\n\x01\xc3\xa4\xff"),
                        .filename = BYTES("x\x7f.warc")};
    struct buf out;
    buf_init(&out, 1 << 16);
    assert_int_equal(cdxj_put(&out, &cdxj), ERR_OK);
    assert_bytes_equal(buf_bytes(&out),
                       BYTES("a)/ 19700101000000 {\"url\": \"http://a/\\\"\\\\\\n\\u0001\xc3\xa4"
                             "\xef\xbf\xbd\", \"filename\": \"x\\u007f.warc\"}\n"));
    buf_done(&out);
}

static void refuses_keys_that_break_the_line(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 1 << 16);
    assert_int_equal(cdxj_put(&out, &(struct cdxj){.key = BYTES("a b")}), ERR_INVALID);
    assert_int_equal(cdxj_put(&out, &(struct cdxj){.key = BYTES("a\n")}), ERR_INVALID);
    assert_int_equal(cdxj_put(&out, &(struct cdxj){0}), ERR_INVALID);
    assert_int_equal(cdxj_put(&out, &(struct cdxj){.key = BYTES("a"), .time_us = INT64_MAX}), ERR_INVALID);
    assert_int_equal(out.size, 0);
    buf_done(&out);
}

/* Index a file in memory; damage is passed over. */
static void index_bytes(struct bytes bytes, struct buf *out, size_t *ret_errors) {
    struct cdxj_indexer *indexer = malloc(sizeof *indexer);
    struct source_memory memory;
    assert_non_null(indexer);
    source_memory_init(&memory, bytes);
    assert_int_equal(cdxj_indexer_init(indexer, NULL), ERR_OK);
    cdxj_indexer_open(indexer, &memory.source, BYTES("f"));
    *ret_errors = 0;
    for (bool found = true; found;) {
        enum err err = cdxj_indexer_next(indexer, &found, NULL);
        if (err == ERR_UNSUPPORTED) {
            *ret_errors += 1;
        } else if (err != ERR_OK) {
            *ret_errors += 1;
            assert_int_equal(warc_reader_recover(&indexer->reader, &found, NULL), ERR_OK);
        } else if (found) {
            assert_int_equal(cdxj_put(out, &indexer->entry), ERR_OK);
        }
    }
    cdxj_indexer_done(indexer);
    free(indexer);
}

#define RECORD(type, fields, length, block)                                         \
    "WARC/1.0\r\nWARC-Type: " type "\r\nWARC-Date: 2026-01-02T03:04:05Z\r\n" fields \
    "Content-Length: " length "\r\n\r\n" block "\r\n\r\n"
#define URI "WARC-Target-URI: http://www.Example.org:80/B/?b=2&a=1#x\r\n"

static void indexes_captures_and_nothing_else(void **state) {
    (void)state;
    struct buf out;
    size_t errors;
    buf_init(&out, 1 << 16);
    index_bytes(
        BYTES(
            RECORD("warcinfo", "", "0", "") RECORD("request", URI, "0", "")
                RECORD("metadata", URI "Content-Type: application/warc-fields\r\n", "0", "")
                    RECORD("response", "", "0", "") /* no URI */
            RECORD("response", URI "Content-Type: application/http\r\n", "20", "HTTP/1.1 404\r\n\r\nabcd")
                RECORD("revisit", "WARC-Target-URI: dns:a\r\nWARC-Payload-Digest: sha256:00\r\n", "0", "")
                    RECORD("resource", "WARC-Target-URI: :a b\r\nContent-Type: image/png;x\r\n", "3", "abc")),
        &out, &errors);
    assert_int_equal(errors, 0);
    assert_string_equal(
        buf_string(&out),
        "org,example)/b?a=1&b=2 20260102030405 {\"url\": \"http://www.Example.org:80/B/?b=2&a=1#x\", "
        "\"mime\": \"unk\", "
        "\"status\": \"404\", \"digest\": \"QH7IX7UHK5WD5SZCIJXY4V4EOOBJC6WP\", \"length\": \"199\", "
        "\"offset\": \"508\", "
        "\"filename\": \"f\"}\n"
        "dns:a 20260102030405 {\"url\": \"dns:a\", \"mime\": \"warc/revisit\", \"digest\": \"sha256:00\", "
        "\"length\": \"144\", \"offset\": \"707\", \"filename\": \"f\"}\n"
        ":a%20b 20260102030405 {\"url\": \":a b\", \"mime\": \"image/png\", \"digest\": "
        "\"VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5\", \"length\": \"142\", \"offset\": \"851\", \"filename\": "
        "\"f\"}\n");
    buf_done(&out);
}

static void indexes_around_damage(void **state) {
    (void)state;
    struct buf out;
    size_t errors;
    buf_init(&out, 1 << 16);
    index_bytes(BYTES(RECORD("resource", URI, "nine", "abc") RECORD("resource", URI, "3", "abc")), &out,
                &errors);
    assert_int_equal(errors, 1);
    char expected[64];
    snprintf(expected, sizeof expected, "\"offset\": \"%zu\"",
             sizeof(RECORD("resource", URI, "nine", "abc")) - 1);
    assert_non_null(strstr(buf_string(&out), expected));
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_a_line),
        cmocka_unit_test(writes_entries_that_lack_a_url),
        cmocka_unit_test(escapes_what_json_and_lines_cannot_hold),
        cmocka_unit_test(refuses_keys_that_break_the_line),
        cmocka_unit_test(indexes_captures_and_nothing_else),
        cmocka_unit_test(indexes_around_damage),
    };
    return cmocka_run_group_tests_name("warc-cdxj", tests, NULL, NULL);
}
