#include "store/volume/volume_reader.h"
#include "warc/warc_check.h"

/* The record in reader->record, against the digests in its header. */
static bool fits_its_digests(struct volume_reader *reader, struct warc_check *check, struct bytes record) {
    size_t end = bytes_find(record, BYTES("\r\n\r\n"));
    if (end == record.size) {
        return false;
    }
    buf_clear(&reader->head);
    if (buf_put(&reader->head, bytes_slice(record, 0, end + 4)) != ERR_OK ||
        warc_record_parse(&reader->parsed, reader->head.data, reader->head.size, NULL) != ERR_OK) {
        return false;
    }
    struct bytes block = bytes_skip(record, end + 4);
    if (reader->parsed.content_length > block.size) {
        return false;
    }
    warc_check_start(check, &reader->parsed);
    warc_check_feed(check, bytes_slice(block, 0, (size_t)reader->parsed.content_length));
    warc_check_finish(check);
    return warc_check_is_good(check);
}

enum err volume_check_record(struct volume_reader *reader, const struct location *location,
                             bool *ret_is_sound) {
    struct bytes record;
    struct warc_check check;
    enum err err = volume_get_record(reader, location, &record, NULL);
    if (err == ERR_CORRUPT || err == ERR_NOT_FOUND) {
        *ret_is_sound = false;
        return ERR_OK;
    }
    if (err == ERR_OK) {
        err = warc_check_init(&check);
    }
    if (err != ERR_OK) {
        return err;
    }
    *ret_is_sound = fits_its_digests(reader, &check, record);
    warc_check_done(&check);
    return ERR_OK;
}
