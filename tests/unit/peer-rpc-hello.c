/* peer_rpc, hellos: streams between nodes of several versions, and with nodes that know no hello. */
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "await.h"
#include "net/socket_address.h"
#include "net/stream.h"
#include "node/rpc/peer_rpc_state.h"
#include "unit.h"

enum { TIMEOUT_MS = 20000, NODES_COUNT = 5 };

/* Which versions they speak; 0: a node of before hellos. */
static const uint16_t ranges[NODES_COUNT][2] = {{1, 2}, {2, 3}, {1, 1}, {0, 0}, {1, 2}};
enum { BOTH, LATER, FIRST, OLD, PLAIN }; /* PLAIN: it says hello, and has no TLS */

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
    struct dialect own = {.lowest = range[0], .highest = range[1], .program = "9.9"};
    own.features = dialect_of_program.features & ~((uint64_t)(node == &nodes[PLAIN]) << DIALECT_TLS);
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

/* ---- TLS ---- */

static struct ring_view_rpc stat_of(int node) {
    struct ring_view_rpc stat;
    peer_rpc_stat(nodes[node].peer_rpc, &stat);
    return stat;
}

static void two_nodes_with_tls_use_it(void **state) {
    (void)state;
    assert_int_equal(ask(BOTH, LATER), ERR_OK);
    assert_int_equal(ask(BOTH, FIRST), ERR_OK);
    assert_int_equal(stat_of(BOTH).first_count + stat_of(LATER).first_count + stat_of(FIRST).first_count, 0);
}

static void a_node_without_tls_is_asked_as_before(void **state) {
    (void)state;
    static const int without[] = {OLD, PLAIN};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(ask(BOTH, without[i]), ERR_OK);
        assert_int_equal(nodes[without[i]].asked_count, 1);
        assert_int_equal(stat_of(BOTH).first_count, i + 1);
    }
    assert_int_equal(ask(PLAIN, FIRST), ERR_OK);
    assert_int_equal(stat_of(BOTH).weak_count + stat_of(FIRST).weak_count, 0);
}

/* It had no TLS when it was last heard of: the first stream finds out, and nobody notices. */
static void a_node_that_has_been_upgraded_is_asked_in_tls(void **state) {
    (void)state;
    assert_int_equal(dialects_hear_none(nodes[BOTH].dialects, &nodes[FIRST].peer), 1);
    assert_int_equal(ask(BOTH, FIRST), ERR_OK);
    assert_int_equal(nodes[FIRST].asked_count, 1);
    assert_int_equal(stat_of(BOTH).first_count, 1);
    assert_int_equal(stat_of(BOTH).weak_count, 1);
    assert_int_equal(ask(FIRST, BOTH), ERR_OK); /* over the stream in TLS */
    assert_int_equal(stat_of(FIRST).first_count, 1);
}

/* And one that had it: the stream is closed by a program that knows nothing of TLS. */
static void a_node_that_has_become_older_is_asked_as_before(void **state) {
    (void)state;
    (void)dialects_hear(nodes[BOTH].dialects, &nodes[OLD].peer, &dialect_of_program);
    assert_int_equal(ask(BOTH, OLD), ERR_OK);
    assert_int_equal(nodes[OLD].asked_count, 1);
}

/*
 * Somebody in the middle: closes what is in TLS, and passes everything else on, as if the other side were an
 * older program.
 */
struct middle {
    int listener;
    struct address address;
    struct address target;
    pthread_t thread;
    _Atomic bool is_ending;
    _Atomic size_t closed_count;
    _Atomic size_t passed_count;
};

static int middle_socket(const struct address *address, bool is_listener) {
    struct sockaddr_storage name;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    const struct sockaddr *at = socket_address_put(address, &name);
    if (is_listener) {
        assert_int_equal(bind(fd, at, sizeof(struct sockaddr_in)), 0);
        assert_int_equal(listen(fd, 8), 0);
    } else {
        assert_int_equal(connect(fd, at, sizeof(struct sockaddr_in)), 0);
    }
    return fd;
}

/* Both ways until either side goes away. */
static void middle_pass(struct middle *middle, int from) {
    int to = middle_socket(&middle->target, false);
    struct pollfd polls[2] = {{.fd = from, .events = POLLIN}, {.fd = to, .events = POLLIN}};
    bool is_over = false;
    while (!is_over && !middle->is_ending) {
        (void)poll(polls, 2, 20);
        for (size_t i = 0; i < 2; i++) {
            uint8_t bytes[4096];
            if (polls[i].revents != 0) {
                ssize_t size = recv(polls[i].fd, bytes, sizeof bytes, 0);
                is_over |= size <= 0 || send(polls[1 - i].fd, bytes, (size_t)size, MSG_NOSIGNAL) != size;
            }
        }
    }
    close(to);
}

static void *middle_run(void *context) {
    struct middle *middle = context;
    struct pollfd poll_listener = {.fd = middle->listener, .events = POLLIN};
    while (!middle->is_ending) {
        uint8_t first;
        if (poll(&poll_listener, 1, 20) <= 0) {
            continue;
        }
        int fd = accept(middle->listener, NULL, NULL);
        if (recv(fd, &first, 1, MSG_PEEK) == 1 && first != TLS_FIRST_BYTE) {
            middle->passed_count++;
            middle_pass(middle, fd);
        } else {
            middle->closed_count++;
        }
        close(fd);
    }
    return NULL;
}

static void middle_start(struct middle *middle, const struct address *target) {
    struct sockaddr_storage name;
    socklen_t name_size = sizeof name;
    *middle = (struct middle){.target = *target};
    struct address any = address_ipv4(127, 0, 0, 9, 0);
    middle->listener = middle_socket(&any, true);
    assert_int_equal(getsockname(middle->listener, (struct sockaddr *)&name, &name_size), 0);
    assert_true(socket_address_get((struct sockaddr *)&name, &middle->address));
    assert_int_equal(pthread_create(&middle->thread, NULL, middle_run, middle), 0);
}

static void middle_stop(struct middle *middle) {
    middle->is_ending = true;
    pthread_join(middle->thread, NULL);
    close(middle->listener);
}

static void nobody_in_the_middle_can_keep_two_nodes_from_tls(void **state) {
    (void)state;
    struct middle middle;
    struct address real = nodes[FIRST].peer.address;
    middle_start(&middle, &real);
    nodes[FIRST].peer.address = middle.address;
    assert_int_equal(ask(BOTH, FIRST), ERR_CLOSED);
    assert_int_equal(ask(BOTH, FIRST), ERR_CLOSED); /* with what is known now, too */
    assert_true(middle.closed_count > 0);
    assert_true(middle.passed_count > 0);
    assert_true(stat_of(BOTH).weak_count > 0);
    assert_true(stat_of(FIRST).weak_count > 0);
    assert_int_equal(nodes[FIRST].asked_count, 0); /* not a word but the hello */
    middle_stop(&middle);
    nodes[FIRST].peer.address = real;
    assert_int_equal(ask(BOTH, FIRST), ERR_OK);
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
        cmocka_unit_test_setup_teardown(two_nodes_with_tls_use_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_node_without_tls_is_asked_as_before, setup, teardown),
        cmocka_unit_test_setup_teardown(a_node_that_has_been_upgraded_is_asked_in_tls, setup, teardown),
        cmocka_unit_test_setup_teardown(a_node_that_has_become_older_is_asked_as_before, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_in_the_middle_can_keep_two_nodes_from_tls, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
