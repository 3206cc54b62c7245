#include "parse/parse_text.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "parse/parse_decode.h"

enum { TYPE_SIZE_MAX = 64 << 10 };

struct page_text {
    struct parse_document document;
    struct text *text;
};

static void text_job_free(void *state) {
    struct page_text *page = state;
    parse_document_done(&page->document);
    text_free(page->text);
    free(page);
}

static void *text_job_make(void) {
    struct page_text *page = calloc(1, sizeof *page);
    if (page == NULL) {
        return NULL;
    }
    page->text = text_new();
    if (parse_document_init(&page->document) != ERR_OK || page->text == NULL) {
        text_job_free(page);
        return NULL;
    }
    return page;
}

enum err parse_text_params(struct buf *out, const struct parse_text_params *params) {
    size_t size = params->head.size + params->content_type.size + 4 * WIRE_VARINT_SIZE_MAX;
    struct wire_writer writer;
    enum err err = parse_params_begin(out, size, &writer);
    if (err != ERR_OK) {
        return err;
    }
    wire_write_string(&writer, params->head);
    wire_write_string(&writer, params->content_type);
    wire_write_u64(&writer, params->size_max);
    return parse_params_end(out, &writer);
}

/* What is damaged, too long or of an encoding that nobody knows counts as far as it can be read. */
static enum err text_job_read(struct page_text *page) {
    struct bytes piece;
    enum err err;
    do {
        err = parse_document_next(&page->document, &piece, NULL);
        err = err == ERR_OK && piece.size > 0 ? text_feed(page->text, piece) : err;
    } while (err == ERR_OK && piece.size > 0 && !text_is_full(page->text));
    content_rest(&page->document.content);
    return err == ERR_LIMIT ? ERR_OK : err;
}

static enum err text_job_run(void *state, struct parse_io *io) {
    struct page_text *page = state;
    struct wire_reader reader;
    wire_reader_init(&reader, io->params);
    struct bytes head = wire_read_string(&reader, PARSE_HEAD_SIZE_MAX);
    struct bytes content_type = wire_read_string(&reader, TYPE_SIZE_MAX);
    uint64_t size_max = wire_read_u64(&reader);
    enum err err = wire_reader_finish(&reader, NULL);
    if (err != ERR_OK) {
        return err;
    }
    text_start(page->text, content_type);
    err = parse_document_start(&page->document, io, head, false, size_max, NULL);
    err = err == ERR_OK ? text_job_read(page) : err;
    err = err == ERR_OK || err == ERR_UNSUPPORTED || err == ERR_INVALID ? text_finish(page->text) : err;
    for (size_t i = 0; i < TEXT_PARTS_COUNT && err == ERR_OK; i++) {
        struct bytes part = text_part(page->text, (enum text_part)i);
        uint8_t size[WIRE_VARINT_SIZE_MAX];
        struct wire_writer writer;
        wire_writer_init(&writer, size, sizeof size);
        wire_write_varint(&writer, part.size);
        err = io->put(io, wire_writer_bytes(&writer));
        err = err == ERR_OK ? io->put(io, part) : err;
    }
    return err;
}

const struct parse_kind parse_text = {
    .number = PARSE_TEXT, .make = text_job_make, .free = text_job_free, .run = text_job_run};

/* ---- what the caller reads ---- */

bool parse_text_read(struct bytes out, struct bytes ret_parts[TEXT_PARTS_COUNT]) {
    static const size_t sizes_max[TEXT_PARTS_COUNT] = {
        [TEXT_TITLE] = TEXT_TITLE_SIZE_MAX,
        [TEXT_BODY] = TEXT_BODY_SIZE_MAX,
        [TEXT_DESCRIPTION] = TEXT_DESCRIPTION_SIZE_MAX,
        [TEXT_LANGUAGE] = TEXT_LANGUAGE_SIZE_MAX,
    };
    struct wire_reader reader;
    wire_reader_init(&reader, out);
    for (size_t i = 0; i < TEXT_PARTS_COUNT; i++) {
        ret_parts[i] = wire_read_string(&reader, sizes_max[i]);
        wire_read_check(&reader, utf8_is_valid(ret_parts[i]), "not UTF-8");
    }
    return wire_reader_finish(&reader, NULL) == ERR_OK;
}
