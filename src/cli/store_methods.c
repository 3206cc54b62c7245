#include "cli/store_methods.h"

#include <stdio.h>

#include "cli/progress.h"
#include "store/instance/query.h"
#include "store/instance/record.h"
#include "store/volume/volume_record.h"
#include "warc/request_key.h"
#include "web/url/url.h"

enum { REQUEST_SIZE_MAX = 64 << 20 };

struct giver {
    struct data *data;
    struct instance_session *reader; /* of records and requests */
    struct instance_session *writer;
    struct record record;
    struct buf request; /* a copy: reading the record is another get */
    struct buf url;     /* by which it shall be found */
};

/* Is the capture stored under its new URL already? A crash may have come before the old one was removed. */
static enum err giver_find_new(struct giver *giver, const struct capture *capture, bool *ret_is_there) {
    struct query query;
    struct capture found;
    *ret_is_there = false;
    enum err err = query_init(&query, buf_bytes(&giver->url), QUERY_EXACT, NULL);
    if (err != ERR_OK) {
        return err;
    }
    query.from_us = query.to_us = capture->time_us;
    query_start(&query, giver->writer);
    while (!*ret_is_there && (err = query_next(&query, &found)) == ERR_OK) {
        *ret_is_there = bytes_equal(found.url, buf_bytes(&giver->url)) &&
                        memcmp(found.digest, capture->digest, sizeof found.digest) == 0;
    }
    query_done(&query);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

static enum err giver_store_new(struct giver *giver, const struct capture *capture,
                                struct err_detail *detail) {
    const struct warc_record *header = &giver->record.header;
    struct key key;
    struct block block;
    enum err err = instance_locate(giver->writer, capture, &key, &block, detail);
    if (err == ERR_OK) {
        err = record_read(&giver->record, giver->reader, capture->volume, &capture->location, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    bool has_head = giver->record.head.size > 0;
    struct document_sum sum = {.size = block.size};
    memcpy(sum.digest, capture->digest, sizeof sum.digest);
    struct document document = {
        .url = header->target_uri,
        .time_us = capture->time_us,
        .head = giver->record.head,
        .content_type = has_head ? bytes_of(NULL, 0) : header->content_type,
        .request = buf_bytes(&giver->request),
        .ip_address = fields_get(&header->fields, BYTES("WARC-IP-Address")),
        .tls = fields_get(&header->fields, BYTES(VOLUME_TLS_FIELD)),
        .signature = fields_get(&header->fields, BYTES(VOLUME_SIGNATURE_FIELD)),
        .imported = fields_get(&header->fields, BYTES(VOLUME_IMPORTED_FIELD)),
        .visit = fields_get(&header->fields, BYTES(VOLUME_VISIT_FIELD)),
        .sum = &sum,
        .is_not_modified = record_is_not_modified(header),
        .is_body_left_out = true,
    };
    struct stored stored;
    return instance_put(giver->writer, &document, STORE_REGULAR, capture->volume, &stored, detail);
}

/* *ret_is_given: it was one of those. */
static enum err giver_look_at(struct giver *giver, const struct capture *capture, bool *ret_is_given,
                              struct err_detail *detail) {
    struct bytes request;
    bool is_there;
    *ret_is_given = false;
    if (request_key_split(capture->url).method.size > 0) {
        return ERR_OK;
    }
    enum err err = instance_get_request(giver->reader, capture->volume, &capture->location, &request, detail);
    if (err != ERR_OK) {
        return err == ERR_NOT_FOUND || err == ERR_CORRUPT ? ERR_OK : err; /* verify's business */
    }
    buf_clear(&giver->request);
    buf_clear(&giver->url);
    err = request_key_put_url(&giver->url, capture->url, request);
    if (err != ERR_OK || giver->url.size == capture->url.size) {
        return err;
    }
    err = buf_put(&giver->request, request);
    err = err == ERR_OK ? giver_find_new(giver, capture, &is_there) : err;
    if (err == ERR_OK && !is_there) {
        err = giver_store_new(giver, capture, detail);
    }
    err = err == ERR_OK ? instance_remove_capture(giver->writer, capture, detail) : err;
    *ret_is_given = err == ERR_OK;
    return err;
}

static bool giver_is_local(const struct giver *giver, const struct capture *capture) {
    struct instance_volume volume;
    size_t index = instance_find_volume(giver->data->instance, capture->volume);
    if (index == instance_volumes_count(giver->data->instance)) {
        return false;
    }
    instance_volume(giver->data->instance, index, &volume);
    return !volume.is_remote;
}

static enum err giver_walk(struct giver *giver, struct progress *progress, uint64_t *ret_count,
                           struct err_detail *detail) {
    struct query query;
    struct capture capture;
    enum err err = query_init(&query, BYTES("*"), QUERY_BY_URL, detail);
    if (err != ERR_OK) {
        return err;
    }
    query_start(&query, giver->data->session);
    while (err == ERR_OK && (err = query_next(&query, &capture)) == ERR_OK) {
        bool is_given = false;
        if (giver_is_local(giver, &capture)) {
            err = giver_look_at(giver, &capture, &is_given, detail);
        }
        *ret_count += is_given;
        progress->done_count++;
        progress_update(progress, NULL);
    }
    query_done(&query);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

enum err store_give_methods(struct data *data, struct cli *cli, bool is_quiet, uint64_t *ret_count,
                            struct err_detail *detail) {
    struct progress progress;
    struct giver giver = {.data = data,
                          .reader = instance_session_new(data->instance),
                          .writer = instance_session_new(data->instance)};
    *ret_count = 0;
    buf_init(&giver.request, REQUEST_SIZE_MAX);
    buf_init(&giver.url, URL_SIZE_MAX + 16);
    enum err err = record_init(&giver.record);
    err = giver.reader == NULL || giver.writer == NULL ? ERR_MEMORY : err;
    if (err == ERR_OK) {
        progress_init(&progress, "reading requests", fileno(cli->err), is_quiet, cli->clock);
        err = giver_walk(&giver, &progress, ret_count, detail);
        progress_finish(&progress);
    }
    record_done(&giver.record);
    buf_done(&giver.url);
    buf_done(&giver.request);
    instance_session_free(giver.writer);
    instance_session_free(giver.reader);
    return err;
}
