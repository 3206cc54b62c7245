/* turns: own arcs come first but not alone; copies are given to one taker after the other. */
#include "protocol/copies/transfer_order.h"

#include "unit.h"

static const uint64_t SECOND = 1000000;

static struct peer taker(uint8_t number) {
    return (struct peer){.address = address_ipv4(192, 0, 2, number, 7070), .key = {number}};
}

static bool takes(struct transfer_order_giving *giving, uint8_t number, uint64_t now_us) {
    struct peer peer = taker(number);
    return transfer_order_may_take(giving, &peer, now_us);
}

static void own_arcs_come_first_and_others_get_every_fourth_turn(void **state) {
    struct transfer_order_queue queue = {0};
    uint32_t own_count = 0;
    (void)state;
    for (unsigned i = 0; i < 40; i++) {
        enum transfer_order_lane lane = transfer_order_next(&queue, true, true);
        own_count += lane == TRANSFER_ORDER_OWN;
        transfer_order_took(&queue, lane);
    }
    assert_int_equal(own_count, 30);
}

static void where_only_one_has_something_it_is_next(void **state) {
    struct transfer_order_queue queue = {0};
    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(transfer_order_next(&queue, true, false), TRANSFER_ORDER_OWN);
        transfer_order_took(&queue, TRANSFER_ORDER_OWN);
    }
    assert_int_equal(transfer_order_next(&queue, false, true), TRANSFER_ORDER_OFFERED);
    assert_int_equal(transfer_order_next(&queue, true, true),
                     TRANSFER_ORDER_OFFERED); /* it has waited for ten turns */
}

static void gives_to_one_until_he_has_what_he_wanted(void **state) {
    struct transfer_order_giving giving = {0};
    (void)state;
    assert_true(takes(&giving, 1, SECOND));
    assert_false(takes(&giving, 2, SECOND + 1));
    assert_true(takes(&giving, 1, SECOND + 2));
    assert_false(takes(&giving, 2, 2 * SECOND + 1));
    assert_true(takes(&giving, 2, 2 * SECOND + 2)); /* the first has not asked for a second */
    assert_false(takes(&giving, 1, 2 * SECOND + 3));
}

static void who_takes_long_leaves_it_to_one_who_waits(void **state) {
    struct transfer_order_giving giving = {0};
    (void)state;
    for (uint64_t now_us = SECOND; now_us < 61 * SECOND; now_us += SECOND / 2) {
        assert_true(takes(&giving, 1, now_us));
        assert_false(takes(&giving, 2, now_us + 1));
    }
    assert_false(takes(&giving, 1, 61 * SECOND));
    assert_false(takes(&giving, 1, 61 * SECOND + SECOND / 2));
    assert_true(takes(&giving, 2, 62 * SECOND));
    assert_false(takes(&giving, 1, 62 * SECOND + 1));
}

static void who_is_alone_goes_on(void **state) {
    struct transfer_order_giving giving = {0};
    (void)state;
    for (uint64_t now_us = SECOND; now_us < 600 * SECOND; now_us += SECOND / 2) {
        assert_true(takes(&giving, 1, now_us));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_arcs_come_first_and_others_get_every_fourth_turn),
        cmocka_unit_test(where_only_one_has_something_it_is_next),
        cmocka_unit_test(gives_to_one_until_he_has_what_he_wanted),
        cmocka_unit_test(who_takes_long_leaves_it_to_one_who_waits),
        cmocka_unit_test(who_is_alone_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
