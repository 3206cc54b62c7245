/*
 * warc_digest - the labelled digests of WARC headers, and hashing by the algorithm that a label names.
 *
 *      sha1:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A             base32, the custom for SHA-1
 *      sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
 *
 * Read in base32 or hexadecimal of any case, or in base64 of either alphabet, with or without a dash in the
 * name
 * ("sha-256:"); written as shown.
 */
#ifndef MNEMON_WARC_WARC_DIGEST_H
#define MNEMON_WARC_WARC_DIGEST_H

#include "base/buf.h"

enum { WARC_DIGEST_SIZE_MAX = 64 };

enum warc_digest_algorithm {
    WARC_DIGEST_MD5,
    WARC_DIGEST_SHA1,
    WARC_DIGEST_SHA256,
    WARC_DIGEST_SHA512,
};

struct warc_digest {
    enum warc_digest_algorithm algorithm;
    size_t size;
    uint8_t value[WARC_DIGEST_SIZE_MAX];
};

/* ERR_UNSUPPORTED for an algorithm that we do not compute (blake3:), ERR_INVALID for what is no digest. */
enum err warc_digest_parse(struct warc_digest *digest, struct bytes text,
                           struct err_detail *detail) MUST_CHECK;

bool warc_digest_equal(const struct warc_digest *a, const struct warc_digest *b);

/* Hashing by OpenSSL, on memory of its own: once initialized, nothing can fail, as in base/sha256.h. */
struct warc_hash {
    uint64_t context[27]; /* as large as OpenSSL's largest */
    enum warc_digest_algorithm algorithm;
};

enum err warc_hash_init(struct warc_hash *hash) MUST_CHECK;
void warc_hash_done(struct warc_hash *hash);
void warc_hash_start(struct warc_hash *hash, enum warc_digest_algorithm algorithm);
void warc_hash_update(struct warc_hash *hash, struct bytes bytes);
void warc_hash_finish(struct warc_hash *hash, struct warc_digest *ret_digest);

#endif
