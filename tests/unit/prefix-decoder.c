/* prefix_decoder: gives what zstd gives, moves to another dictionary only in time, and believes no damage. */
#include "store/volume/prefix_decoder.h"

#include <stdlib.h>
#include <zstd.h>

#include "unit.h"

enum { OFTEN = 64, FRAME_SIZE_MAX = 8 << 10, RECORD_SIZE = 5000 };

static const char first_words[] = "WARC/1.1\r\nWARC-Type: response\r\nContent-Type: text/html; first\r\n";
static const char other_words[] = "<div class=\"other\"><p>another site says this on each page</p></div>";

/* A segment as far as the decoder knows it: a dictionary of text, repeated with numbers. */
static void make_segment(struct segment *segment, const char *words) {
    struct sha256 sha256;
    *segment = (struct segment){.framing = PACK_ZSTD, .has_dictionary = true};
    buf_init(&segment->dictionary_raw, ZDICT_SIZE_MAX);
    for (unsigned i = 0; i < 50; i++) {
        buf_put_string(&segment->dictionary_raw, words);
        buf_put_u64(&segment->dictionary_raw, i);
    }
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    sha256_digest(&sha256, buf_bytes(&segment->dictionary_raw), segment->dictionary_digest);
    sha256_done(&sha256);
    assert_int_equal(zdict_init(&segment->dictionary, buf_bytes(&segment->dictionary_raw), 3, NULL), ERR_OK);
}

static void free_segment(struct segment *segment) {
    zdict_done(&segment->dictionary);
    buf_done(&segment->dictionary_raw);
}

struct fixture {
    struct prefix_decoder decoder;
    struct segment first;
    struct segment other;
    ZSTD_DCtx *zstd;
    uint8_t record[RECORD_SIZE];
    uint8_t frame[FRAME_SIZE_MAX];
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    make_segment(&fixture->first, first_words);
    make_segment(&fixture->other, other_words);
    prefix_decoder_init(&fixture->decoder);
    fixture->zstd = ZSTD_createDCtx();
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    prefix_decoder_done(&fixture->decoder);
    free_segment(&fixture->first);
    free_segment(&fixture->other);
    ZSTD_freeDCtx(fixture->zstd);
    free(fixture);
    return 0;
}

/* A record that refers to all of the dictionary, packed with it. */
static struct bytes pack(struct fixture *fixture, const struct segment *segment, size_t seed) {
    struct bytes dictionary = buf_bytes(&segment->dictionary_raw);
    for (size_t i = 0; i < RECORD_SIZE; i++) {
        fixture->record[i] = dictionary.data[(i + seed * 131 + i / 500 * 977) % dictionary.size];
    }
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_refCDict(context, segment->dictionary.encoder);
    size_t size = ZSTD_compress2(context, fixture->frame, FRAME_SIZE_MAX, fixture->record, RECORD_SIZE);
    ZSTD_freeCCtx(context);
    assert_false(ZSTD_isError(size));
    return bytes_of(fixture->frame, size);
}

static void expect_record(struct fixture *fixture, const struct segment *segment, size_t seed) {
    struct bytes frame = pack(fixture, segment, seed);
    struct bytes record;
    assert_int_equal(prefix_decoder_run(&fixture->decoder, fixture->zstd, frame, RECORD_SIZE, &record),
                     ERR_OK);
    assert_int_equal(record.size, RECORD_SIZE);
    assert_memory_equal(record.data, fixture->record, RECORD_SIZE);
}

/* Ask until it takes the segment's records; how often it was asked. */
static unsigned asked_count(struct fixture *fixture, const struct segment *segment) {
    unsigned count = 1;
    while (count < OFTEN && !prefix_decoder_takes(&fixture->decoder, segment, RECORD_SIZE)) {
        count++;
    }
    return count;
}

static void unpacks_what_zstd_packed(void **state) {
    struct fixture *fixture = *state;
    assert_in_range(asked_count(fixture, &fixture->first), 2, OFTEN - 1);
    for (size_t i = 0; i < 20; i++) {
        assert_true(prefix_decoder_takes(&fixture->decoder, &fixture->first, RECORD_SIZE));
        expect_record(fixture, &fixture->first, i);
    }
}

static void moves_over_to_a_dictionary_that_comes_in_a_row(void **state) {
    struct fixture *fixture = *state;
    asked_count(fixture, &fixture->first);
    for (unsigned i = 0; i < OFTEN; i++) { /* taking turns: the first stays */
        assert_true(prefix_decoder_takes(&fixture->decoder, &fixture->first, RECORD_SIZE));
        assert_false(prefix_decoder_takes(&fixture->decoder, &fixture->other, RECORD_SIZE));
    }
    expect_record(fixture, &fixture->first, 1);
    assert_in_range(asked_count(fixture, &fixture->other), 2, OFTEN - 1);
    expect_record(fixture, &fixture->other, 2);
    assert_false(prefix_decoder_takes(&fixture->decoder, &fixture->first, RECORD_SIZE));
}

static void leaves_large_records_and_segments_without_dictionary_alone(void **state) {
    struct fixture *fixture = *state;
    struct segment plain = {.framing = PACK_ZSTD};
    for (unsigned i = 0; i < OFTEN; i++) {
        assert_false(prefix_decoder_takes(&fixture->decoder, &plain, RECORD_SIZE));
        assert_false(
            prefix_decoder_takes(&fixture->decoder, &fixture->first, PREFIX_DECODER_RECORD_SIZE_MAX + 1));
    }
    asked_count(fixture, &fixture->first);
    assert_false(
        prefix_decoder_takes(&fixture->decoder, &fixture->first, PREFIX_DECODER_RECORD_SIZE_MAX + 1));
}

/* Every byte of a frame turned over, one after the other. */
static void finds_damage(void **state) {
    struct fixture *fixture = *state;
    asked_count(fixture, &fixture->first);
    struct bytes frame = pack(fixture, &fixture->first, 3);
    for (size_t i = 0; i < frame.size; i++) {
        struct bytes record;
        fixture->frame[i] ^= 0x5a;
        enum err err = prefix_decoder_run(&fixture->decoder, fixture->zstd, frame, RECORD_SIZE, &record);
        bool is_the_same = err == ERR_OK && memcmp(record.data, fixture->record, RECORD_SIZE) == 0;
        assert_true(err == ERR_CORRUPT || is_the_same); /* zstd ignores a bit of the header */
        fixture->frame[i] ^= 0x5a;
    }
    struct bytes record;
    assert_int_equal(prefix_decoder_run(&fixture->decoder, fixture->zstd,
                                        bytes_slice(frame, 0, frame.size - 1), RECORD_SIZE, &record),
                     ERR_CORRUPT);
    assert_int_equal(prefix_decoder_run(&fixture->decoder, fixture->zstd, frame, RECORD_SIZE - 1, &record),
                     ERR_CORRUPT);
    expect_record(fixture, &fixture->first, 4); /* and goes on */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(unpacks_what_zstd_packed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(moves_over_to_a_dictionary_that_comes_in_a_row, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leaves_large_records_and_segments_without_dictionary_alone, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(finds_damage, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("prefix_decoder", tests, NULL, NULL);
}
