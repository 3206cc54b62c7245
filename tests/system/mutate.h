/*
 * mutate - bytes of a message as no honest node would send them, by lot: for the fuzzers of the peer
 * protocol.
 *
 * It knows what our layouts are made of (base/wire.h): little-endian integers, varints, strings behind their
 * length. So it writes boundary values of those, and cuts, repeats, swaps and joins runs of bytes, which
 * leaves the rest as it was: most of what comes out gets far into a decoder.
 */
#ifndef MNEMON_TESTS_SYSTEM_MUTATE_H
#define MNEMON_TESTS_SYSTEM_MUTATE_H

#include "base/bytes.h"
#include "base/prng.h"

/* An integer as programs get them wrong: around 0, powers of two and the largest. */
uint64_t mutate_number(struct prng *prng);

/* One to four changes. other: of another message, to take parts from; may be empty. Returns the new size, at
 * most size_max. */
size_t mutate(struct prng *prng, uint8_t *data, size_t size, size_t size_max, struct bytes other);

#endif
