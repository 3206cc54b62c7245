/*
 * digest - 128 bits that stand for everything a run did, in its order.
 *
 * Two equal digests mean: the same events, at the same virtual times, with the same bytes. It finds drift
 * between compilers, machines and versions; it is no cryptographic hash, nobody here is hostile.
 */
#ifndef MNEMON_SIM_WORLD_DIGEST_H
#define MNEMON_SIM_WORLD_DIGEST_H

#include "base/bytes.h"

enum { DIGEST_TEXT_SIZE_MAX = 33 }; /* 32 hexadecimal digits and a zero byte */

struct digest {
    uint64_t lanes[2];
};

void digest_init(struct digest *digest);

/* Two independent lanes, so that the processor runs both multiplications at once. */
static inline void digest_u64(struct digest *digest, uint64_t word) {
    uint64_t a = (digest->lanes[0] ^ word) * UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio */
    uint64_t b = (digest->lanes[1] + word) * UINT64_C(0xbf58476d1ce4e5b9); /* of splitmix64 */
    digest->lanes[0] = a << 29 | a >> 35;
    digest->lanes[1] = b << 37 | b >> 27;
}

/* The size is mixed in too: "ab", "c" differs from "a", "bc". */
void digest_bytes(struct digest *digest, struct bytes bytes);

/* Lower-case hexadecimal, ended by a zero byte. Returns out. */
const char *digest_format(const struct digest *digest, char out[DIGEST_TEXT_SIZE_MAX]);

#endif
