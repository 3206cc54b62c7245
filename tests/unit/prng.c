#include "base/prng.h"

#include <math.h>
#include <string.h>

#include "aborts.h"
#include "unit.h"

/*
 * Golden values from an independent implementation:
 *
 *      M = 2**64 - 1
 *      def rotl(x, n): return (x << n | x >> 64 - n) & M
 *      def mix(z):
 *          z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & M
 *          z = (z ^ z >> 27) * 0x94d049bb133111eb & M
 *          return z ^ z >> 31
 *      def seed(s): return [mix(s + i * 0x9e3779b97f4a7c15 & M) for i in (1, 2, 3, 4)]
 *      def draw(s):
 *          result = rotl(s[1] * 5 & M, 7) * 9 & M; t = s[1] << 17 & M
 *          s[2] ^= s[0]; s[3] ^= s[1]; s[1] ^= s[2]; s[0] ^= s[3]; s[2] ^= t; s[3] = rotl(s[3], 45)
 *          return result
 */
static void draws_the_sequence_of_xoshiro256_seeded_by_splitmix64(void **state) {
    (void)state;
    static const struct {
        uint64_t seed;
        uint64_t words[4];
    } rows[] = {
        {0, {0x99ec5f36cb75f2b4, 0xbf6e1f784956452a, 0x1a5f849d4933e6e0, 0x6aa594f1262d2d2c}},
        {1, {0xb3f2af6d0fc710c5, 0x853b559647364cea, 0x92f89756082a4514, 0x642e1c7bc266a3a7}},
        {0xdeadbeef, {0xc5555444a74d7e83, 0x65c30d37b4b16e38, 0x54f773200a4efa23, 0x429aed75fb958af7}},
        {UINT64_MAX, {0x8f5520d52a7ead08, 0xc476a018caa1802d, 0x81de31c0d260469e, 0xbf658d7e065f3c2f}},
    };
    struct prng prng;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        prng_init(&prng, rows[i].seed);
        for (size_t j = 0; j < 4; j++) {
            assert_int_equal(prng_u64(&prng), rows[i].words[j]);
        }
    }
    prng_init(&prng, 42);
    for (unsigned i = 1; i < 1000; i++) {
        prng_u64(&prng);
    }
    assert_int_equal(prng_u64(&prng), 0x8de5848c61ab8968);
}

static void mixes_as_splitmix64_does(void **state) {
    (void)state;
    assert_int_equal(prng_mix(0), 0);
    assert_int_equal(prng_mix(1), 0x5692161d100b05e5);
    assert_int_equal(prng_mix(2), 0xdbd238973a2b148a);
    assert_int_equal(prng_mix(UINT64_MAX), 0xb4d055fcf2cbbd7b);
}

static void streams_of_one_seed_differ_and_repeat(void **state) {
    (void)state;
    struct prng prng;
    prng_init_stream(&prng, 7, 3);
    assert_int_equal(prng_u64(&prng), 0x0f204651252954c4);
    assert_int_equal(prng_u64(&prng), 0x1849c560d833daaf);
    enum { STREAMS = 64 };
    uint64_t first[2 * STREAMS]; /* the same streams of two seeds */
    for (uint64_t i = 0; i < 2 * STREAMS; i++) {
        prng_init_stream(&prng, i / STREAMS, i % STREAMS);
        first[i] = prng_u64(&prng);
        for (uint64_t j = 0; j < i; j++) {
            assert_int_not_equal(first[i], first[j]);
        }
    }
}

static void below_is_uniform(void **state) {
    (void)state;
    enum { BOUND = 10, DRAWS = 100000 };
    struct prng prng;
    prng_init(&prng, 1);
    double counts[BOUND] = {0};
    for (unsigned i = 0; i < DRAWS; i++) {
        counts[prng_below(&prng, BOUND)]++;
    }
    double chi_squared = 0;
    for (size_t i = 0; i < BOUND; i++) {
        double off = counts[i] - (double)DRAWS / BOUND;
        chi_squared += off * off / ((double)DRAWS / BOUND);
    }
    assert_true(chi_squared < 27.9); /* 9 degrees of freedom, one in a thousand */
}

/* For 3 * 2^62 a generator that does not refuse words gives residue 0 of 3 half of the time. */
static void below_has_no_bias_for_a_bound_that_does_not_divide(void **state) {
    (void)state;
    enum { DRAWS = 30000 };
    const uint64_t bound = UINT64_C(3) << 62;
    struct prng prng;
    prng_init(&prng, 1);
    unsigned residues[3] = {0};
    unsigned thirds[3] = {0};
    for (unsigned i = 0; i < DRAWS; i++) {
        uint64_t value = prng_below(&prng, bound);
        assert_true(value < bound);
        residues[value % 3]++;
        thirds[value >> 62]++;
    }
    for (size_t i = 0; i < 3; i++) {
        assert_in_range(residues[i], DRAWS / 3 - 400, DRAWS / 3 + 400); /* five deviations of 82 */
        assert_in_range(thirds[i], DRAWS / 3 - 400, DRAWS / 3 + 400);
    }
}

static void between_reaches_both_ends_and_nothing_outside(void **state) {
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    bool was_seen[5] = {false};
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t value = prng_between(&prng, UINT64_MAX - 4, UINT64_MAX);
        was_seen[UINT64_MAX - value] = true;
    }
    for (size_t i = 0; i < 5; i++) {
        assert_true(was_seen[i]);
    }
    assert_int_equal(prng_between(&prng, 7, 7), 7);
    assert_int_equal(prng_below(&prng, 1), 0);
}

static void between_all_numbers_is_the_raw_word(void **state) {
    (void)state;
    struct prng one;
    struct prng other;
    prng_init(&one, 1);
    prng_init(&other, 1);
    assert_int_equal(prng_between(&one, 0, UINT64_MAX), prng_u64(&other));
}

static void chance_is_kept(void **state) {
    (void)state;
    static const struct {
        uint32_t ppm;
        unsigned draws;
        unsigned least; /* four deviations around the mean */
        unsigned most;
    } rows[] = {
        {0, 100000, 0, 0},
        {1, 5000000, 1, 14},
        {1000, 100000, 60, 140},
        {500000, 100000, 49368, 50632},
        {999000, 100000, 99860, 99940},
        {1000000, 100000, 100000, 100000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct prng prng;
        prng_init(&prng, 1);
        unsigned count = 0;
        for (unsigned j = 0; j < rows[i].draws; j++) {
            count += prng_chance_ppm(&prng, rows[i].ppm);
        }
        assert_in_range(count, rows[i].least, rows[i].most);
    }
}

static void exponential_is_the_logarithm_of_the_word(void **state) {
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (unsigned i = 0; i < 10000; i++) {
        struct prng copy = prng;
        double expected = -log((double)prng_u64(&copy) / 0x1p64) * 1e12;
        double got = (double)prng_exponential(&prng, UINT64_C(1000000000000));
        assert_true(fabs(got - expected) <= 2e4); /* 2^-31 of the mantissa, some of it lost in squaring */
        assert_memory_equal(&prng, &copy, sizeof prng);
    }
}

static void exponential_has_its_mean_and_its_tail(void **state) {
    (void)state;
    enum { DRAWS = 200000, MEAN = 1000000 };
    struct prng prng;
    prng_init(&prng, 1);
    double sum = 0;
    unsigned above_mean = 0;
    unsigned above_three = 0;
    for (unsigned i = 0; i < DRAWS; i++) {
        uint64_t value = prng_exponential(&prng, MEAN);
        assert_true(value <= UINT64_C(45) * MEAN);
        sum += (double)value;
        above_mean += value > MEAN;
        above_three += value > 3 * MEAN;
    }
    assert_true(fabs(sum / DRAWS - MEAN) < 0.009 * MEAN); /* four deviations of MEAN / sqrt(DRAWS) */
    assert_true(fabs((double)above_mean / DRAWS - exp(-1)) < 0.0044);
    assert_true(fabs((double)above_three / DRAWS - exp(-3)) < 0.002);
}

static void exponential_of_the_extremes(void **state) {
    (void)state;
    /* States whose next word is 0, the largest logarithm, and all ones, the smallest. */
    struct prng zero = {.state = {1, 0, 0, 0}};
    assert_int_equal(prng_exponential(&zero, 1000), 44361); /* 64 ln 2 */
    zero = (struct prng){.state = {1, 0, 0, 0}};
    assert_true(prng_exponential(&zero, UINT64_MAX / 45) > UINT64_MAX / 45 * 44);
    struct prng prng;
    prng_init(&prng, 1);
    assert_int_equal(prng_exponential(&prng, 0), 0);
}

static void fills_with_the_words_least_significant_byte_first(void **state) {
    (void)state;
    for (size_t size = 0; size <= 24; size++) {
        uint8_t filled[25] = {0};
        filled[size] = 0xee;
        struct prng prng;
        prng_init(&prng, 9);
        struct prng copy = prng;
        prng_fill(&prng, filled, size);
        for (size_t i = 0; i < size; i += 8) {
            uint64_t word = prng_u64(&copy);
            for (size_t j = i; j < i + 8 && j < size; j++) {
                assert_int_equal(filled[j], (uint8_t)(word >> (8 * (j - i))));
            }
        }
        assert_int_equal(filled[size], 0xee);
        assert_memory_equal(&prng, &copy, sizeof prng);
    }
}

static void draw_below_zero(void *prng) {
    prng_below(prng, 0);
}

static void draw_between_nothing(void *prng) {
    prng_between(prng, 2, 1);
}

static void draw_above_certainty(void *prng) {
    prng_chance_ppm(prng, 1000001);
}

static void draw_past_the_largest(void *prng) {
    prng_exponential(prng, UINT64_MAX / 45 + 1);
}

static void aborts_on_bounds_that_allow_no_number(void **state) {
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    assert_true(aborts(draw_below_zero, &prng, "bound > 0"));
    assert_true(aborts(draw_between_nothing, &prng, "min <= max"));
    assert_true(aborts(draw_above_certainty, &prng, "ppm <= 1000000"));
    assert_true(aborts(draw_past_the_largest, &prng, "mean <= UINT64_MAX / 45"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_the_sequence_of_xoshiro256_seeded_by_splitmix64),
        cmocka_unit_test(mixes_as_splitmix64_does),
        cmocka_unit_test(streams_of_one_seed_differ_and_repeat),
        cmocka_unit_test(below_is_uniform),
        cmocka_unit_test(below_has_no_bias_for_a_bound_that_does_not_divide),
        cmocka_unit_test(between_reaches_both_ends_and_nothing_outside),
        cmocka_unit_test(between_all_numbers_is_the_raw_word),
        cmocka_unit_test(chance_is_kept),
        cmocka_unit_test(exponential_is_the_logarithm_of_the_word),
        cmocka_unit_test(exponential_has_its_mean_and_its_tail),
        cmocka_unit_test(exponential_of_the_extremes),
        cmocka_unit_test(fills_with_the_words_least_significant_byte_first),
        cmocka_unit_test(aborts_on_bounds_that_allow_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
