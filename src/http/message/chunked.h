/*
 * chunked - a body of `Transfer-Encoding: chunked`: undoes the chunks, piece by piece and without a copy, and
 * finds where the body ends.
 *
 *      1c37;name=value CRLF      size in hexadecimal digits, extensions are ignored
 *      7223 bytes CRLF
 *      0 CRLF
 *      trailer fields CRLF       ignored
 *      CRLF                      what follows is not of this body
 *
 * Archives hold bodies that claim to be chunked and are not, because some writer had decoded them, or break
 * off. Read as RECORDED, the rest passes through unchanged from the first byte that is no chunk on. Read as
 * STRICT, nothing from that byte on is taken (http_rules.h). How the input is cut makes no difference.
 */
#ifndef MNEMON_HTTP_MESSAGE_CHUNKED_H
#define MNEMON_HTTP_MESSAGE_CHUNKED_H

#include "base/bytes.h"
#include "http/message/http_rules.h"

enum {
    CHUNKED_LINE_SIZE_MAX = 256,      /* a size and its extensions, RECORDED */
    CHUNKED_LINES_SIZE_MAX = 8 << 10, /* an extension; all trailers together; STRICT */
};

enum chunked_state {
    CHUNKED_SIZE,       /* hexadecimal digits */
    CHUNKED_SIZE_BLANK, /* spaces behind them */
    CHUNKED_EXTENSION,
    CHUNKED_SIZE_LF,
    CHUNKED_DATA,
    CHUNKED_DATA_CR,
    CHUNKED_DATA_LF,
    CHUNKED_TRAILER, /* at the start of a line */
    CHUNKED_TRAILER_LINE,
    CHUNKED_TRAILER_LF,
    CHUNKED_LAST_LF,
    CHUNKED_ENDED,
    CHUNKED_LOST,  /* RECORDED: trailers whose end nobody knows */
    CHUNKED_WRONG, /* no chunk */
};

struct chunked {
    enum http_rules rules;
    enum chunked_state state;
    uint64_t left; /* of the chunk */
    unsigned digits_count;
    size_t line_size; /* of the size line, RECORDED; of the extension or the trailers, STRICT */
    uint8_t line[CHUNKED_LINE_SIZE_MAX]; /* RECORDED: it may prove to be body */
};

void chunked_start(struct chunked *chunked, enum http_rules rules);

/*
 * Take from *input; true with a piece of the body (of the input or of *chunked). False when the input is used
 * up, or what is left of it is not of this body (CHUNKED_ENDED, and STRICT CHUNKED_WRONG).
 */
bool chunked_next(struct chunked *chunked, struct bytes *input, struct bytes *ret_piece);

/* The input has ended. True with the last piece if an unfinished line turns out to be body. */
bool chunked_finish(struct chunked *chunked, struct bytes *ret_piece);

/* How many of the next bytes belong to the body as it was sent, for whoever does not want the chunks undone.
 */
size_t chunked_take(struct chunked *chunked, struct bytes bytes);

#endif
