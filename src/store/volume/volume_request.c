#include <stdlib.h>

#include "store/volume/volume_request.h"
#include "store/volume/volume_state.h"
#include "warc/warc_reader.h"

struct volume_requests {
    struct volume *volume;
    uint32_t number; /* of the segment whose dictionary the reader has; 0: none */
    struct segment_source source;
    struct warc_reader reader;
    struct buf request;
};

struct volume_requests *volume_requests_new(struct volume *volume) {
    struct volume_requests *requests = calloc(1, sizeof *requests);
    if (requests == NULL) {
        return NULL;
    }
    requests->volume = volume;
    buf_init(&requests->request, VOLUME_REQUEST_SIZE_MAX);
    if (warc_reader_init(&requests->reader, NULL) != ERR_OK) {
        volume_requests_free(requests);
        return NULL;
    }
    return requests;
}

void volume_requests_free(struct volume_requests *requests) {
    if (requests == NULL) {
        return;
    }
    warc_reader_done(&requests->reader);
    buf_done(&requests->request);
    free(requests);
}

/*
 * Put the reader over a segment that is held, up to where it is indexed: what follows is being written. A
 * number never comes to mean other bytes, so the start with the dictionary is read again only when the
 * segment is another or has grown.
 */
static enum err request_open_segment(struct volume_requests *requests, const struct segment *segment,
                                     struct err_detail *detail) {
    struct index_segment indexed;
    bool found;
    enum err err = index_find_segment(requests->volume->index, segment->number, &indexed);
    if (err != ERR_OK) {
        return err_set(detail, err, "segment %u: %s", segment->number, err_text(err));
    }
    if (requests->number == segment->number && requests->source.end == indexed.size) {
        requests->source.segment = segment;
        return ERR_OK;
    }
    requests->number = 0;
    segment_source_init(&requests->source, segment, indexed.size);
    warc_reader_open(&requests->reader, &requests->source.source);
    err = warc_reader_next(&requests->reader, &found, detail);
    requests->number = err == ERR_OK ? segment->number : 0;
    return err;
}

static enum err request_read_block(struct volume_requests *requests, struct err_detail *detail) {
    struct bytes piece;
    enum err err;
    do {
        err = warc_reader_read(&requests->reader, &piece, detail);
        if (err == ERR_OK) {
            err = buf_put(&requests->request, piece);
        }
    } while (err == ERR_OK && piece.size > 0);
    return err;
}

/* The next record at the place, where it is a request of this id. ERR_NOT_FOUND: it is something else. */
static enum err request_read_request(struct volume_requests *requests, uint64_t offset, struct bytes id,
                                     struct err_detail *detail) {
    struct warc_reader *reader = &requests->reader;
    bool found = false;
    enum err err = warc_reader_seek(reader, offset, detail);
    if (err == ERR_OK) {
        err = warc_reader_next(reader, &found, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    bool is_request = found && reader->record.type == WARC_TYPE_REQUEST &&
                      bytes_equal(fields_get(&reader->record.fields, BYTES("WARC-Concurrent-To")), id);
    return is_request ? request_read_block(requests, detail) : ERR_NOT_FOUND;
}

/* The id of the record itself, which its request names; copied, as the reader goes on. */
static enum err request_read_id(struct volume_requests *requests, uint64_t offset, struct buf *id,
                                struct err_detail *detail) {
    bool found = false;
    enum err err = warc_reader_seek(&requests->reader, offset, detail);
    if (err == ERR_OK) {
        err = warc_reader_next(&requests->reader, &found, detail);
    }
    if (err != ERR_OK || !found) {
        return err;
    }
    return buf_put(id, fields_get(&requests->reader.record.fields, BYTES("WARC-Record-ID")));
}

enum err volume_requests_find(struct volume_requests *requests, const struct location *location,
                              struct bytes *ret_request, struct err_detail *detail) {
    struct segment *segment;
    struct buf id;
    enum err err = volume_hold(requests->volume, location->segment, &segment);
    if (err != ERR_OK) {
        return err_set(detail, err, "segment %u is missing", location->segment);
    }
    buf_init(&id, WARC_RECORD_HEAD_SIZE_MAX);
    buf_clear(&requests->request);
    err = request_open_segment(requests, segment, detail);
    if (err == ERR_OK) {
        err = request_read_id(requests, location->offset, &id, detail);
    }
    if (err == ERR_OK && id.size > 0) {
        err = request_read_request(requests, location->offset + location->length, buf_bytes(&id), detail);
    }
    buf_done(&id);
    volume_release(segment);
    if (err == ERR_OK || err == ERR_NOT_FOUND) {
        *ret_request = buf_bytes(&requests->request);
        err = ERR_OK;
    }
    return err;
}
