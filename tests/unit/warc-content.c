#include "warc/content.h"

#include <brotli/encode.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "unit.h"

enum { TEXT_SIZE = 300000, PACKED_SIZE_MAX = 1 << 20 };

struct fixture {
    struct content content;
    struct buf out;
    struct sink_buf sink;
    uint8_t text[TEXT_SIZE];
    uint8_t packed[PACKED_SIZE_MAX];
    uint8_t packed_twice[PACKED_SIZE_MAX];
};

static int set_up(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    assert_int_equal(content_init(&f->content), ERR_OK);
    buf_init(&f->out, 4 << 20);
    sink_buf_init(&f->sink, &f->out);
    uint32_t random = 1;
    for (size_t i = 0; i < sizeof f->text; i++) {
        random = random * 1103515245 + 12345;
        f->text[i] = (uint8_t)("abcdefgh <p>\n"[random >> 16 & 7]);
    }
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;
    content_done(&f->content);
    buf_done(&f->out);
    free(f);
    return 0;
}

/* 15: zlib's header, 31: gzip's, -15: none. */
static struct bytes pack_zlib(struct bytes text, int window_bits, uint8_t *out) {
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)text.data;
    stream.avail_in = (uInt)text.size;
    stream.next_out = out;
    stream.avail_out = PACKED_SIZE_MAX;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t size = stream.total_out;
    deflateEnd(&stream);
    return bytes_of(out, size);
}

static struct bytes pack_brotli(struct bytes text, uint8_t *out) {
    size_t size = PACKED_SIZE_MAX;
    assert_true(BrotliEncoderCompress(5, 22, BROTLI_MODE_TEXT, text.size, text.data, &size, out));
    return bytes_of(out, size);
}

static struct bytes pack_zstd(struct bytes text, uint8_t *out) {
    size_t size = ZSTD_compress(out, PACKED_SIZE_MAX, text.data, text.size, 3);
    assert_false(ZSTD_isError(size));
    return bytes_of(out, size);
}

static enum err decode(struct fixture *f, const char *encoding, struct bytes body, size_t piece_size,
                       uint64_t size_max) {
    char head[200];
    int head_size = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\n\r\n", encoding);
    buf_clear(&f->out);
    enum err err =
        content_start(&f->content, bytes_of(head, (size_t)head_size), size_max, &f->sink.sink, NULL);
    while (err == ERR_OK && body.size > 0) {
        size_t size = body.size < piece_size ? body.size : piece_size;
        err = content_put(&f->content, bytes_slice(body, 0, size), NULL);
        body = bytes_skip(body, size);
    }
    return err == ERR_OK ? content_finish(&f->content, NULL) : err;
}

/* The same however it is cut. */
static void expect(struct fixture *f, const char *encoding, struct bytes body, struct bytes text) {
    static const size_t piece_sizes[] = {1, 7, 1000, 70000, SIZE_MAX};
    for (size_t i = 0; i < sizeof piece_sizes / sizeof *piece_sizes; i++) {
        assert_int_equal(decode(f, encoding, body, piece_sizes[i], 1 << 20), ERR_OK);
        assert_bytes_equal(buf_bytes(&f->out), text);
    }
}

static void undoes_each_encoding(void **state) {
    struct fixture *f = *state;
    struct bytes text = bytes_of(f->text, sizeof f->text);
    expect(f, "gzip", pack_zlib(text, 31, f->packed), text);
    expect(f, "X-GZIP", pack_zlib(text, 31, f->packed), text);
    expect(f, "deflate", pack_zlib(text, 15, f->packed), text);
    expect(f, "deflate", pack_zlib(text, -15, f->packed), text);
    expect(f, "br", pack_brotli(text, f->packed), text);
    expect(f, "zstd", pack_zstd(text, f->packed), text);
    expect(f, "identity", text, text);
    expect(f, "gzip", pack_zlib(bytes_of(NULL, 0), 31, f->packed), bytes_of(NULL, 0));
}

static void undoes_one_inside_the_other(void **state) {
    struct fixture *f = *state;
    struct bytes text = bytes_of(f->text, sizeof f->text);
    struct bytes inner = pack_zlib(text, 31, f->packed);
    expect(f, "gzip, br", pack_brotli(inner, f->packed_twice), text);
    expect(f, "gzip\r\nContent-Encoding: zstd", pack_zstd(inner, f->packed_twice), text);
    assert_int_equal(decode(f, "gzip, gzip, gzip, gzip", inner, 100, 1 << 20), ERR_LIMIT);
}

static void passes_what_is_only_called_encoded(void **state) {
    struct fixture *f = *state;
    expect(f, "gzip", BYTES("<html>plain"), BYTES("<html>plain"));
    expect(f, "zstd", BYTES("x"), BYTES("x"));
    expect(f, "gzip", bytes_of(NULL, 0), bytes_of(NULL, 0));
    assert_int_equal(decode(f, "compress", BYTES("x"), 1, 100), ERR_UNSUPPORTED);
}

static void reads_on_behind_a_member_but_not_into_padding(void **state) {
    struct fixture *f = *state;
    struct bytes text = bytes_of(f->text, 1000);
    struct bytes one = pack_zlib(text, 31, f->packed);
    memcpy(f->packed + one.size, f->packed, one.size);
    memcpy(f->text + 1000, f->text, 1000);
    expect(f, "gzip", bytes_of(f->packed, 2 * one.size), bytes_of(f->text, 2000));
    memset(f->packed + one.size, 0, 100);
    expect(f, "gzip", bytes_of(f->packed, one.size + 100), text);
    f->packed[one.size + 50] = 0x1f; /* no member begins in the middle of padding, wherever a piece begins */
    expect(f, "gzip", bytes_of(f->packed, one.size + 100), text);
}

static void a_bomb_stops_at_the_limit(void **state) {
    struct fixture *f = *state;
    memset(f->text, 0, sizeof f->text);
    struct bytes text = bytes_of(f->text, sizeof f->text);
    struct bytes bombs[] = {pack_zlib(text, 31, f->packed), pack_brotli(text, f->packed_twice)};
    assert_int_equal(decode(f, "gzip", bombs[0], 10, 100001), ERR_LIMIT);
    assert_int_equal(f->out.size, 100001);
    assert_int_equal(decode(f, "br", bombs[1], 10, 100001), ERR_LIMIT);
    assert_int_equal(f->out.size, 100001);
    assert_int_equal(decode(f, "br", bombs[1], 10, sizeof f->text), ERR_OK);
}

static void damage_and_a_missing_end_are_told(void **state) {
    struct fixture *f = *state;
    struct bytes text = bytes_of(f->text, sizeof f->text);
    static const char *const names[] = {"gzip", "deflate", "br", "zstd"};
    for (size_t i = 0; i < 4; i++) {
        struct bytes packed = i == 0   ? pack_zlib(text, 31, f->packed)
                              : i == 1 ? pack_zlib(text, 15, f->packed)
                              : i == 2 ? pack_brotli(text, f->packed)
                                       : pack_zstd(text, f->packed);
        assert_int_equal(decode(f, names[i], bytes_slice(packed, 0, packed.size - 9), 100, 1 << 20),
                         ERR_TRUNCATED);
        memset(f->packed + packed.size / 2, 0xff, 50);
        enum err err = decode(f, names[i], packed, 100, 1 << 20);
        assert_true(err == ERR_CORRUPT || err == ERR_TRUNCATED || !bytes_equal(buf_bytes(&f->out), text));
    }
}

static void undoes_chunks_first(void **state) {
    struct fixture *f = *state;
    struct bytes text = bytes_of(f->text, 500);
    struct bytes packed = pack_zlib(text, 31, f->packed_twice);
    int size = snprintf((char *)f->packed, 100, "%zx\r\n", packed.size);
    memcpy(f->packed + size, packed.data, packed.size);
    memcpy(f->packed + size + packed.size, "\r\n0\r\n\r\n", 7);
    expect(f, "gzip\r\nTransfer-Encoding: chunked", bytes_of(f->packed, (size_t)size + packed.size + 7),
           text);
}

/* Honest gzip of `size` zeros: whole members, so that it is made quickly. */
static struct bytes pack_zeros(uint64_t size, uint8_t *out) {
    enum { MEMBER_SIZE = 16 << 20 };
    uint8_t *zeros = calloc(1, MEMBER_SIZE);
    assert_non_null(zeros);
    size_t one = pack_zlib(bytes_of(zeros, MEMBER_SIZE), 31, out).size;
    free(zeros);
    size_t count = (size_t)(size / MEMBER_SIZE);
    for (size_t i = 1; i < count; i++) {
        memcpy(out + i * one, out, one);
    }
    return bytes_of(out, count * one);
}

static enum err count_bytes(struct sink *sink, struct bytes bytes, struct err_detail *detail) {
    (void)sink;
    (void)bytes;
    (void)detail;
    return ERR_OK;
}

static enum err count(struct fixture *f, const char *encoding, struct bytes body) {
    char head[200];
    struct sink sink = {.append = count_bytes};
    int head_size = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\n\r\n", encoding);
    enum err err = content_start(&f->content, bytes_of(head, (size_t)head_size), UINT64_MAX, &sink, NULL);
    err = err == ERR_OK ? content_put(&f->content, body, NULL) : err;
    return err == ERR_OK ? content_finish(&f->content, NULL) : err;
}

/* Without a bound on the size, the ratio alone ends a bomb; at the latest a piece behind the grace. */
static void a_ratio_ends_a_bomb(void **state) {
    struct fixture *f = *state;
    struct bytes zeros = pack_zeros(UINT64_C(512) << 20, f->packed);
    assert_int_equal(count(f, "gzip", zeros), ERR_LIMIT);
    assert_in_range(f->content.size, 1, 2 * CONTENT_GRACE_SIZE);
    struct bytes twice = pack_zlib(zeros, 31, f->packed_twice);
    assert_in_range(twice.size, 1, 5800);
    assert_int_equal(count(f, "gzip, gzip", twice), ERR_LIMIT);
    assert_in_range(f->content.size, 1, 2 * CONTENT_GRACE_SIZE);
    struct bytes brotli = pack_brotli(zeros, f->packed_twice);
    assert_int_equal(count(f, "gzip, br", brotli), ERR_LIMIT);
    assert_in_range(f->content.size, 1, 2 * CONTENT_GRACE_SIZE);
}

/* Millions of members with nothing in them: no size of what comes out would ever end that. */
static void what_lies_between_two_encodings_is_bounded(void **state) {
    struct fixture *f = *state;
    struct bytes nothing = pack_zlib(bytes_of(NULL, 0), 31, f->packed);
    size_t count_of_one = 40 * (1 << 20) / nothing.size;
    uint8_t *many = malloc(count_of_one * nothing.size);
    assert_non_null(many);
    for (size_t i = 0; i < count_of_one; i++) {
        memcpy(many + i * nothing.size, nothing.data, nothing.size);
    }
    struct bytes packed = pack_zlib(bytes_of(many, count_of_one * nothing.size), 31, f->packed_twice);
    free(many);
    assert_int_equal(count(f, "gzip, gzip", packed), ERR_LIMIT);
    assert_int_equal(f->content.size, 0);
    assert_in_range(f->content.stages[0].size, CONTENT_GRACE_SIZE, 2 * CONTENT_GRACE_SIZE);
}

/* Below the grace any ratio is honest: a blank picture, a table of zeros. */
static void honest_documents_pass_the_ratio(void **state) {
    struct fixture *f = *state;
    struct bytes zeros = pack_zeros(CONTENT_GRACE_SIZE, f->packed);
    assert_int_equal(count(f, "gzip", zeros), ERR_OK);
    assert_int_equal(f->content.size, CONTENT_GRACE_SIZE);
    struct bytes text = bytes_of(f->text, sizeof f->text);
    size_t one = pack_zlib(text, 31, f->packed).size;
    for (size_t i = 1; (i + 1) * one < sizeof f->packed; i++) {
        memcpy(f->packed + i * one, f->packed, one);
    }
    size_t members_count = (sizeof f->packed - 1) / one;
    assert_int_equal(count(f, "gzip", bytes_of(f->packed, members_count * one)), ERR_OK);
    assert_int_equal(f->content.size, members_count * sizeof f->text);
}

/* One turn is short, whatever the document; and nothing is lost between turns. */
static void gives_a_piece_at_a_time(void **state) {
    struct fixture *f = *state;
    struct bytes text = bytes_of(f->text, sizeof f->text);
    struct bytes inner = pack_zlib(text, 31, f->packed);
    struct bytes input = pack_brotli(inner, f->packed_twice);
    struct bytes head = BYTES("HTTP/1.1 200 OK\r\nContent-Encoding: gzip, br\r\n\r\n");
    assert_int_equal(content_start(&f->content, head, 1 << 20, NULL, NULL), ERR_OK);
    struct bytes piece = bytes_of(NULL, 0);
    bool has_ended = false;
    while (!has_ended || piece.size > 0 || f->content.is_paused) {
        assert_int_equal(content_next(&f->content, &input, &piece, NULL), ERR_OK);
        assert_in_range(piece.size, 0, CONTENT_OUT_SIZE);
        assert_int_equal(buf_put(&f->out, piece), ERR_OK);
        if (piece.size == 0 && !f->content.is_paused && !has_ended) {
            assert_int_equal(input.size, 0);
            content_end(&f->content);
            has_ended = true;
        }
    }
    assert_int_equal(content_close(&f->content, NULL), ERR_OK);
    assert_bytes_equal(buf_bytes(&f->out), text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(undoes_each_encoding, set_up, tear_down),
        cmocka_unit_test_setup_teardown(undoes_one_inside_the_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(passes_what_is_only_called_encoded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_on_behind_a_member_but_not_into_padding, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_bomb_stops_at_the_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damage_and_a_missing_end_are_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(undoes_chunks_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_ratio_ends_a_bomb, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_lies_between_two_encodings_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(honest_documents_pass_the_ratio, set_up, tear_down),
        cmocka_unit_test_setup_teardown(gives_a_piece_at_a_time, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
