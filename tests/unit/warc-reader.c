#include "warc/warc_reader.h"

#include <zlib.h>

#include "allocations.h"
#include "warc-fixture.h"

#define RECORD(type, length, block) \
    "WARC/1.1\r\nWARC-Type: " type "\r\nContent-Length: " length "\r\n\r\n" block "\r\n\r\n"

static const char three[] =
    RECORD("warcinfo", "3", "abc") RECORD("resource", "0", "") RECORD("metadata", "5", "12345");

/* One gzip member with these bytes. */
static void put_gzip(struct buf *out, struct bytes bytes) {
    z_stream stream = {0};
    uint8_t piece[4096];
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (uint8_t *)(uintptr_t)bytes.data;
    stream.avail_in = (uInt)bytes.size;
    int result;
    do {
        stream.next_out = piece;
        stream.avail_out = sizeof piece;
        result = deflate(&stream, Z_FINISH);
        assert_int_equal(buf_put(out, bytes_of(piece, sizeof piece - stream.avail_out)), ERR_OK);
    } while (result != Z_STREAM_END);
    deflateEnd(&stream);
}

static void reads_records_one_after_the_other(void **state) {
    (void)state;
    fixture_expect(bytes_of_string(three), "0+59 warcinfo --\n59+56 resource --\n115+61 metadata --\n");
    fixture_expect(bytes_of(NULL, 0), "");
    fixture_expect(BYTES("\r\n\r\n\n"), "");
}

static void accepts_what_others_write(void **state) {
    (void)state;
    /* LF, no blank lines between, none at the end, odd case, spaces, old versions. */
    fixture_expect(BYTES("WARC/0.17\nwarc-type:RESPONSE\ncontent-LENGTH :  2 \n\nab"
                         "WARC/1.0\nWARC-Type: response\nContent-Length: 1\n\nx\n"
                         "WARC/1.0 \r\nContent-Length: 0\r\nno colon here\r\n\r\n"),
                   "0+53 response --\n53+50 response --\n103+47 unknown --\n");
    /* A folded line. */
    fixture_expect(
        BYTES("WARC/1.1\r\nWARC-Type:\r\n  response\r\nContent-Length:\r\n\t4\r\n\r\nabcd\r\n\r\n"),
        "0+65 response --\n");
}

static struct warc_reader *open_memory(struct source_memory *memory, struct bytes bytes) {
    struct warc_reader *reader = malloc(sizeof *reader);
    assert_non_null(reader);
    source_memory_init(memory, bytes);
    assert_int_equal(warc_reader_init(reader, NULL), ERR_OK);
    warc_reader_open(reader, &memory->source);
    return reader;
}

static void close_reader(struct warc_reader *reader) {
    warc_reader_done(reader);
    free(reader);
}

static bool next(struct warc_reader *reader) {
    bool found = false;
    assert_int_equal(warc_reader_next(reader, &found, NULL), ERR_OK);
    return found;
}

static void keeps_all_fields_in_order(void **state) {
    (void)state;
    struct source_memory memory;
    struct warc_reader *reader = open_memory(
        &memory, BYTES("WARC/1.1\r\nX-Unknown: \xc3\xa4\r\nWARC-Type: odd\r\nWARC-Target-URI: <http://a/>\r\n"
                       "WARC-Concurrent-To: <urn:a>\r\nWARC-Concurrent-To: <urn:b>\r\nWARC-Date: "
                       "2026-01-02T03:04:05Z\r\n"
                       "Content-Type:\r\nContent-Length: 0\r\n\r\n\r\n\r\n"));
    assert_true(next(reader));
    const struct warc_record *record = &reader->record;
    assert_int_equal(record->type, WARC_TYPE_UNKNOWN);
    assert_int_equal(record->fields.count, 8);
    assert_bytes_equal(fields_get(&record->fields, BYTES("x-unknown")), BYTES("\xc3\xa4"));
    assert_bytes_equal(fields_get(&record->fields, BYTES("WARC-Type")), BYTES("odd"));
    assert_bytes_equal(record->target_uri, BYTES("http://a/"));
    assert_int_equal(record->content_type.size, 0);
    assert_true(record->has_date);
    const struct field *first = fields_find(&record->fields, BYTES("WARC-Concurrent-To"), NULL);
    const struct field *second = fields_find(&record->fields, BYTES("WARC-Concurrent-To"), first);
    assert_bytes_equal(second->value, BYTES("<urn:b>"));
    assert_null(fields_find(&record->fields, BYTES("WARC-Concurrent-To"), second));
    assert_int_equal(fields_get(&record->fields, BYTES("absent")).size, 0);
    assert_false(next(reader));
    close_reader(reader);
}

static void goes_on_whether_a_block_was_read_or_not(void **state) {
    (void)state;
    struct source_memory memory;
    struct bytes piece;
    struct warc_reader *reader = open_memory(&memory, bytes_of_string(three));
    assert_true(next(reader));
    assert_true(next(reader));
    assert_int_equal(warc_reader_read(reader, &piece, NULL), ERR_OK);
    assert_int_equal(piece.size, 0);
    assert_true(next(reader));
    assert_int_equal(warc_reader_read(reader, &piece, NULL), ERR_OK);
    assert_bytes_equal(piece, BYTES("12345"));
    assert_int_equal(warc_reader_read(reader, &piece, NULL), ERR_OK);
    assert_int_equal(piece.size, 0);
    assert_false(next(reader));
    assert_false(next(reader));
    close_reader(reader);
}

static void reads_a_record_at_an_offset(void **state) {
    (void)state;
    struct source_memory memory;
    struct warc_reader *reader = open_memory(&memory, bytes_of_string(three));
    assert_int_equal(warc_reader_seek(reader, 115, NULL), ERR_OK);
    assert_true(next(reader));
    assert_int_equal(reader->record.type, WARC_TYPE_METADATA);
    assert_int_equal(warc_reader_seek(reader, 59, NULL), ERR_OK);
    assert_true(next(reader));
    assert_int_equal(reader->record.type, WARC_TYPE_RESOURCE);
    close_reader(reader);
}

static void reads_gzip_however_records_and_members_lie(void **state) {
    (void)state;
    struct bytes text = bytes_of_string(three);
    struct buf file;
    buf_init(&file, 1 << 20);
    /* One record each. */
    put_gzip(&file, bytes_slice(text, 0, 59));
    size_t second = file.size;
    put_gzip(&file, bytes_slice(text, 59, 115));
    size_t third = file.size;
    put_gzip(&file, bytes_slice(text, 115, text.size));
    char expected[256];
    snprintf(expected, sizeof expected, "0+%zu warcinfo --\n%zu+%zu resource --\n%zu+%zu metadata --\n",
             second, second, third - second, third, file.size - third);
    fixture_expect(buf_bytes(&file), expected);
    /* All in one. */
    buf_clear(&file);
    put_gzip(&file, text);
    fixture_expect(buf_bytes(&file), "0+0 warcinfo --\n0+0 resource --\n0+0 metadata --\n");
    /* Cut anywhere: a record may span members, be it in its header. */
    for (size_t cut = sizeof "WARC/" - 1; cut < 59; cut++) {
        buf_clear(&file);
        put_gzip(&file, bytes_slice(text, 0, cut));
        put_gzip(&file, bytes_of(NULL, 0));
        put_gzip(&file, bytes_slice(text, cut, 59));
        struct buf trace;
        buf_init(&trace, 1 << 16);
        fixture_trace_bytes(buf_bytes(&file), &trace);
        assert_non_null(strstr(buf_string(&trace), " warcinfo --\n"));
        assert_null(strstr(buf_string(&trace), "!"));
        buf_done(&trace);
    }
    buf_done(&file);
}

static void reads_arc_as_if_it_were_warc(void **state) {
    (void)state;
    struct source_memory memory;
    struct warc_reader *reader =
        open_memory(&memory, BYTES("filedesc://x.arc 0.0.0.0 20140216050221 text/plain 8\n1 0 x\nU\n\n"
                                   "http://a/b c 1.2.3.4 20140216050221 text/html 3\nabc\n"
                                   "dns:a 1.2.3.4 20140216 text/dns 1\nx\n"));
    assert_true(next(reader));
    assert_int_equal(reader->record.type, WARC_TYPE_WARCINFO);
    assert_true(next(reader));
    const struct warc_record *record = &reader->record;
    assert_true(record->is_arc);
    assert_int_equal(record->type, WARC_TYPE_RESPONSE);
    assert_bytes_equal(record->target_uri, BYTES("http://a/b c"));
    assert_bytes_equal(fields_get(&record->fields, BYTES("WARC-Date")), BYTES("2014-02-16T05:02:21Z"));
    assert_bytes_equal(fields_get(&record->fields, BYTES("ARC-Content-Type")), BYTES("text/html"));
    assert_true(warc_record_is_http(record));
    assert_true(next(reader));
    assert_int_equal(record->type, WARC_TYPE_RESOURCE);
    assert_bytes_equal(record->content_type, BYTES("text/dns"));
    assert_false(next(reader));
    close_reader(reader);
}

/* A source that gives one byte at a time and cannot go back: a slow pipe. */
struct dripping {
    struct source source;
    struct bytes rest;
};

static enum err drip(struct source *source, void *out, size_t size, size_t *ret_size,
                     struct err_detail *detail) {
    (void)size;
    (void)detail;
    struct dripping *dripping = (struct dripping *)source;
    *ret_size = dripping->rest.size > 0;
    if (dripping->rest.size > 0) {
        memcpy(out, dripping->rest.data, 1);
        dripping->rest = bytes_skip(dripping->rest, 1);
    }
    return ERR_OK;
}

static void reads_from_a_pipe(void **state) {
    (void)state;
    struct buf file;
    struct buf trace;
    buf_init(&file, 1 << 20);
    buf_init(&trace, 1 << 16);
    struct dripping plain = {.source = {.read = drip}, .rest = bytes_of_string(three)};
    fixture_trace(&plain.source, NULL, &trace);
    assert_string_equal(buf_string(&trace), "0+59 warcinfo --\n59+56 resource --\n115+61 metadata --\n");
    put_gzip(&file, bytes_of_string(three));
    buf_clear(&trace);
    struct dripping packed = {.source = {.read = drip}, .rest = buf_bytes(&file)};
    fixture_trace(&packed.source, NULL, &trace);
    assert_string_equal(buf_string(&trace), "0+0 warcinfo --\n0+0 resource --\n0+0 metadata --\n");
    buf_done(&file);
    buf_done(&trace);
}

/* Sources that fail are no damage, but stop the reader just as well. */
static enum err fail_read(struct source *source, void *out, size_t size, size_t *ret_size,
                          struct err_detail *detail) {
    (void)source;
    (void)out;
    (void)size;
    (void)ret_size;
    return err_set(detail, ERR_IO, "broken disk");
}

static void passes_on_the_error_of_its_source(void **state) {
    (void)state;
    struct source source = {.read = fail_read};
    struct err_detail detail;
    bool found;
    struct warc_reader *reader = malloc(sizeof *reader);
    assert_non_null(reader);
    assert_int_equal(warc_reader_init(reader, NULL), ERR_OK);
    warc_reader_open(reader, &source);
    assert_int_equal(warc_reader_next(reader, &found, &detail), ERR_IO);
    assert_string_equal(detail.text, "broken disk");
    assert_int_equal(warc_reader_next(reader, &found, NULL), ERR_IO);
    close_reader(reader);
}

static void survives_failing_allocations(void **state) {
    (void)state;
    struct buf file;
    buf_init(&file, 1 << 20);
    put_gzip(&file, bytes_of_string(three));
    for (size_t n = 0;; n++) {
        struct warc_reader *reader = malloc(sizeof *reader);
        struct source_memory memory;
        bool found = false;
        assert_non_null(reader);
        source_memory_init(&memory, buf_bytes(&file));
        allocations_left = n;
        enum err err = warc_reader_init(reader, NULL);
        if (err == ERR_OK) {
            warc_reader_open(reader, &memory.source);
            err = warc_reader_next(reader, &found, NULL);
        }
        allocations_left = SIZE_MAX;
        close_reader(reader);
        if (err == ERR_OK) {
            assert_true(found && n > 2);
            break;
        }
        assert_int_equal(err, ERR_MEMORY);
    }
    buf_done(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_records_one_after_the_other),
        cmocka_unit_test(accepts_what_others_write),
        cmocka_unit_test(keeps_all_fields_in_order),
        cmocka_unit_test(goes_on_whether_a_block_was_read_or_not),
        cmocka_unit_test(reads_a_record_at_an_offset),
        cmocka_unit_test(reads_gzip_however_records_and_members_lie),
        cmocka_unit_test(reads_arc_as_if_it_were_warc),
        cmocka_unit_test(reads_from_a_pipe),
        cmocka_unit_test(passes_on_the_error_of_its_source),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests_name("warc-reader", tests, NULL, NULL);
}
