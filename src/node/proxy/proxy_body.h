/*
 * proxy_body - where the body of an HTTP message ends, while its bytes pass through.
 *
 * Stricter than the readers of archives (http/message/chunked.h): what is passed on must mean the same to
 * whoever reads it next, or a request could be hidden in another one's body. So chunks have CRLF and nothing
 * else at the ends of their lines, sizes are plain hexadecimal, extensions and trailers are short and
 * printable.
 */
#ifndef MNEMON_NODE_PROXY_PROXY_BODY_H
#define MNEMON_NODE_PROXY_PROXY_BODY_H

#include "base/bytes.h"

enum proxy_body_kind {
    PROXY_BODY_NONE,
    PROXY_BODY_LENGTH,
    PROXY_BODY_CHUNKED,
    PROXY_BODY_UNTIL_CLOSE,
};

enum { PROXY_BODY_LINES_SIZE_MAX = 8 << 10 /* an extension; all trailers together */ };

enum proxy_body_state {
    PROXY_BODY_SIZE,      /* hexadecimal digits */
    PROXY_BODY_EXTENSION, /* behind them, up to CR */
    PROXY_BODY_SIZE_END,  /* LF */
    PROXY_BODY_DATA,
    PROXY_BODY_DATA_CR,
    PROXY_BODY_DATA_LF,
    PROXY_BODY_TRAILER, /* at the start of a line */
    PROXY_BODY_TRAILER_LINE,
    PROXY_BODY_TRAILER_LF,
    PROXY_BODY_LAST_LF,
};

struct proxy_body {
    enum proxy_body_kind kind;
    enum proxy_body_state state; /* of chunks */
    uint64_t left;               /* of the length, or of the chunk */
    unsigned digits_count;
    size_t line_size; /* of the extension, or of the trailers */
    bool is_ended;
    bool is_wrong; /* no chunks: nothing behind this is taken */
};

/* length: of PROXY_BODY_LENGTH. */
void proxy_body_start(struct proxy_body *body, enum proxy_body_kind kind, uint64_t length);

/* How many of the next bytes belong to the body. Look at is_ended and is_wrong afterwards. */
size_t proxy_body_take(struct proxy_body *body, struct bytes bytes);

/* There are no more bytes: is the body whole? */
bool proxy_body_finish(struct proxy_body *body);

#endif
