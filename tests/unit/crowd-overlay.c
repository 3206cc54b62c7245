/* Shuffles of the crowd, driven by hand. Joins: crowd-join.c; theorems: crowd-theorems.c. */
#include "allocations.h"
#include "crowd-street.h"

static struct street street;

static int clean(void **state) {
    (void)state;
    street_done(&street);
    memset(&street, 0, sizeof street);
    return 0;
}

static const struct crowd_config proofs = {.kind = CROWD_PROOFS, .view_size = 4, .shuffle_size = 3};
static const struct crowd_config cyclon = {.kind = CROWD_CYCLON, .view_size = 4, .shuffle_size = 3};

static const struct crowd_counters *counters(uint8_t name) {
    return crowd_counters(street.crowds[name]);
}

/* A message of a shuffle that names these. */
static struct crowd_message message_of(uint8_t kind, uint64_t number, const char *names) {
    struct crowd_message message = {.kind = kind, .number = number};
    for (; *names != '\0'; names++) {
        message.entries[message.entries_count++].peer = street_peer((uint8_t)*names);
    }
    return message;
}

/* ---- a shuffle ---- */

static void an_edge_turns_round_under_proofs(void **state) {
    (void)state;
    street_add(&street, 1, proofs);
    street_add(&street, 2, proofs);
    street_install(&street, 1, "\2\3\4\5");
    street_install(&street, 2, "\6\7\10\11");
    do { /* until the partner is 2 */
        street.crowds[1]->overlay.is_open = false;
        street_shuffle(&street, 1);
    } while (street.crowds[1]->overlay.partner.address.ip[15] != 2);
    struct crowd_message asked = street_sent(&street, CROWD_MESSAGE_SHUFFLE, 2);
    assert_int_equal(asked.entries_count, 2); /* without the partner */
    street_tell(&street, 1, 2, &asked);
    struct crowd_message answer = street_sent(&street, CROWD_MESSAGE_SHUFFLED, 1);
    assert_int_equal(answer.entries_count, 3);
    assert_true(street_knows(&street, 2, 1));
    street_tell(&street, 2, 1, &answer);
    assert_false(street_knows(&street, 1, 2));
    for (unsigned i = 0; i < 2; i++) { /* and who went over is there, not here */
        uint8_t name = asked.entries[i].peer.address.ip[15];
        assert_true(street_knows(&street, 2, name) && !street_knows(&street, 1, name));
    }
    for (unsigned i = 0; i < 3; i++) {
        uint8_t name = answer.entries[i].peer.address.ip[15];
        assert_true(street_knows(&street, 1, name) && !street_knows(&street, 2, name));
    }
    assert_int_equal(counters(1)->shuffled_count, 1);
    assert_int_equal(counters(2)->served_count, 1);
}

static void the_oldest_is_shuffled_with_under_cyclon(void **state) {
    (void)state;
    street_add(&street, 1, cyclon);
    street_add(&street, 4, cyclon);
    street_install(&street, 1, "\2\3\4");
    street.crowds[1]->view.neighbours[2].age = 7;
    street.crowds[1]->view.neighbours[1].age = 6;
    street_shuffle(&street, 1);
    struct crowd_message asked = street_sent(&street, CROWD_MESSAGE_SHUFFLE, 4);
    assert_true(street_knows(&street, 1, 4)); /* until it has answered */
    street_tell(&street, 1, 4, &asked);
    struct crowd_message answer = street_sent(&street, CROWD_MESSAGE_SHUFFLED, 1);
    assert_int_equal(answer.entries_count, 0);
    street_tell(&street, 4, 1, &answer);
    struct address fourth = street_address(4);
    const struct view *own = &street.crowds[1]->view;
    assert_int_equal(own->count, 3); /* there is room: it stays, but it is the next one's turn */
    assert_int_equal(own->neighbours[view_find(own, &fourth)].age, 0);
    const struct view *view = &street.crowds[4]->view;
    assert_int_equal(view->count, 3);
    struct address first = street_address(1);
    struct address third = street_address(3);
    assert_int_equal(view->neighbours[view_find(view, &first)].age, 0);
    assert_int_equal(view->neighbours[view_find(view, &third)].age, 7); /* older by one than before */
}

static void who_was_shuffled_with_is_overwritten_first(void **state) {
    (void)state;
    street_add(&street, 1, cyclon);
    street_install(&street, 1, "\2\3\4\5");
    street_shuffle(&street, 1);
    struct crowd_message asked = street_sent(&street, CROWD_MESSAGE_SHUFFLE, 2);
    struct crowd_message answer = message_of(CROWD_MESSAGE_SHUFFLED, asked.number, "\11");
    street_tell(&street, 2, 1, &answer);
    assert_false(street_knows(&street, 1, 2));
    assert_true(street_knows(&street, 1, 9) && street.crowds[1]->view.count == 4);
}

static void waits_are_exponential_under_proofs(void **state) {
    (void)state;
    struct crowd *crowd = street_add(&street, 1, proofs);
    uint64_t total_us = 0;
    unsigned above_mean = 0;
    enum { DRAWS = 4000, MEAN_US = 10000000 };
    for (unsigned i = 0; i < DRAWS; i++) {
        uint64_t wait_us = crowd->overlay.shuffle_at_us - street.now_us;
        total_us += wait_us;
        above_mean += wait_us > MEAN_US;
        street.now_us = crowd->overlay.shuffle_at_us;
        street_wake(&street, 1); /* nobody is there: drawn anew */
    }
    assert_true(total_us / DRAWS > MEAN_US / 10 * 9 && total_us / DRAWS < MEAN_US / 10 * 11);
    assert_true(above_mean > DRAWS * 33 / 100 && above_mean < DRAWS * 41 / 100); /* 1/e */
}

static void waits_are_even_under_cyclon(void **state) {
    (void)state;
    enum { MEAN_US = 10000000 };
    struct crowd *crowd = street_add(&street, 1, cyclon);
    assert_true(crowd->overlay.shuffle_at_us <= MEAN_US);
    for (unsigned i = 0; i < 1000; i++) {
        street.now_us = crowd->overlay.shuffle_at_us;
        street_wake(&street, 1);
        uint64_t wait_us = crowd->overlay.shuffle_at_us - street.now_us;
        assert_true(wait_us >= MEAN_US * 3 / 4 && wait_us <= MEAN_US * 5 / 4);
    }
}

/* ---- no answer, and answers that are none ---- */

static void who_has_one_open_is_busy(void **state) {
    (void)state;
    street_add(&street, 1, cyclon);
    street_install(&street, 1, "\2\3");
    street.crowds[1]->view.neighbours[0].age = 5;
    street_shuffle(&street, 1);
    struct crowd_message own = street_sent(&street, CROWD_MESSAGE_SHUFFLE, 2);
    struct crowd_message theirs = message_of(CROWD_MESSAGE_SHUFFLE, 77, "\4\5");
    street_tell(&street, 3, 1, &theirs);
    assert_int_equal(street_sent(&street, CROWD_MESSAGE_BUSY, 3).number, 77);
    assert_false(street_knows(&street, 1, 4));

    struct crowd_message busy = {.kind = CROWD_MESSAGE_BUSY, .number = own.number};
    street.now_us += 1000;
    street_tell(&street, 2, 1, &busy);
    assert_int_equal(counters(1)->rejected_count, 1);
    assert_false(street.crowds[1]->overlay.is_open);
    assert_true(street.crowds[1]->overlay.shuffle_at_us > street.now_us);
    assert_true(street_knows(&street, 1, 2));
    street_shuffle(&street, 1); /* the other one's turn */
    street_sent(&street, CROWD_MESSAGE_SHUFFLE, 3);
}

static void the_silent_are_dropped(void **state) {
    (void)state;
    street_add(&street, 1, cyclon);
    street_install(&street, 1, "\2\3");
    street_shuffle(&street, 1);
    assert_int_equal(street.out.wake_at_us, street.now_us + 2000000);
    street.now_us += 1999999;
    street_wake(&street, 1);
    assert_true(street_knows(&street, 1, 2));
    street.now_us++;
    street_wake(&street, 1);
    assert_false(street_knows(&street, 1, 2));
    assert_true(street_knows(&street, 1, 3));
    assert_int_equal(counters(1)->silent_count, 1);
    assert_int_equal(street.out.wake_at_us, street.crowds[1]->overlay.shuffle_at_us);
}

static void the_silent_stay_where_the_paper_keeps_them(void **state) {
    (void)state;
    struct crowd_config config = cyclon;
    config.keeps_silent = true;
    street_add(&street, 1, config);
    street_install(&street, 1, "\2\3");
    street_shuffle(&street, 1);
    street.now_us += 2000000;
    street_wake(&street, 1);
    assert_true(street_knows(&street, 1, 2));
    street_shuffle(&street, 1);
    street_sent(&street, CROWD_MESSAGE_SHUFFLE, 3);
}

static void answers_count_once_and_only_from_the_one_asked(void **state) {
    (void)state;
    street_add(&street, 1, cyclon);
    street_install(&street, 1, "\2");
    struct crowd_message early = message_of(CROWD_MESSAGE_SHUFFLED, 0, "\5");
    street_tell(&street, 2, 1, &early);
    street_shuffle(&street, 1);
    struct crowd_message asked = street_sent(&street, CROWD_MESSAGE_SHUFFLE, 2);
    struct crowd_message answer = message_of(CROWD_MESSAGE_SHUFFLED, asked.number, "\5");
    street_tell(&street, 3, 1, &answer); /* forged */
    struct crowd_message wrong = message_of(CROWD_MESSAGE_SHUFFLED, asked.number + 1, "\6");
    street_tell(&street, 2, 1, &wrong);
    struct crowd_message busy = {.kind = CROWD_MESSAGE_BUSY, .number = asked.number};
    street_tell(&street, 3, 1, &busy);
    assert_int_equal(counters(1)->unasked_count, 4);
    assert_true(street.crowds[1]->overlay.is_open && street.crowds[1]->view.count == 1);
    street_tell(&street, 2, 1, &answer);
    assert_true(street_knows(&street, 1, 5));
    street_tell(&street, 2, 1, &answer); /* replayed */
    assert_int_equal(counters(1)->unasked_count, 5);
    assert_int_equal(counters(1)->shuffled_count, 1);
}

static void an_answer_with_another_key_is_none(void **state) {
    (void)state;
    street_add(&street, 1, cyclon);
    struct peer known = street_peer(2);
    memset(known.key, 1, PEER_KEY_SIZE);
    crowd_install_for_experiment(street.crowds[1], &known, 1);
    street_shuffle(&street, 1);
    assert_int_equal(street.out.actions[0].to_key[0], 1);
    struct crowd_message answer = message_of(CROWD_MESSAGE_SHUFFLED, street.crowds[1]->overlay.number, "\5");
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct event event = {.kind = EVENT_MESSAGE, .from = street_address(2)};
    event.bytes = crowd_message_write(&answer, street.crowds[1]->config.network, memory);
    memset(event.from_key, 2, PEER_KEY_SIZE);
    street_step(&street, 1, event);
    assert_int_equal(counters(1)->unasked_count, 1);
    memset(event.from_key, 1, PEER_KEY_SIZE);
    street_step(&street, 1, event);
    assert_int_equal(counters(1)->shuffled_count, 1);
}

static void a_node_says_itself_that_its_key_changed(void **state) {
    (void)state;
    street_add(&street, 1, cyclon);
    struct peer known = street_peer(2);
    memset(known.key, 1, PEER_KEY_SIZE);
    crowd_install_for_experiment(street.crowds[1], &known, 1);
    struct crowd_message shuffle = message_of(CROWD_MESSAGE_SHUFFLE, 7, "\2");
    memset(shuffle.entries[0].peer.key, 3, PEER_KEY_SIZE);
    street_tell(&street, 3, 1, &shuffle); /* hearsay */
    assert_int_equal(street.crowds[1]->view.neighbours[0].peer.key[0], 1);
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct event event = {.kind = EVENT_MESSAGE, .from = street_address(2)};
    event.bytes = crowd_message_write(&shuffle, street.crowds[1]->config.network, memory);
    memset(event.from_key, 2, PEER_KEY_SIZE);
    street_step(&street, 1, event);
    assert_int_equal(street.crowds[1]->view.neighbours[0].peer.key[0], 2);
}

/* ---- hostile ---- */

static void no_answer_is_longer_than_three_times_its_question(void **state) {
    (void)state;
    struct crowd_config config = {.kind = CROWD_CYCLON, .view_size = 20, .shuffle_size = 16};
    config.is_unlimited = true;
    street_add(&street, 1, config);
    for (unsigned count = 0; count <= CROWD_SHUFFLE_MAX; count++) {
        street_install(&street, 1, "");
        for (uint8_t i = 0; i < 20; i++) {
            struct crowd_neighbour neighbour = {.peer = street_peer((uint8_t)(100 + i))};
            memset(neighbour.peer.key, 9, PEER_KEY_SIZE);
            neighbour.peer.address.ip[0] = 0x20; /* IPv6: the longest */
            assert_true(view_add(&street.crowds[1]->view, &neighbour));
        }
        struct crowd_message shuffle = message_of(CROWD_MESSAGE_SHUFFLE, 1, "");
        for (; shuffle.entries_count < count; shuffle.entries_count++) {
            shuffle.entries[shuffle.entries_count].peer = street_peer((uint8_t)(3 + shuffle.entries_count));
        }
        uint8_t memory[STEP_MESSAGE_SIZE_MAX];
        size_t size = crowd_message_write(&shuffle, street.crowds[1]->config.network, memory).size;
        street_tell(&street, 2, 1, &shuffle);
        struct crowd_message answer = street_sent(&street, CROWD_MESSAGE_SHUFFLED, 2);
        assert_true(answer.entries_count >= 1);
        assert_true(street.out.actions[0].bytes.size <= 3 * size);
        assert_true(street_knows(&street, 1, 2));
    }
}

static void a_flood_of_shuffles_is_told_busy(void **state) {
    (void)state;
    street_add(&street, 1, cyclon);
    street_install(&street, 1, "\3\4\5\6");
    unsigned busy_count = 0;
    for (unsigned i = 0; i < 100; i++) {
        struct crowd_message shuffle = message_of(CROWD_MESSAGE_SHUFFLE, i, "\7");
        street_tell(&street, 2, 1, &shuffle);
        busy_count += street_count(&street, ACTION_SEND, CROWD_MESSAGE_BUSY) == 1;
    }
    assert_int_equal(busy_count, 84);
    assert_int_equal(counters(1)->flooded_count, 84);
    street.now_us += 10000000; /* eight in a mean wait */
    for (unsigned i = 0; i < 9; i++) {
        struct crowd_message shuffle = message_of(CROWD_MESSAGE_SHUFFLE, i, "\7");
        street.crowds[1]->overlay.is_open = false;
        street.crowds[1]->overlay.shuffle_at_us = UINT64_MAX;
        street_tell(&street, 2, 1, &shuffle);
    }
    assert_int_equal(counters(1)->flooded_count, 85);
}

static void what_is_no_message_is_counted_and_its_sender_blamed(void **state) {
    (void)state;
    street_add(&street, 1, cyclon);
    street_tell_bytes(&street, 2, 1, BYTES("nonsense"));
    assert_int_equal(street_count(&street, ACTION_NOTICE, CROWD_BLAMED), 1);
    struct bytes notice = street.out.actions[0].bytes;
    struct wire_reader reader;
    struct peer peer;
    wire_reader_init(&reader, notice);
    peer_read(&reader, PEER_TAGGED, &peer);
    struct address sender = street_address(2);
    assert_true(address_equal(&peer.address, &sender));
    assert_bytes_equal(bytes_skip(notice, reader.offset), BYTES("a malformed message"));
    street_tell_bytes(&street, 2, 1, BYTES("nonsense")); /* said once a second */
    assert_int_equal(street_count(&street, ACTION_NOTICE, CROWD_BLAMED), 0);
    street.now_us += 1000000;
    street_tell_bytes(&street, 2, 1, BYTES(""));
    assert_int_equal(street_count(&street, ACTION_NOTICE, CROWD_BLAMED), 1);
    assert_int_equal(counters(1)->malformed_count, 3);
    assert_int_equal(counters(1)->blamed_count, 3);
    struct crowd_message busy = {.kind = CROWD_MESSAGE_BUSY};
    street_tell(&street, 1, 1, &busy); /* in our own name */
    assert_int_equal(counters(1)->malformed_count, 4);
}

static void other_networks_and_versions_are_not_heard(void **state) {
    (void)state;
    street_add(&street, 1, cyclon);
    struct crowd_message shuffle = message_of(CROWD_MESSAGE_SHUFFLE, 1, "\3");
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    static const uint8_t other[CROWD_NETWORK_SIZE] = {1};
    street_tell_bytes(&street, 2, 1, crowd_message_write(&shuffle, other, memory));
    struct bytes bytes = crowd_message_write(&shuffle, street.crowds[1]->config.network, memory);
    memory[0] = CROWD_VERSION + 1;
    street_tell_bytes(&street, 2, 1, bytes);
    assert_int_equal(counters(1)->foreign_count, 2);
    assert_int_equal(counters(1)->blamed_count, 0);
    assert_int_equal(street.crowds[1]->view.count, 0);
    assert_int_equal(street_count(&street, ACTION_SEND, CROWD_MESSAGE_SHUFFLED), 0);
}

/* ---- the owner ---- */

static void who_is_alone_says_so_every_ten_seconds(void **state) {
    (void)state;
    struct crowd_config config = cyclon;
    config.view_size = 8; /* two are enough */
    street_add(&street, 1, config);
    assert_int_equal(street_count(&street, ACTION_NOTICE, CROWD_ALONE), 1);
    street.now_us += 9999999;
    street_wake(&street, 1);
    assert_int_equal(street_count(&street, ACTION_NOTICE, CROWD_ALONE), 0);
    assert_true(street.out.wake_at_us <= street.now_us + 1);
    street.now_us++;
    street_install(&street, 1, "\2");
    street_wake(&street, 1);
    assert_int_equal(street_count(&street, ACTION_NOTICE, CROWD_ALONE), 1);
    street.now_us += 10000000;
    street_install(&street, 1, "\2\3");
    street_wake(&street, 1);
    assert_int_equal(street_count(&street, ACTION_NOTICE, CROWD_ALONE), 0);
}

static void who_lied_is_dropped(void **state) {
    (void)state;
    street_add(&street, 1, cyclon);
    street_install(&street, 1, "\2\3");
    struct peer liar = street_peer(2);
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct event drop = {.kind = EVENT_COMMAND, .code = CROWD_DROP};
    drop.bytes = crowd_write_contacts(&liar, 1, memory);
    street_step(&street, 1, drop);
    assert_false(street_knows(&street, 1, 2));
    street_step(&street, 1, drop);
    struct crowd_neighbour neighbours[CROWD_VIEW_MAX];
    assert_int_equal(crowd_neighbours(street.crowds[1], neighbours), 1);
    assert_int_equal(neighbours[0].peer.address.ip[15], 3);
}

static void memory_is_taken_at_the_start_only(void **state) {
    (void)state;
    struct crowd_config config = {.kind = CROWD_PROOFS, .self = street_peer(1)};
    struct crowd *crowd = NULL;
    enum err err = ERR_MEMORY;
    for (size_t left = 0; err != ERR_OK; left++) {
        assert_true(left < 100);
        allocations_left = left;
        err = crowd_new(&config, &crowd);
        assert_true(err == ERR_OK || err == ERR_MEMORY);
    }
    allocations_left = SIZE_MAX;
    crowd_free(crowd);
    street_add(&street, 1, proofs);
    street_install(&street, 1, "\2\3\4\5");
    size_t before = allocations_count;
    for (unsigned i = 0; i < 100; i++) {
        struct crowd_message shuffle = message_of(CROWD_MESSAGE_SHUFFLE, i, "\7\10");
        street.now_us += 1000000;
        street_tell(&street, 2, 1, &shuffle);
    }
    assert_int_equal(allocations_count, before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_edge_turns_round_under_proofs, clean),
        cmocka_unit_test_teardown(the_oldest_is_shuffled_with_under_cyclon, clean),
        cmocka_unit_test_teardown(who_was_shuffled_with_is_overwritten_first, clean),
        cmocka_unit_test_teardown(waits_are_exponential_under_proofs, clean),
        cmocka_unit_test_teardown(waits_are_even_under_cyclon, clean),
        cmocka_unit_test_teardown(who_has_one_open_is_busy, clean),
        cmocka_unit_test_teardown(the_silent_are_dropped, clean),
        cmocka_unit_test_teardown(the_silent_stay_where_the_paper_keeps_them, clean),
        cmocka_unit_test_teardown(answers_count_once_and_only_from_the_one_asked, clean),
        cmocka_unit_test_teardown(an_answer_with_another_key_is_none, clean),
        cmocka_unit_test_teardown(a_node_says_itself_that_its_key_changed, clean),
        cmocka_unit_test_teardown(no_answer_is_longer_than_three_times_its_question, clean),
        cmocka_unit_test_teardown(a_flood_of_shuffles_is_told_busy, clean),
        cmocka_unit_test_teardown(what_is_no_message_is_counted_and_its_sender_blamed, clean),
        cmocka_unit_test_teardown(other_networks_and_versions_are_not_heard, clean),
        cmocka_unit_test_teardown(who_is_alone_says_so_every_ten_seconds, clean),
        cmocka_unit_test_teardown(who_lied_is_dropped, clean),
        cmocka_unit_test_teardown(memory_is_taken_at_the_start_only, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
