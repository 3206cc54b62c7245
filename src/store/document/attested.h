/*
 * attested - the text by which a node vouches for a capture: Mnemon-Signature, Mnemon-Imported.
 *
 *      KEY SIGNATURE           versions 1 and 2: 52 base32 digits, 128 hexadecimal digits
 *      vN KEY TEXT             later versions, N from 3 on: what TEXT says, a later program knows
 *
 * A later version is kept and passed on with its capture, and shown as not checked: it proves nothing here,
 * and is no lie either. docs/formats/store.md, docs/protocol/versions.md. All checking of signatures is
 * crawl/engine/attest.h.
 */
#ifndef MNEMON_STORE_DOCUMENT_ATTESTED_H
#define MNEMON_STORE_DOCUMENT_ATTESTED_H

#include "base/bytes.h"

enum {
    ATTESTED_KEY_SIZE = 52,
    ATTESTED_SIZE_MAX = 256,
    ATTESTED_VERSION_LAST = 2, /* that this program can check */
};

struct attested {
    struct bytes key;  /* of the node, as text */
    struct bytes text; /* its signature */
    uint32_t later;    /* the version, if it is above ATTESTED_VERSION_LAST; else 0 */
};

/* False: it is neither. The slices borrow the field. */
bool attested_read(struct bytes field, struct attested *ret_attested);

/* The first 8 bytes of the key, as the index keeps it. */
uint64_t attested_key_start(const struct attested *attested);

static inline bool attested_is_later(struct bytes field) {
    struct attested attested;
    return attested_read(field, &attested) && attested.later > 0;
}

#endif
