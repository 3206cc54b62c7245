/*
 * version - the statement of a publisher: this is version N of my collection. Pure.
 *
 *      publisher, name      which collection; its id is their digest
 *      number               rising; the higher one counts
 *      root, totals         of its manifest: manifest.h
 *
 * Signed by the publisher, so nobody else can make a version, and whoever passes one on need not be
 * believed. An old one is recognised by its number. A publisher that numbers two versions alike (after a
 * loss of its disk) is no reason for replicas to differ for ever: of those the later one counts, then the one
 * with the higher digest. Format: docs/formats/collection.md.
 */
#ifndef MNEMON_PROTOCOL_MIRROR_VERSION_H
#define MNEMON_PROTOCOL_MIRROR_VERSION_H

#include "base/peer.h"
#include "protocol/mirror/manifest.h"

enum {
    VERSION_ID_SIZE = 16,
    VERSION_NAME_SIZE_MAX = 63,
    VERSION_SIGNATURE_SIZE = 64,
    VERSION_SIZE_MAX = 320, /* of the encoding: above all maxima together */
};
static const uint64_t VERSION_NUMBER_MAX = INT64_MAX; /* JSON of it is read with signed numbers */

struct version {
    uint8_t publisher[PEER_KEY_SIZE];
    char name[VERSION_NAME_SIZE_MAX + 1];
    uint64_t number; /* from 1 */
    int64_t time_us; /* when it was published, UTC */
    struct manifest_totals totals;
    struct manifest_ref root;
    uint8_t signature[VERSION_SIGNATURE_SIZE];
};

/* Is the signature one of that key over the context, a zero byte and the message? */
typedef bool version_verify(const uint8_t key[PEER_KEY_SIZE], const char *context, struct bytes message,
                            const uint8_t signature[VERSION_SIGNATURE_SIZE]);
typedef void version_make_signature(const void *signer, const char *context, struct bytes message,
                                    uint8_t out[VERSION_SIGNATURE_SIZE]);

#define VERSION_CONTEXT "mnemon collection 1"

/* 1 to 63 of a-z 0-9 . _ -, the first no dot. */
bool version_name_is_valid(struct bytes name);

/* The publisher's signature over all the rest. */
void version_sign(struct version *version, version_make_signature *sign, const void *signer);

/* As it was signed. Values must be within their bounds. Returns what was written. */
struct bytes version_write(const struct version *version, uint8_t out[VERSION_SIZE_MAX]);

/* ERR_INVALID, ERR_TRUNCATED, ERR_LIMIT: it is none; ERR_UNSUPPORTED: a later layout; ERR_MISMATCH: the
 * signature is not the publisher's. */
enum err version_read(struct bytes input, version_verify *verify, struct version *ret_version,
                      struct err_detail *detail) MUST_CHECK;

void version_id(const uint8_t publisher[PEER_KEY_SIZE], struct bytes name, struct sha256 *sha256,
                uint8_t out[VERSION_ID_SIZE]);

/* Versions of one collection: <0 if a is the older one, 0 if they are the same. */
int version_compare(const struct version *a, const struct version *b);

#endif
