/*
 * attest - who vouches for a capture: the node that fetched it, by a signature in its record.
 *
 *      Mnemon-Signature: <52 base32 digits: key of the node> <128 hexadecimal digits: Ed25519>
 *
 * The signature covers what was asked for and what came, not how it lies on a disk: URL, time, HTTP head,
 * digest and size of the payload, address of the server, TLS outcome, and whether the server said that
 * nothing changed. Only responses of HTTP are signed: what was imported was seen by others. So a copy keeps
 * it, whether it is stored whole or as a revisit, and whoever gets the capture from a stranger can check it.
 * The bytes are drawn in docs/formats/store.md. Signing and verifying are the caller's: this folder knows no
 * keys.
 */
#ifndef MNEMON_STORE_ATTEST_H
#define MNEMON_STORE_ATTEST_H

#include "base/buf.h"
#include "base/sha256.h"
#include "store/document.h"

enum {
    ATTEST_KEY_SIZE = 32,
    ATTEST_SIGNATURE_SIZE = 64,
    ATTEST_TEXT_SIZE = 52 + 1 + 2 * ATTEST_SIGNATURE_SIZE + 1,
    ATTEST_MESSAGE_SIZE_MAX = 80 << 10,
};

#define ATTEST_CONTEXT "mnemon capture 1"

/* Append what is signed of a response. ERR_LIMIT where a text is longer than any that is stored. */
enum err attest_put_message(struct buf *out, struct sha256 *sha256, const struct document *document,
                            const struct document_sum *sum) MUST_CHECK;

/* The value of the field. Returns out. */
const char *attest_format(const uint8_t key[ATTEST_KEY_SIZE], const uint8_t signature[ATTEST_SIGNATURE_SIZE],
                          char out[ATTEST_TEXT_SIZE]);

/* False where the text is no such value. */
bool attest_parse(struct bytes text, uint8_t ret_key[ATTEST_KEY_SIZE],
                  uint8_t ret_signature[ATTEST_SIGNATURE_SIZE]);

#endif
