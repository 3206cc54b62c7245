#include "warc/payload.h"

enum err payload_init(struct payload *payload) {
    *payload = (struct payload){0};
    return http_head_init(&payload->head);
}

void payload_done(struct payload *payload) {
    http_head_done(&payload->head);
}

void payload_start(struct payload *payload, bool is_http) {
    http_head_start(&payload->head);
    chunked_start(&payload->chunked, HTTP_RULES_RECORDED);
    payload->keeps_chunks = false;
    payload->is_chunked = false;
    payload->is_in_body = !is_http;
    if (!is_http) {
        payload->head.state = HTTP_HEAD_NONE;
    }
}

/* The head is read, or there is none. True if what was taken for a head is payload. */
static bool enter_body(struct payload *payload, struct bytes *ret_part) {
    payload->is_in_body = true;
    if (payload->head.state == HTTP_HEAD_NONE) {
        *ret_part = buf_bytes(&payload->head.text);
        return ret_part->size > 0;
    }
    payload->is_chunked = http_head_is_chunked(&payload->head) && !payload->keeps_chunks;
    return false;
}

bool payload_next(struct payload *payload, struct bytes *input, struct bytes *ret_part) {
    if (!payload->is_in_body) {
        http_head_feed(&payload->head, input);
        if (payload->head.state == HTTP_HEAD_READING) {
            return false;
        }
        if (enter_body(payload, ret_part)) {
            return true;
        }
    }
    if (payload->is_chunked && chunked_next(&payload->chunked, input, ret_part)) {
        return true;
    }
    *ret_part = payload->is_chunked ? bytes_of(NULL, 0) : *input;
    *input = bytes_of(NULL, 0); /* what follows the last chunk, too */
    return ret_part->size > 0;
}

bool payload_finish(struct payload *payload, struct bytes *ret_part) {
    if (!payload->is_in_body) {
        http_head_finish(&payload->head);
        return enter_body(payload, ret_part);
    }
    return payload->is_chunked && chunked_finish(&payload->chunked, ret_part);
}
