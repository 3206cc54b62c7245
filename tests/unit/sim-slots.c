#include "sim/world/slots.h"

#include "unit.h"

static const struct disk_dials kind = {0};
static const struct disk_dials cruel = {
    .write_lost_ppm = 500000, .write_torn_ppm = 500000, .entry_lost_ppm = 500000};

static struct slots *make(const struct disk_dials *dials, uint64_t seed) {
    struct slots *slots = slots_new(2, dials, seed);
    assert_non_null(slots);
    return slots;
}

static void put(struct slots *slots, uint32_t slot, uint64_t number, const char *text) {
    assert_int_equal(slots_put(slots, slot, number, bytes_of_string(text)), ERR_OK);
}

static void save(struct slots *slots, uint32_t slot, const char *text) {
    put(slots, slot, 1, text);
    assert_true(slots_begin(slots));
    assert_int_equal(slots_commit(slots), ERR_OK);
    uint32_t saved_slot;
    uint64_t number;
    while (slots_next_saved(slots, &saved_slot, &number)) {
    }
}

static bool holds(struct slots *slots, uint32_t slot, const char *text) {
    struct buf found;
    buf_init(&found, 1 << 20);
    enum err err = slots_restore(slots, slot, &found);
    bool is_equal = err == ERR_OK && bytes_equal(buf_bytes(&found), bytes_of_string(text));
    buf_done(&found);
    return is_equal;
}

static void holds_the_old_or_the_new_contents_after_any_crash(void **state) {
    (void)state;
    unsigned new_count = 0;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct slots *slots = make(&cruel, seed);
        save(slots, 0, "old contents of the slot");
        put(slots, 0, 2, "new");
        assert_true(slots_begin(slots));
        assert_int_equal(slots_crash(slots), ERR_OK);
        bool is_new = holds(slots, 0, "new");
        assert_true(is_new || holds(slots, 0, "old contents of the slot"));
        new_count += is_new;
        slots_free(slots);
    }
    assert_in_range(new_count, 200, 1800); /* both happen */
}

static void keeps_what_was_saved_through_any_crash(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct slots *slots = make(&cruel, seed);
        save(slots, 0, "first");
        save(slots, 0, "second");
        save(slots, 1, "other");
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(slots_crash(slots), ERR_OK);
            assert_true(holds(slots, 0, "second") && holds(slots, 1, "other"));
        }
        slots_free(slots);
    }
}

static void replaces_what_waits_and_reports_in_order(void **state) {
    (void)state;
    struct slots *slots = make(&kind, 1);
    put(slots, 1, 10, "a");
    assert_true(slots_begin(slots));
    put(slots, 0, 11, "b");
    put(slots, 1, 12, "c");
    put(slots, 0, 13, "d");
    assert_false(slots_begin(slots)); /* one group at a time */
    uint32_t slot;
    uint64_t number;
    assert_int_equal(slots_commit(slots), ERR_OK);
    assert_true(slots_next_saved(slots, &slot, &number) && slot == 1 && number == 10);
    assert_false(slots_next_saved(slots, &slot, &number));
    assert_true(holds(slots, 1, "a"));
    assert_true(slots_begin(slots));
    assert_int_equal(slots_commit(slots), ERR_OK);
    assert_true(slots_next_saved(slots, &slot, &number) && slot == 1 && number == 12);
    assert_true(slots_next_saved(slots, &slot, &number) && slot == 0 && number == 13);
    assert_false(slots_next_saved(slots, &slot, &number));
    assert_true(holds(slots, 0, "d") && holds(slots, 1, "c"));
    assert_false(slots_begin(slots)); /* nothing waits */
    slots_free(slots);
}

/* Fail the 1st, 2nd, 3rd … call until a save is clean: each time the old contents stay, then it works. */
static void can_be_tried_again_after_any_failed_call(void **state) {
    (void)state;
    unsigned failures_count = 0;
    for (uint64_t nth = 1;; nth++) {
        struct slots *slots = make(&kind, nth);
        save(slots, 0, "old");
        put(slots, 0, 2, "new");
        assert_true(slots_begin(slots));
        disk_fail_after(&slots->disk, nth, ERR_NO_SPACE);
        enum err err = slots_commit(slots);
        if (err != ERR_OK) {
            failures_count++;
            assert_int_equal(err, ERR_NO_SPACE);
            assert_int_equal(slots_commit(slots), ERR_OK);
        }
        assert_true(holds(slots, 0, "new"));
        slots_free(slots);
        if (err == ERR_OK) {
            break;
        }
    }
    assert_int_equal(failures_count, 5); /* create, write, sync, rename, sync of the directory */
}

static void notices_a_rotten_slot(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) { /* wherever the bit is */
        struct slots *slots = make(&kind, seed);
        save(slots, 0, "sound");
        assert_int_equal(disk_rot(&slots->disk, 1000000), 1);
        struct buf found;
        buf_init(&found, 100);
        assert_int_equal(slots_restore(slots, 0, &found), ERR_CORRUPT);
        assert_int_equal(slots_restore(slots, 1, &found), ERR_NOT_FOUND);
        assert_int_equal(found.size, 0);
        assert_int_equal(slots->corrupt_count, 1);
        buf_done(&found);
        slots_free(slots);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_the_old_or_the_new_contents_after_any_crash),
        cmocka_unit_test(keeps_what_was_saved_through_any_crash),
        cmocka_unit_test(replaces_what_waits_and_reports_in_order),
        cmocka_unit_test(can_be_tried_again_after_any_failed_call),
        cmocka_unit_test(notices_a_rotten_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
