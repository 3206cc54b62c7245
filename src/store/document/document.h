/*
 * document - what applications store: bytes, and where and when they came from.
 *
 * Either plain (no url: known by its content key alone, as in Webstore) or a capture of a URL: an HTTP
 * response as received, or a resource without HTTP.
 */
#ifndef MNEMON_STORE_DOCUMENT_DOCUMENT_H
#define MNEMON_STORE_DOCUMENT_DOCUMENT_H

#include "base/bytes.h"
#include "store/document/key.h"
#include "store/document/location.h"

enum store_mode {
    STORE_REGULAR,   /* a duplicate has the same digest and size */
    STORE_COMPARE,   /* and the same bytes */
    STORE_FORCE_NEW, /* duplicates are not looked for */
};

/* What somebody has computed of a payload already. */
struct document_sum {
    uint8_t digest[KEY_DIGEST_SIZE]; /* SHA-256 */
    uint64_t size;
};

/* All of it is borrowed until the document is durable. */
struct document {
    struct bytes url;          /* absolute; empty for a plain document */
    int64_t time_us;           /* when it was fetched or made */
    struct bytes head;         /* HTTP status line and header with its empty line; empty: not HTTP */
    struct bytes body;         /* what follows the head, as received */
    struct bytes content_type; /* of a document without head; empty: application/octet-stream */
    struct bytes request;      /* the HTTP request as sent; may be empty */
    struct bytes ip_address;   /* of the server; may be empty */
    struct bytes tls;          /* of https: "verified", or what is wrong with the certificate; else empty */
    struct bytes signature;    /* of the node that fetched it (crawl/engine/attest.h); may be empty */
    struct bytes imported;     /* the same of the node that imported it from a file; may be empty */
    struct bytes visit;        /* of several nodes that fetch each URL: when the visit began, as WARC-Date
                                  is written; else empty */
    struct bytes truncated;    /* "length", "time", "disconnect"; empty: it is whole */
    /*
     * The sum of the payload, if it is known already; NULL: it is computed. It is believed: a caller that has
     * it from a peer or a client, together with a body, leaves it NULL, or the archive would hold bytes under
     * a wrong digest. Without the body it can only name a document that the archive has anyway.
     */
    const struct document_sum *sum;
    bool is_not_modified;  /* with is_body_left_out: the server said so (304); the head is that answer */
    bool is_body_left_out; /* with sum, in STORE_REGULAR: a duplicate, or ERR_NOT_FOUND if it is none */
};

struct stored {
    struct key key;
    bool is_duplicate;
    uint64_t document_size;
    struct location location; /* of the record that was written for it */
};

#endif
