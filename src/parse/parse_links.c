#include "parse/parse_links.h"

#include <stdlib.h>

#include "parse/parse_decode.h"

enum { FIELDS_MAX = 256, VALUE_SIZE_MAX = 256 << 10, TYPE_SIZE_MAX = 64 << 10 };

struct page_links {
    struct parse_document document;
    struct links *links;
    struct url base;
    struct parse_io *io;
    enum err err; /* of io->put() */
};

static void links_job_free(void *state) {
    struct page_links *page = state;
    parse_document_done(&page->document);
    links_free(page->links);
    url_done(&page->base);
    free(page);
}

static void *links_job_make(void) {
    struct page_links *page = calloc(1, sizeof *page);
    if (page == NULL) {
        return NULL;
    }
    url_init(&page->base);
    page->links = links_new();
    if (parse_document_init(&page->document) != ERR_OK || page->links == NULL) {
        links_job_free(page);
        return NULL;
    }
    return page;
}

/* ---- params ---- */

static bool links_is_of_interest(struct bytes name) {
    static const char *const names[] = {"Link", "Refresh", NULL};
    return bytes_is_one_of(name, names);
}

enum err parse_links_params(struct buf *out, const struct parse_links_params *params) {
    size_t fields_count = params->fields != NULL ? params->fields->count : 0;
    size_t size =
        params->head.size + params->content_type.size + params->base.size + 8 * WIRE_VARINT_SIZE_MAX;
    uint64_t count = 0;
    struct wire_writer writer;
    for (size_t i = 0; i < fields_count && count < FIELDS_MAX; i++) {
        const struct field *field = &params->fields->items[i];
        if (links_is_of_interest(field->name)) {
            size += field->name.size + field->value.size + 2 * WIRE_VARINT_SIZE_MAX;
            count++;
        }
    }
    enum err err = parse_params_begin(out, size, &writer);
    if (err != ERR_OK) {
        return err;
    }
    wire_write_string(&writer, params->head);
    wire_write_bool(&writer, params->has_chunks);
    wire_write_string(&writer, params->content_type);
    wire_write_string(&writer, params->base);
    wire_write_bool(&writer, params->options.forms);
    wire_write_bool(&writer, params->options.guesses);
    wire_write_u64(&writer, params->size_max);
    wire_write_varint(&writer, count);
    for (size_t i = 0; i < fields_count && count > 0; i++) {
        const struct field *field = &params->fields->items[i];
        if (links_is_of_interest(field->name)) {
            wire_write_string(&writer, field->name);
            wire_write_string(&writer, field->value);
            count--;
        }
    }
    return parse_params_end(out, &writer);
}

/* ---- the job ---- */

static void links_job_found(void *context, const struct link *link) {
    struct page_links *page = context;
    uint8_t start[1 + WIRE_VARINT_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, start, sizeof start);
    wire_write_u8(&writer, (uint8_t)link->kind);
    wire_write_varint(&writer, link->href.size);
    page->err = page->err == ERR_OK ? page->io->put(page->io, wire_writer_bytes(&writer)) : page->err;
    page->err = page->err == ERR_OK ? page->io->put(page->io, link->href) : page->err;
}

/* What is damaged is read up to the damage, what is too long up to the limit. */
static enum err links_job_read(struct page_links *page) {
    struct bytes piece;
    enum err err = ERR_OK;
    do {
        err = parse_document_next(&page->document, &piece, NULL);
        err = err == ERR_OK && piece.size > 0 ? links_feed(page->links, piece) : err;
        err = err == ERR_OK ? page->err : err;
    } while (err == ERR_OK && piece.size > 0);
    if (err == ERR_OK || err == ERR_LIMIT) {
        err = links_finish(page->links);
    }
    return err == ERR_OK ? page->err : err;
}

static enum err links_job_run(void *state, struct parse_io *io) {
    struct page_links *page = state;
    struct wire_reader reader;
    struct links_options options = {.forms = false};
    wire_reader_init(&reader, io->params);
    struct bytes head = wire_read_string(&reader, PARSE_HEAD_SIZE_MAX);
    bool has_chunks = wire_read_bool(&reader);
    struct bytes content_type = wire_read_string(&reader, TYPE_SIZE_MAX);
    struct bytes base = wire_read_string(&reader, URL_SIZE_MAX);
    options.forms = wire_read_bool(&reader);
    options.guesses = wire_read_bool(&reader);
    uint64_t size_max = wire_read_u64(&reader);
    uint64_t fields_count = wire_read_varint(&reader, FIELDS_MAX);
    enum err err = reader.err != ERR_OK ? reader.err : url_parse(&page->base, base, NULL, NULL);
    if (err != ERR_OK) {
        return err;
    }
    page->io = io;
    page->err = ERR_OK;
    links_start(page->links, content_type, &page->base, &options, links_job_found, page);
    for (uint64_t i = 0; i < fields_count; i++) {
        struct bytes name = wire_read_string(&reader, VALUE_SIZE_MAX);
        links_header(page->links, name, wire_read_string(&reader, VALUE_SIZE_MAX));
    }
    err = parse_document_start(&page->document, io, head, has_chunks, size_max, NULL);
    if (err == ERR_UNSUPPORTED) { /* an encoding that nobody knows: what the fields name is all */
        err = links_finish(page->links);
        return err == ERR_OK ? page->err : err;
    }
    return err == ERR_OK ? links_job_read(page) : err;
}

const struct parse_kind parse_links = {
    .number = PARSE_LINKS, .make = links_job_make, .free = links_job_free, .run = links_job_run};

/* ---- what the caller reads ---- */

bool parse_links_read(struct bytes *rest, enum link_kind *ret_kind, struct bytes *ret_href) {
    struct wire_reader reader;
    wire_reader_init(&reader, *rest);
    uint8_t kind = wire_read_u8_max(&reader, LINK_KINDS_COUNT - 1);
    struct bytes href = wire_read_string(&reader, URL_SIZE_MAX);
    if (reader.err != ERR_OK) {
        return false;
    }
    *rest = bytes_skip(*rest, reader.offset);
    *ret_kind = (enum link_kind)kind;
    *ret_href = href;
    return true;
}
