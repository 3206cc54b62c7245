#include "store/instance/record.h"

#include "store/volume/volume_record.h"

enum err record_init(struct record *record) {
    *record = (struct record){0};
    buf_init(&record->text, WARC_RECORD_HEAD_SIZE_MAX);
    return payload_init(&record->payload);
}

void record_done(struct record *record) {
    buf_done(&record->text);
    payload_done(&record->payload);
}

enum err record_read(struct record *record, struct instance_session *session, uint16_t volume,
                     const struct location *location, struct err_detail *detail) {
    struct bytes all;
    enum err err = instance_get_record(session, volume, location, &all, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct bytes block;
    if (!warc_record_split(&record->header, all, &record->text, &block)) {
        return err_set(detail, ERR_CORRUPT, "segment %u, byte %ju: this is no record", location->segment,
                       (uintmax_t)location->offset);
    }
    size_t head_size = warc_record_is_http(&record->header) ? record_split(&record->payload, block) : 0;
    record->head = bytes_slice(block, 0, head_size);
    record->body = bytes_skip(block, head_size);
    return ERR_OK;
}

size_t record_split(struct payload *payload, struct bytes block) {
    struct http_head *head = &payload->head;
    struct bytes rest = block;
    http_head_start(head);
    http_head_feed(head, &rest);
    http_head_finish(head);
    return head->state == HTTP_HEAD_WHOLE ? block.size - rest.size : 0;
}

enum err record_encode(const struct payload *payload, struct bytes document, struct buf *out,
                       struct bytes *ret_body) {
    if (payload->head.state != HTTP_HEAD_WHOLE || !http_head_is_chunked(&payload->head)) {
        *ret_body = document;
        return ERR_OK;
    }
    buf_clear(out);
    if (document.size > 0) {
        buf_put_format(out, "%zx\r\n", document.size);
        buf_put(out, document);
        buf_put_string(out, "\r\n");
    }
    enum err err = buf_put_string(out, "0\r\n\r\n");
    if (err == ERR_OK) {
        *ret_body = buf_bytes(out);
    }
    return err;
}

bool record_is_not_modified(const struct warc_record *header) {
    struct bytes profile = fields_get(&header->fields, BYTES("WARC-Profile"));
    return bytes_find(profile, BYTES("server-not-modified")) < profile.size;
}

size_t record_kept_fields(const struct warc_record *header, struct field out[RECORD_KEPT_FIELDS_MAX]) {
    const struct bytes names[RECORD_KEPT_FIELDS_MAX] = {
        BYTES(VOLUME_TLS_FIELD), BYTES(VOLUME_SIGNATURE_FIELD), BYTES(VOLUME_IMPORTED_FIELD),
        BYTES(VOLUME_VISIT_FIELD)};
    size_t count = 0;
    for (size_t i = 0; i < RECORD_KEPT_FIELDS_MAX; i++) {
        struct bytes value = fields_get(&header->fields, names[i]);
        if (value.size > 0) {
            out[count++] = (struct field){names[i], value};
        }
    }
    return count;
}
