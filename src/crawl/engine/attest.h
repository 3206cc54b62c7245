/*
 * attest - who vouches for a capture: the node that fetched it, or the one that imported it from a file, by a
 * signature in its record.
 *
 *      Mnemon-Signature: <52 base32 digits: key of the node> <128 hexadecimal digits: Ed25519>
 *      Mnemon-Imported:  the same of the importer
 *
 * The signature covers what was asked for and what came, not how it lies on a disk: URL, time, HTTP head,
 * digest and size of the payload, address of the server, TLS outcome, whether the server said that nothing
 * changed, and the HTTP request. Only responses of HTTP are signed. So a copy keeps it, whether it is stored
 * whole or as a revisit, and whoever gets the capture from a stranger can check it. Signatures of the first
 * version, of which archives are full, do not cover the request.
 *
 * A node that imports a capture says only that: it was in a file that this node took in. It has not seen the
 * server, so it does not say that the page was so, nor that the certificate was valid. The two statements
 * have contexts of their own; a capture may have both. The bytes are drawn in docs/formats/store.md. All
 * signing and checking is done here.
 */
#ifndef MNEMON_CRAWL_ENGINE_ATTEST_H
#define MNEMON_CRAWL_ENGINE_ATTEST_H

#include "base/buf.h"
#include "base/sha256.h"
#include "net/identity.h"
#include "store/document/document.h"

enum {
    ATTEST_TEXT_SIZE = IDENTITY_TEXT_SIZE + 2 * IDENTITY_SIGNATURE_SIZE + 1,
    ATTEST_MESSAGE_SIZE_MAX = 80 << 10,
};

/*
 * Sign a response whose sum is set: its signature is the text then, which must live as long as it. ERR_LIMIT
 * if a part of it is longer than any that is stored: then it has no signature, as on every failure.
 * message: room for what is signed, at least ATTEST_MESSAGE_SIZE_MAX; its content is lost.
 */
enum err attest_sign(const struct identity *identity, struct sha256 *sha256, struct buf *message,
                     struct document *document, char text[ATTEST_TEXT_SIZE]) MUST_CHECK;

/*
 * Does the node that the signature names vouch for the document, whose sum is set? ERR_MISMATCH with a
 * sentence if not; ERR_UNSUPPORTED if the signature is of a later version (store/document/attested.h), which
 * nobody can be blamed for. *ret_covers_request: false if the signature is of the first version, and the
 * request may be anybody's.
 */
enum err attest_verify(struct sha256 *sha256, struct buf *message, const struct document *document,
                       uint8_t ret_signer[PEER_KEY_SIZE], bool *ret_covers_request,
                       struct err_detail *detail) MUST_CHECK;

/* The same of a node that imports it, into document->imported. */
enum err attest_sign_import(const struct identity *identity, struct sha256 *sha256, struct buf *message,
                            struct document *document, char text[ATTEST_TEXT_SIZE]) MUST_CHECK;
enum err attest_verify_import(struct sha256 *sha256, struct buf *message, const struct document *document,
                              uint8_t ret_importer[PEER_KEY_SIZE], struct err_detail *detail) MUST_CHECK;

/* The value of the field. Returns out. */
const char *attest_format(const uint8_t key[PEER_KEY_SIZE], const uint8_t signature[IDENTITY_SIGNATURE_SIZE],
                          char out[ATTEST_TEXT_SIZE]);

/* False if the text is no such value. */
bool attest_parse(struct bytes text, uint8_t ret_key[PEER_KEY_SIZE],
                  uint8_t ret_signature[IDENTITY_SIGNATURE_SIZE]);

#endif
