/*
 * fetch_chunks - finds the end of a chunked body in the bytes as received.
 *
 *      5;name=value CRLF hello CRLF 0 CRLF Trailer: x CRLF CRLF | not of this body
 *
 * libcurl, told to leave chunks as they are, checks them but hands over whatever else lay in its buffer, too.
 * So this follows the same rules as libcurl: lines end in LF, what precedes it does not matter.
 */
#ifndef MNEMON_CRAWL_FETCH_FETCH_CHUNKS_H
#define MNEMON_CRAWL_FETCH_FETCH_CHUNKS_H

#include "base/bytes.h"

enum fetch_chunks_state {
    FETCH_CHUNKS_SIZE,     /* hexadecimal digits */
    FETCH_CHUNKS_SIZE_END, /* up to the end of the line */
    FETCH_CHUNKS_DATA,
    FETCH_CHUNKS_DATA_END,
    FETCH_CHUNKS_TRAILER, /* at the start of a line */
    FETCH_CHUNKS_TRAILER_LINE,
    FETCH_CHUNKS_TRAILER_END, /* the last LF */
    FETCH_CHUNKS_ENDED,
    FETCH_CHUNKS_WRONG, /* no chunk: all that follows counts as body */
};

struct fetch_chunks {
    enum fetch_chunks_state state;
    uint64_t left; /* of the chunk */
    unsigned digits_count;
};

void fetch_chunks_start(struct fetch_chunks *chunks);

/* How many of the next bytes belong to the body: all of them, unless it ends among them. */
size_t fetch_chunks_take(struct fetch_chunks *chunks, struct bytes bytes);

#endif
