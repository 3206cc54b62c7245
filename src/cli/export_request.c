#include "cli/export.h"

enum err export_requests_init(struct export_requests *requests, struct data *data) {
    *requests = (struct export_requests){.data = data};
    buf_init(&requests->block, EXPORT_REQUEST_SIZE_MAX);
    return warc_reader_init(&requests->reader, NULL);
}

static void close_segment(struct export_requests *requests) {
    if (requests->segment != 0) {
        source_file_done(&requests->source);
        requests->segment = 0;
    }
}

void export_requests_done(struct export_requests *requests) {
    close_segment(requests);
    warc_reader_done(&requests->reader);
    buf_done(&requests->block);
}

/* Open the segment and read its start, where its dictionary is. */
static enum err open_segment(struct export_requests *requests, uint32_t number, struct err_detail *detail) {
    char path[DATA_PATH_SIZE_MAX + SEGMENT_PATH_SIZE_MAX];
    if (requests->segment == number) {
        return ERR_OK;
    }
    close_segment(requests);
    snprintf(path, sizeof path, "%s/volumes/0/%s", requests->data->directory,
             data_segment_name(requests->data, number));
    enum err err = source_file_open(&requests->source, path, detail);
    if (err != ERR_OK) {
        return err;
    }
    requests->segment = number;
    bool found;
    warc_reader_open(&requests->reader, &requests->source.source);
    return warc_reader_next(&requests->reader, &found, detail);
}

static enum err read_block(struct export_requests *requests, struct err_detail *detail) {
    struct bytes piece;
    enum err err;
    buf_clear(&requests->block);
    do {
        err = warc_reader_read(&requests->reader, &piece, detail);
        if (err == ERR_OK) {
            err = buf_put(&requests->block, piece);
        }
    } while (err == ERR_OK && piece.size > 0);
    return err;
}

enum err export_requests_find(struct export_requests *requests, const struct location *location,
                              struct bytes id, struct bytes *ret_request, struct err_detail *detail) {
    struct warc_reader *reader = &requests->reader;
    bool found = false;
    enum err err = open_segment(requests, location->segment, detail);
    if (err == ERR_OK) {
        err = warc_reader_seek(reader, location->offset + location->length, detail);
    }
    if (err == ERR_OK) {
        err = warc_reader_next(reader, &found, detail);
    }
    bool is_request = err == ERR_OK && found && reader->record.type == WARC_TYPE_REQUEST &&
                      bytes_equal(fields_get(&reader->record.fields, BYTES("WARC-Concurrent-To")), id);
    if (is_request) {
        err = read_block(requests, detail);
    }
    if (err == ERR_OK) {
        *ret_request = is_request ? buf_bytes(&requests->block) : bytes_of(NULL, 0);
    }
    return err;
}
