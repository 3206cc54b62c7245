#include "sim/experiments/sessions.h"

#include "sim/world/network.h"

enum { FRACTION_BITS = 24 }; /* of fixed-point numbers: equal on every machine */

static uint64_t multiply(uint64_t a, uint64_t b) {
    return (a * b) >> FRACTION_BITS;
}

static uint64_t sessions_square_root(uint64_t value) {
    return network_square_root(value << FRACTION_BITS);
}

/* Weibull: an exponential number to the power 1 / 0.7, nearly: 1 + 1/4 + 1/8 + 1/16. */
uint64_t sessions_draw_us(struct prng *prng, uint64_t median_us) {
    uint64_t exponential = prng_exponential(prng, UINT64_C(1) << FRACTION_BITS);
    uint64_t fourth = sessions_square_root(sessions_square_root(exponential));
    uint64_t eighth = sessions_square_root(fourth);
    uint64_t power = multiply(multiply(exponential, fourth), multiply(eighth, sessions_square_root(eighth)));
    uint64_t scale_ms = median_us / 1000 * 100000 / 59045; /* ln 2 to that power is 0.59045 */
    return multiply(scale_ms, power) * 1000 + 1;
}
