#include "base/prng.h"

#include <string.h>

#include "base/assert.h"

/* Not in C17, but in gcc and clang on every 64-bit machine. */
__extension__ typedef unsigned __int128 wide;

uint64_t prng_mix(uint64_t word) {
    word ^= word >> 30;
    word *= UINT64_C(0xbf58476d1ce4e5b9);
    word ^= word >> 27;
    word *= UINT64_C(0x94d049bb133111eb);
    word ^= word >> 31;
    return word;
}

void prng_init(struct prng *prng, uint64_t seed) {
    for (size_t i = 0; i < 4; i++) {
        seed += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64's increment: 2^64 / golden ratio */
        prng->state[i] = prng_mix(seed);
    }
}

void prng_init_stream(struct prng *prng, uint64_t seed, uint64_t stream) {
    prng_init(prng, prng_mix(seed + UINT64_C(0x9e3779b97f4a7c15)) ^ prng_mix(~stream));
}

static uint64_t rotate_left(uint64_t word, unsigned count) {
    return word << count | word >> (64 - count);
}

uint64_t prng_u64(struct prng *prng) {
    uint64_t *state = prng->state;
    uint64_t result = rotate_left(state[1] * 5, 7) * 9;
    uint64_t shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotate_left(state[3], 45);
    return result;
}

uint64_t prng_below(struct prng *prng, uint64_t bound) {
    ASSERT(bound > 0);
    /* Lemire: the high half of word * bound is uniform once low halves under 2^64 mod bound are refused. */
    wide product = (wide)prng_u64(prng) * bound;
    if ((uint64_t)product < bound) {
        uint64_t refused = (0 - bound) % bound;
        while ((uint64_t)product < refused) {
            product = (wide)prng_u64(prng) * bound;
        }
    }
    return (uint64_t)(product >> 64);
}

uint64_t prng_between(struct prng *prng, uint64_t min, uint64_t max) {
    ASSERT(min <= max);
    if (min == 0 && max == UINT64_MAX) {
        return prng_u64(prng);
    }
    return min + prng_below(prng, max - min + 1);
}

uint64_t prng_spread(struct prng *prng, uint64_t value) {
    return value * 3 / 4 + prng_below(prng, value / 2 + 1);
}

bool prng_chance_ppm(struct prng *prng, uint32_t ppm) {
    ASSERT(ppm <= 1000000);
    return ppm > 0 && prng_below(prng, 1000000) < ppm;
}

/*
 * -log2(word / 2^64) in 1/2^32 units, by integers alone, so that no libm and no rounding mode can differ:
 * the integer part counts leading zeros, each further bit comes from squaring the mantissa.
 */
static uint64_t negative_log2(uint64_t word) {
    unsigned zeros = (unsigned)__builtin_clzll(word);
    uint64_t mantissa = word << zeros >> 32; /* in [2^31, 2^32): 1.x with 31 fraction bits */
    uint64_t fraction = 0;
    for (unsigned i = 0; i < 32; i++) {
        mantissa = mantissa * mantissa >> 31; /* in [2^31, 2^33) */
        fraction <<= 1;
        if (mantissa >> 32 != 0) {
            fraction |= 1;
            mantissa >>= 1;
        }
    }
    return ((uint64_t)(zeros + 1) << 32) - fraction;
}

uint64_t prng_exponential(struct prng *prng, uint64_t mean) {
    ASSERT(mean <= UINT64_MAX / 45);    /* 64 ln 2 = 44.4 times it must fit */
    uint64_t word = prng_u64(prng) | 1; /* never 0, whose logarithm is infinite; costs half a bit */
    /* -ln(u) = -log2(u) * ln 2; 2977044472 = round(ln 2 * 2^32) */
    wide logarithm = (wide)negative_log2(word) * UINT64_C(2977044472);
    return (uint64_t)((logarithm >> 32) * mean >> 32);
}

void prng_fill(struct prng *prng, void *data, size_t size) {
    uint8_t *out = data;
    while (size > 0) {
        uint64_t word = prng_u64(prng);
        uint8_t bytes[8];
        for (size_t i = 0; i < 8; i++) {
            bytes[i] = (uint8_t)(word >> (8 * i));
        }
        size_t count = size < 8 ? size : 8;
        memcpy(out, bytes, count);
        out += count;
        size -= count;
    }
}
