#include "parse/parse_decode.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- documents ---- */

enum err parse_document_init(struct parse_document *document) {
    *document = (struct parse_document){.io = NULL};
    buf_init(&document->early, PARSE_HEAD_SIZE_MAX);
    return content_init(&document->content);
}

void parse_document_done(struct parse_document *document) {
    content_done(&document->content);
    buf_done(&document->early);
}

enum err parse_document_start(struct parse_document *document, struct parse_io *io, struct bytes head,
                              bool has_chunks, uint64_t size_max, struct err_detail *detail) {
    document->io = io;
    document->rest = bytes_of(NULL, 0);
    document->has_ended = false;
    struct sink_buf early;
    buf_clear(&document->early);
    sink_buf_init(&early, &document->early);
    enum err err = content_start(&document->content, head, size_max, &early.sink, detail);
    document->content.sink = NULL;
    document->has_early = document->early.size > 0;
    document->content.payload.is_chunked = document->content.payload.is_chunked && has_chunks;
    return err;
}

/* More for the decoder, which has used up all that it was given; or the news that there is none. */
static enum err document_refill(struct parse_document *document) {
    enum err err = document->io->take(document->io, &document->rest);
    if (err == ERR_OK && document->rest.size == 0) {
        document->has_ended = true;
        content_end(&document->content);
    }
    return err;
}

enum err parse_document_next(struct parse_document *document, struct bytes *ret_piece,
                             struct err_detail *detail) {
    struct content *content = &document->content;
    bool is_over = false;
    enum err err = ERR_OK;
    *ret_piece = bytes_of(NULL, 0);
    if (document->has_early) {
        document->has_early = false;
        *ret_piece = buf_bytes(&document->early);
    }
    while (err == ERR_OK && ret_piece->size == 0 && !is_over) {
        err = content_next(content, &document->rest, ret_piece, detail);
        bool wants_more = err == ERR_OK && ret_piece->size == 0 && !content->is_paused;
        is_over = err != ERR_OK || (wants_more && document->has_ended);
        if (wants_more && !is_over) {
            err = document_refill(document);
            if (err != ERR_OK) { /* not of the document */
                content_rest(content);
                return err;
            }
        }
    }
    if (is_over) {
        content_rest(content);
        *ret_piece = bytes_of(NULL, 0);
    }
    bool is_damage = err == ERR_CORRUPT || err == ERR_TRUNCATED;
    return is_damage ? ERR_OK : err;
}

void parse_write_detail(struct wire_writer *writer, const struct err_detail *detail) {
    wire_write_u8(writer, (uint8_t)-detail->err);
    wire_write_string(writer, bytes_of_string(detail->err != ERR_OK ? detail->text : ""));
}

void parse_read_detail(struct wire_reader *reader, struct err_detail *ret_detail) {
    *ret_detail = (struct err_detail){.err = ERR_OK};
    uint8_t err = wire_read_u8_max(reader, -ERR_SYSTEM);
    struct bytes text = wire_read_string(reader, ERR_TEXT_SIZE_MAX - 1);
    if (reader->err == ERR_OK && err != 0) {
        ret_detail->err = (enum err) - (int)err;
        snprintf(ret_detail->text, sizeof ret_detail->text, "%.*s", BYTES_ARG(text));
    }
}

/* ---- the job ---- */

enum err parse_decode_read_params(struct bytes text, struct parse_decode_params *ret_params) {
    struct wire_reader reader;
    wire_reader_init(&reader, text);
    ret_params->head = wire_read_string(&reader, PARSE_HEAD_SIZE_MAX);
    ret_params->has_chunks = wire_read_bool(&reader);
    ret_params->size_max = wire_read_u64(&reader);
    return wire_reader_finish(&reader, NULL);
}

static void *decode_make(void) {
    struct parse_document *document = malloc(sizeof *document);
    if (document != NULL && parse_document_init(document) != ERR_OK) {
        parse_document_done(document);
        free(document);
        return NULL;
    }
    return document;
}

static void decode_free(void *state) {
    parse_document_done(state);
    free(state);
}

static enum err decode_run(void *state, struct parse_io *io) {
    struct parse_document *document = state;
    struct parse_decode_params params;
    struct err_detail detail = {0};
    struct bytes piece;
    enum err err = parse_decode_read_params(io->params, &params);
    if (err == ERR_OK) {
        err = parse_document_start(document, io, params.head, params.has_chunks, params.size_max, &detail);
    }
    do {
        piece = bytes_of(NULL, 0);
        err = err == ERR_OK ? parse_document_next(document, &piece, &detail) : err;
        err = err == ERR_OK && piece.size > 0 ? io->put(io, piece) : err;
    } while (err == ERR_OK && piece.size > 0);
    struct wire_writer writer;
    wire_writer_init(&writer, io->note, sizeof io->note);
    parse_write_detail(&writer, &detail);
    io->note_size = wire_writer_bytes(&writer).size;
    return err;
}

const struct parse_kind parse_decode = {
    .number = PARSE_DECODE, .make = decode_make, .free = decode_free, .run = decode_run};

enum err parse_params_begin(struct buf *out, size_t size, struct wire_writer *ret_writer) {
    buf_clear(out);
    enum err err = size > PARSE_PARAMS_SIZE_MAX ? ERR_LIMIT : buf_reserve(out, size);
    if (err == ERR_OK) {
        wire_writer_init(ret_writer, out->data, size);
    }
    return err;
}

enum err parse_params_end(struct buf *out, const struct wire_writer *writer) {
    out->size = wire_writer_bytes(writer).size;
    return writer->err;
}

enum err parse_decode_params(struct buf *out, const struct parse_decode_params *params) {
    struct wire_writer writer;
    enum err err = parse_params_begin(out, params->head.size + 3 * WIRE_VARINT_SIZE_MAX, &writer);
    if (err != ERR_OK) {
        return err;
    }
    wire_write_string(&writer, params->head);
    wire_write_bool(&writer, params->has_chunks);
    wire_write_u64(&writer, params->size_max);
    return parse_params_end(out, &writer);
}
