/*
 * request_key - method and body of a request as part of the URL that a capture is found by.
 *
 *      GET                                   nothing: the URL is the key
 *      application/x-www-form-urlencoded     __wb_method=POST&a=1&b=2                as it is
 *      application/json                      __wb_method=POST&a=1&b=2                {"a": 1, "c": {"b":
 * [2]}} multipart/form-data                   __wb_method=POST&name=value text/plain JSON if it is that, else
 * as the next anything else, or nothing             __wb_method=POST&__wb_post_data=BASE64
 *
 * So a GET never finds the answer to a POST, and two POSTs with different bodies are different captures.
 * pywb, cdxj-indexer, warcio.js and wabac.js do the same; a URL that has been given these arguments is one
 * that they find it by, too. At most REQUEST_KEY_SIZE_MAX bytes of a body count, as in pywb.
 *
 * Bytes that have no place in a URL are percent-encoded, so that the key can be in a field of a record.
 */
#ifndef MNEMON_WARC_REQUEST_KEY_H
#define MNEMON_WARC_REQUEST_KEY_H

#include "base/buf.h"

enum {
    REQUEST_KEY_SIZE_MAX = 4096,         /* of what a body becomes, before it is encoded */
    REQUEST_KEY_BODY_SIZE_MAX = 1 << 20, /* larger ones are not parsed */
    REQUEST_KEY_METHOD_SIZE_MAX = 32,
    REQUEST_KEY_TEXT_SIZE_MAX = 3 * REQUEST_KEY_SIZE_MAX + 64,
};

/* Append the key of an HTTP request as it was sent; nothing for a GET, and for what is no request. */
enum err request_key_put(struct buf *out, struct bytes request) MUST_CHECK;

/* The same of its parts. The type may be empty. */
enum err request_key_put_parts(struct buf *out, struct bytes method, struct bytes content_type,
                               struct bytes body) MUST_CHECK;

/* Append the URL with the key as further arguments; an empty key leaves it as it is. */
enum err request_key_join(struct buf *out, struct bytes url, struct bytes key) MUST_CHECK;

/* Append the URL by which the capture is found that this request made. */
enum err request_key_put_url(struct buf *out, struct bytes url, struct bytes request) MUST_CHECK;

/* The way back. Without a key, the URL is all of it, and the others are empty. */
struct request_key {
    struct bytes url;
    struct bytes method;
    struct bytes body; /* as arguments: "requestBody" of CDXJ */
};
struct request_key request_key_split(struct bytes url);

#endif
