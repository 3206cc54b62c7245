/*
 * once - a set of hashes of bounded size: "was this URL of this page reported before?"
 *
 * Emptied in no time by counting the documents. What finds no room near its place is not remembered, so the
 * answer "no" may be wrong, on large pages; "yes" is wrong once in 2^48.
 */
#ifndef MNEMON_WEB_HTML_ONCE_H
#define MNEMON_WEB_HTML_ONCE_H

#include "base/bytes.h"

enum { ONCE_SLOTS_COUNT = 4096 };

struct once {
    uint16_t generation;              /* of the document; never 0 */
    uint64_t slots[ONCE_SLOTS_COUNT]; /* 48 bits of the hash, 16 of the generation it is of */
};

void once_init(struct once *once);

/* Forget everything. */
void once_clear(struct once *once);

/* True if the bytes were added before, for the same kind. */
bool once_add(struct once *once, struct bytes bytes, unsigned kind);

#endif
