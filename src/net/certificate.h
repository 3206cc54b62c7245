/*
 * certificate - the X.509 certificate by which a node shows its key in TLS. No I/O.
 *
 *      certificate
 *      ├─ public key: P-256, made for this certificate and kept in memory only
 *      ├─ valid from, valid until
 *      ├─ extension CERTIFICATE_OID: an octet string of 96 bytes
 *      │      the node's Ed25519 key (32) │ its signature (64) of the public key above
 *      └─ signed by the P-256 key itself (ECDSA, SHA-256)
 *
 * The node's key thus vouches for the key of the certificate, and TLS proves that the other side holds that
 * one. The binding is the one that libp2p's TLS specification describes; the extension and what is signed are
 * ours. Names in a certificate mean nothing. docs/protocol/transport.md.
 */
#ifndef MNEMON_NET_CERTIFICATE_H
#define MNEMON_NET_CERTIFICATE_H

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "net/identity.h"

/* Below 2.25, which belongs to everybody who draws a random UUID. */
#define CERTIFICATE_OID "2.25.324857175574810605096513922435428057021"

enum {
    CERTIFICATE_SIZE_MAX = 1024,       /* DER; ours have about 400 */
    CERTIFICATE_EARLY_S = 24 * 3600,   /* valid so long before it is made, for clocks that differ */
    CERTIFICATE_LIFE_S = 30 * 86400,   /* and after */
    CERTIFICATE_RENEWED_S = 24 * 3600, /* whoever makes one makes another then */
};

struct certificate {
    X509 *x509;
    EVP_PKEY *key;
};

/* A new key and a certificate of it at this time. ERR_SYSTEM if OpenSSL cannot. */
enum err certificate_init(struct certificate *certificate, const struct identity *identity,
                          int64_t now_s) MUST_CHECK;
void certificate_done(struct certificate *certificate);

/*
 * Whose it is. ERR_INVALID: not made as above; ERR_PERMISSION: a signature in it is wrong; ERR_TIMEOUT: not
 * valid at this time.
 */
enum err certificate_check(X509 *x509, int64_t now_s, uint8_t ret_key[PEER_KEY_SIZE]) MUST_CHECK;

#endif
