/*
 * parse_decode - a document without its content encodings (warc/content.h), as a job; and what other jobs use
 * to read documents.
 */
#ifndef MNEMON_PARSE_PARSE_DECODE_H
#define MNEMON_PARSE_PARSE_DECODE_H

#include "base/buf.h"
#include "base/wire.h"
#include "parse/parse_job.h"
#include "warc/content.h"

enum { PARSE_HEAD_SIZE_MAX = 256 << 10 };

/* ---- for jobs ---- */

/* The document, from io->take(). */
struct parse_document {
    struct content content;
    struct parse_io *io;
    struct bytes rest; /* that the decoder has not taken */
    bool has_ended;
    struct buf early; /* what was given as a head and is none, so it belongs to the document */
    bool has_early;   /* it has not been given out */
};

enum err parse_document_init(struct parse_document *document) MUST_CHECK;
void parse_document_done(struct parse_document *document);

/* head: as content_start() wants it. has_chunks: the body is as it was received. */
enum err parse_document_start(struct parse_document *document, struct parse_io *io, struct bytes head,
                              bool has_chunks, uint64_t size_max, struct err_detail *detail) MUST_CHECK;

/* An empty piece: that was all. What is damaged, or lacks its end, ends there. ERR_LIMIT, ERR_MEMORY, of io.
 */
enum err parse_document_next(struct parse_document *document, struct bytes *ret_piece,
                             struct err_detail *detail) MUST_CHECK;

/* A job's note of why it failed: err, text. */
void parse_write_detail(struct wire_writer *writer, const struct err_detail *detail);
void parse_read_detail(struct wire_reader *reader, struct err_detail *ret_detail);

/* The parameters of a job: begun in *out, of which nothing is kept, and at most so long; then ended.
 * ERR_LIMIT: longer than any may be. */
enum err parse_params_begin(struct buf *out, size_t size, struct wire_writer *ret_writer) MUST_CHECK;
enum err parse_params_end(struct buf *out, const struct wire_writer *writer) MUST_CHECK;

/* ---- for callers ---- */

/* The pieces that come out are the document; the note says why it ended early. */
extern const struct parse_kind parse_decode;

struct parse_decode_params {
    struct bytes head;
    bool has_chunks;
    uint64_t size_max;
};

/* Replaces what is in *out. */
enum err parse_decode_params(struct buf *out, const struct parse_decode_params *params) MUST_CHECK;

/* For jobs that have the same. */
enum err parse_decode_read_params(struct bytes text, struct parse_decode_params *ret_params) MUST_CHECK;

#endif
