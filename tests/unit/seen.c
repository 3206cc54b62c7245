#include "crawl/frontier/seen.h"

#include "allocations.h"
#include "base/prng.h"
#include "unit.h"

static uint64_t fingerprint_of(uint64_t number) {
    uint64_t fingerprint = prng_mix(number * UINT64_C(0x9e3779b97f4a7c15) + 1);
    return fingerprint == 0 ? 1 : fingerprint;
}

static void finds_what_was_put_and_nothing_else(void **state) {
    (void)state;
    static struct seen seen;
    seen_init(&seen);
    assert_false(seen_has(&seen, 5));
    for (uint64_t i = 0; i < 200000; i++) {
        assert_int_equal(seen_put(&seen, fingerprint_of(i)), ERR_OK);
        assert_int_equal(seen_put(&seen, fingerprint_of(i / 2)), ERR_EXISTS);
    }
    assert_int_equal(seen.count, 200000);
    for (uint64_t i = 0; i < 200000; i++) {
        seen_prefetch(&seen, fingerprint_of(i));
        assert_true(seen_has(&seen, fingerprint_of(i)));
        assert_false(seen_has(&seen, fingerprint_of(i + 200000)));
    }
    seen_done(&seen);
}

/* Neighbours in value fill one table and one stretch of it, around its end too. */
static void copes_with_neighbours(void **state) {
    (void)state;
    static struct seen seen;
    seen_init(&seen);
    for (uint64_t i = 0; i < 2000; i++) {
        assert_int_equal(seen_put(&seen, UINT64_MAX - i), ERR_OK);
        assert_int_equal(seen_put(&seen, i + 1), ERR_OK);
    }
    for (uint64_t i = 0; i < 2000; i++) {
        assert_true(seen_has(&seen, UINT64_MAX - i) && seen_has(&seen, i + 1));
    }
    assert_false(seen_has(&seen, 2001));
    assert_false(seen_has(&seen, UINT64_MAX - 2000));
    seen_done(&seen);
}

/* The table that grows is counted twice. One million here; bench/frontier.c says it of ten. */
static void takes_at_most_13_bytes_each_at_every_size(void **state) {
    (void)state;
    static struct seen seen;
    seen_init(&seen);
    for (uint64_t i = 1; i <= 1000000; i++) {
        assert_int_equal(seen_put(&seen, fingerprint_of(i)), ERR_OK);
        if (i >= 100000) {
            assert_true(seen.memory_size <= 13 * i);
            seen.memory_peak = i % 1000 == 0 ? seen.memory_size : seen.memory_peak;
            assert_true(seen.memory_peak <= 13 * i);
        }
    }
    seen_done(&seen);
}

static void fingerprints_depend_on_the_key(void **state) {
    (void)state;
    struct bytes url = BYTES("http://example.org/");
    assert_int_equal(seen_fingerprint(url, 1), seen_fingerprint(url, 1));
    assert_int_not_equal(seen_fingerprint(url, 1), seen_fingerprint(url, 2));
    assert_int_not_equal(seen_fingerprint(url, 1), seen_fingerprint(BYTES("http://example.org/a"), 1));
}

static void without_memory_nothing_changes(void **state) {
    (void)state;
    static struct seen seen;
    seen_init(&seen);
    uint64_t i = 0;
    for (; i < 100; i++) { /* all in one table */
        assert_int_equal(seen_put(&seen, i + 1), ERR_OK);
    }
    allocations_left = 0;
    enum err err = ERR_OK;
    while ((err = seen_put(&seen, i + 1)) == ERR_OK) {
        i++;
    }
    allocations_left = SIZE_MAX;
    assert_int_equal(err, ERR_MEMORY);
    assert_int_equal(seen.count, i);
    assert_false(seen_has(&seen, i + 1));
    assert_true(seen_has(&seen, 1) && seen_has(&seen, i));
    assert_int_equal(seen_put(&seen, i + 1), ERR_OK);
    seen_done(&seen);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_was_put_and_nothing_else),
        cmocka_unit_test(copes_with_neighbours),
        cmocka_unit_test(takes_at_most_13_bytes_each_at_every_size),
        cmocka_unit_test(fingerprints_depend_on_the_key),
        cmocka_unit_test(without_memory_nothing_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
