/*
 * warc-fixture - what the tests of warc/ share: files of the test data, and the records of a file in one
 * string.
 */
#ifndef MNEMON_TESTS_WARC_FIXTURE_H
#define MNEMON_TESTS_WARC_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>

#include "base/prng.h"
#include "unit.h"
#include "warc/warc_check.h"
#include "warc/warc_reader.h"
#include "warc/warc_writer.h"

enum { FIXTURE_SIZE_MAX = 64 << 20 };

/* How a digest compared, in one character. */
static inline char fixture_mark(enum warc_check_result result) {
    static const char marks[] = {
        [WARC_CHECK_ABSENT] = '-',      [WARC_CHECK_EQUAL] = '=',     [WARC_CHECK_DIFFERENT] = '!',
        [WARC_CHECK_UNSUPPORTED] = '?', [WARC_CHECK_MALFORMED] = '~', [WARC_CHECK_ELSEWHERE] = '>',
    };
    return marks[result];
}

/* Read the block through a check. */
static inline enum err fixture_read_block(struct warc_reader *reader, struct warc_check *check,
                                          struct err_detail *detail) {
    warc_check_start(check, &reader->record);
    for (;;) {
        struct bytes piece;
        enum err err = warc_reader_read(reader, &piece, detail);
        if (err != ERR_OK) {
            return err;
        }
        if (piece.size == 0) {
            break;
        }
        warc_check_feed(check, piece);
    }
    warc_check_finish(check);
    return warc_reader_finish(reader, detail);
}

/*
 * One line per record, "offset+length type block-mark payload-mark\n", and per damage, "! error offset\n",
 * going on behind it.
 */
static inline void fixture_trace(struct source *source, const struct unpack_options *options,
                                 struct buf *out) {
    struct warc_reader *reader = malloc(sizeof *reader);
    struct warc_check *check = malloc(sizeof *check);
    struct err_detail detail;
    assert_non_null(reader);
    assert_non_null(check);
    assert_int_equal(warc_reader_init(reader, options), ERR_OK);
    assert_int_equal(warc_check_init(check), ERR_OK);
    warc_reader_open(reader, source);
    for (bool found = true; found;) {
        enum err err = warc_reader_next(reader, &found, &detail);
        if (err == ERR_OK && found) {
            err = fixture_read_block(reader, check, &detail);
        }
        if (err != ERR_OK) {
            buf_put_format(out, "! %s %zu\n", err_name(err), detail.offset);
            assert_true(detail.text[0] != '\0');
            assert_int_equal(warc_reader_recover(reader, &found, &detail), ERR_OK);
        } else if (found) {
            const struct warc_record *record = &reader->record;
            buf_put_format(out, "%llu+%llu %s %c%c\n", (unsigned long long)record->offset,
                           (unsigned long long)record->length, warc_type_name(record->type),
                           fixture_mark(check->block), fixture_mark(check->payload));
        }
    }
    warc_reader_done(reader);
    warc_check_done(check);
    free(reader);
    free(check);
}

static inline void fixture_trace_bytes(struct bytes bytes, struct buf *out) {
    struct source_memory memory;
    source_memory_init(&memory, bytes);
    fixture_trace(&memory.source, NULL, out);
}

/* The whole text of both, when they differ. */
static inline void fixture_expect(struct bytes bytes, const char *expected) {
    struct buf trace;
    buf_init(&trace, 1 << 20);
    fixture_trace_bytes(bytes, &trace);
    assert_string_equal(buf_string(&trace), expected);
    buf_done(&trace);
}

/* Record ids that are the same on every run. */
static inline void fixture_fill(void *context, void *out, size_t size) {
    prng_fill(context, out, size);
}

#endif
