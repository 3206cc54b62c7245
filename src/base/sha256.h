/*
 * sha256 - the digest of the whole archive: documents, ring positions, manifests. OpenSSL's, which uses the
 * CPU's instructions.
 *
 * A struct sha256 holds one context of OpenSSL's heap; start again as often as needed without allocating.
 */
#ifndef MNEMON_BASE_SHA256_H
#define MNEMON_BASE_SHA256_H

#include "base/bytes.h"
#include "base/err.h"

enum { SHA256_SIZE = 32 };

struct sha256 {
    struct evp_md_ctx_st *context;
};

enum err sha256_init(struct sha256 *sha256) MUST_CHECK;
void sha256_done(struct sha256 *sha256);

void sha256_start(struct sha256 *sha256);
void sha256_update(struct sha256 *sha256, struct bytes bytes);
void sha256_finish(struct sha256 *sha256, uint8_t out[SHA256_SIZE]);

/* All of it at once: start, update, finish. */
void sha256_digest(struct sha256 *sha256, struct bytes bytes, uint8_t out[SHA256_SIZE]);

#endif
