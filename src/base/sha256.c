#include "base/sha256.h"

#include <openssl/evp.h>

enum err sha256_init(struct sha256 *sha256) {
    sha256->context = EVP_MD_CTX_new();
    if (sha256->context == NULL) {
        return ERR_MEMORY;
    }
    /* Names the algorithm once; sha256_start() then reuses it without looking it up. */
    if (EVP_DigestInit_ex(sha256->context, EVP_sha256(), NULL) != 1) {
        sha256_done(sha256);
        return ERR_MEMORY;
    }
    return ERR_OK;
}

void sha256_done(struct sha256 *sha256) {
    EVP_MD_CTX_free(sha256->context);
    sha256->context = NULL;
}

/* With a sound context and SHA-256 none of these can fail; a failure would be a wrong digest, so stop. */
void sha256_start(struct sha256 *sha256) {
    int ok = EVP_DigestInit_ex(sha256->context, NULL, NULL);
    ASSERT(ok == 1);
}

void sha256_update(struct sha256 *sha256, struct bytes bytes) {
    int ok = EVP_DigestUpdate(sha256->context, bytes.data, bytes.size);
    ASSERT(ok == 1);
}

void sha256_finish(struct sha256 *sha256, uint8_t out[SHA256_SIZE]) {
    int ok = EVP_DigestFinal_ex(sha256->context, out, NULL);
    ASSERT(ok == 1);
}

void sha256_digest(struct sha256 *sha256, struct bytes bytes, uint8_t out[SHA256_SIZE]) {
    sha256_start(sha256);
    sha256_update(sha256, bytes);
    sha256_finish(sha256, out);
}
