#include "protocol/copies/custody.h"

#include <stdlib.h>

#include "unit.h"

enum { ITEMS = 8, PEERS = 2 };
static const uint64_t SECOND_US = 1000000;

struct fixture {
    struct custody *custody;
};

static int set_up(void **state) {
    struct custody_config config = {.items_max = ITEMS, .peers_max = PEERS};
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    void *memory = malloc(custody_size(&config));
    assert_non_null(memory);
    f->custody = custody_init(memory, &config);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;
    free(f->custody);
    free(f);
    return 0;
}

static struct peer peer_of(uint8_t number) {
    struct peer peer = {0};
    peer.key[0] = number;
    return peer;
}

static struct ringkey key_of(uint8_t number) {
    struct ringkey key = {0};
    key.bytes[0] = number;
    return key;
}

static bool add(struct fixture *f, uint8_t key, uint8_t peer, bool is_own, uint64_t now_us) {
    enum custody_kind kind = is_own ? CUSTODY_OWN : CUSTODY_OTHERS;
    struct ringkey ringkey = key_of(key);
    struct peer node = peer_of(peer);
    return custody_add(f->custody, &ringkey, &node, kind, now_us);
}

static void a_capture_is_asked_about_until_it_is_there(void **state) {
    struct fixture *f = *state;
    struct custody_item items[ITEMS];
    uint64_t now_us = SECOND_US;
    assert_true(custody_wake_at(f->custody) == UINT64_MAX);
    assert_true(add(f, 1, 1, true, now_us));
    assert_int_equal(custody_count(f->custody, CUSTODY_OWN), 1);
    assert_true(custody_wake_at(f->custody) == now_us); /* at once */
    assert_int_equal(custody_due(f->custody, now_us, items, ITEMS), 1);
    assert_true(items[0].kind == CUSTODY_OWN && items[0].key.bytes[0] == 1 && items[0].peer.key[0] == 1);
    assert_true(ringkey_compare(custody_key(f->custody, items[0].index), &items[0].key) == 0);
    assert_true(custody_wake_at(f->custody) == UINT64_MAX); /* as long as it is asked */
    custody_settle(f->custody, items[0].index, false, now_us);
    assert_int_equal(custody_due(f->custody, now_us, items, ITEMS), 0);
    uint64_t second_us = custody_wake_at(f->custody);
    assert_true(second_us > now_us && second_us <= now_us + 2 * SECOND_US);
    assert_int_equal(custody_due(f->custody, second_us, items, ITEMS), 1);
    custody_settle(f->custody, items[0].index, false, second_us);
    uint64_t third_us = custody_wake_at(f->custody);
    assert_true(third_us - second_us > second_us - now_us); /* less and less often */
    assert_int_equal(custody_count(f->custody, CUSTODY_OWN), 1);
    assert_int_equal(custody_due(f->custody, third_us, items, ITEMS), 1);
    custody_settle(f->custody, items[0].index, true, third_us);
    assert_int_equal(custody_count(f->custody, CUSTODY_OWN), 0);
    assert_int_equal(custody_due(f->custody, third_us + 3600 * SECOND_US, items, ITEMS), 0);
}

static void a_node_that_has_much_is_asked_about_the_rest_at_once(void **state) {
    struct fixture *f = *state;
    struct custody_item items[ITEMS];
    struct peer first = peer_of(1);
    uint64_t now_us = SECOND_US;
    for (uint8_t key = 1; key <= 4; key++) {
        assert_true(add(f, key, key < 4 ? 1 : 2, true, now_us));
    }
    for (unsigned i = 0; i < 6; i++) { /* both are silent for a while */
        size_t count;
        while ((count = custody_due(f->custody, now_us, items, ITEMS)) > 0) {
            for (size_t j = 0; j < count; j++) {
                custody_settle(f->custody, items[j].index, false, now_us);
            }
        }
        now_us = custody_wake_at(f->custody);
    }
    assert_int_equal(custody_due(f->custody, now_us, items, 1), 1);
    uint32_t out = items[0].index;
    custody_hurry(f->custody, &first, now_us - SECOND_US);
    custody_settle(f->custody, out, true, now_us);
    size_t count = custody_due(f->custody, now_us - SECOND_US, items, ITEMS);
    assert_int_equal(count, 2); /* of the other node nothing */
    for (size_t i = 0; i < count; i++) {
        assert_true(peer_key_equal(items[i].peer.key, first.key));
    }
    struct peer stranger = peer_of(9);
    custody_hurry(f->custody, &stranger, now_us);
}

static void a_silent_node_is_asked_within_a_bounded_time(void **state) {
    struct fixture *f = *state;
    struct custody_item items[ITEMS];
    assert_true(add(f, 1, 1, true, 0));
    for (unsigned i = 0; i < 400; i++) {
        uint64_t at_us = custody_wake_at(f->custody);
        assert_int_equal(custody_due(f->custody, at_us, items, ITEMS), 1);
        custody_settle(f->custody, items[0].index, false, at_us);
        assert_true(custody_wake_at(f->custody) - at_us <= 16 * SECOND_US);
    }
}

/* While one node does not answer, others are asked about theirs; the silent one is not asked twice at once.
 */
static void a_node_that_is_asked_keeps_nobody_waiting(void **state) {
    struct fixture *f = *state;
    struct custody_item items[ITEMS];
    struct custody_item others[ITEMS];
    assert_true(add(f, 1, 1, false, 0) && add(f, 2, 1, false, 0) && add(f, 3, 2, false, 0));
    assert_int_equal(custody_due(f->custody, 0, items, ITEMS), 2);
    assert_int_equal(items[0].peer.key[0], 1);
    assert_true(add(f, 4, 1, false, 0));
    assert_int_equal(custody_due(f->custody, 0, others, ITEMS), 1);
    assert_int_equal(others[0].peer.key[0], 2);
    assert_int_equal(custody_due(f->custody, SECOND_US, others, ITEMS), 0);
    custody_settle(f->custody, items[0].index, true, SECOND_US);
    custody_settle(f->custody, items[1].index, false, SECOND_US);
    assert_int_equal(custody_due(f->custody, SECOND_US, others, ITEMS), 1);
    assert_int_equal(others[0].key.bytes[0], 4);
}

static void what_is_only_told_is_told_once(void **state) {
    struct fixture *f = *state;
    struct custody_item items[ITEMS];
    struct ringkey key = key_of(1);
    struct peer peer = peer_of(1);
    assert_true(custody_add(f->custody, &key, &peer, CUSTODY_TOLD, 0));
    assert_int_equal(custody_due(f->custody, 0, items, ITEMS), 1);
    custody_settle(f->custody, items[0].index, false, 0);
    assert_int_equal(custody_count(f->custody, CUSTODY_TOLD), 0);
    assert_true(custody_wake_at(f->custody) == UINT64_MAX);
}

static void what_does_not_fit_is_refused_and_room_is_used_again(void **state) {
    struct fixture *f = *state;
    struct custody_item items[ITEMS];
    for (uint8_t i = 0; i < ITEMS; i++) {
        assert_true(add(f, i, i % PEERS, i % 2 == 0, 0));
    }
    assert_false(add(f, 100, 0, true, 0));
    assert_int_equal(custody_count(f->custody, CUSTODY_OWN), ITEMS / 2);
    assert_int_equal(custody_count(f->custody, CUSTODY_OTHERS), ITEMS / 2);
    assert_int_equal(custody_due(f->custody, 10 * SECOND_US, items, 3), 3);
    custody_settle(f->custody, items[0].index, false, 10 * SECOND_US);
    custody_settle(f->custody, items[1].index, true, 10 * SECOND_US);
    custody_settle(f->custody, items[2].index, false, 10 * SECOND_US);
    assert_true(custody_wake_at(f->custody) <= 10 * SECOND_US); /* the rest at once after it */
    assert_true(add(f, 100, 0, true, 0));
    struct ringkey gone = items[1].key;
    struct ringkey added = key_of(100);
    assert_false(custody_has(f->custody, &gone));
    assert_true(custody_has(f->custody, &added));
}

static void there_is_room_for_so_many_nodes(void **state) {
    struct fixture *f = *state;
    struct custody_item first;
    struct custody_item second;
    struct peer other = peer_of(9);
    assert_true(add(f, 1, 1, false, 0) && add(f, 2, 2, false, 0));
    assert_false(add(f, 3, 3, false, 0));
    assert_int_equal(custody_due(f->custody, 0, &first, 1), 1);
    assert_int_equal(custody_due(f->custody, 0, &second, 1), 1);
    assert_false(custody_move(f->custody, first.index, &other, 0)); /* still asked of the one before */
    custody_settle(f->custody, second.index, true, 0);              /* the place of that node is free now */
    assert_true(custody_move(f->custody, first.index, &other, 0));
    assert_int_equal(custody_due(f->custody, 0, &second, 1), 1); /* at once */
    assert_int_equal(second.peer.key[0], 9);
    assert_true(
        add(f, 4, 1, false, 0)); /* nothing is asked of node 1 any more, so its place is free as well */
}

struct seen {
    unsigned count;
    uint8_t keys;
};

static void see(void *context, const struct ringkey *key, const struct peer *peer) {
    struct seen *seen = context;
    (void)peer;
    seen->count++;
    seen->keys = (uint8_t)(seen->keys + key->bytes[0]);
}

static void own_ones_can_be_looked_through(void **state) {
    struct fixture *f = *state;
    struct seen seen = {0};
    assert_true(add(f, 1, 1, true, 0) && add(f, 2, 1, false, 0) && add(f, 4, 1, true, 0));
    custody_each_own(f->custody, see, &seen);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.keys, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_capture_is_asked_about_until_it_is_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_node_that_has_much_is_asked_about_the_rest_at_once, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_silent_node_is_asked_within_a_bounded_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_node_that_is_asked_keeps_nobody_waiting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_only_told_is_told_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_refused_and_room_is_used_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(there_is_room_for_so_many_nodes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(own_ones_can_be_looked_through, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
