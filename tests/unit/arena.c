#include "base/arena.h"

#include <stdalign.h>

#include "aborts.h"
#include "allocations.h"
#include "base/prng.h"
#include "unit.h"

enum { PIECES_COUNT = 2000 };

static const size_t alignment = alignof(max_align_t);

static bool is_zero(const uint8_t *data, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (data[i] != 0) {
            return false;
        }
    }
    return true;
}

/* Take pieces of random sizes, check each when it is given out, and all of them again at the end. */
static void take_many(struct arena *arena, uint64_t seed) {
    struct prng prng;
    prng_init(&prng, seed);
    static struct bytes pieces[PIECES_COUNT];
    for (size_t i = 0; i < PIECES_COUNT; i++) {
        size_t size = prng_below(&prng, prng_chance_ppm(&prng, 20000) ? 30000 : 100);
        uint8_t *piece = arena_take(arena, size);
        assert_non_null(piece);
        assert_int_equal((uintptr_t)piece % alignment, 0);
        assert_true(is_zero(piece, size));
        memset(piece, (int)(i % 255 + 1), size);
        pieces[i] = bytes_of(piece, size);
    }
    for (size_t i = 0; i < PIECES_COUNT; i++) {
        for (size_t j = 0; j < pieces[i].size; j++) {
            assert_int_equal(pieces[i].data[j], i % 255 + 1);
        }
    }
}

static void pieces_are_zeroed_aligned_and_apart(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena, 64 << 20);
    take_many(&arena, 1);
    arena_done(&arena);
}

static void pieces_are_zeroed_again_after_a_reset(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena, 64 << 20);
    for (uint64_t round = 1; round <= 3; round++) {
        take_many(&arena, round);
        arena_reset(&arena);
        assert_int_equal(arena.used, 0);
    }
    arena_done(&arena);
}

static void reset_keeps_one_block_for_reuse(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena, 1 << 20);
    arena_reset(&arena); /* of an arena that has nothing yet */
    assert_non_null(arena_take(&arena, 1000));
    arena_reset(&arena);
    size_t before = allocations_count;
    assert_non_null(arena_take(&arena, 4000));
    assert_int_equal(allocations_count, before);
    arena_done(&arena);
}

static void blocks_grow_so_that_few_are_allocated(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena, 16 << 20);
    size_t before = allocations_count;
    for (size_t i = 0; i < (16 << 20) / alignment; i++) {
        assert_non_null(arena_take(&arena, alignment));
    }
    assert_in_range(allocations_count - before, 9, 32); /* doubling from 4 KiB to 1 MiB, then 1 MiB each */
    arena_done(&arena);
}

static void gives_out_exactly_its_maximum(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena, 4 * alignment);
    assert_non_null(arena_take(&arena, 1)); /* padded to one unit */
    assert_null(arena_take(&arena, 3 * alignment + 1));
    assert_non_null(arena_take(&arena, 3 * alignment));
    assert_null(arena_take(&arena, 1));
    assert_int_equal(arena.used, 4 * alignment);
    arena_reset(&arena);
    assert_null(arena_take(&arena, 4 * alignment + 1));
    assert_non_null(arena_take(&arena, 4 * alignment));
    arena_done(&arena);
}

static void refuses_sizes_that_would_wrap_whatever_the_maximum(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena, SIZE_MAX);
    for (size_t below = 0; below < 64; below++) {
        assert_null(arena_take(&arena, SIZE_MAX - below));
    }
    assert_null(arena_take_array(&arena, SIZE_MAX / 2 + 1, 2));
    assert_null(arena_take_array(&arena, 3, SIZE_MAX / 2));
    assert_null(arena_copy(&arena, bytes_of("", SIZE_MAX)).data);
    assert_int_equal(arena.used, 0);
    assert_non_null(arena_take_array(&arena, 3, 5));
    arena_done(&arena);
}

static void piece_of_no_bytes_has_an_address(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena, 100);
    assert_non_null(arena_take(&arena, 0));
    assert_non_null(arena_take_array(&arena, 0, 8));
    assert_int_equal(arena.used, 0);
    arena_done(&arena);
}

static void copies_with_a_zero_byte_that_does_not_count(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena, 1000);
    struct bytes text = BYTES("exactly 16 bytes");
    struct bytes copy = arena_copy(&arena, text);
    assert_bytes_equal(copy, text);
    assert_ptr_not_equal(copy.data, text.data);
    assert_int_equal(copy.data[copy.size], 0);
    struct bytes empty = arena_copy(&arena, bytes_of(NULL, 0));
    assert_non_null(empty.data);
    assert_int_equal(empty.size, 0);
    assert_int_equal(empty.data[0], 0);
    arena_done(&arena);
}

static void copy_that_does_not_fit_has_no_data(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena, 16);
    struct bytes copy = arena_copy(&arena, BYTES("exactly 16 bytes")); /* and its zero byte */
    assert_null(copy.data);
    assert_int_equal(copy.size, 0);
    assert_non_null(arena_copy(&arena, BYTES("only 15 bytes..")).data);
    arena_done(&arena);
}

static void out_of_memory_gives_null_and_leaves_the_arena_usable(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena, 1 << 20);
    allocations_left = 0;
    assert_null(arena_take(&arena, 1));
    assert_null(arena_take(&arena, 0));
    allocations_left = 1;
    uint8_t *first = arena_take(&arena, 4096);
    assert_non_null(first);
    assert_null(arena_take(&arena, 4096));
    allocations_left = SIZE_MAX;
    assert_non_null(arena_take(&arena, 4096));
    assert_true(is_zero(first, 4096));
    assert_int_equal(arena.used, 8192);
    arena_done(&arena);
}

static void is_usable_again_after_done(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena, 32);
    assert_non_null(arena_take(&arena, 32));
    arena_done(&arena);
    assert_non_null(arena_take(&arena, 32));
    assert_null(arena_take(&arena, 1));
    arena_done(&arena);
}

struct owner {
    struct arena arena;
    uint8_t *piece;
};

static void owner_lies_in_its_own_arena(void **state) {
    (void)state;
    struct owner *owner = arena_new(sizeof *owner, 8192);
    assert_non_null(owner);
    owner->piece = arena_take(&owner->arena, 4096);
    assert_non_null(owner->piece);
    assert_false(owner->arena.is_short);
    assert_null(arena_take(&owner->arena, 4096));
    assert_true(owner->arena.is_short);
    arena_free(owner);
    arena_free(NULL);
    assert_null(arena_new(sizeof *owner, sizeof *owner - 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_zeroed_aligned_and_apart),
        cmocka_unit_test(pieces_are_zeroed_again_after_a_reset),
        cmocka_unit_test(reset_keeps_one_block_for_reuse),
        cmocka_unit_test(blocks_grow_so_that_few_are_allocated),
        cmocka_unit_test(gives_out_exactly_its_maximum),
        cmocka_unit_test(refuses_sizes_that_would_wrap_whatever_the_maximum),
        cmocka_unit_test(piece_of_no_bytes_has_an_address),
        cmocka_unit_test(copies_with_a_zero_byte_that_does_not_count),
        cmocka_unit_test(copy_that_does_not_fit_has_no_data),
        cmocka_unit_test(out_of_memory_gives_null_and_leaves_the_arena_usable),
        cmocka_unit_test(is_usable_again_after_done),
        cmocka_unit_test(owner_lies_in_its_own_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
