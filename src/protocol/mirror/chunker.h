/*
 * chunker - cuts bytes where their content says so, so that equal parts of two versions of a file become
 * equal chunks wherever they lie in it. Pure, deterministic: the cuts are part of the format.
 *
 * A gear hash runs over the bytes: hash = hash * 2 + gear[byte], so it depends on the last 64 bytes alone. A
 * chunk ends behind a byte after which the upper bits of the hash are zero. Fewer bits must be so in a
 * chunk that has become long (Xia et al., FastCDC, 2016): this keeps sizes together.
 *
 *      0 ........ 16 KiB ............... 52 KiB ............... 256 KiB
 *      no end      18 zero bits           14 zero bits           ends
 *
 * The mean over random bytes is near 64 KiB. The first bytes of a chunk, where it cannot end, are
 * not looked at. Format: docs/formats/collection.md.
 */
#ifndef MNEMON_PROTOCOL_MIRROR_CHUNKER_H
#define MNEMON_PROTOCOL_MIRROR_CHUNKER_H

#include "base/bytes.h"

enum {
    CHUNKER_SIZE_MIN = 16 << 10, /* of all but the last chunk of a file */
    CHUNKER_SIZE_MAX = 256 << 10,
    CHUNKER_WHOLE_SIZE_MAX = 64 << 10, /* files up to this size are one chunk */
};

struct chunker {
    uint64_t gear[256];
    uint64_t hash;
    size_t size; /* of the chunk that has begun */
};

void chunker_init(struct chunker *chunker);

/* Forget what has begun: the next byte is the first of a file. */
void chunker_start(struct chunker *chunker);

/*
 * How many of the bytes, at least one, belong to the chunk that has begun. *ret_is_end: it ends with them;
 * else all belong to it, and it goes on. The last chunk of a file just stops. bytes must not be empty.
 */
size_t chunker_take(struct chunker *chunker, struct bytes bytes, bool *ret_is_end);

#endif
