#include "base/buf.h"

#include <stdlib.h>

#include "aborts.h"
#include "allocations.h"
#include "unit.h"

enum { SIZE_LIMIT = 300 };

static int make(void **state) {
    struct buf *buf = malloc(sizeof *buf);
    if (buf == NULL) {
        return -1;
    }
    buf_init(buf, SIZE_LIMIT);
    *state = buf;
    return 0;
}

static int destroy(void **state) {
    allocations_left = SIZE_MAX;
    buf_done(*state);
    free(*state);
    return 0;
}

static void fill(struct buf *buf, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(buf_put_byte(buf, (uint8_t)i), ERR_OK);
    }
}

static void keeps_what_was_put_in_order(void **state) {
    struct buf *buf = *state;
    assert_int_equal(buf_put(buf, BYTES("ab")), ERR_OK);
    assert_int_equal(buf_put(buf, bytes_of(NULL, 0)), ERR_OK);
    assert_int_equal(buf_put_byte(buf, 0), ERR_OK);
    assert_int_equal(buf_put_string(buf, "cd"), ERR_OK);
    assert_int_equal(buf_put_u64(buf, 0), ERR_OK);
    assert_int_equal(buf_put_u64(buf, UINT64_MAX), ERR_OK);
    assert_int_equal(buf_put_format(buf, "%d-%s", -5, "x"), ERR_OK);
    assert_bytes_equal(buf_bytes(buf), BYTES("ab\0cd018446744073709551615-5-x"));
}

static void allocates_nothing_until_the_first_byte(void **state) {
    struct buf *buf = *state;
    assert_int_equal(buf_put(buf, bytes_of(NULL, 0)), ERR_OK);
    assert_int_equal(buf_reserve(buf, 0), ERR_OK);
    assert_null(buf->data);
    assert_int_equal(buf_bytes(buf).size, 0);
}

static void takes_exactly_its_maximum(void **state) {
    struct buf *buf = *state;
    fill(buf, SIZE_LIMIT);
    assert_int_equal(buf_put_byte(buf, 'x'), ERR_LIMIT);
    assert_int_equal(buf->err, ERR_LIMIT);
    assert_int_equal(buf->size, SIZE_LIMIT);
    for (size_t i = 0; i < SIZE_LIMIT; i++) {
        assert_int_equal(buf->data[i], (uint8_t)i);
    }
}

static void refuses_sizes_that_would_wrap(void **state) {
    struct buf *buf = *state;
    fill(buf, 2);
    assert_int_equal(buf_reserve(buf, SIZE_MAX), ERR_LIMIT);
    assert_int_equal(buf->size, 2);
}

static void first_error_sticks_until_cleared(void **state) {
    struct buf *buf = *state;
    fill(buf, SIZE_LIMIT - 1);
    assert_int_equal(buf_put(buf, BYTES("xy")), ERR_LIMIT);
    assert_int_equal(buf_put_byte(buf, 'x'), ERR_LIMIT); /* would fit, but the gap would go unnoticed */
    assert_int_equal(buf_put_string(buf, ""), ERR_LIMIT);
    assert_int_equal(buf_put_u64(buf, 1), ERR_LIMIT);
    assert_int_equal(buf_put_format(buf, "%d", 1), ERR_LIMIT);
    assert_int_equal(buf_reserve(buf, 0), ERR_LIMIT);
    assert_null(buf_string(buf));
    assert_int_equal(buf->size, SIZE_LIMIT - 1);
    buf_clear(buf);
    assert_int_equal(buf->size, 0);
    fill(buf, SIZE_LIMIT);
}

static void formats_texts_of_any_length_up_to_the_maximum(void **state) {
    struct buf *buf = *state;
    for (int width = 1; width <= SIZE_LIMIT; width++) {
        buf_clear(buf);
        assert_int_equal(buf_put_format(buf, "%*d", width, 7), ERR_OK);
        assert_int_equal(buf->size, width);
        assert_int_equal(buf->data[width - 1], '7');
    }
    buf_clear(buf);
    assert_int_equal(buf_put_format(buf, "%*d", SIZE_LIMIT + 1, 7), ERR_LIMIT);
    assert_int_equal(buf->size, 0);
}

static void string_ends_in_a_zero_byte_that_does_not_count(void **state) {
    struct buf *buf = *state;
    assert_string_equal(buf_string(buf), "");
    assert_int_equal(buf->size, 0);
    for (size_t i = 0; i < SIZE_LIMIT; i++) { /* every capacity, and the maximum itself */
        assert_int_equal(buf_put_byte(buf, 'a'), ERR_OK);
        assert_int_equal(strlen(buf_string(buf)), i + 1);
        assert_int_equal(buf->size, i + 1);
    }
}

static void reserved_room_may_be_written_directly(void **state) {
    struct buf *buf = *state;
    fill(buf, 3);
    assert_int_equal(buf_reserve(buf, SIZE_LIMIT - 3), ERR_OK);
    memset(buf->data + buf->size, 'r', SIZE_LIMIT - 3);
    buf->size = SIZE_LIMIT;
    assert_int_equal(buf_reserve(buf, 1), ERR_LIMIT);
}

static void truncates_and_consumes_at_either_end(void **state) {
    struct buf *buf = *state;
    buf_consume(buf, 0); /* of an empty buffer without memory */
    buf_truncate(buf, 0);
    buf_put_string(buf, "abcdef");
    buf_truncate(buf, 5);
    buf_consume(buf, 1);
    assert_bytes_equal(buf_bytes(buf), BYTES("bcde"));
    buf_consume(buf, 1);
    buf_consume(buf, 0);
    assert_bytes_equal(buf_bytes(buf), BYTES("cde"));
    buf_consume(buf, 3);
    assert_int_equal(buf->size, 0);
    assert_int_equal(buf_put_string(buf, "again"), ERR_OK);
    assert_bytes_equal(buf_bytes(buf), BYTES("again"));
}

static void truncate_upwards(void *buf) {
    buf_truncate(buf, 1);
}

static void consume_too_much(void *buf) {
    buf_consume(buf, 1);
}

static void aborts_where_more_goes_than_is_there(void **state) {
    assert_true(aborts(truncate_upwards, *state, "size <= buf->size"));
    assert_true(aborts(consume_too_much, *state, "count <= buf->size"));
}

static void clearing_keeps_the_memory(void **state) {
    struct buf *buf = *state;
    fill(buf, 100);
    const uint8_t *data = buf->data;
    buf_clear(buf);
    fill(buf, 100);
    assert_ptr_equal(buf->data, data);
}

static void is_usable_again_after_done(void **state) {
    struct buf *buf = *state;
    fill(buf, 10);
    buf_done(buf);
    assert_null(buf->data);
    fill(buf, SIZE_LIMIT);
    assert_int_equal(buf_put_byte(buf, 'x'), ERR_LIMIT);
}

static void out_of_memory_sticks_and_keeps_what_was_there(void **state) {
    struct buf *buf = *state;
    fill(buf, 64);
    allocations_left = 0;
    assert_int_equal(buf_put_byte(buf, 'x'), ERR_MEMORY);
    allocations_left = SIZE_MAX;
    assert_int_equal(buf_put_byte(buf, 'x'), ERR_MEMORY);
    assert_null(buf_string(buf));
    assert_int_equal(buf->size, 64);
    assert_int_equal(buf->data[63], 63);
}

static void long_format_survives_running_out_of_memory(void **state) {
    struct buf *buf = *state;
    allocations_left = 0;
    assert_int_equal(buf_put_format(buf, "%*d", 290, 7), ERR_MEMORY);
    assert_int_equal(buf->size, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keeps_what_was_put_in_order, make, destroy),
        cmocka_unit_test_setup_teardown(allocates_nothing_until_the_first_byte, make, destroy),
        cmocka_unit_test_setup_teardown(takes_exactly_its_maximum, make, destroy),
        cmocka_unit_test_setup_teardown(refuses_sizes_that_would_wrap, make, destroy),
        cmocka_unit_test_setup_teardown(first_error_sticks_until_cleared, make, destroy),
        cmocka_unit_test_setup_teardown(formats_texts_of_any_length_up_to_the_maximum, make, destroy),
        cmocka_unit_test_setup_teardown(string_ends_in_a_zero_byte_that_does_not_count, make, destroy),
        cmocka_unit_test_setup_teardown(reserved_room_may_be_written_directly, make, destroy),
        cmocka_unit_test_setup_teardown(truncates_and_consumes_at_either_end, make, destroy),
        cmocka_unit_test_setup_teardown(aborts_where_more_goes_than_is_there, make, destroy),
        cmocka_unit_test_setup_teardown(clearing_keeps_the_memory, make, destroy),
        cmocka_unit_test_setup_teardown(is_usable_again_after_done, make, destroy),
        cmocka_unit_test_setup_teardown(out_of_memory_sticks_and_keeps_what_was_there, make, destroy),
        cmocka_unit_test_setup_teardown(long_format_survives_running_out_of_memory, make, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
