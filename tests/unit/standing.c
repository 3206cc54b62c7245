#include "base/standing.h"

#include "unit.h"

static struct bytes name(const uint32_t *number) {
    return bytes_of(number, sizeof *number);
}

static void holds_until_its_time_has_passed(void **state) {
    (void)state;
    struct standing_entry entries[4] = {0};
    struct standing standing;
    standing_init(&standing, entries, 4, 7);
    assert_false(standing_holds(&standing, STANDING_SILENT, BYTES("a"), 10));
    assert_int_equal(standing_note(&standing, STANDING_SILENT, BYTES("a"), 10, 20), 1);
    assert_true(standing_holds(&standing, STANDING_SILENT, BYTES("a"), 19));
    assert_false(standing_holds(&standing, STANDING_SILENT, BYTES("a"), 20));
    assert_false(standing_holds(&standing, STANDING_SILENT, BYTES("b"), 19));
}

static void keeps_reasons_apart(void **state) {
    (void)state;
    struct standing_entry entries[4] = {0};
    struct standing standing;
    standing_init(&standing, entries, 4, 7);
    standing_note(&standing, STANDING_BUSY, BYTES("a"), 10, 20);
    assert_true(standing_holds(&standing, STANDING_BUSY, BYTES("a"), 11));
    assert_false(standing_holds(&standing, STANDING_DOUBTED, BYTES("a"), 11));
    assert_false(standing_clear(&standing, STANDING_DOUBTED, BYTES("a")));
    assert_true(standing_holds(&standing, STANDING_BUSY, BYTES("a"), 11));
}

static void counts_until_it_is_cleared(void **state) {
    (void)state;
    struct standing_entry entries[4] = {0};
    struct standing standing;
    standing_init(&standing, entries, 4, 7);
    standing_note(&standing, STANDING_DOUBTED, BYTES("a"), 10, 20);
    assert_int_equal(standing_note(&standing, STANDING_DOUBTED, BYTES("a"), 30, 40), 2);
    assert_int_equal(standing_count(&standing, STANDING_DOUBTED, BYTES("a")), 2);
    assert_true(standing_clear(&standing, STANDING_DOUBTED, BYTES("a")));
    assert_int_equal(standing_count(&standing, STANDING_DOUBTED, BYTES("a")), 0);
    assert_false(standing_holds(&standing, STANDING_DOUBTED, BYTES("a"), 31));
    assert_int_equal(standing.used_count, 0);
}

static void the_least_recently_noted_makes_room(void **state) {
    (void)state;
    struct standing_entry entries[3] = {0};
    struct standing standing;
    standing_init(&standing, entries, 3, 7);
    standing_note(&standing, STANDING_SILENT, BYTES("a"), 1, 100);
    standing_note(&standing, STANDING_SILENT, BYTES("b"), 2, 100);
    standing_note(&standing, STANDING_SILENT, BYTES("c"), 3, 100);
    standing_note(&standing, STANDING_SILENT, BYTES("a"), 4, 100);
    standing_note(&standing, STANDING_SILENT, BYTES("d"), 5, 100);
    assert_true(standing_holds(&standing, STANDING_SILENT, BYTES("a"), 6));
    assert_false(standing_holds(&standing, STANDING_SILENT, BYTES("b"), 6));
    assert_true(standing_holds(&standing, STANDING_SILENT, BYTES("c"), 6));
    assert_true(standing_holds(&standing, STANDING_SILENT, BYTES("d"), 6));
}

static void what_is_over_makes_room_first(void **state) {
    (void)state;
    struct standing_entry entries[2] = {0};
    struct standing standing;
    standing_init(&standing, entries, 2, 7);
    standing_note(&standing, STANDING_DOUBTED, BYTES("a"), 1, 1000);
    standing_note(&standing, STANDING_SILENT, BYTES("b"), 2, 10);
    standing_note(&standing, STANDING_SILENT, BYTES("c"), 20, 30);
    assert_true(standing_holds(&standing, STANDING_DOUBTED, BYTES("a"), 21));
    assert_true(standing_holds(&standing, STANDING_SILENT, BYTES("c"), 21));
    assert_int_equal(standing_count(&standing, STANDING_SILENT, BYTES("b")), 0);
}

static void a_flood_stays_within_its_memory(void **state) {
    (void)state;
    static struct standing_entry entries[256];
    struct standing standing;
    uint32_t held_count = 0;
    standing_init(&standing, entries, 256, 7);
    for (uint32_t i = 0; i < 10000; i++) {
        standing_note(&standing, STANDING_SILENT, name(&i), i, UINT64_MAX);
        assert_true(standing_holds(&standing, STANDING_SILENT, name(&i), i));
    }
    for (uint32_t i = 0; i < 10000; i++) {
        held_count += standing_holds(&standing, STANDING_SILENT, name(&i), 10000);
    }
    assert_int_equal(held_count, 256);
    assert_int_equal(standing.used_count, 256);
}

static void a_table_of_one_group_is_full_before_anything_goes(void **state) {
    (void)state;
    struct standing_entry entries[STANDING_GROUP_SIZE] = {0};
    struct standing standing;
    standing_init(&standing, entries, STANDING_GROUP_SIZE, 7);
    for (uint32_t i = 0; i < STANDING_GROUP_SIZE; i++) {
        standing_note(&standing, STANDING_SILENT, name(&i), i, 1000);
    }
    for (uint32_t i = 0; i < STANDING_GROUP_SIZE; i++) {
        assert_true(standing_holds(&standing, STANDING_SILENT, name(&i), 100));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_until_its_time_has_passed),
        cmocka_unit_test(keeps_reasons_apart),
        cmocka_unit_test(counts_until_it_is_cleared),
        cmocka_unit_test(the_least_recently_noted_makes_room),
        cmocka_unit_test(what_is_over_makes_room_first),
        cmocka_unit_test(a_flood_stays_within_its_memory),
        cmocka_unit_test(a_table_of_one_group_is_full_before_anything_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
