/*
 * chunked - decodes a body of `Transfer-Encoding: chunked`, piece by piece, without a copy.
 *
 *      1c37;name=value CRLF      size in hexadecimal digits, extensions are ignored
 *      7223 bytes CRLF
 *      0 CRLF
 *      trailer fields CRLF       ignored, with all that follows
 *
 * Archives hold bodies that claim to be chunked and are not, because some writer had decoded them, or break
 * off. From the first byte that is no chunk on, the rest passes through unchanged and is_wrong is set.
 */
#ifndef MNEMON_HTTP_MESSAGE_CHUNKED_H
#define MNEMON_HTTP_MESSAGE_CHUNKED_H

#include "base/bytes.h"

enum { CHUNKED_LINE_SIZE_MAX = 256 };

enum chunked_state { CHUNKED_SIZE, CHUNKED_DATA, CHUNKED_DATA_END, CHUNKED_REST, CHUNKED_RAW };

struct chunked {
    enum chunked_state state;
    uint64_t left; /* of the chunk */
    bool is_wrong;
    size_t line_size;
    uint8_t line[CHUNKED_LINE_SIZE_MAX]; /* the size line as far as it has come */
};

void chunked_start(struct chunked *chunked);

/* Take from *input; true with a piece of the body (of the input or of *chunked), false when it is used up. */
bool chunked_next(struct chunked *chunked, struct bytes *input, struct bytes *ret_piece);

/* The input has ended. True with the last piece, where an unfinished line turns out to be body. */
bool chunked_finish(struct chunked *chunked, struct bytes *ret_piece);

#endif
