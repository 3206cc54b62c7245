#include "net/certificate.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

enum {
    PROOF_SIZE = PEER_KEY_SIZE + IDENTITY_SIGNATURE_SIZE,
    PROOF_DER_SIZE = 2 + PROOF_SIZE,
    PUBLIC_KEY_SIZE_MAX = 128, /* DER; P-256 has 91 */
    SERIAL_SIZE = 8,
};

static const char key_context[] = "stream certificate";
static const char curve[] = "prime256v1";

/* DER: an octet string of PROOF_SIZE bytes. */
static const uint8_t proof_head[2] = {V_ASN1_OCTET_STRING, PROOF_SIZE};

/* The public key as it stands in the certificate. ERR_INVALID if it is larger than any of ours. */
static enum err certificate_public_key(const X509 *x509, uint8_t out[PUBLIC_KEY_SIZE_MAX],
                                       struct bytes *ret) {
    X509_PUBKEY *key = X509_get_X509_PUBKEY(x509);
    int size = i2d_X509_PUBKEY(key, NULL);
    if (size <= 0 || size > PUBLIC_KEY_SIZE_MAX) {
        return ERR_INVALID;
    }
    uint8_t *end = out;
    if (i2d_X509_PUBKEY(key, &end) != size) {
        return ERR_INVALID;
    }
    *ret = bytes_of(out, (size_t)size);
    return ERR_OK;
}

static bool certificate_add_proof(X509 *x509, const struct identity *identity) {
    uint8_t proof[PROOF_DER_SIZE];
    uint8_t memory[PUBLIC_KEY_SIZE_MAX];
    struct bytes public_key;
    if (certificate_public_key(x509, memory, &public_key) != ERR_OK) {
        return false;
    }
    memcpy(proof, proof_head, sizeof proof_head);
    memcpy(proof + 2, identity->key, PEER_KEY_SIZE);
    identity_sign(identity, key_context, public_key, proof + 2 + PEER_KEY_SIZE);
    ASN1_OBJECT *object = OBJ_txt2obj(CERTIFICATE_OID, 1);
    ASN1_OCTET_STRING *value = ASN1_OCTET_STRING_new();
    X509_EXTENSION *extension = NULL;
    if (object != NULL && value != NULL && ASN1_OCTET_STRING_set(value, proof, sizeof proof) == 1) {
        extension = X509_EXTENSION_create_by_OBJ(NULL, object, 0, value);
    }
    bool is_well = extension != NULL && X509_add_ext(x509, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    ASN1_OCTET_STRING_free(value);
    ASN1_OBJECT_free(object);
    return is_well;
}

/* X.509 wants a serial number and a name. They tell nothing. */
static bool certificate_add_names(X509 *x509) {
    uint8_t serial[SERIAL_SIZE];
    if (RAND_bytes(serial, sizeof serial) != 1) {
        return false;
    }
    serial[0] = (uint8_t)((serial[0] & 0x7f) | 0x40); /* positive, and of this length */
    BIGNUM *number = BN_bin2bn(serial, sizeof serial, NULL);
    bool is_well = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x509)) != NULL &&
                   X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_ASC,
                                              (const unsigned char *)"mnemon", -1, -1, 0) == 1 &&
                   X509_set_issuer_name(x509, X509_get_subject_name(x509)) == 1;
    BN_free(number);
    return is_well;
}

enum err certificate_init(struct certificate *certificate, const struct identity *identity, int64_t now_s) {
    certificate->key = EVP_EC_gen(curve);
    certificate->x509 = X509_new();
    X509 *x509 = certificate->x509;
    bool is_well = certificate->key != NULL && x509 != NULL && X509_set_version(x509, X509_VERSION_3) == 1 &&
                   certificate_add_names(x509) &&
                   ASN1_TIME_set(X509_getm_notBefore(x509), (time_t)(now_s - CERTIFICATE_EARLY_S)) != NULL &&
                   ASN1_TIME_set(X509_getm_notAfter(x509), (time_t)(now_s + CERTIFICATE_LIFE_S)) != NULL &&
                   X509_set_pubkey(x509, certificate->key) == 1 && certificate_add_proof(x509, identity) &&
                   X509_sign(x509, certificate->key, EVP_sha256()) > 0;
    if (!is_well) {
        certificate_done(certificate);
        ERR_clear_error();
        return ERR_SYSTEM;
    }
    return ERR_OK;
}

void certificate_done(struct certificate *certificate) {
    X509_free(certificate->x509);
    EVP_PKEY_free(certificate->key);
    *certificate = (struct certificate){0};
}

/* The one extension of ours; NULL if there is none, if there are two, or if another one is critical. */
static const ASN1_OCTET_STRING *certificate_find_proof(const X509 *x509) {
    ASN1_OBJECT *object = OBJ_txt2obj(CERTIFICATE_OID, 1);
    const ASN1_OCTET_STRING *proof = NULL;
    size_t found_count = 0;
    bool has_other_critical = false;
    for (int i = 0; object != NULL && i < X509_get_ext_count(x509); i++) {
        X509_EXTENSION *extension = X509_get_ext(x509, i);
        if (OBJ_cmp(X509_EXTENSION_get_object(extension), object) == 0) {
            proof = X509_EXTENSION_get_data(extension);
            found_count++;
        } else {
            has_other_critical = has_other_critical || X509_EXTENSION_get_critical(extension) != 0;
        }
    }
    ASN1_OBJECT_free(object);
    return found_count == 1 && !has_other_critical ? proof : NULL;
}

static bool certificate_is_of_our_curve(EVP_PKEY *key) {
    char name[32];
    size_t size;
    return key != NULL && EVP_PKEY_is_a(key, "EC") == 1 &&
           EVP_PKEY_get_group_name(key, name, sizeof name, &size) == 1 && strcmp(name, curve) == 0;
}

/* X509_cmp_time() gives 0 for a time that is none. */
static bool certificate_is_valid_at(const X509 *x509, int64_t now_s) {
    time_t now = (time_t)now_s;
    return X509_cmp_time(X509_get0_notBefore(x509), &now) < 0 &&
           X509_cmp_time(X509_get0_notAfter(x509), &now) > 0;
}

static enum err certificate_check_parts(X509 *x509, int64_t now_s, uint8_t ret_key[PEER_KEY_SIZE]) {
    uint8_t memory[PUBLIC_KEY_SIZE_MAX];
    struct bytes public_key;
    int size = i2d_X509(x509, NULL);
    EVP_PKEY *key = X509_get0_pubkey(x509);
    const ASN1_OCTET_STRING *proof = certificate_find_proof(x509);
    if (size <= 0 || size > CERTIFICATE_SIZE_MAX || proof == NULL || !certificate_is_of_our_curve(key) ||
        X509_get_signature_nid(x509) != NID_ecdsa_with_SHA256) {
        return ERR_INVALID;
    }
    const uint8_t *bytes = ASN1_STRING_get0_data(proof);
    if (ASN1_STRING_length(proof) != PROOF_DER_SIZE || memcmp(bytes, proof_head, sizeof proof_head) != 0 ||
        certificate_public_key(x509, memory, &public_key) != ERR_OK) {
        return ERR_INVALID;
    }
    if (!certificate_is_valid_at(x509, now_s)) {
        return ERR_TIMEOUT;
    }
    const uint8_t *node_key = bytes + sizeof proof_head;
    if (!identity_verify(node_key, key_context, public_key, node_key + PEER_KEY_SIZE) ||
        X509_verify(x509, key) != 1) {
        return ERR_PERMISSION;
    }
    memcpy(ret_key, node_key, PEER_KEY_SIZE);
    return ERR_OK;
}

enum err certificate_check(X509 *x509, int64_t now_s, uint8_t ret_key[PEER_KEY_SIZE]) {
    enum err err = certificate_check_parts(x509, now_s, ret_key);
    ERR_clear_error(); /* it belongs to the thread, and nobody else asks for it */
    return err;
}
