/*
 * payload - the document inside the block of a record: what follows the HTTP head, without transfer encoding.
 *
 * WARC's payload of an HTTP response is its entity body: chunks are undone, content encodings (gzip, br)
 * stay. The payload of any other block is the block. Digests, signatures and indexes are about the payload.
 *
 *      payload_start(&payload, warc_record_is_http(record));
 *      for each piece of the block:
 *          while (payload_next(&payload, &piece, &part)) use(part);
 *      if (payload_finish(&payload, &part)) use(part);
 *
 * Parts borrow the input or *payload and last until the next call.
 */
#ifndef MNEMON_WARC_PAYLOAD_H
#define MNEMON_WARC_PAYLOAD_H

#include "http/message/chunked.h"
#include "http/message/http_head.h"

struct payload {
    struct http_head head; /* of an HTTP message; state HTTP_HEAD_NONE otherwise */
    struct chunked chunked;
    bool keeps_chunks; /* may be set after payload_start(): the body as received */
    bool is_in_body;
    bool is_chunked;
};

enum err payload_init(struct payload *payload) MUST_CHECK;
void payload_done(struct payload *payload);

void payload_start(struct payload *payload, bool is_http);

/* Take from *input; true with a part of the payload, false when the input is used up. */
bool payload_next(struct payload *payload, struct bytes *input, struct bytes *ret_part);

/* The block has ended. True with a last part. */
bool payload_finish(struct payload *payload, struct bytes *ret_part);

#endif
