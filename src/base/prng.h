/*
 * prng - the seeded generator that every random choice of a protocol comes from.
 *
 * xoshiro256** (Blackman and Vigna), seeded by splitmix64: fast, 256 bits of state, equal on every machine
 * and compiler. Not for secrets: keys and nonces come from libsodium.
 */
#ifndef MNEMON_BASE_PRNG_H
#define MNEMON_BASE_PRNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct prng {
    uint64_t state[4];
};

void prng_init(struct prng *prng, uint64_t seed);

/* A generator of its own for part `stream` of a run: equal seeds and streams give equal sequences. */
void prng_init_stream(struct prng *prng, uint64_t seed, uint64_t stream);

uint64_t prng_u64(struct prng *prng);

/* Uniform in 0 … bound-1, without bias. bound > 0. */
uint64_t prng_below(struct prng *prng, uint64_t bound);

/* Uniform in min … max, both included. */
uint64_t prng_between(struct prng *prng, uint64_t min, uint64_t max);

/* Uniform between three and five quarters of it: nodes that started together do not stay so. */
uint64_t prng_spread(struct prng *prng, uint64_t value);

/* True with the given chance in parts per million: integers, so that no rounding differs. */
bool prng_chance_ppm(struct prng *prng, uint32_t ppm);

/* Exponentially distributed with the given mean, rounded down; 0 for mean 0. At most 45 times the mean. */
uint64_t prng_exponential(struct prng *prng, uint64_t mean);

void prng_fill(struct prng *prng, void *data, size_t size);

/* Mix a 64-bit word well: for combining seeds and for hashing small integers. */
uint64_t prng_mix(uint64_t word);

#endif
