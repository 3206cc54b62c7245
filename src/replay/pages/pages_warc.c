#include <stdio.h>

#include "base/utc.h"
#include "replay/pages/pages_kit.h"
#include "warc/warc_writer.h"

/*
 * One capture as a WARC file that stands alone: warcinfo, response, request. A revisit is written in full,
 * its payload behind its own head; "not modified" as the earlier answer, at this date. As `mnemon export`
 * does it.
 */
struct parcel {
    struct archive_reader *reader;
    struct capture capture;
    struct key key; /* of its document */
    struct block block;
    struct instance_session *session; /* of the original and the request */
    struct record own;
    struct record origin; /* of a revisit */
    struct buf chunks;
    struct scratch file;
    struct scratch_sink sink;
    struct warc_writer writer;
};

static enum err write_info(struct parcel *parcel, int64_t now_us, struct err_detail *detail) {
    struct buf info;
    struct warc_written written;
    buf_init(&info, 1 << 12);
    warc_put_info(&info, "software", BYTES("mnemon"));
    warc_put_info(&info, "format", BYTES("WARC File Format 1.1"));
    warc_put_info(&info, "conformsTo",
                  BYTES("https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"));
    struct warc_draft draft = {.type = WARC_TYPE_WARCINFO, .date_us = now_us, .body = buf_bytes(&info)};
    enum err err = warc_writer_put(&parcel->writer, &draft, &written, detail);
    buf_done(&info);
    return err;
}

/* The payload of a revisit is with another record. */
static enum err warc_find_body(struct parcel *parcel, struct warc_draft *draft, struct err_detail *detail) {
    struct bytes payload;
    if (record_is_not_modified(&parcel->own.header)) {
        enum err err = record_read(&parcel->origin, parcel->session, parcel->key.volume,
                                   &parcel->block.location, detail);
        draft->head = parcel->origin.head;
        draft->body = parcel->origin.body;
        return err;
    }
    enum err err = instance_get(parcel->session, &parcel->key, &payload, detail);
    if (err != ERR_OK || parcel->own.head.size == 0) {
        draft->body = payload;
        return err;
    }
    return record_encode(&parcel->own.payload, payload, &parcel->chunks, &draft->body);
}

static enum err write_response(struct parcel *parcel, struct warc_written *ret_written,
                               struct err_detail *detail) {
    const struct capture *capture = &parcel->capture;
    const struct warc_record *header = &parcel->own.header;
    bool is_http = parcel->own.head.size > 0;
    bool is_revisit = (capture->flags & CAPTURE_REVISIT) != 0;
    struct field fields[RECORD_KEPT_FIELDS_MAX];
    struct warc_draft draft = {
        .type = is_http ? WARC_TYPE_RESPONSE : WARC_TYPE_RESOURCE,
        .date_us = capture->time_us,
        .target_uri = header->target_uri,
        .content_type = is_http      ? bytes_of(NULL, 0)
                        : is_revisit ? capture->mime
                                     : header->content_type,
        .ip_address = fields_get(&header->fields, BYTES("WARC-IP-Address")),
        .truncated = is_revisit ? bytes_of(NULL, 0) : fields_get(&header->fields, BYTES("WARC-Truncated")),
        .fields = fields,
        .fields_count = record_kept_fields(header, fields),
        .head = parcel->own.head,
        .body = parcel->own.body,
    };
    enum err err = is_revisit ? warc_find_body(parcel, &draft, detail) : ERR_OK;
    return err == ERR_OK ? warc_writer_put(&parcel->writer, &draft, ret_written, detail) : err;
}

static enum err write_request(struct parcel *parcel, const struct warc_written *response,
                              struct err_detail *detail) {
    const struct capture *capture = &parcel->capture;
    struct bytes request;
    struct warc_written written;
    enum err err =
        instance_get_request(parcel->session, capture->volume, &capture->location, &request, detail);
    if (err != ERR_OK || request.size == 0) {
        return err;
    }
    struct warc_draft draft = {
        .type = WARC_TYPE_REQUEST,
        .date_us = capture->time_us,
        .target_uri = parcel->own.header.target_uri,
        .ip_address = fields_get(&parcel->own.header.fields, BYTES("WARC-IP-Address")),
        .concurrent_to = &response->id,
        .body = request,
    };
    return warc_writer_put(&parcel->writer, &draft, &written, detail);
}

static enum err parcel_init(struct parcel *parcel, struct archive *archive) {
    struct pack_options options = {.framing = PACK_GZIP};
    buf_init(&parcel->chunks, (size_t)VOLUME_DOCUMENT_SIZE_MAX + 64);
    scratch_init(&parcel->file, archive_scratch_directory(archive), SCRATCH_MEMORY_MAX,
                 2 * VOLUME_DOCUMENT_SIZE_MAX);
    scratch_sink_init(&parcel->sink, &parcel->file);
    parcel->session = instance_session_new(archive_instance(archive));
    enum err err = parcel->session == NULL ? ERR_MEMORY : ERR_OK;
    if (err == ERR_OK) { /* what was found anywhere can be written */
        instance_session_set_guest(parcel->session, true);
        instance_session_set_mirrored(parcel->session, true);
    }
    enum err own = record_init(&parcel->own);
    enum err origin = record_init(&parcel->origin);
    enum err writer = warc_writer_init(&parcel->writer, &parcel->sink.sink, 0, &options, warc_random_system);
    return err != ERR_OK ? err : own != ERR_OK ? own : origin != ERR_OK ? origin : writer;
}

static void parcel_done(struct parcel *parcel) {
    warc_writer_done(&parcel->writer);
    record_done(&parcel->origin);
    record_done(&parcel->own);
    instance_session_free(parcel->session);
    scratch_done(&parcel->file);
    buf_done(&parcel->chunks);
}

static enum err pack_capture(struct parcel *parcel, int64_t now_us, struct err_detail *detail) {
    const struct capture *capture = &parcel->capture;
    struct instance_session *session = archive_reader_session(parcel->reader);
    struct warc_written written;
    if (archive_verdict(parcel->reader, capture) != ACCESS_ALLOW) {
        return err_set(detail, ERR_PERMISSION, "A rule of this archive blocks this capture.");
    }
    enum err err = instance_locate(session, capture, &parcel->key, &parcel->block, detail);
    if (err == ERR_OK) {
        err = record_read(&parcel->own, session, capture->volume, &capture->location, detail);
    }
    err = err == ERR_OK ? write_info(parcel, now_us, detail) : err;
    err = err == ERR_OK ? write_response(parcel, &written, detail) : err;
    return err == ERR_OK ? write_request(parcel, &written, detail) : err;
}

enum err pages_answer_warc(struct replay *replay, struct http_request *request, struct archive_reader *reader,
                           const struct capture *capture, struct err_detail *detail) {
    struct parcel parcel = {.reader = reader, .capture = *capture};
    enum err err = parcel_init(&parcel, replay->archive);
    if (err == ERR_OK) {
        err = archive_note_read(reader, capture, pack_capture(&parcel, clock_wall_us(replay->clock), detail));
    }
    if (err == ERR_OK) {
        char digits[UTC_DIGITS_SIZE];
        char name[80];
        snprintf(name, sizeof name, "attachment; filename=\"capture-%s.warc.gz\"",
                 utc_format_digits(capture->time_us, digits));
        http_add_header(request, "Content-Disposition", name);
        http_add_header(request, "X-Content-Type-Options", "nosniff");
        http_answer_scratch(request, STATUS_OK, "application/warc", &parcel.file);
    }
    parcel_done(&parcel);
    return err;
}
