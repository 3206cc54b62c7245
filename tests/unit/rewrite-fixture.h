/* rewrite-fixture - documents rewritten whole and in pieces, which must make no difference. */
#ifndef MNEMON_TESTS_REWRITE_FIXTURE_H
#define MNEMON_TESTS_REWRITE_FIXTURE_H

#include "unit.h"
#include "web/rewrite/rewrite.h"

enum { FIXTURE_TEXT_SIZE_MAX = 1 << 28 };

/* Short ones, for short tests: "/w/1im_/http://h/d/x". */
#define FIXTURE_URL "http://h/d/p?q"
#define FIXTURE_PREFIX "/w/"
#define FIXTURE_TIMESTAMP "1"

static inline enum err fixture_put(void *context, struct bytes piece) {
    return buf_put(context, piece);
}

struct fixture_document {
    enum rewrite_format format;
    const char *content_type;
    const char *insert;
};

/* The charset that the document is to be labelled with, or NULL. */
static inline const char *fixture_rewrite(struct rewrite *rewrite, const struct fixture_document *document,
                                          struct bytes input, size_t piece_size, struct buf *out) {
    struct url url;
    url_init(&url);
    assert_int_equal(url_parse(&url, BYTES(FIXTURE_URL), NULL, NULL), ERR_OK);
    struct rewrite_place place = {.prefix = BYTES(FIXTURE_PREFIX),
                                  .timestamp = BYTES(FIXTURE_TIMESTAMP),
                                  .url = &url,
                                  .content_type = bytes_of_string(document->content_type),
                                  .format = document->format,
                                  .insert = bytes_of_string(document->insert)};
    rewrite_start(rewrite, &place, fixture_put, out);
    for (size_t from = 0; from < input.size; from += piece_size) {
        size_t to = input.size - from < piece_size ? input.size : from + piece_size;
        assert_int_equal(rewrite_feed(rewrite, bytes_slice(input, from, to)), ERR_OK);
    }
    assert_int_equal(rewrite_finish(rewrite), ERR_OK);
    url_done(&url);
    return rewrite_charset(rewrite);
}

static inline void fixture_expect_document(const struct fixture_document *document, struct bytes input,
                                           struct bytes want) {
    static const size_t piece_sizes[] = {SIZE_MAX / 2, 1, 2, 3, 7, 64};
    struct rewrite *rewrite = rewrite_new();
    struct buf out;
    assert_non_null(rewrite);
    buf_init(&out, FIXTURE_TEXT_SIZE_MAX);
    for (size_t i = 0; i < sizeof piece_sizes / sizeof *piece_sizes; i++) {
        buf_clear(&out);
        fixture_rewrite(rewrite, document, input, piece_sizes[i], &out);
        if (!bytes_equal(buf_bytes(&out), want)) {
            fail_msg("%.*s\nin pieces of %zu:\n%.*s\nnot\n%.*s", BYTES_ARG(input), piece_sizes[i],
                     BYTES_ARG(buf_bytes(&out)), BYTES_ARG(want));
        }
    }
    buf_done(&out);
    rewrite_free(rewrite);
}

static inline void fixture_expect(enum rewrite_format format, const char *input, const char *want) {
    bool is_html = format == REWRITE_HTML;
    struct fixture_document document = {format, is_html ? "text/html;charset=utf-8" : "", ""};
    fixture_expect_document(&document, bytes_of_string(input), bytes_of_string(want));
}

#endif
