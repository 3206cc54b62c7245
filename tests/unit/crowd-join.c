/* How one comes into the crowd: contacts, challenges, walks; and how others cannot be flooded by it. */
#include "crowd-street.h"

static struct street street;

static int clean(void **state) {
    (void)state;
    street_done(&street);
    memset(&street, 0, sizeof street);
    return 0;
}

static const struct crowd_config proofs = {.kind = CROWD_PROOFS, .view_size = 8};
static const struct crowd_config cyclon = {.kind = CROWD_CYCLON, .view_size = 8, .walk_hops = 3};

static const struct crowd_counters *counters(uint8_t name) {
    return crowd_counters(street.crowds[name]);
}

/* ---- contacts ---- */

static void a_join_is_challenged_then_answered(void **state) {
    (void)state;
    street_add(&street, 1, proofs);
    street_add(&street, 2, proofs);
    street_install(&street, 1, "\3\4\5");
    street_join(&street, 2, "\1");
    struct crowd_message join = street_sent(&street, CROWD_MESSAGE_JOIN, 1);
    assert_int_equal(join.token, 0);
    assert_int_equal(street.out.actions[0].bytes.size, CROWD_MESSAGE_PADDED_SIZE);
    street_tell(&street, 2, 1, &join);
    struct crowd_message challenge = street_sent(&street, CROWD_MESSAGE_CHALLENGE, 2);
    assert_int_not_equal(challenge.token, 0);
    assert_false(street_knows(&street, 1, 2)); /* nothing is done for who has not proved its address */
    street_tell(&street, 1, 2, &challenge);
    join = street_sent(&street, CROWD_MESSAGE_JOIN, 1);
    assert_int_equal(join.token, challenge.token);
    street_tell(&street, 2, 1, &join);
    struct crowd_message joined = street_sent(&street, CROWD_MESSAGE_JOINED, 2);
    assert_int_equal(joined.entries_count, 3);
    assert_true(street_knows(&street, 1, 2)); /* there was room */
    street_tell(&street, 1, 2, &joined);
    assert_int_equal(street.crowds[2]->view.count, 4);
    assert_true(street_knows(&street, 2, 1));
    assert_int_equal(counters(1)->joins_count, 1);
    street_tell(&street, 1, 2, &joined); /* replayed */
    assert_int_equal(counters(2)->unasked_count, 1);
}

static void the_token_of_another_address_proves_nothing(void **state) {
    (void)state;
    street_add(&street, 1, cyclon);
    street_install(&street, 1, "\3\4\5");
    struct crowd_message join = {.kind = CROWD_MESSAGE_JOIN, .number = 1};
    street_tell(&street, 2, 1, &join);
    join.token = street_sent(&street, CROWD_MESSAGE_CHALLENGE, 2).token;
    street_tell(&street, 6, 1, &join); /* in the name of 6 */
    struct crowd_message challenge = street_sent(&street, CROWD_MESSAGE_CHALLENGE, 6);
    assert_int_not_equal(challenge.token, join.token);
    assert_int_equal(counters(1)->joins_count, 0);
}

static void contacts_are_tried_in_turn_with_longer_waits(void **state) {
    (void)state;
    street_add(&street, 1, cyclon);
    street_join(&street, 1, "\2\1\3"); /* with itself, who is none */
    street_sent(&street, CROWD_MESSAGE_JOIN, 2);
    street.crowds[1]->overlay.shuffle_at_us = UINT64_MAX;
    uint64_t waited_us = 0;
    for (unsigned i = 1; i < 20; i++) {
        uint64_t wait_us = street.crowds[1]->overlay.join.try_at_us - street.now_us;
        assert_true(i % 2 == 1 || wait_us > waited_us || wait_us > 60000000);
        waited_us = i % 2 == 0 ? wait_us : waited_us;
        street.now_us += wait_us;
        street_wake(&street, 1);
        street_sent(&street, CROWD_MESSAGE_JOIN, i % 2 == 0 ? 2 : 3);
        assert_true(street.out.wake_at_us <= street.crowds[1]->overlay.join.try_at_us);
    }
    assert_true(waited_us >= 64000000 && waited_us <= 80000000);
}

static void only_contacts_that_were_asked_are_believed(void **state) {
    (void)state;
    street_add(&street, 1, cyclon);
    street_join(&street, 1, "\2\3");
    uint64_t number = street_sent(&street, CROWD_MESSAGE_JOIN, 2).number;
    struct crowd_message joined = {.kind = CROWD_MESSAGE_JOINED, .number = number, .entries_count = 1};
    joined.entries[0].peer = street_peer(9);
    street_tell(&street, 4, 1, &joined); /* no contact */
    street_tell(&street, 3, 1, &joined); /* one, but not asked yet */
    joined.number++;
    street_tell(&street, 2, 1, &joined);
    struct crowd_message challenge = {.kind = CROWD_MESSAGE_CHALLENGE, .number = number, .token = 1};
    street_tell(&street, 4, 1, &challenge);
    challenge.token = 0;
    street_tell(&street, 2, 1, &challenge);
    assert_int_equal(counters(1)->unasked_count, 5);
    assert_int_equal(street.crowds[1]->view.count, 0);
    joined.number--;
    street_tell(&street, 2, 1, &joined);
    assert_true(street_knows(&street, 1, 2) && street_knows(&street, 1, 9));
    street.now_us += 100000000; /* and that ends it */
    street_wake(&street, 1);
    assert_int_equal(street_count(&street, ACTION_SEND, CROWD_MESSAGE_JOIN), 0);
}

/* ---- proofs ---- */

static void who_joined_last_is_told_to_who_comes_next(void **state) {
    (void)state;
    struct crowd_config config = proofs;
    config.view_size = 2;
    for (uint8_t i = 1; i <= 6; i++) {
        street_add(&street, i, config);
    }
    for (uint8_t i = 2; i <= 6; i++) {
        street_join(&street, i, "\1");
        street_post(&street, i);
        street_deliver(&street);
        assert_true(street.crowds[i]->view.count == (i == 2 ? 1 : 2));
    }
    assert_int_equal(counters(1)->joins_count, 5);
    const struct overlay *overlay = &street.crowds[1]->overlay;
    assert_int_equal(overlay->newcomers_count, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(overlay->newcomers[i].address.ip[15] >= 5);
    }
}

/* ---- cyclon ---- */

static unsigned indegree(uint8_t name, uint8_t nodes_count) {
    unsigned count = 0;
    for (uint8_t i = 1; i <= nodes_count; i++) {
        count += street_knows(&street, i, name);
    }
    return count;
}

static void build_crowd(uint8_t nodes_count) {
    struct prng prng;
    prng_init(&prng, 5);
    for (uint8_t i = 1; i <= nodes_count; i++) {
        struct crowd *crowd = street_add(&street, i, cyclon);
        while (crowd->view.count < crowd->view.size_max) {
            struct crowd_neighbour neighbour = {
                .peer = street_peer((uint8_t)prng_between(&prng, 1, nodes_count))};
            view_add(&crowd->view, &neighbour);
        }
    }
}

static void a_join_by_walks_takes_no_edge_from_anybody(void **state) {
    (void)state;
    enum { OLD = 30 };
    unsigned before[OLD + 1];
    build_crowd(OLD);
    for (uint8_t i = 1; i <= OLD; i++) {
        before[i] = indegree(i, OLD);
    }
    street_add(&street, OLD + 1, cyclon);
    street_join(&street, OLD + 1, "\1");
    street_post(&street, OLD + 1);
    street_deliver(&street);
    assert_int_equal(street.crowds[OLD + 1]->view.count, 8);
    assert_true(indegree(OLD + 1, OLD) >= 6); /* eight walks; two may end at one node */
    for (uint8_t i = 1; i <= OLD; i++) {
        assert_true(indegree(i, OLD + 1) >= before[i]);
    }
}

static void a_small_crowd_knows_itself(void **state) {
    (void)state;
    for (uint8_t i = 1; i <= 5; i++) {
        street_add(&street, i, cyclon);
        street_join(&street, i, i == 1 ? "" : "\1");
        street_post(&street, i);
        street_deliver(&street);
    }
    for (uint8_t i = 2; i <= 5; i++) {
        assert_true(street_knows(&street, i, 1) && street_knows(&street, 1, i));
    }
    for (unsigned i = 0; i < 50; i++) {
        uint8_t name = (uint8_t)(1 + i % 5);
        street_shuffle(&street, name);
        street_post(&street, name);
        street_deliver(&street);
    }
    for (uint8_t i = 1; i <= 5; i++) {
        assert_int_equal(street.crowds[i]->view.count, 4);
    }
}

static void walks_go_as_far_as_they_say_and_not_to_who_joins(void **state) {
    (void)state;
    street_add(&street, 1, cyclon);
    street_install(&street, 1, "\2\3");
    struct crowd_message walk = {.kind = CROWD_MESSAGE_WALK, .number = 9, .hops = 4};
    walk.entries[0].peer = street_peer(2);
    street_tell(&street, 5, 1, &walk);
    struct crowd_message next = street_sent(&street, CROWD_MESSAGE_WALK, 3);
    assert_int_equal(next.hops, 3);
    assert_int_equal(next.entries[0].peer.address.ip[15], 2);
    walk.hops = 0;
    street_tell(&street, 5, 1, &walk); /* it is here already */
    assert_int_equal(street.out.actions_count, 0);
    walk.entries[0].peer = street_peer(1);
    street_tell(&street, 5, 1, &walk); /* ourselves */
    assert_int_equal(street.out.actions_count, 0);
    walk.entries[0].peer = street_peer(7);
    street_tell(&street, 5, 1, &walk);
    assert_int_equal(street_sent(&street, CROWD_MESSAGE_WELCOME, 7).entries_count, 0);
    street_install(&street, 1, "\2\3\4\5\6\10\11\12");
    street_tell(&street, 5, 1, &walk);
    struct crowd_message welcome = street_sent(&street, CROWD_MESSAGE_WELCOME, 7);
    assert_int_equal(welcome.entries_count, 1);
    assert_false(street_knows(&street, 1, welcome.entries[0].peer.address.ip[15]));
    assert_true(street_knows(&street, 1, 7));
}

static void a_welcome_to_nothing_is_refused(void **state) {
    (void)state;
    street_add(&street, 1, cyclon);
    struct crowd_message welcome = {.kind = CROWD_MESSAGE_WELCOME, .entries_count = 1};
    welcome.entries[0].peer = street_peer(9);
    street_tell(&street, 4, 1, &welcome);
    assert_int_equal(counters(1)->unasked_count, 1);
    street_join(&street, 1, "\2");
    welcome.number = street_sent(&street, CROWD_MESSAGE_JOIN, 2).number;
    street_tell(&street, 4, 1, &welcome);
    assert_true(street_knows(&street, 1, 9));
    street.now_us += 30000000;
    street.crowds[1]->overlay.join.contacts_count = 0;
    welcome.entries[0].peer = street_peer(10);
    street_tell(&street, 4, 1, &welcome); /* too late */
    assert_false(street_knows(&street, 1, 10));
}

/* ---- floods ---- */

static void joins_and_walks_are_bounded(void **state) {
    (void)state;
    street_add(&street, 1, cyclon);
    street_install(&street, 1, "\3");
    struct crowd_message join = {.kind = CROWD_MESSAGE_JOIN};
    street_tell(&street, 2, 1, &join);
    join.token = street_sent(&street, CROWD_MESSAGE_CHALLENGE, 2).token;
    for (unsigned i = 0; i < 200; i++) {
        street_tell(&street, 2, 1, &join);
    }
    assert_int_equal(counters(1)->joins_count, 64);
    struct crowd_message walk = {.kind = CROWD_MESSAGE_WALK, .hops = 9};
    walk.entries[0].peer = street_peer(7);
    size_t walks_count = 0;
    for (unsigned i = 0; i < 1000; i++) {
        street_tell(&street, 2, 1, &walk);
        walks_count += street_count(&street, ACTION_SEND, CROWD_MESSAGE_WALK);
    }
    assert_int_equal(walks_count, 256);
    assert_int_equal(counters(1)->flooded_count, 136 + 744);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_join_is_challenged_then_answered, clean),
        cmocka_unit_test_teardown(the_token_of_another_address_proves_nothing, clean),
        cmocka_unit_test_teardown(contacts_are_tried_in_turn_with_longer_waits, clean),
        cmocka_unit_test_teardown(only_contacts_that_were_asked_are_believed, clean),
        cmocka_unit_test_teardown(who_joined_last_is_told_to_who_comes_next, clean),
        cmocka_unit_test_teardown(a_join_by_walks_takes_no_edge_from_anybody, clean),
        cmocka_unit_test_teardown(a_small_crowd_knows_itself, clean),
        cmocka_unit_test_teardown(walks_go_as_far_as_they_say_and_not_to_who_joins, clean),
        cmocka_unit_test_teardown(a_welcome_to_nothing_is_refused, clean),
        cmocka_unit_test_teardown(joins_and_walks_are_bounded, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
