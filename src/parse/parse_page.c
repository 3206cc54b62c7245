#include "parse/parse_page.h"

#include <stdio.h>
#include <stdlib.h>

#include "parse/parse_decode.h"
#include "web/url/url_href.h"

enum {
    START_SIZE_MAX = 2 * CONTENT_OUT_SIZE + ENCODING_HEAD_SIZE, /* pieces are of CONTENT_OUT_SIZE at most */
    TEXT_SIZE_MAX = 8 * URL_SIZE_MAX,
    REWRITE_PIECE_SIZE = 64 << 10,
};

struct page {
    struct parse_document document;
    struct rewrite *rewrite;
    struct url url;
    struct buf start; /* of the document, if its first piece was too short to tell what it is */
};

static void page_free(void *state) {
    struct page *page = state;
    parse_document_done(&page->document);
    rewrite_free(page->rewrite);
    url_done(&page->url);
    buf_done(&page->start);
    free(page);
}

static void *page_make(void) {
    struct page *page = calloc(1, sizeof *page);
    if (page == NULL) {
        return NULL;
    }
    url_init(&page->url);
    buf_init(&page->start, START_SIZE_MAX);
    page->rewrite = rewrite_new();
    if (parse_document_init(&page->document) != ERR_OK || page->rewrite == NULL) {
        page_free(page);
        return NULL;
    }
    return page;
}

/* ---- params ---- */

static void page_code(struct wire_coder *coder, struct parse_page_params *params) {
    uint8_t as = (uint8_t)params->as;
    wire_code_string(coder, &params->head, PARSE_HEAD_SIZE_MAX);
    wire_code_string(coder, &params->content_type, TEXT_SIZE_MAX);
    wire_code_u8(coder, &as, REWRITE_MODIFIERS_COUNT - 1);
    wire_code_bool(coder, &params->only_looks_at_html);
    wire_code_bool(coder, &params->is_xhtml);
    wire_code_u64(coder, &params->size_max);
    wire_code_string(coder, &params->prefix, TEXT_SIZE_MAX);
    wire_code_string(coder, &params->timestamp, TEXT_SIZE_MAX);
    wire_code_string(coder, &params->url, TEXT_SIZE_MAX);
    wire_code_string(coder, &params->insert, TEXT_SIZE_MAX);
    params->as = (enum rewrite_modifier)as;
}

enum err parse_page_params(struct buf *out, const struct parse_page_params *params) {
    struct parse_page_params copy = *params;
    size_t size = params->head.size + params->content_type.size + params->prefix.size +
                  params->timestamp.size + params->url.size + params->insert.size + 10 * WIRE_VARINT_SIZE_MAX;
    struct wire_writer writer;
    enum err err = parse_params_begin(out, size, &writer);
    if (err != ERR_OK) {
        return err;
    }
    page_code(&(struct wire_coder){.writer = &writer}, &copy);
    return parse_params_end(out, &writer);
}

/* ---- the job ---- */

/* So much that its format can be told, and that piece. */
static enum err page_begin(struct page *page, struct bytes *ret_start, struct err_detail *detail) {
    struct bytes piece;
    enum err err = parse_document_next(&page->document, &piece, detail);
    if (err != ERR_OK || piece.size >= ENCODING_HEAD_SIZE) {
        *ret_start = piece;
        return err;
    }
    buf_clear(&page->start);
    while (err == ERR_OK && piece.size > 0 && page->start.size < ENCODING_HEAD_SIZE) {
        err = buf_put(&page->start, piece);
        err = err == ERR_OK && page->start.size < ENCODING_HEAD_SIZE
                  ? parse_document_next(&page->document, &piece, detail)
                  : err;
    }
    *ret_start = buf_bytes(&page->start);
    return err;
}

static enum err page_feed(struct page *page, struct bytes piece) {
    enum err err = ERR_OK;
    while (piece.size > 0 && err == ERR_OK) {
        size_t size = piece.size < REWRITE_PIECE_SIZE ? piece.size : REWRITE_PIECE_SIZE;
        err = rewrite_feed(page->rewrite, bytes_slice(piece, 0, size));
        piece = bytes_skip(piece, size);
    }
    return err;
}

static enum err page_put(void *context, struct bytes piece) {
    struct parse_io *io = context;
    return io->put(io, piece);
}

static enum err page_rewrite(struct page *page, struct parse_io *io, const struct parse_page_params *params,
                             enum rewrite_format format, struct bytes start, struct err_detail *detail) {
    struct rewrite_place place = {
        .prefix = params->prefix,
        .timestamp = params->timestamp,
        .url = &page->url,
        .content_type = params->content_type,
        .format = format,
        .insert = params->insert,
    };
    struct bytes piece = start;
    enum err err = url_parse_href(&page->url, params->url);
    if (err != ERR_OK) {
        return err;
    }
    rewrite_start(page->rewrite, &place, page_put, io);
    do {
        err = page_feed(page, piece);
        err = err == ERR_OK && piece.size > 0 ? parse_document_next(&page->document, &piece, detail) : err;
    } while (err == ERR_OK && piece.size > 0);
    return err == ERR_OK ? rewrite_finish(page->rewrite) : err;
}

static void page_write_note(struct parse_io *io, const struct parse_page_note *note) {
    struct wire_writer writer;
    wire_writer_init(&writer, io->note, sizeof io->note);
    wire_write_u8(&writer, (uint8_t)note->format);
    wire_write_bool(&writer, note->is_rewritten);
    wire_write_string(&writer, bytes_of_string(note->charset));
    wire_write_string(&writer, note->head);
    parse_write_detail(&writer, &note->undecoded);
    io->note_size = wire_writer_bytes(&writer).size;
}

static enum err page_run(void *state, struct parse_io *io) {
    struct page *page = state;
    struct parse_page_params params = {.as = REWRITE_PAGE};
    struct parse_page_note note = {.format = REWRITE_AS_IS};
    struct wire_reader reader;
    struct bytes start = bytes_of(NULL, 0);
    uint8_t head[ENCODING_HEAD_SIZE];
    wire_reader_init(&reader, io->params);
    page_code(&(struct wire_coder){.reader = &reader}, &params);
    enum err err = wire_reader_finish(&reader, NULL);
    if (err == ERR_OK) {
        err = parse_document_start(&page->document, io, params.head, false, params.size_max, &note.undecoded);
    }
    err = err == ERR_OK ? page_begin(page, &start, &note.undecoded) : err;
    if (err == ERR_OK) {
        note.head = bytes_of(head, start.size < sizeof head ? start.size : sizeof head);
        if (note.head.size > 0) {
            memcpy(head, start.data, note.head.size); /* the window that it lies in will be used again */
        }
        note.format = rewrite_format_of(params.content_type, params.as, note.head);
        bool is_html = note.format == REWRITE_HTML || params.is_xhtml;
        note.is_rewritten = note.format != REWRITE_AS_IS && !(params.only_looks_at_html && is_html);
    }
    if (err == ERR_OK && note.is_rewritten) {
        err = page_rewrite(page, io, &params, note.format, start, &note.undecoded);
        const char *charset = rewrite_charset(page->rewrite);
        snprintf(note.charset, sizeof note.charset, "%s", charset != NULL ? charset : "");
    }
    content_rest(&page->document.content);
    page_write_note(io, &note);
    return err;
}

const struct parse_kind parse_page = {
    .number = PARSE_PAGE, .make = page_make, .free = page_free, .run = page_run};

/* ---- what the caller reads ---- */

/* A name of an encoding has nothing else in it. */
static bool page_is_charset(struct bytes text) {
    bool is_sound = true;
    for (size_t i = 0; i < text.size && is_sound; i++) {
        uint8_t byte = text.data[i];
        is_sound =
            byte_is_alnum(byte) || byte == '-' || byte == '_' || byte == ':' || byte == '.' || byte == '+';
    }
    return is_sound;
}

bool parse_page_read_note(struct bytes note, struct parse_page_note *ret_note) {
    struct wire_reader reader;
    wire_reader_init(&reader, note);
    uint8_t format = wire_read_u8_max(&reader, REWRITE_DASH);
    bool is_rewritten = wire_read_bool(&reader);
    struct bytes charset = wire_read_string(&reader, PARSE_PAGE_CHARSET_SIZE_MAX - 1);
    struct bytes head = wire_read_string(&reader, ENCODING_HEAD_SIZE);
    struct err_detail undecoded;
    parse_read_detail(&reader, &undecoded);
    wire_read_check(&reader, page_is_charset(charset), "no name of an encoding");
    wire_read_check(&reader, !is_rewritten || format != REWRITE_AS_IS, "rewritten as it is");
    if (wire_reader_finish(&reader, NULL) != ERR_OK) {
        return false;
    }
    *ret_note = (struct parse_page_note){.format = (enum rewrite_format)format,
                                         .is_rewritten = is_rewritten,
                                         .head = head,
                                         .undecoded = undecoded};
    snprintf(ret_note->charset, sizeof ret_note->charset, "%.*s", BYTES_ARG(charset));
    return true;
}
