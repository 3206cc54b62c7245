/* peer_rpc, hellos: streams between nodes of several versions, and with nodes that know no hello. */
#include <stdatomic.h>
#include <stdlib.h>

#include "await.h"
#include "net/stream.h"
#include "node/rpc/peer_rpc_state.h"
#include "unit.h"

enum { TIMEOUT_MS = 20000, NODES_COUNT = 4 };

/* Which versions they speak; 0: a node of before hellos. */
static const uint16_t ranges[NODES_COUNT][2] = {{1, 2}, {2, 3}, {1, 1}, {0, 0}};
enum { BOTH, LATER, FIRST, OLD };

struct node {
    struct identity identity;
    struct dialects *dialects;
    struct peer_rpc *peer_rpc;
    struct peer peer;
    _Atomic size_t refused_count;
    char reason[DIALECTS_TEXT_SIZE_MAX];
    _Atomic size_t asked_count;
    _Atomic bool is_blamed;
};

static struct node nodes[NODES_COUNT];

static void refuse(void *context, const struct peer *peer, const char *reason) {
    struct node *node = context;
    (void)peer;
    snprintf(node->reason, sizeof node->reason, "%s", reason);
    node->refused_count++;
}

static void blame(void *context, const struct peer *peer, const char *sentence) {
    struct node *node = context;
    (void)peer;
    (void)sentence;
    node->is_blamed = true;
}

static enum err echo(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                     struct err_detail *detail) {
    struct node *node = context;
    (void)from;
    (void)detail;
    node->asked_count++;
    return buf_put(answer, question);
}

static void start_node(struct node *node, unsigned host, const uint16_t range[2]) {
    struct dialect own = {.lowest = range[0], .highest = range[1], .features = 7, .program = "9.9"};
    struct peer_rpc_config config = {
        .identity = &node->identity, .refuse = refuse, .blame = blame, .context = node};
    assert_int_equal(identity_random(&node->identity), ERR_OK);
    config.address = address_ipv4(127, 0, 0, (uint8_t)host, 0);
    if (range[0] > 0) {
        config.dialects = node->dialects = dialects_new(&own, NULL);
        assert_non_null(node->dialects);
    }
    assert_int_equal(peer_rpc_new(&config, &node->peer_rpc, NULL), ERR_OK);
    peer_rpc_serve(node->peer_rpc, PEER_RPC_PING, echo, node);
    node->peer.address = peer_rpc_address(node->peer_rpc);
    memcpy(node->peer.key, node->identity.key, PEER_KEY_SIZE);
    assert_int_equal(peer_rpc_start(node->peer_rpc, NULL), ERR_OK);
}

static int setup(void **state) {
    (void)state;
    memset(nodes, 0, sizeof nodes);
    for (unsigned i = 0; i < NODES_COUNT; i++) {
        start_node(&nodes[i], i + 2, ranges[i]);
    }
    return 0;
}

static int teardown(void **state) {
    (void)state;
    for (unsigned i = 0; i < NODES_COUNT; i++) {
        peer_rpc_stop(nodes[i].peer_rpc);
        peer_rpc_free(nodes[i].peer_rpc);
        dialects_free(nodes[i].dialects);
    }
    return 0;
}

static enum err ask(int from, int to) {
    struct buf answer;
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    enum err err = peer_rpc_ask(nodes[from].peer_rpc, &nodes[to].peer, PEER_RPC_PING, BYTES("word"),
                                TIMEOUT_MS, &answer, NULL);
    assert_true(err != ERR_OK || bytes_equal(buf_bytes(&answer), BYTES("word")));
    buf_done(&answer);
    return err;
}

static uint16_t spoken(int by, int with) {
    struct dialects_known known = dialects_find(nodes[by].dialects, &nodes[with].peer);
    return known.is_known ? known.version : UINT16_MAX;
}

static bool is_settled_both(void) {
    return spoken(BOTH, LATER) == 2 && spoken(LATER, BOTH) == 2;
}

static void both_learn_what_the_other_speaks(void **state) {
    (void)state;
    assert_int_equal(ask(BOTH, LATER), ERR_OK);
    await_that(is_settled_both());
    assert_true(dialects_has(nodes[LATER].dialects, &nodes[BOTH].peer, DIALECT_KEEPS_LATER));
    assert_int_equal(ask(LATER, BOTH), ERR_OK); /* over the same stream */
    assert_int_equal(nodes[BOTH].refused_count + nodes[LATER].refused_count, 0);
}

static void a_node_that_cannot_speak_version_1_waits_for_the_hello(void **state) {
    (void)state;
    assert_int_equal(ask(LATER, BOTH), ERR_OK);
    await_that(is_settled_both());
}

static bool are_both_told(const int pair[2]) {
    return nodes[pair[0]].refused_count > 0 && nodes[pair[1]].refused_count > 0;
}

static void without_a_common_version_nothing_is_asked_and_both_are_told(void **state) {
    (void)state;
    static const int pairs[][2] = {{LATER, FIRST}, {FIRST, LATER}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        nodes[LATER].refused_count = nodes[FIRST].refused_count = 0;
        assert_int_equal(ask(pairs[i][0], pairs[i][1]), ERR_UNSUPPORTED);
        await_that(are_both_told(pairs[i]));
    }
    assert_string_equal(nodes[LATER].reason, "it speaks version 1 of the protocol, this node 2 to 3");
    assert_string_equal(nodes[FIRST].reason, "it speaks versions 2 to 3 of the protocol, this node 1");
    assert_int_equal(nodes[LATER].asked_count + nodes[FIRST].asked_count, 0);
    assert_false(nodes[LATER].is_blamed || nodes[FIRST].is_blamed);
}

static bool is_old_known(void) {
    return spoken(BOTH, OLD) == 1;
}

static void a_node_that_knows_no_hello_is_one_of_version_1(void **state) {
    (void)state;
    assert_int_equal(ask(BOTH, OLD), ERR_OK);
    await_that(is_old_known());
    assert_false(dialects_find(nodes[BOTH].dialects, &nodes[OLD].peer).is_said);
    assert_int_equal(nodes[BOTH].refused_count, 0);
    assert_int_equal(nodes[OLD].asked_count, 1);
}

static void and_so_is_one_that_asks_without_it(void **state) {
    (void)state;
    assert_int_equal(ask(OLD, BOTH), ERR_OK);
    assert_true(is_old_known());
    assert_int_equal(ask(OLD, LATER), ERR_UNSUPPORTED);
    assert_int_equal(nodes[LATER].asked_count, 0);
    assert_string_equal(nodes[LATER].reason, "it speaks version 1 of the protocol, this node 2 to 3");
    assert_int_equal(ask(LATER, OLD), ERR_UNSUPPORTED);
    assert_int_equal(nodes[OLD].asked_count, 0);
}

/* It is told of its mistake, and stays one of whom nothing is known. */
static void a_hello_that_is_none_fails(void **state) {
    struct buf answer;
    (void)state;
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    enum err err = peer_rpc_ask(nodes[OLD].peer_rpc, &nodes[BOTH].peer, PEER_RPC_HELLO, BYTES("\1\0\0"),
                                TIMEOUT_MS, &answer, NULL);
    assert_int_equal(err, ERR_TRUNCATED);
    assert_int_equal(spoken(BOTH, OLD), UINT16_MAX);
    buf_done(&answer);
}

/* What a node answers that knows the number and not the form. */
static enum err nonsense(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                         struct err_detail *detail) {
    (void)context;
    (void)from;
    (void)question;
    (void)detail;
    return buf_put_string(answer, "no");
}

static void an_answer_that_is_none_is_blamed(void **state) {
    (void)state;
    peer_rpc_serve(nodes[OLD].peer_rpc, PEER_RPC_HELLO, nonsense, NULL);
    (void)!ask(BOTH, OLD);
    await_that(nodes[BOTH].is_blamed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_learn_what_the_other_speaks, setup, teardown),
        cmocka_unit_test_setup_teardown(a_node_that_cannot_speak_version_1_waits_for_the_hello, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(without_a_common_version_nothing_is_asked_and_both_are_told, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_node_that_knows_no_hello_is_one_of_version_1, setup, teardown),
        cmocka_unit_test_setup_teardown(and_so_is_one_that_asks_without_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_hello_that_is_none_fails, setup, teardown),
        cmocka_unit_test_setup_teardown(an_answer_that_is_none_is_blamed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
