/*
 * certificate - the certificate that a stranger shows, in DER.
 *
 * What is taken names a key that could have signed it: read again, it is taken again and names the same.
 */
#include "net/certificate.h"

#include <openssl/err.h>

#include "fuzz.h"

enum { NOW_S = 1800000000 }; /* the corpus was made then */

/* What we make ourselves is taken. */
static void certificate_make(void) {
    static bool is_made;
    struct identity identity;
    struct certificate certificate;
    uint8_t key[PEER_KEY_SIZE];
    if (!is_made) {
        enum err err = identity_random(&identity);
        ASSERT(err == ERR_OK);
        err = certificate_init(&certificate, &identity, NOW_S);
        ASSERT(err == ERR_OK);
        err = certificate_check(certificate.x509, NOW_S, key);
        ASSERT(err == ERR_OK && memcmp(key, identity.key, PEER_KEY_SIZE) == 0);
        certificate_done(&certificate);
        is_made = true;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t key[PEER_KEY_SIZE] = {0};
    uint8_t again[PEER_KEY_SIZE] = {0};
    const uint8_t *at = data;
    certificate_make();
    X509 *x509 = d2i_X509(NULL, &at, (long)size);
    ERR_clear_error();
    if (x509 == NULL) {
        return 0;
    }
    if (certificate_check(x509, NOW_S, key) == ERR_OK) {
        ASSERT(i2d_X509(x509, NULL) <= CERTIFICATE_SIZE_MAX);
        enum err err = certificate_check(x509, NOW_S, again);
        ASSERT(err == ERR_OK && memcmp(key, again, PEER_KEY_SIZE) == 0);
    }
    X509_free(x509);
    return 0;
}
