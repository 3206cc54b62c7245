/* shelf-code: what is written is read again; what breaks a bound or a range is refused with its place. */
#include "store/remote/backend_code.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "base/utc.h"
#include "unit.h"

enum { SIZE = 1 << 17 };

static struct buf new_buf(void) {
    struct buf buf;
    buf_init(&buf, 4 << 20);
    return buf;
}

static void fill_digest(uint8_t digest[KEY_DIGEST_SIZE], uint8_t first) {
    for (unsigned i = 0; i < KEY_DIGEST_SIZE; i++) {
        digest[i] = (uint8_t)(first + i);
    }
}

static void claims_and_answers_come_back(void **state) {
    (void)state;
    struct document_sum claims[11];
    bool holds[11];
    bool again[11];
    for (uint8_t i = 0; i < 11; i++) {
        fill_digest(claims[i].digest, i);
        claims[i].size = UINT64_C(1) << 4 * i;
        holds[i] = i % 3 == 0;
    }
    struct buf buf = new_buf();
    backend_code_put_claims(&buf, claims, 11);
    struct wire_reader reader;
    wire_reader_init(&reader, buf_bytes(&buf));
    assert_int_equal(backend_code_begin_claims(&reader), 11);
    for (size_t i = 0; i < 11; i++) {
        struct document_sum claim;
        backend_code_next_claim(&reader, &claim);
        assert_memory_equal(claim.digest, claims[i].digest, KEY_DIGEST_SIZE);
        assert_int_equal(claim.size, claims[i].size);
    }
    assert_int_equal(wire_reader_finish(&reader, NULL), ERR_OK);
    buf_clear(&buf);
    backend_code_put_answers(&buf, holds, 11);
    assert_int_equal(buf.size, 3);
    assert_int_equal(backend_code_read_answers(buf_bytes(&buf), again, 11, NULL), ERR_OK);
    assert_memory_equal(again, holds, sizeof holds);
    assert_int_equal(backend_code_read_answers(buf_bytes(&buf), again, 10, NULL), ERR_INVALID);
    buf.data[2] |= 0x80; /* a bit behind the last answer */
    assert_int_equal(backend_code_read_answers(buf_bytes(&buf), again, 11, NULL), ERR_INVALID);
    buf_done(&buf);
}

static const struct document full = {
    .url = {(const uint8_t *)"http://a.org/", 13},
    .time_us = 1700000000000000,
    .head = {(const uint8_t *)"HTTP/1.1 200 OK\r\n\r\n", 19},
    .body = {(const uint8_t *)"hello", 5},
    .request = {(const uint8_t *)"GET / HTTP/1.1\r\n\r\n", 18},
    .content_type = {(const uint8_t *)"text/html", 9},
    .ip_address = {(const uint8_t *)"192.0.2.1", 9},
    .truncated = {(const uint8_t *)"length", 6},
    .tls = {(const uint8_t *)"verified", 8},
};

/* The bytes that docs/protocol/volumes.md shows. */
static void a_document_has_the_documented_bytes(void **state) {
    (void)state;
    struct buf buf = new_buf();
    char hex[1024];
    struct document document = {.url = BYTES("http://a.org/"),
                                .time_us = 1000000,
                                .content_type = BYTES("text/plain"),
                                .body = BYTES("hi")};
    assert_int_equal(backend_code_put_meta(&buf, &document, STORE_REGULAR, BACKEND_CODE_PLAIN), ERR_OK);
    buf_put(&buf, document.body);
    assert_string_equal(hex_encode(buf_bytes(&buf), hex), "2a000000"
                                                          "00"
                                                          "00"
                                                          "40420f0000000000"
                                                          "0d687474703a2f2f612e6f72672f"
                                                          "00"
                                                          "0a746578742f706c61696e"
                                                          "00"
                                                          "00"
                                                          "00"
                                                          "00"
                                                          "00"
                                                          "02"
                                                          "6869");
    buf_done(&buf);
}

static void documents_come_back_whole(void **state) {
    (void)state;
    struct buf buf = new_buf();
    struct backend_code_document read;
    assert_int_equal(backend_code_put_meta(&buf, &full, STORE_COMPARE, BACKEND_CODE_PLAIN), ERR_OK);
    buf_put(&buf, full.body);
    assert_int_equal(backend_code_read_document(buf_bytes(&buf), &read, NULL), ERR_OK);
    assert_int_equal(read.mode, STORE_COMPARE);
    assert_int_equal(read.document.time_us, full.time_us);
    assert_bytes_equal(read.document.url, full.url);
    assert_bytes_equal(read.document.head, full.head);
    assert_bytes_equal(read.document.request, full.request);
    assert_bytes_equal(read.document.content_type, full.content_type);
    assert_bytes_equal(read.document.ip_address, full.ip_address);
    assert_bytes_equal(read.document.truncated, full.truncated);
    assert_bytes_equal(read.document.tls, full.tls);
    assert_bytes_equal(read.body, full.body);
    assert_null(read.document.sum);
    assert_false(read.document.is_body_left_out);
    buf_done(&buf);
}

/* So does the visit of a witness; what is no date does not become a field of a record. */
static void the_visit_of_a_witness_is_a_date(void **state) {
    static const char *const said[] = {"2026-11-18T16:00:00Z", "2026\r\nWARC-Type: response", "yesterday"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct document_sum sum = {.size = 3};
        struct document document = {.url = BYTES("http://example.org/"),
                                    .head = BYTES("HTTP/1.1 200 OK\r\n\r\n"),
                                    .visit = bytes_of_string(said[i]),
                                    .sum = &sum,
                                    .is_body_left_out = true};
        struct backend_code_document read;
        struct buf buf;
        buf_init(&buf, BACKEND_CODE_META_SIZE_MAX);
        assert_int_equal(backend_code_put_meta(&buf, &document, STORE_REGULAR, BACKEND_CODE_LEFT_OUT),
                         ERR_OK);
        assert_int_equal(backend_code_read_document(buf_bytes(&buf), &read, NULL), ERR_OK);
        assert_bytes_equal(read.document.visit, i == 0 ? document.visit : bytes_of(NULL, 0));
        assert_int_equal(read.document.content_type.size, 0);
        buf_done(&buf);
    }
}

/* Who imported it stands in the place of the type, which a reader of 0.2 passes over if there is a head. */
static void the_importer_comes_back(void **state) {
    (void)state;
    struct buf buf = new_buf();
    struct backend_code_document read;
    struct document document = full;
    document.imported = BYTES("key signature");
    assert_int_equal(backend_code_put_meta(&buf, &document, STORE_REGULAR, BACKEND_CODE_PLAIN), ERR_OK);
    buf_put(&buf, document.body);
    assert_int_equal(backend_code_read_document(buf_bytes(&buf), &read, NULL), ERR_OK);
    assert_bytes_equal(read.document.imported, BYTES("key signature"));
    assert_int_equal(read.document.content_type.size, 0);
    assert_bytes_equal(read.document.head, full.head);
    assert_int_equal(read.document.signature.size, 0);
    /* A document without HTTP has a type there, whatever it says. */
    buf_clear(&buf);
    document.head = bytes_of(NULL, 0);
    document.content_type = BYTES("imported goods");
    assert_int_equal(backend_code_put_meta(&buf, &document, STORE_REGULAR, BACKEND_CODE_PLAIN), ERR_OK);
    buf_put(&buf, document.body);
    assert_int_equal(backend_code_read_document(buf_bytes(&buf), &read, NULL), ERR_OK);
    assert_bytes_equal(read.document.content_type, BYTES("imported goods"));
    assert_int_equal(read.document.imported.size, 0);
    static char longer[BACKEND_CODE_SIGNATURE_SIZE_MAX + 1];
    buf_clear(&buf);
    document.imported = bytes_of(longer, sizeof longer);
    assert_int_equal(backend_code_put_meta(&buf, &document, STORE_REGULAR, BACKEND_CODE_PLAIN), ERR_LIMIT);
    buf_done(&buf);
}

static void a_body_left_out_is_a_digest(void **state) {
    (void)state;
    struct document_sum sum = {.size = 77};
    struct document document = full;
    struct backend_code_document read;
    struct buf buf = new_buf();
    fill_digest(sum.digest, 5);
    document.sum = &sum;
    document.is_body_left_out = true;
    document.is_not_modified = true;
    assert_int_equal(backend_code_put_meta(&buf, &document, STORE_REGULAR, BACKEND_CODE_LEFT_OUT), ERR_OK);
    assert_int_equal(backend_code_read_document(buf_bytes(&buf), &read, NULL), ERR_OK);
    assert_int_equal(read.sum.size, 77);
    assert_memory_equal(read.sum.digest, sum.digest, KEY_DIGEST_SIZE);
    assert_true(read.document.is_body_left_out && read.document.is_not_modified);
    buf_put(&buf, BYTES("a body all the same"));
    assert_int_equal(backend_code_read_document(buf_bytes(&buf), &read, NULL), ERR_INVALID);
    buf_done(&buf);
}

static void documents_that_lie_are_refused(void **state) {
    (void)state;
    struct buf buf = new_buf();
    struct backend_code_document read;
    struct err_detail detail = {0};
    assert_int_equal(backend_code_put_meta(&buf, &full, STORE_REGULAR, BACKEND_CODE_PLAIN), ERR_OK);
    buf_put(&buf, full.body);
    size_t size = buf.size;
    for (size_t cut = 0; cut < size; cut++) { /* cut anywhere, it is short of something */
        assert_int_not_equal(backend_code_read_document(bytes_slice(buf_bytes(&buf), 0, cut), &read, &detail),
                             ERR_OK);
    }
    static const struct {
        size_t offset;
        uint8_t value;
    } lies[] = {
        {0, 255},   /* more to describe it than there is */
        {3, 255},   /* 4 GiB of it */
        {4, 9},     /* no such mode */
        {5, 3},     /* no such form */
        {13, 0x7f}, /* after year 9999 */
        {14, 255},  /* a URL of any length */
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        uint8_t right = buf.data[lies[i].offset];
        buf.data[lies[i].offset] = lies[i].value;
        assert_int_not_equal(backend_code_read_document(buf_bytes(&buf), &read, &detail), ERR_OK);
        assert_true(detail.text[0] != '\0');
        buf.data[lies[i].offset] = right;
    }
    buf_done(&buf);
}

static void what_is_too_long_is_not_sent(void **state) {
    (void)state;
    struct buf buf = new_buf();
    uint8_t *memory = calloc(1, BACKEND_CODE_HEAD_SIZE_MAX + 1);
    struct document document = full;
    document.head = bytes_of(memory, BACKEND_CODE_HEAD_SIZE_MAX + 1);
    assert_int_equal(backend_code_put_meta(&buf, &document, STORE_REGULAR, BACKEND_CODE_PLAIN), ERR_LIMIT);
    document.head.size--;
    assert_int_equal(backend_code_put_meta(&buf, &document, STORE_REGULAR, BACKEND_CODE_PLAIN), ERR_OK);
    free(memory);
    buf_done(&buf);
}

static void answers_come_back(void **state) {
    (void)state;
    struct buf buf = new_buf();
    struct stored stored = {
        .key = {.number = 3}, .is_duplicate = true, .document_size = 99, .location = {7, 8, 9}};
    struct stored stored_again;
    struct block block = {
        .location = {1, 2, UINT64_C(1) << 40}, .size = 5, .references = -6, .records_count = 7};
    struct block block_again;
    struct volume_stat stat = {1, 2, 3, 4, 5, 6};
    struct volume_stat stat_again;
    fill_digest(stored.key.digest, 9);
    backend_code_put_stored(&buf, &stored);
    assert_int_equal(backend_code_read_stored(buf_bytes(&buf), &stored_again, NULL), ERR_OK);
    assert_memory_equal(&stored_again.key, &stored.key, sizeof stored.key);
    assert_true(stored_again.is_duplicate && stored_again.document_size == 99 &&
                stored_again.location.offset == 9);
    assert_int_equal(
        backend_code_read_stored(bytes_slice(buf_bytes(&buf), 0, buf.size - 1), &stored_again, NULL),
        ERR_TRUNCATED);
    buf_clear(&buf);
    backend_code_put_block(&buf, &block);
    assert_int_equal(backend_code_read_block(buf_bytes(&buf), &block_again, NULL), ERR_OK);
    assert_int_equal(block_again.references, -6);
    assert_true(block_again.location.offset == UINT64_C(1) << 40 && block_again.records_count == 7);
    buf_clear(&buf);
    backend_code_put_stat(&buf, &stat);
    assert_int_equal(backend_code_read_stat(buf_bytes(&buf), &stat_again, NULL), ERR_OK);
    assert_memory_equal(&stat_again, &stat, sizeof stat);
    buf_done(&buf);
}

static void pages_come_back_entry_by_entry(void **state) {
    (void)state;
    struct buf buf = new_buf();
    struct capture capture = {.surt = BYTES("org,a)/"),
                              .time_us = 5,
                              .location = {1, 2, 3},
                              .url = BYTES("http://a.org/"),
                              .mime = BYTES("text/html"),
                              .status = 200,
                              .flags = CAPTURE_REVISIT | CAPTURE_WITNESS | CAPTURE_SIGNED,
                              .block_number = 4,
                              .visit_s = 77,
                              .signer = 0xabcd,
                              .voucher = 0x1234};
    struct capture again;
    struct backend_code_page_end end;
    struct wire_reader reader;
    backend_code_put_capture(&buf, &capture, BACKEND_CODE_FLAGS_ALL);
    backend_code_put_capture(&buf, &capture, BACKEND_CODE_FLAGS_FIRST); /* as programs up to 0.2 read it */
    backend_code_put_capture(&buf, &capture, BACKEND_CODE_FLAGS_WITNESS);
    backend_code_put_page_end(&buf, &(struct backend_code_page_end){.next = BYTES("org,a)/x")});
    wire_reader_init(&reader, buf_bytes(&buf));
    const uint8_t flags[] = {CAPTURE_REVISIT | CAPTURE_WITNESS | CAPTURE_SIGNED, CAPTURE_REVISIT,
                             CAPTURE_REVISIT | CAPTURE_WITNESS};
    for (size_t i = 0; i < sizeof flags; i++) {
        bool is_witness = (flags[i] & CAPTURE_WITNESS) != 0;
        assert_int_equal(backend_code_next_capture(&reader, &again, &end, NULL), ERR_OK);
        assert_bytes_equal(again.surt, capture.surt);
        assert_bytes_equal(again.url, capture.url);
        assert_bytes_equal(again.mime, capture.mime);
        assert_true(again.status == 200 && again.block_number == 4);
        assert_int_equal(again.flags, flags[i]);
        assert_true(again.visit_s == (is_witness ? 77 : 0) && again.signer == (is_witness ? 0xabcd : 0));
        assert_int_equal(again.voucher, i == 0 ? 0x1234 : 0);
    }
    assert_int_equal(backend_code_next_capture(&reader, &again, &end, NULL), ERR_NOT_FOUND);
    assert_false(end.is_end);
    assert_bytes_equal(end.next, BYTES("org,a)/x"));
    for (size_t cut = 0; cut < buf.size; cut++) {
        enum err err;
        wire_reader_init(&reader, bytes_slice(buf_bytes(&buf), 0, cut));
        while ((err = backend_code_next_capture(&reader, &again, &end, NULL)) == ERR_OK) {
        }
        assert_int_not_equal(err, ERR_NOT_FOUND);
    }
    buf_done(&buf);
}

static void a_page_must_say_how_to_go_on(void **state) {
    (void)state;
    struct buf buf = new_buf();
    struct wire_reader reader;
    struct capture capture;
    struct backend_code_page_end end;
    backend_code_put_page_end(&buf, &(struct backend_code_page_end){.is_end = false});
    wire_reader_init(&reader, buf_bytes(&buf));
    assert_int_equal(backend_code_next_capture(&reader, &capture, &end, NULL), ERR_INVALID);
    buf_done(&buf);
}

static void captures_that_no_index_holds_are_refused(void **state) {
    (void)state;
    struct capture good = {.surt = BYTES("org,a)/"), .location = {1, 2, 3}};
    struct capture bad[4] = {good, good, good, good};
    bad[0].surt = BYTES("org\xff");
    bad[1].location.segment = 0;
    bad[2].flags = 0x80;
    bad[3].time_us = UTC_MAX_US + 1;
    for (size_t i = 0; i < 4; i++) {
        struct buf buf = new_buf();
        struct wire_reader reader;
        struct capture again;
        struct backend_code_page_end end;
        backend_code_put_capture(&buf, &bad[i], UINT8_MAX);
        wire_reader_init(&reader, buf_bytes(&buf));
        assert_int_equal(backend_code_next_capture(&reader, &again, &end, NULL), ERR_INVALID);
        buf_done(&buf);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_and_answers_come_back),
        cmocka_unit_test(a_document_has_the_documented_bytes),
        cmocka_unit_test(documents_come_back_whole),
        cmocka_unit_test(the_visit_of_a_witness_is_a_date),
        cmocka_unit_test(the_importer_comes_back),
        cmocka_unit_test(a_body_left_out_is_a_digest),
        cmocka_unit_test(documents_that_lie_are_refused),
        cmocka_unit_test(what_is_too_long_is_not_sent),
        cmocka_unit_test(answers_come_back),
        cmocka_unit_test(pages_come_back_entry_by_entry),
        cmocka_unit_test(a_page_must_say_how_to_go_on),
        cmocka_unit_test(captures_that_no_index_holds_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
