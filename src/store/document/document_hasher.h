/*
 * document_hasher - what identifies a document: the SHA-256 and the size of its payload.
 *
 * The payload is the body without its transfer encoding, as warc/payload.h takes it out. One thread; used for
 * document after document.
 */
#ifndef MNEMON_STORE_DOCUMENT_DOCUMENT_HASHER_H
#define MNEMON_STORE_DOCUMENT_DOCUMENT_HASHER_H

#include "base/sha256.h"
#include "store/document/document.h"
#include "warc/payload.h"

struct document_hasher {
    struct payload payload; /* its head is that of the last document */
    struct sha256 sha256;
};

enum err document_hasher_init(struct document_hasher *hasher) MUST_CHECK;
void document_hasher_done(struct document_hasher *hasher);

void document_hasher_run(struct document_hasher *hasher, const struct document *document,
                         struct document_sum *ret_sum);

/* Is this the payload of the document? */
bool document_hasher_equals(struct document_hasher *hasher, const struct document *document,
                            struct bytes payload);

#endif
