#include "node/captures/capture_by_key.h"

#include "store/instance/merge.h"

static enum err by_key_walk(struct merge *merge, const struct ringkey *key, struct capture *ret_capture,
                            struct err_detail *detail) {
    enum err err = ERR_OK;
    bool is_it = false;
    while (!is_it && (err = merge_next(merge, ret_capture, detail)) == ERR_OK) {
        is_it = memcmp(ret_capture->digest, ringkey_digest(key), RINGKEY_DIGEST_SIZE) == 0;
    }
    return err == ERR_NOT_FOUND && merge_is_partial(merge) ? err_set(detail, ERR_BUSY, "a volume is down")
                                                           : err;
}

enum err capture_by_key(struct instance_session *session, struct bytes surt, const struct ringkey *key,
                        struct buf *bounds, struct buf *url, struct capture *ret_capture,
                        struct err_detail *detail) {
    struct merge *merge;
    int64_t time_us = ringkey_time_us(key);
    if (time_us == INT64_MAX) {
        return err_set(detail, ERR_NOT_FOUND, "no capture of that key");
    }
    buf_clear(bounds);
    index_put_capture_prefix(bounds, surt, time_us);
    size_t from_size = bounds->size;
    index_put_capture_prefix(bounds, surt, time_us + 1);
    if (bounds->err != ERR_OK) {
        return bounds->err;
    }
    struct bytes both = buf_bytes(bounds);
    enum err err = merge_open(session, bytes_slice(both, 0, from_size), bytes_skip(both, from_size), false,
                              &merge, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct capture capture;
    err = by_key_walk(merge, key, &capture, detail);
    if (err == ERR_OK && url != NULL) {
        buf_clear(url);
        err = buf_put(url, capture.url);
    }
    merge_close(merge); /* and with it the slices of the capture */
    if (err == ERR_OK) {
        capture.surt = surt;
        capture.url = url != NULL ? buf_bytes(url) : bytes_of(NULL, 0);
        capture.mime = bytes_of(NULL, 0);
        *ret_capture = capture;
    }
    return err;
}
