/*
 * http_head - the start of an HTTP message: status or request line, fields, empty line; and what it says
 * about where the body ends.
 *
 * Fed with the pieces of the message as they come, and read by one of two sets of rules (http_rules.h).
 * RECORDED: lines end in CRLF or LF, unknown versions pass, a head that the block ends in counts as whole.
 * Bytes that do not look like HTTP at all, or have no empty line within HTTP_HEAD_SIZE_MAX, are no head; they
 * then belong to the payload. STRICT: a request with one meaning; any other is no head, and `reason` says
 * why.
 *
 * All memory is taken by http_head_init().
 */
#ifndef MNEMON_HTTP_MESSAGE_HTTP_HEAD_H
#define MNEMON_HTTP_MESSAGE_HTTP_HEAD_H

#include "base/buf.h"
#include "http/message/fields.h"
#include "http/message/http_rules.h"
#include "web/type/mime_type.h"

enum { HTTP_HEAD_SIZE_MAX = 64 << 10, HTTP_METHOD_SIZE_MAX = 32 /* STRICT */ };

enum http_head_state { HTTP_HEAD_READING, HTTP_HEAD_WHOLE, HTTP_HEAD_NONE };

struct http_head {
    enum http_rules rules; /* RECORDED, unless set after http_head_init() */
    struct buf text;       /* as it came, but for folded lines and STRICT empty lines before it */
    enum http_head_state state;
    const char *reason;  /* STRICT: why it is none */
    size_t line_start;   /* of the line that is being read */
    uint16_t status;     /* 100 to 999; 0 for a request, and if there is none */
    struct bytes method; /* STRICT, like the next two */
    struct bytes target;
    unsigned minor_version; /* of HTTP/1 */
    struct fields fields;   /* only the first FIELDS_COUNT_MAX */
};

enum err http_head_init(struct http_head *head) MUST_CHECK;
void http_head_done(struct http_head *head);

/* Begin with another message. */
void http_head_start(struct http_head *head);

/* Take from *input what belongs to the head, or may. Look at the state afterwards. */
void http_head_feed(struct http_head *head, struct bytes *input);

/* The block has ended. */
void http_head_finish(struct http_head *head);

/* ---- where the body ends ---- */

enum http_body_kind {
    HTTP_BODY_NONE,
    HTTP_BODY_LENGTH,
    HTTP_BODY_CHUNKED,
    HTTP_BODY_UNTIL_CLOSE,
};

enum http_message {
    HTTP_MESSAGE_REQUEST,        /* that is passed on */
    HTTP_MESSAGE_ANSWER,         /* that is passed on */
    HTTP_MESSAGE_ANSWER_TO_HEAD, /* likewise */
    HTTP_MESSAGE_RECORDED,       /* its end is known; its chunks are the question */
};

struct http_framing {
    enum http_body_kind kind;
    uint64_t size; /* of HTTP_BODY_LENGTH */
};

/*
 * Where the body of a message with that head ends (RFC 9112, 6.3). NULL, or why nobody can say:
 *
 *                               request    answer                recorded
 *      both length and coding   refused    the coding counts     the coding counts
 *      coding other than        refused    refused               chunked if the last one is
 *        one "chunked"
 *      lengths, several equal   refused    one                   no matter
 *      a length that is none    refused    refused               no matter
 *      neither                  no body    until close           until close
 *      1xx, 204, 304, to HEAD              no body               no matter
 */
const char *http_head_framing(const struct http_head *head, enum http_message message,
                              struct http_framing *ret_framing) MUST_CHECK;

/* Whether the body of a recorded message is chunked. */
bool http_head_is_chunked(const struct http_head *head);

/* ---- parts of heads ---- */

/* A name of a field or a method, as RFC 9110 has it. */
bool http_is_token(struct bytes text);

/* Has it bytes that no value of a field may have? */
bool http_has_controls(struct bytes text);

enum { HTTP_TYPE_SIZE_MAX = 1024 };

/*
 * The whole header Content-Type, for mime_type_extract(): the value of the field; if there are several, all
 * of them joined by commas in out, cut off at its size. Empty if there is none.
 */
struct bytes http_content_type(const struct fields *fields, char out[HTTP_TYPE_SIZE_MAX]);

/* What it says. False, and no type, if that is none. */
bool http_type(const struct fields *fields, struct mime_type *ret_type);

/* Is that the type of a page, HTML or XHTML? */
bool http_is_html(struct bytes content_type);

#endif
