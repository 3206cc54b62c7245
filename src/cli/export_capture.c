#include <string.h>

#include "cli/export_wacz.h"
#include "store/volume/volume_record.h"

/* As a key of export->blocks: every byte is set. */
struct block_key {
    uint8_t bytes[KEY_DIGEST_SIZE + 2];
};

static struct block_key block_key(const struct capture *capture) {
    struct block_key key;
    memcpy(key.bytes, capture->digest, KEY_DIGEST_SIZE);
    key.bytes[KEY_DIGEST_SIZE] = (uint8_t)(capture->block_number >> 8);
    key.bytes[KEY_DIGEST_SIZE + 1] = (uint8_t)capture->block_number;
    return key;
}

/* Only what has another capture can be referred to later. */
static enum err remember(struct export *export, const struct capture *capture) {
    struct key document;
    struct block block;
    enum err err = instance_locate(export->payload_session, capture, &document, &block, NULL);
    if (err != ERR_OK || block.references < 2) {
        return err;
    }
    err = map_reserve(&export->blocks, export->blocks.count + 1);
    if (err == ERR_OK) {
        struct block_key key = block_key(capture);
        *(struct export_place *)map_put(&export->blocks, bytes_of(key.bytes, sizeof key.bytes)) =
            (struct export_place){.volume = capture->volume, .location = capture->location};
    }
    return err;
}

/* What all records of the capture say. */
static void start_draft(const struct export *export, const struct capture *capture,
                        struct field fields[RECORD_KEPT_FIELDS_MAX], struct warc_draft *draft) {
    *draft = (struct warc_draft){
        .date_us = capture->time_us,
        .target_uri = capture->url,
        .ip_address = fields_get(&export->record.header.fields, BYTES("WARC-IP-Address")),
        .fields = fields,
        .fields_count = record_kept_fields(&export->record.header, fields),
        .head = export->record.head,
    };
}

/* The payload is in the file already, with another capture. */
static enum err write_revisit(struct export *export, const struct capture *capture,
                              const struct export_place *original, struct warc_written *ret_written,
                              struct err_detail *detail) {
    const struct warc_record *origin = &export->origin.header;
    struct warc_draft draft;
    struct field fields[RECORD_KEPT_FIELDS_MAX];
    enum err err =
        record_read(&export->origin, export->payload_session, original->volume, &original->location, detail);
    if (err != ERR_OK) {
        return err;
    }
    start_draft(export, capture, fields, &draft);
    draft.type = WARC_TYPE_REVISIT;
    draft.revisit = record_is_not_modified(&export->record.header) ? WARC_REVISIT_NOT_MODIFIED
                                                                   : WARC_REVISIT_IDENTICAL_PAYLOAD;
    draft.refers_to_target_uri = origin->target_uri;
    draft.refers_to_date_us = origin->date_us;
    draft.payload_sha256 = capture->digest;
    export->revisits_count++;
    return warc_writer_put(&export->writer, &draft, ret_written, detail);
}

/* The payload of a revisit is with another record; it is put behind the revisit's own head. */
static enum err find_body(struct export *export, const struct capture *capture, struct bytes *ret_body,
                          struct err_detail *detail) {
    if ((capture->flags & CAPTURE_REVISIT) == 0) {
        *ret_body = export->record.body;
        return ERR_OK;
    }
    struct key key;
    struct block block;
    struct bytes payload;
    enum err err = instance_locate(export->payload_session, capture, &key, &block, detail);
    if (err == ERR_OK) {
        err = instance_get(export->payload_session, &key, &payload, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    if (export->record.head.size == 0) {
        *ret_body = payload;
        return ERR_OK;
    }
    return record_encode(&export->record.payload, payload, &export->chunks, ret_body);
}

/* "Not modified" without what was not modified says nothing: the earlier answer is written, at this date. */
static enum err find_earlier(struct export *export, struct capture *capture, struct warc_draft *draft,
                             struct err_detail *detail) {
    struct key key;
    struct block block;
    enum err err = instance_locate(export->payload_session, capture, &key, &block, detail);
    if (err == ERR_OK) {
        err = record_read(&export->origin, export->payload_session, key.volume, &block.location, detail);
    }
    if (err == ERR_OK) {
        draft->head = export->origin.head;
        draft->body = export->origin.body;
        capture->status = export->origin.payload.head.status;
    }
    return err;
}

/* Updates the capture to what the record says. */
static enum err write_full(struct export *export, struct capture *capture, struct warc_written *ret_written,
                           struct err_detail *detail) {
    const struct warc_record *header = &export->record.header;
    bool is_http = export->record.head.size > 0;
    bool is_revisit = (capture->flags & CAPTURE_REVISIT) != 0;
    struct warc_draft draft;
    struct field fields[RECORD_KEPT_FIELDS_MAX];
    struct warc_id id;
    start_draft(export, capture, fields, &draft);
    draft.type = is_http ? WARC_TYPE_RESPONSE : WARC_TYPE_RESOURCE;
    draft.content_type = is_http ? bytes_of(NULL, 0) : is_revisit ? capture->mime : header->content_type;
    if (!is_revisit) {
        draft.truncated = fields_get(&header->fields, BYTES("WARC-Truncated"));
        bool has_id = warc_id_parse(fields_get(&header->fields, BYTES("WARC-Record-ID")), &id);
        draft.id = has_id ? &id : NULL;
    }
    enum err err = record_is_not_modified(header) ? find_earlier(export, capture, &draft, detail)
                                                  : find_body(export, capture, &draft.body, detail);
    if (err == ERR_OK) {
        err = warc_writer_put(&export->writer, &draft, ret_written, detail);
    }
    return err == ERR_OK && is_http ? remember(export, capture) : err;
}

static enum err write_request(struct export *export, const struct capture *capture,
                              const struct warc_written *written, struct err_detail *detail) {
    struct bytes request;
    enum err err =
        instance_get_request(export->payload_session, capture->volume, &capture->location, &request, detail);
    if (err != ERR_OK || request.size == 0) {
        return err;
    }
    struct warc_draft draft;
    struct field fields[RECORD_KEPT_FIELDS_MAX];
    struct warc_written second;
    start_draft(export, capture, fields, &draft);
    draft.type = WARC_TYPE_REQUEST;
    draft.fields_count = 0;
    draft.concurrent_to = &written->id;
    draft.head = bytes_of(NULL, 0);
    draft.body = request;
    export->requests_count++;
    return warc_writer_put(&export->writer, &draft, &second, detail);
}

enum err export_capture(struct export *export, const struct capture *capture, struct err_detail *detail) {
    struct warc_written written;
    struct capture shown = *capture;
    struct block_key key = block_key(capture);
    enum err err =
        record_read(&export->record, export->record_session, capture->volume, &capture->location, detail);
    if (err != ERR_OK) {
        return err;
    }
    /* A revisit of a resource has nowhere to say its type, so resources are written in full. */
    const struct export_place *original =
        export->record.head.size == 0 ? NULL
                                      : map_get(&export->blocks, bytes_of(key.bytes, sizeof key.bytes));
    err = original != NULL ? write_revisit(export, capture, original, &written, detail)
                           : write_full(export, &shown, &written, detail);
    if (err == ERR_OK) {
        err = write_request(export, capture, &written, detail);
    }
    if (err == ERR_OK && export->wacz != NULL) {
        err = export_wacz_add(export, &shown, &written, original != NULL, detail);
    }
    export->captures_count += err == ERR_OK ? 1 : 0;
    return err;
}
