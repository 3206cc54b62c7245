/* reports: what a node signs of itself is believed, by everybody, and nothing else is. */
#include "node/ring/reports.h"

#include <stdlib.h>

#include "clock-manual.h"
#include "node/rpc/peer_rpc_state.h"
#include "unit.h"

enum { A, B, C, NODES_COUNT };

struct node {
    struct identity identity;
    struct peer peer;
    struct peer_rpc *peer_rpc;
    struct reports *reports;
    uint64_t captures;
};

struct world {
    struct clock_manual clock;
    struct node nodes[NODES_COUNT];
};

static void collect(void *context, struct node_report *report) {
    const struct node *node = context;
    report->values[NODE_REPORT_CAPTURES] = node->captures;
}

static void make_reports(struct world *world, struct node *node) {
    struct reports_config config = {.peer_rpc = node->peer_rpc,
                                    .identity = &node->identity,
                                    .ring = {1},
                                    .program = "0.3.0",
                                    .period_us = 1000000,
                                    .clock = &world->clock.clock,
                                    .collect = collect,
                                    .context = node};
    node->reports = reports_new(&config);
    assert_non_null(node->reports);
}

static int set_up(void **state) {
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    clock_manual_init(&world->clock, INT64_C(1700000000) * 1000000);
    world->clock.monotonic_now_us = 1000000;
    for (unsigned i = 0; i < NODES_COUNT; i++) {
        struct node *node = &world->nodes[i];
        assert_int_equal(identity_random(&node->identity), ERR_OK);
        struct peer_rpc_config peer_rpc = {.identity = &node->identity};
        assert_true(address_parse(BYTES("127.0.0.1"), 0, &peer_rpc.address));
        assert_int_equal(peer_rpc_new(&peer_rpc, &node->peer_rpc, NULL), ERR_OK);
        node->peer.address = peer_rpc_address(node->peer_rpc);
        memcpy(node->peer.key, node->identity.key, PEER_KEY_SIZE);
        node->captures = 10 * (i + 1);
        make_reports(world, node);
    }
    *state = world;
    return 0;
}

static int tear_down(void **state) {
    struct world *world = *state;
    for (unsigned i = 0; i < NODES_COUNT; i++) {
        peer_rpc_stop(world->nodes[i].peer_rpc);
        reports_free(world->nodes[i].reports);
        peer_rpc_free(world->nodes[i].peer_rpc);
        identity_done(&world->nodes[i].identity);
    }
    free(world);
    return 0;
}

/* All that are named know each other. */
static void beat(struct world *world, const char *names) {
    struct peer peers[NODES_COUNT];
    size_t count = strlen(names);
    for (size_t i = 0; i < count; i++) {
        peers[i] = world->nodes[names[i] - 'a'].peer;
    }
    for (size_t i = 0; i < count; i++) {
        reports_beat(world->nodes[names[i] - 'a'].reports, peers, count);
    }
}

static enum err ask_with(struct node *asker, struct node *giver, size_t *ret_size) {
    struct buf question;
    struct buf answer;
    buf_init(&question, PEER_RPC_QUESTION_SIZE_MAX);
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    reports_put_question(asker->reports, &question);
    assert_int_equal(reports_answer(giver->reports, &asker->peer, buf_bytes(&question), &answer, NULL),
                     ERR_OK);
    *ret_size = answer.size;
    enum err err = reports_take_answer(asker->reports, &giver->peer, 0, buf_bytes(&answer), NULL);
    buf_done(&question);
    buf_done(&answer);
    return err;
}

static void ask(struct node *asker, struct node *giver) {
    size_t size;
    assert_int_equal(ask_with(asker, giver, &size), ERR_OK);
}

struct search {
    const struct peer *peer;
    struct reports_node *found;
    bool is_found;
};

static void look(void *context, const struct reports_node *node) {
    struct search *search = context;
    if (peer_same_key(&node->peer, search->peer)) {
        *search->found = *node;
        search->is_found = true;
    }
}

static bool sees(struct node *who, const struct node *whom, struct reports_node *ret_node) {
    struct search search = {.peer = &whom->peer, .found = ret_node};
    (void)reports_each(who->reports, look, &search);
    return search.is_found;
}

static void a_report_goes_on_from_node_to_node_with_its_age(void **state) {
    struct world *world = *state;
    struct node *nodes = world->nodes;
    struct reports_node seen;
    beat(world, "abc");
    assert_true(sees(&nodes[A], &nodes[C], &seen));
    assert_true(seen.is_here && !seen.has_report && !seen.has_feature);
    ask(&nodes[B], &nodes[C]);
    clock_manual_advance(&world->clock, 7000000);
    ask(&nodes[A], &nodes[B]); /* A has never asked C */
    assert_true(sees(&nodes[A], &nodes[C], &seen));
    assert_true(seen.has_report && seen.report.values[NODE_REPORT_CAPTURES] == 30);
    assert_string_equal(seen.report.program, "0.3.0");
    assert_true(seen.heard_ago_us >= 6900000 && seen.heard_ago_us <= 7100000 && !seen.has_clock);
    assert_true(sees(&nodes[A], &nodes[B], &seen) && seen.has_clock && seen.clock_offset_us == 0);

    /* What is known is not given again. */
    size_t size;
    assert_int_equal(ask_with(&nodes[A], &nodes[B], &size), ERR_OK);
    assert_int_equal(size, 8);
    nodes[C].captures = 31;
    beat(world, "abc");
    ask(&nodes[B], &nodes[C]);
    ask(&nodes[A], &nodes[B]);
    assert_true(sees(&nodes[A], &nodes[C], &seen) && seen.report.values[NODE_REPORT_CAPTURES] == 31);
}

static void who_is_not_in_the_ring_has_no_report_here(void **state) {
    struct world *world = *state;
    struct node *nodes = world->nodes;
    struct reports_node seen;
    beat(world, "abc");
    ask(&nodes[B], &nodes[C]);
    reports_free(nodes[A].reports);
    make_reports(world, &nodes[A]); /* it starts anew, and the ring does not tell it of C */
    beat(world, "ab");
    ask(&nodes[A], &nodes[B]);
    assert_false(sees(&nodes[A], &nodes[C], &seen));
}

static void who_has_gone_keeps_its_last_word_for_a_day(void **state) {
    struct world *world = *state;
    struct node *nodes = world->nodes;
    struct reports_node seen;
    beat(world, "abc");
    ask(&nodes[A], &nodes[C]);
    beat(world, "ab");
    assert_true(sees(&nodes[A], &nodes[C], &seen) && !seen.is_here && seen.has_report);
    clock_manual_advance(&world->clock, UINT64_C(23) * 3600 * 1000000);
    beat(world, "ab");
    assert_true(sees(&nodes[A], &nodes[C], &seen));
    assert_true(seen.heard_ago_us >= UINT64_C(23) * 3600 * 1000000);
    clock_manual_advance(&world->clock, UINT64_C(2) * 3600 * 1000000);
    beat(world, "ab");
    assert_false(sees(&nodes[A], &nodes[C], &seen));
}

/* Others know a later number than a node whose clock was set back and that has forgotten its own. */
static void numbers_grow_though_a_clock_steps_back(void **state) {
    struct world *world = *state;
    struct node *nodes = world->nodes;
    struct reports_node seen;
    beat(world, "ab");
    ask(&nodes[B], &nodes[A]);
    uint64_t before = sees(&nodes[B], &nodes[A], &seen) ? seen.number : 0;
    reports_free(nodes[A].reports);
    world->clock.wall_now_us -= INT64_C(3600) * 1000000;
    make_reports(world, &nodes[A]);
    nodes[A].captures = 99;
    beat(world, "ab");
    ask(&nodes[A], &nodes[B]);
    clock_manual_advance(&world->clock, 2000000);
    beat(world, "ab");
    ask(&nodes[B], &nodes[A]);
    assert_true(sees(&nodes[B], &nodes[A], &seen));
    assert_true(seen.number > before && seen.report.values[NODE_REPORT_CAPTURES] == 99);
}

static void what_its_node_has_not_signed_is_a_fault(void **state) {
    struct world *world = *state;
    struct node *nodes = world->nodes;
    struct reports_node seen;
    struct buf question;
    struct buf answer;
    beat(world, "abc");
    ask(&nodes[B], &nodes[C]);
    buf_init(&question, PEER_RPC_QUESTION_SIZE_MAX);
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    reports_put_question(nodes[A].reports, &question);
    assert_int_equal(reports_answer(nodes[B].reports, &nodes[A].peer, buf_bytes(&question), &answer, NULL),
                     ERR_OK);
    answer.data[answer.size - 1] ^= 1; /* in the signature of the last one */
    assert_int_equal(reports_take_answer(nodes[A].reports, &nodes[B].peer, 0, buf_bytes(&answer), NULL),
                     ERR_MISMATCH);
    assert_true(sees(&nodes[A], &nodes[C], &seen) && !seen.has_report);
    answer.data[answer.size - 1] ^= 1;
    for (size_t i = 8; i < answer.size; i++) { /* what stands before is the clock of the other */
        answer.data[i] ^= 0x40;
        (void)!reports_take_answer(nodes[A].reports, &nodes[B].peer, 0, buf_bytes(&answer), NULL);
        answer.data[i] ^= 0x40;
        bool is_seen = sees(&nodes[A], &nodes[C], &seen);
        assert_true(is_seen && (!seen.has_report || seen.report.values[NODE_REPORT_CAPTURES] ==
                                                        30)); /* only the age is not signed */
    }
    assert_int_equal(reports_take_answer(nodes[A].reports, &nodes[B].peer, 0, buf_bytes(&answer), NULL),
                     ERR_OK);
    assert_true(sees(&nodes[A], &nodes[C], &seen) && seen.has_report);
    buf_clear(&answer);
    buf_clear(&question);
    buf_put_byte(&question, 2);
    assert_int_equal(reports_answer(nodes[B].reports, &nodes[A].peer, buf_bytes(&question), &answer, NULL),
                     ERR_INVALID);
    assert_int_equal(reports_answer(nodes[B].reports, &nodes[A].peer, bytes_of(NULL, 0), &answer, NULL),
                     ERR_INVALID);
    buf_done(&question);
    buf_done(&answer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_report_goes_on_from_node_to_node_with_its_age, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_is_not_in_the_ring_has_no_report_here, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_has_gone_keeps_its_last_word_for_a_day, set_up, tear_down),
        cmocka_unit_test_setup_teardown(numbers_grow_though_a_clock_steps_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_its_node_has_not_signed_is_a_fault, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
