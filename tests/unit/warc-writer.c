#include "warc/warc_writer.h"

#include <zdict.h>

#include "allocations.h"
#include "warc-fixture.h"

enum { RESPONSE_DATE_S = 1767323045 }; /* 2026-01-02T03:04:05Z */

static const int64_t date_us = (int64_t)RESPONSE_DATE_S * 1000000;

struct made {
    struct buf file;
    struct sink_buf sink;
    struct prng prng;
    struct buf dictionary;
    struct zdict zdict;
    struct warc_writer writer;
};

static struct warc_random seeded(struct made *made) {
    prng_init(&made->prng, 7);
    return (struct warc_random){.fill = fixture_fill, .context = &made->prng};
}

static void start(struct made *made, const struct pack_options *options) {
    buf_init(&made->file, FIXTURE_SIZE_MAX);
    sink_buf_init(&made->sink, &made->file);
    assert_int_equal(warc_writer_init(&made->writer, &made->sink.sink, 0, options, seeded(made)), ERR_OK);
}

static struct made *make(enum pack_framing framing) {
    struct made *made = calloc(1, sizeof *made);
    assert_non_null(made);
    start(made, &(struct pack_options){.framing = framing});
    return made;
}

/* A dictionary of pages that look alike, trained as the store does it. */
static struct made *make_with_dictionary(void) {
    enum { SAMPLES = 300, DICTIONARY_SIZE = 4096 };
    struct made *made = calloc(1, sizeof *made);
    struct buf samples;
    size_t sizes[SAMPLES];
    assert_non_null(made);
    buf_init(&samples, 1 << 20);
    buf_init(&made->dictionary, DICTIONARY_SIZE);
    for (size_t i = 0; i < SAMPLES; i++) {
        size_t before = samples.size;
        buf_put_format(&samples,
                       "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://example.org/%zu\r\n", i);
        buf_put_format(&samples, "<html><head><title>Page %zu</title></head><body><p>%zu</p></body></html>",
                       i * i, ~i);
        sizes[i] = samples.size - before;
    }
    assert_int_equal(buf_reserve(&made->dictionary, DICTIONARY_SIZE), ERR_OK);
    size_t size = ZDICT_trainFromBuffer(made->dictionary.data, DICTIONARY_SIZE, samples.data, sizes, SAMPLES);
    assert_false(ZDICT_isError(size));
    made->dictionary.size = size;
    buf_done(&samples);
    assert_int_equal(zdict_init(&made->zdict, buf_bytes(&made->dictionary), 3, NULL), ERR_OK);
    assert_int_not_equal(made->zdict.id, 0);
    start(made, &(struct pack_options){.framing = PACK_ZSTD, .dictionary = &made->zdict});
    assert_int_equal(zdict_put_frame(&made->file, buf_bytes(&made->dictionary)), ERR_OK);
    warc_writer_resume(&made->writer, made->file.size);
    return made;
}

static void discard(struct made *made) {
    warc_writer_done(&made->writer);
    zdict_done(&made->zdict);
    buf_done(&made->dictionary);
    buf_done(&made->file);
    free(made);
}

static struct warc_written put(struct made *made, const struct warc_draft *draft) {
    struct warc_written written;
    struct err_detail detail = {.text = ""};
    uint64_t offset = made->writer.offset;
    enum err err = warc_writer_put(&made->writer, draft, &written, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", detail.text);
    }
    assert_int_equal(written.offset, offset);
    assert_int_equal(written.offset + written.length, made->writer.offset);
    assert_int_equal(made->file.size, made->writer.offset);
    return written;
}

static const struct warc_draft page = {
    .type = WARC_TYPE_RESPONSE,
    .date_us = (int64_t)RESPONSE_DATE_S * 1000000,
    .target_uri = {(const uint8_t *)"http://example.org/", 19},
    .ip_address = {(const uint8_t *)"192.0.2.1", 9},
    .head = {(const uint8_t *)"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", 44},
    .body = {(const uint8_t *)"<p>hello", 8},
};

static void writes_the_header_that_the_document_shows(void **state) {
    (void)state;
    struct made *made = make(PACK_PLAIN);
    put(made, &page);
    assert_bytes_equal(
        buf_bytes(&made->file),
        BYTES(
            "WARC/1.1\r\n"
            "WARC-Type: response\r\n"
            "WARC-Record-ID: <urn:uuid:5a76f94e-f7fa-48b3-922c-484f963d5c47>\r\n"
            "WARC-Date: 2026-01-02T03:04:05Z\r\n"
            "WARC-Target-URI: http://example.org/\r\n"
            "WARC-IP-Address: 192.0.2.1\r\n"
            "WARC-Payload-Digest: sha256:2c35ceb98d7757a74449079db9858dba4af1e87c41932a675471f3daea01886f\r\n"
            "WARC-Block-Digest: sha256:bec550c5b02d0e9fbe0031657c7737f8e8620ce3fcf1b4c727d67ac44cba75bc\r\n"
            "Content-Type: application/http;msgtype=response\r\n"
            "Content-Length: 52\r\n"
            "\r\n"
            "HTTP/1.1 200 OK\r\n"
            "Content-Type: text/html\r\n"
            "\r\n"
            "<p>hello\r\n"
            "\r\n"));
    discard(made);
}

static void leaves_out_a_block_digest_only_where_it_would_hash_twice(void **state) {
    (void)state;
    struct made *made = make(PACK_PLAIN);
    struct warc_written first = put(made, &page);
    struct warc_draft draft = page;
    draft.is_block_digest_optional = true;
    assert_true(put(made, &draft).has_block_sha256); /* the payload must be hashed anyway */
    buf_clear(&made->file);
    warc_writer_resume(&made->writer, 0);
    draft.payload_sha256 = first.payload_sha256;
    struct warc_written second = put(made, &draft);
    assert_false(second.has_block_sha256);
    assert_memory_equal(second.payload_sha256, first.payload_sha256, SHA256_SIZE);
    assert_null(strstr(buf_string(&made->file), "WARC-Block-Digest"));
    draft.type = WARC_TYPE_RESOURCE; /* the payload is the block: it costs nothing */
    draft.content_type = BYTES("text/html");
    assert_true(put(made, &draft).has_block_sha256);
    assert_non_null(strstr(buf_string(&made->file), "WARC-Block-Digest"));
    draft.type = WARC_TYPE_METADATA; /* no payload: nothing has to be hashed */
    draft.payload_sha256 = NULL;
    second = put(made, &draft);
    assert_false(second.has_block_sha256 || second.has_payload_sha256);
    draft.is_block_digest_optional = false;
    assert_true(put(made, &draft).has_block_sha256);
    discard(made);
}

static void writes_revisits_that_readers_can_resolve(void **state) {
    (void)state;
    struct made *made = make(PACK_PLAIN);
    struct warc_written first = put(made, &page);
    struct warc_draft draft = page;
    draft.type = WARC_TYPE_REVISIT;
    draft.date_us += 60 * 1000000 + 250000;
    draft.body = bytes_of(NULL, 0);
    draft.payload_sha256 = first.payload_sha256;
    draft.refers_to_target_uri = page.target_uri;
    draft.refers_to_date_us = page.date_us;
    struct warc_written second = put(made, &draft);
    draft.revisit = WARC_REVISIT_NOT_MODIFIED;
    draft.payload_sha256 = NULL;
    put(made, &draft);
    assert_memory_equal(second.payload_sha256, first.payload_sha256, SHA256_SIZE);
    const char *text = buf_string(&made->file);
    assert_non_null(strstr(text, "WARC-Date: 2026-01-02T03:05:05.250000Z\r\n"));
    assert_non_null(
        strstr(text, "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n"));
    assert_non_null(
        strstr(text, "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified\r\n"));
    assert_non_null(strstr(text, "WARC-Refers-To-Target-URI: http://example.org/\r\n"
                                 "WARC-Refers-To-Date: 2026-01-02T03:04:05Z\r\n"
                                 "WARC-Truncated: length\r\n"));
    discard(made);
}

static void refuses_drafts_that_would_make_bad_records(void **state) {
    (void)state;
    struct made *made = make(PACK_PLAIN);
    struct warc_draft drafts[8];
    for (size_t i = 0; i < 8; i++) {
        drafts[i] = page;
    }
    drafts[0].target_uri = bytes_of(NULL, 0);
    drafts[1].type = WARC_TYPE_WARCINFO; /* with a URI */
    drafts[2].target_uri = BYTES("http://a/\r\nWARC-Type: request");
    drafts[3].date_us = INT64_MAX;
    drafts[4].type = WARC_TYPE_REVISIT; /* of what? */
    drafts[5].type = WARC_TYPE_REVISIT;
    drafts[5].refers_to_target_uri = page.target_uri; /* no digest */
    drafts[6].fields = &(struct field){.name = BYTES("X"), .value = BYTES("a\nb")};
    drafts[6].fields_count = 1;
    drafts[7].fields = &(struct field){.name = BYTES("X\0"), .value = BYTES("a")};
    drafts[7].fields_count = 1;
    for (size_t i = 0; i < 8; i++) {
        struct warc_written written;
        struct err_detail detail = {.text = ""};
        assert_int_equal(warc_writer_put(&made->writer, &drafts[i], &written, &detail), ERR_INVALID);
        assert_true(detail.text[0] != '\0');
    }
    assert_int_equal(made->file.size, 0);
    put(made, &page); /* none of them tore the file */
    discard(made);
}

/* The payload of a chunked response is what was chunked. */
static void digests_the_payload_without_its_chunks(void **state) {
    (void)state;
    struct made *made = make(PACK_PLAIN);
    struct warc_draft draft = page;
    struct warc_written whole = put(made, &draft);
    draft.head = BYTES("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    draft.body = BYTES("3\r\n<p>\r\n5;x=y\r\nhello\r\n0\r\n\r\n");
    struct warc_written chunked = put(made, &draft);
    assert_memory_equal(whole.payload_sha256, chunked.payload_sha256, SHA256_SIZE);
    fixture_expect(buf_bytes(&made->file), "0+508 response ==\n508+530 response ==\n");
    discard(made);
}

/* Every kind of record, in one file. */
static void put_all_kinds(struct made *made) {
    struct buf info;
    buf_init(&info, 4096);
    warc_put_info(&info, "software", BYTES("mnemon"));
    warc_put_info(&info, "operator", bytes_of(NULL, 0));
    warc_put_info(&info, "format", BYTES("WARC File Format 1.1"));
    put(made, &(struct warc_draft){.type = WARC_TYPE_WARCINFO,
                                   .date_us = date_us,
                                   .filename = BYTES("a.warc.gz"),
                                   .body = buf_bytes(&info)});
    buf_done(&info);
    struct warc_draft draft = page;
    struct warc_written response = put(made, &draft);
    draft.concurrent_to = &response.id;
    draft.type = WARC_TYPE_REQUEST;
    draft.head = BYTES("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n");
    draft.body = bytes_of(NULL, 0);
    put(made, &draft);
    draft.type = WARC_TYPE_METADATA;
    draft.head = BYTES("via: http://example.com/\r\n");
    put(made, &draft);
    draft.concurrent_to = NULL;
    draft.type = WARC_TYPE_RESOURCE;
    draft.content_type = BYTES("image/png");
    draft.is_incompressible = true;
    draft.truncated = BYTES("disconnect");
    draft.fields = &(struct field){.name = BYTES("X-Note"), .value = BYTES("kept")};
    draft.fields_count = 1;
    put(made, &draft);
    draft.type = WARC_TYPE_REVISIT;
    draft.content_type = bytes_of(NULL, 0);
    draft.head = page.head;
    draft.payload_sha256 = response.payload_sha256;
    draft.refers_to_target_uri = page.target_uri;
    draft.refers_to_date_us = date_us;
    put(made, &draft);
}

static const char *const all_kinds[] = {"warcinfo =-", "response ==", "request =-",
                                        "metadata =-", "resource ==", "revisit =>"};

/* Without the places, which depend on the compression. */
static void expect_all_kinds(struct made *made) {
    struct buf trace;
    buf_init(&trace, 1 << 16);
    fixture_trace_bytes(buf_bytes(&made->file), &trace);
    struct bytes rest = buf_bytes(&trace);
    struct bytes line;
    for (size_t i = 0; i < sizeof all_kinds / sizeof all_kinds[0]; i++) {
        assert_true(bytes_split(&rest, '\n', &line));
        assert_bytes_equal(bytes_skip(line, bytes_find_byte(line, ' ') + 1), bytes_of_string(all_kinds[i]));
    }
    assert_int_equal(rest.size, 0);
    buf_done(&trace);
}

static void reads_back_every_kind_in_every_framing(void **state) {
    (void)state;
    for (int framing = PACK_PLAIN; framing <= PACK_ZSTD; framing++) {
        struct made *made = make((enum pack_framing)framing);
        put_all_kinds(made);
        expect_all_kinds(made);
        discard(made);
    }
    struct made *made = make_with_dictionary();
    put_all_kinds(made);
    expect_all_kinds(made);
    discard(made);
}

/* An index gives offset and length: both must be enough to read one record, and no byte more is needed. */
static void finds_each_record_by_offset_and_length_alone(void **state) {
    (void)state;
    struct made *made = make_with_dictionary();
    struct warc_written written[3];
    for (size_t i = 0; i < 3; i++) {
        written[i] = put(made, &page);
    }
    struct warc_reader *reader = malloc(sizeof *reader);
    struct source_memory memory;
    assert_non_null(reader);
    assert_int_equal(warc_reader_init(reader, &(struct unpack_options){.dictionary = &made->zdict}), ERR_OK);
    for (size_t i = 3; i-- > 0;) {
        bool found;
        source_memory_init(&memory, bytes_slice(buf_bytes(&made->file), (size_t)written[i].offset,
                                                (size_t)(written[i].offset + written[i].length)));
        warc_reader_open(reader, &memory.source);
        assert_int_equal(warc_reader_next(reader, &found, NULL), ERR_OK);
        assert_true(found);
        assert_int_equal(warc_reader_next(reader, &found, NULL), ERR_OK);
        assert_false(found);
        assert_int_equal(reader->record.length, written[i].length);
    }
    warc_reader_done(reader);
    free(reader);
    discard(made);
}

/* Incompressible and compressible bytes. */
static void fill_body(struct buf *body, size_t size) {
    struct prng prng;
    prng_init(&prng, size);
    while (body->size < size) {
        uint8_t piece[512];
        prng_fill(&prng, piece, sizeof piece);
        memset(piece, 'x', 200);
        size_t taken = size - body->size < sizeof piece ? size - body->size : sizeof piece;
        assert_int_equal(buf_put(body, bytes_of(piece, taken)), ERR_OK);
    }
}

static void keeps_bodies_of_every_size_in_every_framing(void **state) {
    (void)state;
    const size_t sizes[] = {
        0, 1, 3, 4, 5, 63, 64 << 10, (256 << 10) - 600, 256 << 10, 1 << 20, (2 << 20) + 1, (8 << 20) + 12345};
    for (int framing = PACK_PLAIN; framing <= PACK_ZSTD; framing++) {
        struct made *made = make((enum pack_framing)framing);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            struct buf body;
            buf_init(&body, 16 << 20);
            fill_body(&body, sizes[i]);
            struct warc_draft draft = page;
            draft.body = buf_bytes(&body);
            struct warc_written usual = put(made, &draft);
            draft.is_incompressible = i % 2 == 0;
            struct warc_written stored = put(made, &draft);
            assert_memory_equal(usual.block_sha256, stored.block_sha256, SHA256_SIZE);
            assert_memory_equal(usual.payload_sha256, stored.payload_sha256, SHA256_SIZE);
            buf_done(&body);
        }
        struct buf trace;
        buf_init(&trace, 1 << 16);
        fixture_trace_bytes(buf_bytes(&made->file), &trace);
        size_t good = 0;
        for (const char *at = buf_string(&trace); (at = strstr(at, " response ==\n")) != NULL; at++) {
            good++;
        }
        assert_int_equal(good, 2 * sizeof sizes / sizeof sizes[0]);
        buf_done(&trace);
        discard(made);
    }
}

/* A sink that fails from the n-th append on. */
struct failing {
    struct sink sink;
    size_t appends_left;
};

static enum err failing_append(struct sink *sink, struct bytes bytes, struct err_detail *detail) {
    (void)bytes;
    struct failing *failing = (struct failing *)sink;
    if (failing->appends_left == 0) {
        return err_set(detail, ERR_NO_SPACE, "full");
    }
    failing->appends_left--;
    return ERR_OK;
}

static void refuses_to_go_on_behind_a_torn_record(void **state) {
    (void)state;
    struct made *made = calloc(1, sizeof *made);
    struct failing failing = {.sink = {.append = failing_append}, .appends_left = 1};
    struct warc_written written;
    struct err_detail detail;
    assert_non_null(made);
    buf_init(&made->file, 1);
    assert_int_equal(
        warc_writer_init(&made->writer, &failing.sink, 1000, &(struct pack_options){0}, seeded(made)),
        ERR_OK);
    assert_int_equal(warc_writer_put(&made->writer, &page, &written, &detail), ERR_OK);
    assert_int_equal(written.offset, 1000);
    assert_int_equal(warc_writer_put(&made->writer, &page, &written, &detail), ERR_NO_SPACE);
    failing.appends_left = 10;
    assert_int_equal(warc_writer_put(&made->writer, &page, &written, &detail), ERR_IO);
    warc_writer_resume(&made->writer, 1000 + written.length);
    assert_int_equal(warc_writer_put(&made->writer, &page, &written, &detail), ERR_OK);
    discard(made);
}

static void allocates_nothing_for_further_records(void **state) {
    (void)state;
    for (int framing = PACK_PLAIN; framing <= PACK_ZSTD; framing++) {
        struct made *made = calloc(1, sizeof *made);
        struct failing sink = {.sink = {.append = failing_append}, .appends_left = SIZE_MAX};
        struct warc_written written;
        assert_non_null(made);
        buf_init(&made->file, 1);
        assert_int_equal(warc_writer_init(&made->writer, &sink.sink, 0,
                                          &(struct pack_options){.framing = (enum pack_framing)framing},
                                          seeded(made)),
                         ERR_OK);
        assert_int_equal(warc_writer_put(&made->writer, &page, &written, NULL), ERR_OK);
        size_t before = allocations_count;
        for (size_t i = 0; i < 100; i++) {
            assert_int_equal(warc_writer_put(&made->writer, &page, &written, NULL), ERR_OK);
        }
        assert_int_equal(allocations_count, before);
        discard(made);
    }
}

static void survives_failing_allocations(void **state) {
    (void)state;
    for (size_t n = 0;; n++) {
        struct warc_writer *writer = malloc(sizeof *writer);
        struct failing sink = {.sink = {.append = failing_append}};
        assert_non_null(writer);
        allocations_left = n;
        enum err err = warc_writer_init(writer, &sink.sink, 0, &(struct pack_options){.framing = PACK_GZIP},
                                        (struct warc_random){.fill = fixture_fill});
        allocations_left = SIZE_MAX;
        if (err == ERR_OK) {
            warc_writer_done(writer);
            free(writer);
            assert_true(n > 2);
            return;
        }
        assert_int_equal(err, ERR_MEMORY);
        free(writer);
    }
}

static void ids_read_back_as_they_were_written(void **state) {
    (void)state;
    struct prng prng;
    prng_init(&prng, 3);
    struct warc_random random = {.fill = fixture_fill, .context = &prng};
    struct warc_id id = warc_id_make(&random);
    struct warc_id read;
    char text[WARC_ID_TEXT_SIZE];
    assert_int_equal(id.value[6] >> 4, 4);
    assert_int_equal(id.value[8] >> 6, 2);
    assert_true(warc_id_parse(bytes_of_string(warc_id_format(&id, text)), &read));
    assert_memory_equal(&id, &read, sizeof id);
    assert_true(warc_id_parse(BYTES("urn:uuid:A86E23D9-CD9F-40A3-8484-B14BBB7D4677"), &read));
    assert_false(warc_id_parse(BYTES("urn:uuid:A86E23D9-CD9F-40A3-8484-B14BBB7D467"), &read));
    assert_false(warc_id_parse(BYTES("urn:uuid:A86E23D9+CD9F-40A3-8484-B14BBB7D4677"), &read));
    assert_false(warc_id_parse(BYTES("<urn:uuid:g86e23d9-cd9f-40a3-8484-b14bbb7d4677>"), &read));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_the_header_that_the_document_shows),
        cmocka_unit_test(leaves_out_a_block_digest_only_where_it_would_hash_twice),
        cmocka_unit_test(writes_revisits_that_readers_can_resolve),
        cmocka_unit_test(refuses_drafts_that_would_make_bad_records),
        cmocka_unit_test(digests_the_payload_without_its_chunks),
        cmocka_unit_test(reads_back_every_kind_in_every_framing),
        cmocka_unit_test(finds_each_record_by_offset_and_length_alone),
        cmocka_unit_test(keeps_bodies_of_every_size_in_every_framing),
        cmocka_unit_test(refuses_to_go_on_behind_a_torn_record),
        cmocka_unit_test(allocates_nothing_for_further_records),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(ids_read_back_as_they_were_written),
    };
    return cmocka_run_group_tests_name("warc-writer", tests, NULL, NULL);
}
