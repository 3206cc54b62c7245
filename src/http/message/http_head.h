/*
 * http_head - the start of an HTTP message in the block of a record: status or request line, fields, empty
 * line.
 *
 * Fed with the pieces of the block as they come. Lenient, because servers are: lines end in CRLF or LF,
 * unknown versions pass, a head that the block ends in counts as whole. What does not look like HTTP at all,
 * or has no end within HTTP_HEAD_SIZE_MAX, is no head; its bytes then belong to the payload.
 *
 * All memory is taken by http_head_init().
 */
#ifndef MNEMON_HTTP_MESSAGE_HTTP_HEAD_H
#define MNEMON_HTTP_MESSAGE_HTTP_HEAD_H

#include "base/buf.h"
#include "http/message/fields.h"

enum { HTTP_HEAD_SIZE_MAX = 64 << 10 };

enum http_head_state { HTTP_HEAD_READING, HTTP_HEAD_WHOLE, HTTP_HEAD_NONE };

struct http_head {
    struct buf text; /* as it came, but for folded lines */
    enum http_head_state state;
    size_t line_start;    /* of the line that is being read */
    uint16_t status;      /* 100 to 999; 0 for requests and where there is none */
    struct fields fields; /* only the first FIELDS_COUNT_MAX */
};

enum err http_head_init(struct http_head *head) MUST_CHECK;
void http_head_done(struct http_head *head);

/* Begin with another message. */
void http_head_start(struct http_head *head);

/* Take from *input what belongs to the head, or may. Look at the state afterwards. */
void http_head_feed(struct http_head *head, struct bytes *input);

/* The block has ended. */
void http_head_finish(struct http_head *head);

/* Is the last transfer encoding "chunked"? */
bool http_head_is_chunked(const struct http_head *head);

/* "text/html" of "text/html; charset=utf-8"; {NULL, 0} where nothing usable is there. */
struct bytes http_mime(struct bytes content_type);

#endif
