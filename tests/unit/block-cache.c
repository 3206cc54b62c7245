/* block_cache: what was put last is found, as it was put last, until it has no reference or all is cleared.
 */
#include "store/index/block_cache.h"

#include <stdlib.h>

#include "base/prng.h"
#include "unit.h"

static void make_digest(uint64_t number, uint8_t digest[KEY_DIGEST_SIZE]) {
    struct prng prng;
    prng_init(&prng, number);
    prng_fill(&prng, digest, KEY_DIGEST_SIZE);
}

static void put(struct block_cache *cache, uint64_t number, int32_t references) {
    uint8_t digest[KEY_DIGEST_SIZE];
    make_digest(number, digest);
    struct block block = {.location = {.segment = 256, .offset = number}, .references = references};
    block_cache_put(cache, digest, &block);
}

/* Its references; 0 where it is not there. */
static int32_t find(struct block_cache *cache, uint64_t number) {
    uint8_t digest[KEY_DIGEST_SIZE];
    struct block block;
    make_digest(number, digest);
    if (!block_cache_find(cache, digest, &block)) {
        return 0;
    }
    assert_int_equal(block.location.offset, number);
    return block.references;
}

static void finds_what_was_put_last(void **state) {
    struct block_cache *cache = block_cache_new();
    (void)state;
    assert_non_null(cache);
    assert_int_equal(find(cache, 1), 0);
    put(cache, 1, 1);
    put(cache, 2, 1);
    put(cache, 1, 5);
    assert_int_equal(find(cache, 1), 5);
    assert_int_equal(find(cache, 2), 1);
    assert_int_equal(find(cache, 3), 0);
    block_cache_free(cache);
}

static void forgets_what_nobody_refers_to(void **state) {
    struct block_cache *cache = block_cache_new();
    (void)state;
    put(cache, 1, 1);
    put(cache, 2, 1);
    put(cache, 1, 0);
    put(cache, 3, -1);
    assert_int_equal(find(cache, 1), 0);
    assert_int_equal(find(cache, 2), 1);
    assert_int_equal(find(cache, 3), 0);
    block_cache_clear(cache);
    assert_int_equal(find(cache, 2), 0);
    put(cache, 1, 7);
    assert_int_equal(find(cache, 1), 7);
    assert_int_equal(find(cache, 2), 0);
    block_cache_free(cache);
}

/* Two that agree in all that the set is chosen by are still two. */
static void compares_whole_signatures(void **state) {
    struct block_cache *cache = block_cache_new();
    uint8_t a[KEY_DIGEST_SIZE] = {1};
    uint8_t b[KEY_DIGEST_SIZE] = {1, [KEY_DIGEST_SIZE - 1] = 1};
    struct block block = {.references = 1};
    (void)state;
    block_cache_put(cache, a, &block);
    assert_false(block_cache_find(cache, b, &block));
    block.references = 2;
    block_cache_put(cache, b, &block);
    assert_true(block_cache_find(cache, a, &block));
    assert_int_equal(block.references, 1);
    block_cache_free(cache);
}

static void the_oldest_make_room(void **state) {
    enum { COUNT = 2 * BLOCK_CACHE_WAYS * BLOCK_CACHE_SETS_COUNT, NEW_COUNT = BLOCK_CACHE_SETS_COUNT / 2 };
    struct block_cache *cache = block_cache_new();
    size_t found_count = 0;
    (void)state;
    for (uint64_t i = 0; i < COUNT; i++) {
        put(cache, i, 1);
        assert_int_equal(find(cache, i), 1);
    }
    for (uint64_t i = COUNT - NEW_COUNT; i < COUNT; i++) {
        found_count += find(cache, i) == 1;
    }
    assert_true(found_count > NEW_COUNT * 99 / 100); /* of half as many as there are sets */
    block_cache_free(cache);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_was_put_last),
        cmocka_unit_test(forgets_what_nobody_refers_to),
        cmocka_unit_test(compares_whole_signatures),
        cmocka_unit_test(the_oldest_make_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
