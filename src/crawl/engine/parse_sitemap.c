#include "crawl/engine/parse_sitemap.h"

#include <stdlib.h>

#include "base/source.h"
#include "crawl/rules/sitemap.h"
#include "parse/parse_decode.h"

struct sitemap_job {
    struct parse_document document;
    struct sitemap sitemap;
    struct buf decoded;
    struct parse_io *io;
    enum err err; /* of io->put() */
};

static void sitemap_job_free(void *state) {
    struct sitemap_job *job = state;
    parse_document_done(&job->document);
    buf_done(&job->decoded);
    free(job);
}

static void *sitemap_job_make(void) {
    struct sitemap_job *job = calloc(1, sizeof *job);
    if (job == NULL) {
        return NULL;
    }
    buf_init(&job->decoded, SITEMAP_SIZE_MAX);
    if (parse_document_init(&job->document) != ERR_OK) {
        sitemap_job_free(job);
        return NULL;
    }
    return job;
}

static void sitemap_job_found(void *context, const struct sitemap_entry *entry) {
    struct sitemap_job *job = context;
    uint8_t start[1 + WIRE_VARINT_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, start, sizeof start);
    wire_write_bool(&writer, entry->is_sitemap);
    wire_write_varint(&writer, entry->url.size);
    job->err = job->err == ERR_OK ? job->io->put(job->io, wire_writer_bytes(&writer)) : job->err;
    job->err = job->err == ERR_OK ? job->io->put(job->io, entry->url) : job->err;
}

/* It may be compressed once more, by its author: then it must be there as a whole. */
static enum err sitemap_job_decode(struct sitemap_job *job) {
    struct bytes piece;
    enum err err;
    do {
        err = parse_document_next(&job->document, &piece, NULL);
        err = err == ERR_OK ? buf_put(&job->decoded, piece) : err;
    } while (err == ERR_OK && piece.size > 0);
    return err == ERR_LIMIT ? ERR_OK : err;
}

static enum err sitemap_job_run(void *state, struct parse_io *io) {
    struct sitemap_job *job = state;
    struct source_memory source;
    struct parse_decode_params params;
    job->io = io;
    job->err = ERR_OK;
    enum err err = parse_decode_read_params(io->params, &params);
    if (err == ERR_OK) {
        err = parse_document_start(&job->document, io, params.head, params.has_chunks, params.size_max, NULL);
    }
    err = err == ERR_OK ? sitemap_job_decode(job) : err;
    if (err == ERR_OK) {
        source_memory_init(&source, buf_bytes(&job->decoded));
        sitemap_init(&job->sitemap, sitemap_job_found, job);
        enum err read = sitemap_read(&job->sitemap, &source.source, NULL);
        (void)read; /* what was listed before the damage is good */
        err = job->err;
    }
    buf_done(&job->decoded); /* it may be large and is rare */
    return err;
}

const struct parse_kind parse_sitemap = {
    .number = PARSE_SITEMAP, .make = sitemap_job_make, .free = sitemap_job_free, .run = sitemap_job_run};

bool parse_sitemap_read(struct bytes *rest, struct bytes *ret_text, bool *ret_is_sitemap) {
    struct wire_reader reader;
    wire_reader_init(&reader, *rest);
    bool is_sitemap = wire_read_bool(&reader);
    struct bytes text = wire_read_string(&reader, SITEMAP_URL_SIZE_MAX);
    if (reader.err != ERR_OK) {
        return false;
    }
    *rest = bytes_skip(*rest, reader.offset);
    *ret_text = text;
    *ret_is_sitemap = is_sitemap;
    return true;
}
