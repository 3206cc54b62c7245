#include "base/sha256.h"

/*
 * The functions of the algorithm itself: the same code as behind EVP, which takes memory at every start.
 * OpenSSL 3 would rather have EVP used, for a choice of providers that an archive of SHA-256 does not have.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

_Static_assert(sizeof(SHA256_CTX) <= sizeof(struct sha256), "the context of OpenSSL has room");

static SHA256_CTX *sha256_context(struct sha256 *sha256) {
    return (SHA256_CTX *)sha256->context;
}

enum err sha256_init(struct sha256 *sha256) {
    sha256_start(sha256);
    return ERR_OK;
}

void sha256_done(struct sha256 *sha256) {
    *sha256 = (struct sha256){0};
}

/* None of these can fail; a failure would be a wrong digest, so stop. */
void sha256_start(struct sha256 *sha256) {
    int ok = SHA256_Init(sha256_context(sha256));
    ASSERT(ok == 1);
}

void sha256_update(struct sha256 *sha256, struct bytes bytes) {
    int ok = SHA256_Update(sha256_context(sha256), bytes.data, bytes.size);
    ASSERT(ok == 1);
}

void sha256_finish(struct sha256 *sha256, uint8_t out[SHA256_SIZE]) {
    int ok = SHA256_Final(out, sha256_context(sha256));
    ASSERT(ok == 1);
}

void sha256_digest(struct sha256 *sha256, struct bytes bytes, uint8_t out[SHA256_SIZE]) {
    sha256_start(sha256);
    sha256_update(sha256, bytes);
    sha256_finish(sha256, out);
}
