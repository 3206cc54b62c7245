#include "sim/experiments/copies_lines.h"

#include "unit.h"

struct heard {
    uint64_t done_us[8]; /* by tag, of those that were cut */
    uint64_t end_us[8];  /* of those that moved */
    unsigned cut_count;
    unsigned moved_count;
};

static void hear_cut(void *context, const struct copies_transfer *transfer, uint64_t done_us) {
    struct heard *heard = context;
    heard->done_us[transfer->tag] = done_us;
    heard->cut_count++;
}

static void hear_moved(void *context, const struct copies_transfer *transfer) {
    struct heard *heard = context;
    heard->end_us[transfer->tag] = transfer->end_us;
    heard->moved_count++;
}

static uint64_t add(struct copies_lines *lines, uint32_t tag, uint32_t giver, uint32_t taker,
                    uint64_t now_us) {
    struct copies_transfer transfer = {.tag = tag, .giver = giver, .taker = taker};
    uint64_t end_us;
    assert_int_equal(copies_lines_add(lines, &transfer, 100, now_us, &end_us), ERR_OK);
    return end_us;
}

static void carries_one_at_a_time_in_either_direction(void **state) {
    (void)state;
    struct copies_lines lines;
    assert_int_equal(copies_lines_init(&lines, 4), ERR_OK);
    assert_int_equal(add(&lines, 0, 0, 1, 1000), 1100);
    assert_int_equal(add(&lines, 1, 0, 2, 1000), 1200); /* its giver is busy */
    assert_int_equal(add(&lines, 2, 3, 1, 1000), 1200); /* its taker is */
    assert_int_equal(add(&lines, 3, 1, 0, 1000), 1100); /* the other direction */
    copies_lines_remove(&lines, 0);
    assert_int_equal(lines.count, 3);
    copies_lines_done(&lines);
}

static void moves_up_what_waited_for_a_node_that_fell(void **state) {
    (void)state;
    struct copies_lines lines;
    struct heard heard = {0};
    struct copies_lines_calls calls = {hear_cut, hear_moved, &heard};
    assert_int_equal(copies_lines_init(&lines, 4), ERR_OK);
    (void)add(&lines, 0, 0, 1, 1000); /* 1000 to 1100 */
    (void)add(&lines, 1, 0, 1, 1000); /* to 1200 */
    (void)add(&lines, 2, 0, 2, 1000); /* to 1300 */
    (void)add(&lines, 3, 3, 2, 1000); /* to 1400 */
    copies_lines_cut(&lines, 1, 1030, &calls);
    assert_int_equal(heard.cut_count, 2);
    assert_int_equal(heard.done_us[0], 30);
    assert_int_equal(heard.done_us[1], 0);
    assert_int_equal(heard.moved_count, 2);
    assert_int_equal(heard.end_us[2], 1130);
    assert_int_equal(heard.end_us[3], 1230);
    copies_lines_cut(&lines, 3, 1050, &calls); /* what is under way goes on */
    assert_int_equal(heard.cut_count, 3);
    assert_int_equal(heard.moved_count, 2);
    assert_int_equal(add(&lines, 4, 0, 3, 1050), 1230);
    copies_lines_done(&lines);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(carries_one_at_a_time_in_either_direction),
        cmocka_unit_test(moves_up_what_waited_for_a_node_that_fell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
