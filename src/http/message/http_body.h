/*
 * http_body - where the body of an HTTP message ends, while its bytes pass through.
 *
 * Chunks are read by the STRICT rules (http_rules.h): what is passed on must mean the same to whoever reads
 * it next.
 */
#ifndef MNEMON_HTTP_MESSAGE_HTTP_BODY_H
#define MNEMON_HTTP_MESSAGE_HTTP_BODY_H

#include "http/message/chunked.h"
#include "http/message/http_head.h"

struct http_body {
    enum http_body_kind kind;
    uint64_t left; /* of HTTP_BODY_LENGTH */
    struct chunked chunked;
    bool is_ended;
    bool is_wrong; /* no chunks: nothing behind this is taken */
};

void http_body_start(struct http_body *body, struct http_framing framing);

/* How many of the next bytes belong to the body. Look at is_ended and is_wrong afterwards. */
size_t http_body_take(struct http_body *body, struct bytes bytes);

/* There are no more bytes: is the body whole? */
bool http_body_finish(struct http_body *body);

#endif
