/*
 * key - the content key: how an application names a document that it stored.
 *
 *      0:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad      volume, digest
 *      0:ba78…15ad.2                                                           its third block, after
 * collisions
 *
 * The digest is the SHA-256 of the document. The number tells blocks of one digest apart: 0 but for
 * collisions (compare mode) and for documents that were stored again on purpose (force-new mode).
 */
#ifndef MNEMON_STORE_DOCUMENT_KEY_H
#define MNEMON_STORE_DOCUMENT_KEY_H

#include "base/bytes.h"

enum { KEY_DIGEST_SIZE = 32, KEY_TEXT_SIZE_MAX = 80, KEY_VOLUMES_MAX = 1024 };

struct key {
    uint16_t volume;
    uint16_t number;
    uint8_t digest[KEY_DIGEST_SIZE];
};

/* The digest of a key: the first bits of a SHA-256; all 256 of them but in tests of collisions. */
void key_shorten(const uint8_t sha256[KEY_DIGEST_SIZE], unsigned bits, uint8_t digest[KEY_DIGEST_SIZE]);

/* Ended by a zero byte. Returns out. */
const char *key_format(const struct key *key, char out[KEY_TEXT_SIZE_MAX]);

/* False if the text is no content key, *ret_key untouched. */
bool key_parse(struct bytes text, struct key *ret_key);

#endif
