/*
 * sha256 - the digest of the whole archive: documents, ring positions, manifests. OpenSSL's, which uses the
 * CPU's instructions.
 *
 * Nothing is allocated and, once initialized, nothing can fail: a digest that may be missing would have to be
 * checked for in every place that identifies something by it.
 */
#ifndef MNEMON_BASE_SHA256_H
#define MNEMON_BASE_SHA256_H

#include "base/bytes.h"
#include "base/err.h"

enum { SHA256_SIZE = 32 };

struct sha256 {
    uint64_t context[14]; /* as large as OpenSSL's */
};

enum err sha256_init(struct sha256 *sha256) MUST_CHECK;
void sha256_done(struct sha256 *sha256);

void sha256_start(struct sha256 *sha256);
void sha256_update(struct sha256 *sha256, struct bytes bytes);
void sha256_finish(struct sha256 *sha256, uint8_t out[SHA256_SIZE]);

/* All of it at once: start, update, finish. */
void sha256_digest(struct sha256 *sha256, struct bytes bytes, uint8_t out[SHA256_SIZE]);

#endif
