/*
 * warc-hostile - files that lie, break off or attack: refused with their place, and what is sound behind the
 * damage is still found.
 */
#include <malloc.h>
#include <zlib.h>
#include <zstd.h>

#include "warc-fixture.h"

#define RECORD(length, block) \
    "WARC/1.1\r\nWARC-Type: resource\r\nContent-Length: " length "\r\n\r\n" block "\r\n\r\n"
#define GOOD RECORD("3", "abc")

enum { GOOD_SIZE = sizeof GOOD - 1, BOMB_SIZE = 96 << 20 };

static void expect_text(const char *text, const char *expected) {
    fixture_expect(bytes_of_string(text), expected);
}

static void refuses_headers_that_make_no_record(void **state) {
    (void)state;
    expect_text("GIF89a\n" GOOD, "! invalid 0\n7+59 resource --\n");
    expect_text("WARC/x.y\r\n\r\n" GOOD, "! invalid 0\n12+59 resource --\n");
    expect_text("WARC/1.1\r\nContent-Length: -1\r\n\r\n" GOOD, "! invalid 26\n32+59 resource --\n");
    expect_text("WARC/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n" GOOD,
                "! invalid 26\n50+59 resource --\n");
    expect_text("WARC/1.1\r\nContent-Length:\r\n\r\n" GOOD, "! invalid 0\n29+59 resource --\n");
    expect_text("WARC/1.1\r\nX: y\r\n\r\n" GOOD, "! invalid 0\n18+59 resource --\n");
    expect_text("WARC/1.1\r\nContent-Length: 0\r\n", "! truncated 0\n");
    fixture_expect(BYTES("WARC/1.1\r\nX: \0\r\nContent-Length: 0\r\n\r\n" GOOD),
                   "! invalid 13\n37+59 resource --\n");
    /* An index line cannot hold a zero byte: found by fuzzing. */
    fixture_expect(BYTES("http://a/\0 1.2.3.4 20140216050221 text/html 3\nabc\n"), "! invalid 0\n");
}

static void refuses_headers_without_end(void **state) {
    (void)state;
    struct buf file;
    buf_init(&file, 1 << 20);
    buf_put_string(&file, "WARC/1.1\r\nX: ");
    while (file.size < 2 * WARC_RECORD_HEAD_SIZE_MAX) {
        buf_put_string(&file, "and so on ");
    }
    buf_put_string(&file, "\r\n\r\n" GOOD);
    char expected[64];
    snprintf(expected, sizeof expected, "! limit 0\n%zu+59 resource --\n", file.size - GOOD_SIZE);
    fixture_expect(buf_bytes(&file), expected);
    buf_clear(&file);
    buf_put_string(&file, "WARC/1.1\r\n");
    for (size_t i = 0; i <= FIELDS_COUNT_MAX; i++) {
        buf_put_string(&file, "a: b\r\n");
    }
    buf_put_string(&file, "\r\n" GOOD);
    snprintf(expected, sizeof expected, "! limit 0\n%zu+59 resource --\n", file.size - GOOD_SIZE);
    fixture_expect(buf_bytes(&file), expected);
    buf_done(&file);
}

static void finds_what_a_lying_length_swallows(void **state) {
    (void)state;
    expect_text(RECORD("9000000000000000000", "abc") GOOD GOOD,
                "! truncated 0\n77+59 resource --\n136+59 resource --\n");
    expect_text(GOOD RECORD("1", "abc") GOOD,
                "0+59 resource --\n59+53 resource --\n! invalid 112\n118+59 resource --\n");
    /* Recovery went back to the first block for ever: found by fuzzing. */
    expect_text("WARC/1.1\r\nContent-Length: 999\r\n\r\nabcWARC/1.1\r\nX: y",
                "! truncated 0\n! truncated 36\n");
}

/* Each claims to reach far behind the end; reading up to the end for each would take hours. */
static void refuses_a_hundred_thousand_lies_quickly(void **state) {
    (void)state;
    enum { LIES = 100000 };
    struct buf file;
    struct buf trace;
    buf_init(&file, FIXTURE_SIZE_MAX);
    buf_init(&trace, FIXTURE_SIZE_MAX);
    for (size_t i = 0; i < LIES; i++) {
        buf_put_string(&file, RECORD("9000000000000000000", "abc"));
    }
    fixture_trace_bytes(buf_bytes(&file), &trace);
    struct bytes rest = buf_bytes(&trace);
    struct bytes line;
    size_t count = 0;
    while (bytes_split(&rest, '\n', &line)) {
        count += bytes_starts_with(line, BYTES("! truncated "));
    }
    assert_int_equal(count, LIES);
    buf_done(&file);
    buf_done(&trace);
}

/* The next record may begin anywhere, also where one filling of a buffer ends. */
static void finds_a_record_wherever_junk_ends(void **state) {
    (void)state;
    struct buf file;
    char expected[128];
    buf_init(&file, 1 << 20);
    for (size_t end = UNPACK_IN_SIZE - 20; end < UNPACK_IN_SIZE + 20; end++) {
        buf_clear(&file);
        buf_put_string(&file, GOOD);
        while (file.size < end) {
            buf_put_byte(&file, 'x');
        }
        buf_put_string(&file, GOOD);
        snprintf(expected, sizeof expected, "0+59 resource --\n! invalid 59\n%zu+59 resource --\n", end);
        fixture_expect(buf_bytes(&file), expected);
    }
    buf_done(&file);
}

static void put_gzip(struct buf *out, const void *data, size_t size) {
    size_t capacity = compressBound(size) + 32;
    z_stream stream = {
        .next_in = (uint8_t *)(uintptr_t)data, .avail_in = (uInt)size, .avail_out = (uInt)capacity};
    assert_int_equal(buf_reserve(out, capacity), ERR_OK);
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_out = out->data + out->size;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out->size += stream.total_out;
    deflateEnd(&stream);
}

static void put_zstd(struct buf *out, const void *data, size_t size, int window_log) {
    ZSTD_CCtx *context = ZSTD_createCCtx();
    size_t capacity = ZSTD_compressBound(size);
    assert_non_null(context);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    if (window_log > 0) {
        ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
        ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    }
    assert_int_equal(buf_reserve(out, capacity), ERR_OK);
    ZSTD_inBuffer input = {data, size, 0};
    ZSTD_outBuffer output = {out->data + out->size, capacity, 0};
    size_t left = 1;
    while (left > 0) {
        /* In two calls, so that the size of the frame is not known to zstd from the start. */
        left =
            ZSTD_compressStream2(context, &output, &input, input.pos < size ? ZSTD_e_continue : ZSTD_e_end);
        assert_false(ZSTD_isError(left));
        left = input.pos < size ? 1 : left;
        if (input.pos == size && left == 0) {
            left = ZSTD_compressStream2(context, &output, &input, ZSTD_e_end);
        }
    }
    out->size += output.pos;
    ZSTD_freeCCtx(context);
}

static void put_frame(struct buf *out, uint32_t magic, uint32_t size, struct bytes content) {
    const uint32_t words[2] = {magic, size};
    for (size_t i = 0; i < 8; i++) {
        buf_put_byte(out, (uint8_t)(words[i / 4] >> (i % 4 * 8)));
    }
    buf_put(out, content);
}

/* One record of nothing but zeros. */
static uint8_t *make_bomb(size_t *ret_size) {
    char head[128];
    size_t head_size =
        (size_t)snprintf(head, sizeof head, "WARC/1.1\r\nContent-Length: %d\r\n\r\n", BOMB_SIZE);
    uint8_t *bomb = calloc(1, head_size + BOMB_SIZE);
    assert_non_null(bomb);
    memcpy(bomb, head, head_size);
    *ret_size = head_size + BOMB_SIZE;
    return bomb;
}

static void expect_limit(struct bytes file, const struct unpack_options *options) {
    struct source_memory memory;
    struct buf trace;
    buf_init(&trace, 1 << 16);
    source_memory_init(&memory, file);
    fixture_trace(&memory.source, options, &trace);
    assert_string_equal(buf_string(&trace), "! limit 0\n");
    buf_done(&trace);
}

/* Reading it costs no more memory than the buffers; with a limit it is refused. */
static void defuses_bombs(void **state) {
    (void)state;
    size_t size;
    uint8_t *bomb = make_bomb(&size);
    for (int is_zstd = 0; is_zstd < 2; is_zstd++) {
        struct buf file;
        char expected[64];
        buf_init(&file, FIXTURE_SIZE_MAX * 2);
        if (is_zstd) {
            put_zstd(&file, bomb, size, 0);
        } else {
            put_gzip(&file, bomb, size);
        }
        struct mallinfo2 before = mallinfo2();
        snprintf(expected, sizeof expected, "0+%zu unknown --\n", file.size);
        fixture_expect(buf_bytes(&file), expected);
        struct mallinfo2 after = mallinfo2();
        assert_true(after.arena + after.hblkhd < before.arena + before.hblkhd + (16u << 20));
        expect_limit(buf_bytes(&file), &(struct unpack_options){.ratio_max = 200});
        expect_limit(buf_bytes(&file), &(struct unpack_options){.unpacked_size_max = 1 << 20});
        buf_done(&file);
    }
    free(bomb);
}

static void refuses_zstd_that_asks_for_too_much(void **state) {
    (void)state;
    struct buf file;
    buf_init(&file, 1 << 20);
    put_zstd(&file, GOOD, GOOD_SIZE, 27);
    fixture_expect(buf_bytes(&file), "! limit 0\n");
    /* Dictionaries: larger than allowed, by its frame or by its own word; cut off; broken. */
    buf_clear(&file);
    put_frame(&file, ZDICT_FRAME_MAGIC, UINT32_MAX, BYTES("x"));
    fixture_expect(buf_bytes(&file), "! limit 0\n");
    buf_clear(&file);
    put_frame(&file, ZDICT_FRAME_MAGIC, 13, BYTES("\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x40\x00\x00\x00\x00"));
    fixture_expect(buf_bytes(&file), "! limit 0\n");
    buf_clear(&file);
    put_frame(&file, ZDICT_FRAME_MAGIC, 1000, BYTES("x"));
    fixture_expect(buf_bytes(&file), "! truncated 0\n");
    buf_clear(&file);
    put_frame(&file, ZDICT_FRAME_MAGIC, 8, BYTES("\x37\xa4\x30\xec\x01\x02\x03\x04"));
    size_t at = file.size;
    put_zstd(&file, GOOD, GOOD_SIZE, 0);
    char expected[64];
    snprintf(expected, sizeof expected, "! invalid 0\n%zu+%zu resource --\n", at, file.size - at);
    fixture_expect(buf_bytes(&file), expected);
    buf_done(&file);
}

static void passes_over_frames_that_are_not_for_it(void **state) {
    (void)state;
    struct buf file;
    buf_init(&file, 1 << 20);
    put_frame(&file, 0x184D2A50, 3, BYTES("abc"));
    put_frame(&file, 0x184D2A5F, 0, BYTES(""));
    size_t at = file.size;
    put_zstd(&file, GOOD, GOOD_SIZE, 0);
    size_t end = file.size;
    put_frame(&file, 0x184D2A51, 1, BYTES("x"));
    char expected[128];
    snprintf(expected, sizeof expected, "%zu+%zu resource --\n", at, end - at);
    fixture_expect(buf_bytes(&file), expected);
    buf_put_string(&file, "P*M\x18"); /* half a header */
    snprintf(expected, sizeof expected, "%zu+%zu resource --\n! truncated %zu\n", at, end - at,
             file.size - 4);
    fixture_expect(buf_bytes(&file), expected);
    put_frame(&file, ZDICT_FRAME_MAGIC, 1, BYTES("x"));
    buf_done(&file);
}

static void refuses_a_second_dictionary_and_a_missing_one(void **state) {
    (void)state;
    struct buf file;
    char expected[128];
    buf_init(&file, 1 << 20);
    put_frame(&file, ZDICT_FRAME_MAGIC, 40, BYTES("plain text may serve as a dictionary too"));
    size_t first = file.size;
    put_zstd(&file, GOOD, GOOD_SIZE, 0);
    size_t second = file.size;
    put_frame(&file, ZDICT_FRAME_MAGIC, 1, BYTES("x"));
    size_t third = file.size;
    put_zstd(&file, GOOD, GOOD_SIZE, 0);
    snprintf(expected, sizeof expected, "%zu+%zu resource --\n! invalid %zu\n%zu+%zu resource --\n", first,
             second - first, second, third, file.size - third);
    fixture_expect(buf_bytes(&file), expected);
    /* A frame that names dictionary 0x1234 (magic, descriptor with a 2-byte id, window, id, an empty block).
     */
    fixture_expect(BYTES("\x28\xb5\x2f\xfd\x02\x00\x34\x12\x01\x00\x00"), "! mismatch 0\n");
    buf_done(&file);
}

static void sets_no_foot_outside_of_a_broken_gzip_member(void **state) {
    (void)state;
    struct buf file;
    char expected[128];
    buf_init(&file, 1 << 20);
    put_gzip(&file, GOOD, GOOD_SIZE);
    size_t second = file.size;
    put_gzip(&file, GOOD, GOOD_SIZE);
    size_t third = file.size;
    put_gzip(&file, GOOD, GOOD_SIZE);
    file.data[third - 8] ^= 1; /* CRC-32 of the second */
    snprintf(expected, sizeof expected, "0+%zu resource --\n! corrupt %zu\n%zu+%zu resource --\n", second,
             second, third, file.size - third);
    fixture_expect(buf_bytes(&file), expected);
    file.data[third - 8] ^= 1;
    file.data[second] = 0; /* its magic */
    snprintf(expected, sizeof expected, "0+%zu resource --\n! invalid %zu\n%zu+%zu resource --\n", second,
             second, third, file.size - third);
    fixture_expect(buf_bytes(&file), expected);
    buf_done(&file);
}

/* Three records whose digests tell whether they are whole. */
static void write_three(enum pack_framing framing, struct buf *file, struct warc_written written[3]) {
    struct warc_writer *writer = malloc(sizeof *writer);
    struct sink_buf sink;
    struct prng prng;
    assert_non_null(writer);
    prng_init(&prng, 1);
    sink_buf_init(&sink, file);
    assert_int_equal(warc_writer_init(writer, &sink.sink, 0, &(struct pack_options){.framing = framing},
                                      (struct warc_random){.fill = fixture_fill, .context = &prng}),
                     ERR_OK);
    for (size_t i = 0; i < 3; i++) {
        struct warc_draft draft = {.type = WARC_TYPE_RESOURCE,
                                   .target_uri = BYTES("http://example.org/"),
                                   .body = BYTES("some words and some other words")};
        assert_int_equal(warc_writer_put(writer, &draft, &written[i], NULL), ERR_OK);
    }
    warc_writer_done(writer);
    free(writer);
}

static void expect_line(const char *trace, const struct warc_written *written) {
    char line[64];
    snprintf(line, sizeof line, "%llu+%llu resource ==\n", (unsigned long long)written->offset,
             (unsigned long long)written->length);
    if (strstr(trace, line) == NULL) {
        fail_msg("no \"%s\" in\n%s", line, trace);
    }
}

static size_t count_good(const char *trace) {
    size_t count = 0;
    for (const char *at = trace; (at = strstr(at, "resource ==\n")) != NULL; at++) {
        count++;
    }
    return count;
}

/* Whichever byte of the middle record changes, its neighbours stay, and no changed record passes for a good
 * one. */
static void loses_one_record_to_one_bad_byte(void **state) {
    (void)state;
    for (int framing = PACK_GZIP; framing <= PACK_ZSTD; framing++) {
        struct warc_written written[3];
        struct buf file;
        struct buf trace;
        size_t survivors = 0;
        buf_init(&file, 1 << 20);
        buf_init(&trace, 1 << 16);
        write_three((enum pack_framing)framing, &file, written);
        for (uint64_t at = written[1].offset; at < written[2].offset; at++) {
            file.data[at] ^= 0x10;
            buf_clear(&trace);
            fixture_trace_bytes(buf_bytes(&file), &trace);
            expect_line(buf_string(&trace), &written[0]);
            expect_line(buf_string(&trace), &written[2]);
            survivors += count_good(buf_string(&trace)) == 3;
            file.data[at] ^= 0x10;
        }
        /* Some bits say nothing: gzip's time, level and system, padding, one bit of zstd's descriptor. */
        assert_true(survivors < 10);
        buf_done(&file);
        buf_done(&trace);
    }
}

/* In a plain file the digests, and nothing else, show damage to a body. */
static void finds_the_next_plain_record_behind_a_bad_byte(void **state) {
    (void)state;
    struct warc_written written[3];
    struct buf file;
    struct buf trace;
    buf_init(&file, 1 << 20);
    buf_init(&trace, 1 << 16);
    write_three(PACK_PLAIN, &file, written);
    for (uint64_t at = written[1].offset; at < written[2].offset; at++) {
        file.data[at] ^= 0x10;
        buf_clear(&trace);
        fixture_trace_bytes(buf_bytes(&file), &trace);
        expect_line(buf_string(&trace), &written[0]);
        /* Where the empty line is hit, the block counts as header and a part of the next record as block. */
        if (strstr(buf_string(&trace), "resource !!\n! invalid") == NULL) {
            expect_line(buf_string(&trace), &written[2]);
        }
        file.data[at] ^= 0x10;
    }
    buf_done(&file);
    buf_done(&trace);
}

static void names_the_record_in_which_a_file_breaks_off(void **state) {
    (void)state;
    for (int framing = PACK_PLAIN; framing <= PACK_ZSTD; framing++) {
        struct warc_written written[3];
        struct buf file;
        struct buf trace;
        char last_line[64];
        buf_init(&file, 1 << 20);
        buf_init(&trace, 1 << 16);
        write_three((enum pack_framing)framing, &file, written);
        snprintf(last_line, sizeof last_line, "! truncated %llu\n", (unsigned long long)written[2].offset);
        size_t end = file.size;
        /* Without its last line ends a plain record is still whole. */
        size_t whole = framing == PACK_PLAIN ? end - 4 : end;
        for (size_t size = (size_t)written[2].offset + 5; size < whole; size++) {
            buf_clear(&trace);
            fixture_trace_bytes(bytes_slice(buf_bytes(&file), 0, size), &trace);
            expect_line(buf_string(&trace), &written[0]);
            expect_line(buf_string(&trace), &written[1]);
            assert_true(bytes_ends_with(buf_bytes(&trace), bytes_of_string(last_line)));
        }
        buf_done(&file);
        buf_done(&trace);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_headers_that_make_no_record),
        cmocka_unit_test(refuses_headers_without_end),
        cmocka_unit_test(finds_what_a_lying_length_swallows),
        cmocka_unit_test(refuses_a_hundred_thousand_lies_quickly),
        cmocka_unit_test(finds_a_record_wherever_junk_ends),
        cmocka_unit_test(defuses_bombs),
        cmocka_unit_test(refuses_zstd_that_asks_for_too_much),
        cmocka_unit_test(passes_over_frames_that_are_not_for_it),
        cmocka_unit_test(refuses_a_second_dictionary_and_a_missing_one),
        cmocka_unit_test(sets_no_foot_outside_of_a_broken_gzip_member),
        cmocka_unit_test(loses_one_record_to_one_bad_byte),
        cmocka_unit_test(finds_the_next_plain_record_behind_a_bad_byte),
        cmocka_unit_test(names_the_record_in_which_a_file_breaks_off),
    };
    return cmocka_run_group_tests_name("warc-hostile", tests, NULL, NULL);
}
