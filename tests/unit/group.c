/* A node of a group by hand: what it tells whom, whom it believes. Whole groups: tests/sim/group.c. */
#include "allocations.h"
#include "group-node.h"

enum { TERM = 511 };

/* ---- coming in ---- */

static void a_new_group_is_saved_before_it_is_told(void **state) {
    (void)state;
    struct node node;
    node_init(&node, 0, (struct group_config){.is_open = true});
    node_step(&node, (struct event){.kind = EVENT_START});
    node_command(&node, GROUP_CREATE, (struct bytes){0});
    assert_true(group_is_master(node.group));
    assert_true(node_noticed(&node, GROUP_COMMITTED) && node_noticed(&node, GROUP_MASTER));
    assert_int_equal(group_topology(node.group)->members_count, 1);
    node_saved(&node);

    struct peer who = node_peer(1);
    node_receive(&node, &who, (struct group_message){.kind = GROUP_MESSAGE_JOIN, .number = 5});
    struct group_message challenge = {0};
    assert_int_equal(node_sent(&node, GROUP_MESSAGE_CHALLENGE, &challenge), 1);
    node_receive(&node, &who,
                 (struct group_message){.kind = GROUP_MESSAGE_JOIN, .number = 5, .token = challenge.token});
    assert_int_equal(node_sent(&node, GROUP_MESSAGE_TAKEN, NULL), 1);
    node.now_us += 10 * NODE_SECOND_US; /* others may come together with it */
    node_step(&node, (struct event){.kind = EVENT_WAKE});
    assert_int_equal(group_topology(node.group)->members_count, 2);
    assert_int_equal(node_sent(&node, GROUP_MESSAGE_PIECE, NULL), 0);
    node_saved(&node);
    assert_true(node_sent(&node, GROUP_MESSAGE_PIECE, NULL) > 0);
    node_done(&node);
}

static void who_has_not_proved_his_address_gets_less_than_he_sent(void **state) {
    (void)state;
    struct node node;
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    node_init(&node, 0, (struct group_config){.is_open = true});
    node_step(&node, (struct event){.kind = EVENT_START});
    node_command(&node, GROUP_CREATE, (struct bytes){0});
    node_saved(&node);
    struct peer who = node_peer(1);
    struct group_message asks[] = {{.kind = GROUP_MESSAGE_JOIN, .number = 5},
                                   {.kind = GROUP_MESSAGE_JOIN, .number = 5, .token = 12345},
                                   {.kind = GROUP_MESSAGE_ECHO, .number = 5},
                                   {.kind = GROUP_MESSAGE_REPORT, .number = 5},
                                   {.kind = GROUP_MESSAGE_PULSE, .number = 5}};
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
        size_t size = group_message_write(&asks[i], NODE_ID, memory).size;
        node_receive(&node, &who, asks[i]);
        assert_int_equal(node.out.actions_count, 1);
        assert_true(node.out.actions[0].bytes.size <= size);
        assert_true(address_equal(&node.out.actions[0].to, &who.address));
    }
    unsigned answers = 0;
    for (unsigned i = 0; i < 200; i++) {
        node_receive(&node, &who, asks[2]);
        answers += node_sent(&node, GROUP_MESSAGE_STRANGER, NULL);
    }
    assert_in_range(answers, 1, 40);
    assert_int_equal(group_topology(node.group)->members_count, 1);
    node_done(&node);
}

static void the_owner_decides_who_comes_in(void **state) {
    (void)state;
    struct node node;
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct node_document document;
    node_init(&node, 0, (struct group_config){0});
    node_write_document(&document, TERM, 3, 0, 3, &node.self);
    node_restore(&node, &document);
    node_saved(&node);
    struct peer member = node_peer(1);
    struct peer who = node_peer(7);
    struct group_message request = {
        .kind = GROUP_MESSAGE_REQUEST, .number = 1, .peer = who, .papers = BYTES("an invitation")};
    node_receive(&node, &member, request);
    assert_true(node_noticed(&node, GROUP_ASKED));
    node_command(&node, GROUP_REFUSE, group_write_peer(&who, (struct bytes){0}, memory));
    assert_int_equal(node_sent(&node, GROUP_MESSAGE_REFUSED, NULL), 1);
    request.number = 2;
    node_receive(&node, &member, request);
    assert_int_equal(node_sent(&node, GROUP_MESSAGE_REFUSED, NULL), 1);
    node_command(&node, GROUP_APPROVE, group_write_peer(&who, (struct bytes){0}, memory));
    node.now_us += 10 * NODE_SECOND_US;
    node_step(&node, (struct event){.kind = EVENT_WAKE});
    assert_int_equal(group_topology(node.group)->members_count, 4);
    node_command(&node, GROUP_REFUSE, group_write_peer(&who, (struct bytes){0}, memory)); /* a member */
    node.now_us += 10 * NODE_SECOND_US;
    node_step(&node, (struct event){.kind = EVENT_WAKE});
    assert_int_equal(group_topology(node.group)->members_count, 3);
    node_done(&node);
}

static void requests_of_one_number_are_passed_on_once_and_not_too_many(void **state) {
    (void)state;
    struct node node;
    struct node_document document;
    node_init(&node, 2, (struct group_config){0});
    node_write_document(&document, TERM, 3, 0, 6, &(struct peer){.key = {0, 0, 1}});
    node_restore(&node, &document);
    struct peer from = node_peer(1);
    struct group_message request = {.kind = GROUP_MESSAGE_REQUEST, .number = 1, .peer = node_peer(90)};
    node_receive(&node, &from, request);
    assert_int_equal(node_sent(&node, GROUP_MESSAGE_REQUEST, NULL), 1); /* not back */
    node_receive(&node, &from, request);
    assert_int_equal(node_sent(&node, GROUP_MESSAGE_REQUEST, NULL), 0);
    unsigned passed = 0;
    for (unsigned i = 0; i < 200; i++) {
        request.number = 100 + i;
        node_receive(&node, &from, request);
        passed += node_sent(&node, GROUP_MESSAGE_REQUEST, NULL);
    }
    assert_in_range(passed, 1, 40);
    node_done(&node);
}

/* ---- documents ---- */

struct scene {
    struct node node; /* number 2 of 0 … 5, master 0 */
    struct peer master;
    struct peer next;
    struct node_document document;
};

static void make_scene(struct scene *scene) {
    scene->master = node_peer(0);
    scene->next = node_peer(1);
    node_init(&scene->node, 2, (struct group_config){0});
    node_write_document(&scene->document, TERM, 3, 0, 6, &scene->master);
    node_restore(&scene->node, &scene->document);
    assert_int_equal(group_mode(scene->node.group), GROUP_MEMBER);
}

static void hear_master(struct scene *scene) {
    node_receive(&scene->node, &scene->master,
                 (struct group_message){.kind = GROUP_MESSAGE_ECHO,
                                        .number = 1,
                                        .held = {TERM, group_sequence(scene->node.group)}});
}

static void a_newer_topology_of_the_master_holds_and_goes_on(void **state) {
    (void)state;
    struct scene scene;
    make_scene(&scene);
    struct peer neighbour = node_peer(3);
    hear_master(&scene);
    assert_false(node_offer(&scene.node, &neighbour, &scene.document) &&
                 node_noticed(&scene.node, GROUP_COMMITTED)); /* the same again */
    struct group_message ack = {0};
    assert_int_equal(node_sent(&scene.node, GROUP_MESSAGE_ACK, &ack), 1);
    assert_true(ack.mask == UINT64_MAX);
    node_write_document(&scene.document, TERM, 2, 0, 5, &scene.master);
    assert_false(node_offer(&scene.node, &neighbour, &scene.document)); /* an old one */
    node_write_document(&scene.document, TERM, 9, 0, 8, &scene.master);
    assert_true(node_offer(&scene.node, &neighbour, &scene.document));
    assert_true(node_noticed(&scene.node, GROUP_COMMITTED));
    node_saved(&scene.node);
    struct group_message piece;
    assert_int_equal(node_sent(&scene.node, GROUP_MESSAGE_PIECE, &piece), 1); /* not to whom it came from */
    assert_int_equal(group_topology(scene.node.group)->members_count, 8);
    node_done(&scene.node);
}

static void nobody_but_the_master_signs_in_his_term(void **state) {
    (void)state;
    struct scene scene;
    make_scene(&scene);
    hear_master(&scene);
    node_write_document(&scene.document, TERM, 9, 0, 6, &scene.next);
    assert_false(node_offer(&scene.node, &scene.next, &scene.document));
    node_write_document(&scene.document, TERM, 9, 0, 6, &scene.master);
    scene.document.bytes[scene.document.size - 1] ^= 1;
    assert_false(node_offer(&scene.node, &scene.next, &scene.document));
    assert_true(node_noticed(&scene.node, GROUP_BLAMED));
    assert_int_equal(group_counters(scene.node.group)->forged_count, 2);
    node_done(&scene.node);
}

static void a_higher_term_is_believed_where_the_master_is_missed(void **state) {
    (void)state;
    struct scene scene;
    make_scene(&scene);
    struct peer stranger = node_peer(200);
    hear_master(&scene);
    node_write_document(&scene.document, 2 * TERM, 9, 0, 6, &scene.next);
    assert_false(node_offer(&scene.node, &scene.next, &scene.document));
    scene.node.now_us += 14 * NODE_MINUTE_US;
    node_write_document(&scene.document, 2 * TERM, 9, 0, 6, &stranger);
    assert_false(node_offer(&scene.node, &scene.next, &scene.document));
    node_write_document(&scene.document, 2 * TERM, 9, 0, 6, &scene.next);
    assert_true(node_offer(&scene.node, &scene.next, &scene.document));
    node_done(&scene.node);
}

static void a_master_that_has_given_way_is_believed(void **state) {
    (void)state;
    struct scene scene;
    make_scene(&scene);
    hear_master(&scene);
    node_receive(&scene.node, &scene.master,
                 (struct group_message){.kind = GROUP_MESSAGE_ECHO, .number = 1, .held = {2 * TERM, 9}});
    node_write_document(&scene.document, 2 * TERM, 9, 0, 6, &scene.next);
    assert_true(node_offer(&scene.node, &scene.next, &scene.document));
    node_done(&scene.node);
}

static void a_master_that_asks_to_join_is_none_any_more(void **state) {
    (void)state;
    struct scene scene;
    make_scene(&scene);
    hear_master(&scene);
    node_receive(&scene.node, &scene.master,
                 (struct group_message){.kind = GROUP_MESSAGE_JOIN, .number = 1, .held = {TERM, 3}});
    node_write_document(&scene.document, 2 * TERM, 9, 0, 6, &scene.next);
    assert_true(node_offer(&scene.node, &scene.next, &scene.document));
    node_done(&scene.node);
}

static void pieces_are_repeated_until_they_are_acknowledged(void **state) {
    (void)state;
    struct scene scene;
    make_scene(&scene);
    struct peer receiver = node_peer(3);
    node_write_document(&scene.document, TERM, 9, 0, 6, &scene.master);
    assert_true(node_offer(&scene.node, &scene.next, &scene.document));
    node_saved(&scene.node);
    for (unsigned tries = 1; tries < 4; tries++) {
        assert_int_equal(node_sent(&scene.node, GROUP_MESSAGE_PIECE, NULL), 1);
        scene.node.now_us += NODE_SECOND_US << (tries - 1);
        hear_master(&scene);
    }
    node_receive(&scene.node, &receiver,
                 (struct group_message){
                     .kind = GROUP_MESSAGE_ACK, .held = {TERM, 9}, .version = {TERM, 9}, .mask = UINT64_MAX});
    scene.node.now_us += 60 * NODE_SECOND_US;
    hear_master(&scene);
    assert_int_equal(node_sent(&scene.node, GROUP_MESSAGE_PIECE, NULL), 0);
    node_done(&scene.node);
}

static void the_founder_is_believed_always(void **state) {
    (void)state;
    struct node node;
    struct node_document document;
    struct peer second = node_peer(1);
    struct peer founder = node_peer(0);
    node_init(&node, 2, (struct group_config){0});
    node_write_document(&document, TERM, 3, 1, 5, &second);
    node_restore(&node, &document);
    node_receive(&node, &second,
                 (struct group_message){.kind = GROUP_MESSAGE_ECHO, .number = 1, .held = {TERM, 3}});
    node_write_document(&document, 2 * TERM, 4, 0, 6, &founder);
    assert_true(node_offer(&node, &second, &document));
    node_done(&node);
}

static void a_large_topology_comes_in_pieces_in_any_order(void **state) {
    (void)state;
    struct scene scene;
    make_scene(&scene);
    struct peer neighbour = node_peer(1);
    struct peer meddler = node_peer(4);
    node_write_document(&scene.document, TERM, 9, 0, GROUP_MEMBERS_MAX, &scene.master);
    uint8_t pieces = node_pieces(&scene.document);
    assert_true(pieces > 10);
    for (uint8_t piece = pieces; piece-- > 0;) {
        assert_int_equal(group_sequence(scene.node.group), 3);
        node_receive_piece(&scene.node, &meddler, &scene.document, 0); /* one sender at a time */
        bool is_first = piece + 1 == pieces;
        assert_int_equal(node_sent(&scene.node, GROUP_MESSAGE_ACK, NULL), is_first);
        scene.node.now_us += is_first ? 11 * NODE_SECOND_US : 1;
        node_receive_piece(&scene.node, &neighbour, &scene.document, piece);
        if (piece > 0) {
            node_receive_piece(&scene.node, &neighbour, &scene.document, piece); /* twice */
        }
    }
    assert_int_equal(group_sequence(scene.node.group), 9);
    node_saved(&scene.node);
    assert_int_equal(node_sent(&scene.node, GROUP_MESSAGE_PIECE, NULL), 8); /* a window, to the other one */
    node_done(&scene.node);
}

/* ---- pulses ---- */

static void a_pulse_of_the_master_goes_round_once(void **state) {
    (void)state;
    struct scene scene;
    uint8_t memory[GROUP_PULSE_SIZE];
    make_scene(&scene);
    struct group_message pulse = {
        .kind = GROUP_MESSAGE_PULSE, .held = {TERM, 3}, .version = {TERM, 3}, .beat = 4};
    struct peer neighbour = node_peer(1);
    node_receive(&scene.node, &neighbour, pulse);
    assert_int_equal(node_sent(&scene.node, GROUP_MESSAGE_PULSE, NULL), 0);
    assert_int_equal(group_counters(scene.node.group)->forged_count, 1);
    node_sign_as(&scene.master, group_message_pulse(NODE_ID, pulse.version, pulse.beat, memory),
                 pulse.signature);
    node_receive(&scene.node, &neighbour, pulse);
    assert_int_equal(node_sent(&scene.node, GROUP_MESSAGE_PULSE, NULL), 1);
    node_receive(&scene.node, &neighbour, pulse);
    assert_int_equal(node_sent(&scene.node, GROUP_MESSAGE_PULSE, NULL), 0);
    node_done(&scene.node);
}

/* One that is cut off hears nobody, so it opens no term however long it waits. */
static void alone_it_does_not_take_over(void **state) {
    (void)state;
    struct scene scene;
    make_scene(&scene);
    for (unsigned minutes = 0; minutes < 300; minutes++) {
        scene.node.now_us += NODE_MINUTE_US;
        node_step(&scene.node, (struct event){.kind = EVENT_WAKE});
    }
    assert_int_equal(group_term(scene.node.group), TERM);
    assert_false(group_is_master(scene.node.group));
    node_done(&scene.node);
}

/* ---- measuring ---- */

static void measures_fast_at_first_and_by_its_periods_later(void **state) {
    (void)state;
    struct scene scene;
    uint64_t echoes[2];
    uint64_t probes[2];
    make_scene(&scene);
    for (unsigned phase = 0; phase < 2; phase++) {
        const struct group_counters *counters = group_counters(scene.node.group);
        uint64_t echoes_before = counters->echoes_count;
        uint64_t probes_before = counters->probes_count;
        uint64_t end_us = scene.node.now_us + 90 * NODE_MINUTE_US;
        while (scene.node.now_us < end_us) {
            scene.node.now_us += NODE_SECOND_US;
            hear_master(&scene);
        }
        echoes[phase] = counters->echoes_count - echoes_before;
        probes[phase] = counters->probes_count - probes_before;
    }
    assert_in_range(echoes[0], 25, 45);
    assert_in_range(echoes[1], 5, 8);
    assert_in_range(probes[0], 6, 12);
    assert_in_range(probes[1], 1, 3);
    node_done(&scene.node);
}

static void learns_from_answers_and_transfers(void **state) {
    (void)state;
    struct scene scene;
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    make_scene(&scene);
    struct peer one = node_peer(1);
    node_command(&scene.node, GROUP_PROBED, group_write_transfer(&one, 65536, 500000, memory));
    node_command(&scene.node, GROUP_PROBED, group_write_transfer(&one, 100, 1, memory)); /* too short */
    struct group_neighbour neighbours[8];
    assert_int_equal(group_neighbours(scene.node.group, neighbours, 8), 2);
    assert_true(peer_equal(&neighbours[0].peer, &one));
    assert_int_equal(neighbours[0].bandwidth, 131072);
    assert_int_equal(neighbours[0].round_trip_us, 0);
    for (unsigned i = 0; i < 200 && neighbours[0].round_trip_us == 0; i++) {
        scene.node.now_us += 10 * NODE_SECOND_US;
        hear_master(&scene);
        struct group_message echo = {0};
        if (node_sent(&scene.node, GROUP_MESSAGE_ECHO, &echo) == 1) {
            scene.node.now_us += 20000;
            node_receive(&scene.node, &one,
                         (struct group_message){.kind = GROUP_MESSAGE_ECHOED, .number = echo.number + 2});
            node_receive(&scene.node, &one,
                         (struct group_message){.kind = GROUP_MESSAGE_ECHOED, .number = echo.number});
        }
        group_neighbours(scene.node.group, neighbours, 8);
    }
    assert_int_equal(neighbours[0].round_trip_us, 20000);
    assert_true(group_counters(scene.node.group)->unasked_count > 0);
    node_done(&scene.node);
}

static void configured_neighbours_need_nobody(void **state) {
    (void)state;
    struct node node;
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct peer peers[2] = {node_peer(8), node_peer(9)};
    struct group_neighbour neighbours[4];
    node_init(&node, 2, (struct group_config){.neighbours = peers, .neighbours_count = 2});
    node_step(&node, (struct event){.kind = EVENT_START});
    node_receive(&node, &peers[0], (struct group_message){.kind = GROUP_MESSAGE_ECHO, .number = 1});
    assert_int_equal(node.out.actions_count, 0);
    assert_true(node.out.wake_at_us == STEP_NEVER_US);
    node_command(&node, GROUP_PROBED, group_write_transfer(&peers[1], 1000000, 1000000, memory));
    assert_int_equal(group_neighbours(node.group, neighbours, 4), 2);
    assert_int_equal(neighbours[1].bandwidth, 1000000);
    assert_null(group_topology(node.group));
    assert_null(group_master(node.group));
    node_done(&node);
}

/* ---- memory ---- */

static void allocates_nothing_after_its_start(void **state) {
    (void)state;
    struct scene scene;
    make_scene(&scene);
    size_t before = allocations_count;
    node_write_document(&scene.document, TERM, 9, 0, GROUP_MEMBERS_MAX, &scene.master);
    assert_true(node_offer(&scene.node, &scene.next, &scene.document));
    node_saved(&scene.node);
    node_command(&scene.node, GROUP_CLAIM, (struct bytes){0});
    assert_true(group_is_master(scene.node.group));
    scene.node.now_us += 70 * NODE_MINUTE_US;
    node_step(&scene.node, (struct event){.kind = EVENT_WAKE});
    assert_true(group_counters(scene.node.group)->computed_count > 0);
    assert_int_equal(allocations_count, before);
    node_done(&scene.node);
}

static void says_so_where_there_is_no_memory(void **state) {
    (void)state;
    struct node node;
    node_init(&node, 2, (struct group_config){0});
    struct group_config config = {.self = node_peer(1),
                                  .signer = {.context = &node, .sign = node_sign, .verify = node_verify}};
    for (size_t passing = 0;; passing++) {
        struct group *group = NULL;
        allocations_left = passing;
        enum err err = group_new(&config, &group);
        allocations_left = SIZE_MAX;
        if (err == ERR_OK) {
            assert_true(passing > 0);
            group_free(group);
            break;
        }
        assert_int_equal(err, ERR_MEMORY);
    }
    node_done(&node);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_group_is_saved_before_it_is_told),
        cmocka_unit_test(who_has_not_proved_his_address_gets_less_than_he_sent),
        cmocka_unit_test(the_owner_decides_who_comes_in),
        cmocka_unit_test(requests_of_one_number_are_passed_on_once_and_not_too_many),
        cmocka_unit_test(a_newer_topology_of_the_master_holds_and_goes_on),
        cmocka_unit_test(nobody_but_the_master_signs_in_his_term),
        cmocka_unit_test(a_higher_term_is_believed_where_the_master_is_missed),
        cmocka_unit_test(a_master_that_has_given_way_is_believed),
        cmocka_unit_test(a_master_that_asks_to_join_is_none_any_more),
        cmocka_unit_test(pieces_are_repeated_until_they_are_acknowledged),
        cmocka_unit_test(the_founder_is_believed_always),
        cmocka_unit_test(a_large_topology_comes_in_pieces_in_any_order),
        cmocka_unit_test(a_pulse_of_the_master_goes_round_once),
        cmocka_unit_test(alone_it_does_not_take_over),
        cmocka_unit_test(measures_fast_at_first_and_by_its_periods_later),
        cmocka_unit_test(learns_from_answers_and_transfers),
        cmocka_unit_test(configured_neighbours_need_nobody),
        cmocka_unit_test(allocates_nothing_after_its_start),
        cmocka_unit_test(says_so_where_there_is_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
