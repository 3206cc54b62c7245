/* bulk: real threads, real streams on loopback; peers that fail, stall, flood and are strangers. */
#include "node/rpc/peer_rpc.h"

#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <unistd.h>

#include "await.h"
#include "net/stream.h"
#include "node/rpc/peer_rpc_state.h"
#include "unit.h"

enum { NODES_MAX = 4, TIMEOUT_MS = 20000, SHORT_MS = 100 };

struct node {
    struct identity identity;
    struct peer_rpc *peer_rpc;
    struct peer peer;
    const struct identity *stranger; /* whom it does not admit */
    char blame[128];
    size_t answers_count;
    size_t piece_size;
};

static struct node nodes[NODES_MAX];

static bool admits(void *context, const struct peer *peer) {
    const struct node *node = context;
    return node->stranger == NULL || memcmp(peer->key, node->stranger->key, PEER_KEY_SIZE) != 0;
}

static void blame(void *context, const struct peer *peer, const char *sentence) {
    struct node *node = context;
    (void)peer;
    snprintf(node->blame, sizeof node->blame, "%s", sentence);
}

static enum err echo(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                     struct err_detail *detail) {
    struct node *node = context;
    (void)from;
    (void)detail;
    node->answers_count++;
    return buf_put(answer, question);
}

static enum err refuse(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                       struct err_detail *detail) {
    (void)context;
    (void)from;
    (void)question;
    (void)answer;
    return err_set(detail, ERR_NO_SPACE, "the disk is full");
}

/* Answers come later, the last question first. */
enum { LATER_COUNT = 3 };
static struct {
    struct peer_rpc_ticket tickets[LATER_COUNT];
    size_t count;
} later;

static enum err answer_later(void *context, const struct peer *from, struct bytes question,
                             struct buf *answer, struct err_detail *detail) {
    struct node *node = context;
    (void)from;
    (void)question;
    (void)detail;
    later.tickets[later.count++] = peer_rpc_defer(node->peer_rpc);
    while (later.count == LATER_COUNT && node->answers_count < LATER_COUNT) {
        struct err_detail why = {0};
        size_t i = LATER_COUNT - 1 - node->answers_count++;
        enum err err = i == 0 ? err_set(&why, ERR_NO_SPACE, "the disk is full") : ERR_OK;
        peer_rpc_give(node->peer_rpc, &later.tickets[i], err, BYTES("later"), &why);
    }
    return buf_put_string(answer, "not this");
}

/* As many bytes as the node was told to give. */
static enum err give(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                     struct err_detail *detail) {
    struct node *node = context;
    (void)from;
    (void)detail;
    enum err err = buf_reserve(answer, node->piece_size);
    if (err == ERR_OK) {
        memset(answer->data + answer->size, question.size > 0 ? question.data[0] : 0, node->piece_size);
        answer->size += node->piece_size;
    }
    return err;
}

/* As what readers ask: the question says what. */
static enum err read_out(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                         struct err_detail *detail) {
    struct node *node = context;
    enum peer_rpc_read read = question.size == 0                          ? PEER_RPC_READ_CAPTURE
                              : bytes_equal(question, BYTES("a listing")) ? PEER_RPC_READ_LIST
                                                                          : PEER_RPC_READ_ON;
    enum err err = peer_rpc_begin_read(node->peer_rpc, from, read, detail);
    return err == ERR_OK ? buf_put_string(answer, "read") : err;
}

static void start_node(struct node *node, unsigned host, uint64_t rate) {
    struct peer_rpc_config config = {
        .identity = &node->identity, .upload_rate = rate, .admits = admits, .blame = blame, .context = node};
    char text[32];
    snprintf(text, sizeof text, "127.0.0.%u", host);
    assert_int_equal(identity_random(&node->identity), ERR_OK);
    assert_true(address_parse(bytes_of_string(text), 0, &config.address));
    assert_int_equal(peer_rpc_new(&config, &node->peer_rpc, NULL), ERR_OK);
    peer_rpc_serve(node->peer_rpc, PEER_RPC_PING, echo, node);
    peer_rpc_serve(node->peer_rpc, PEER_RPC_CONFIRM, refuse, node);
    peer_rpc_serve(node->peer_rpc, PEER_RPC_CAPTURE, give, node);
    peer_rpc_serve(node->peer_rpc, PEER_RPC_SEARCH, answer_later, node);
    peer_rpc_serve(node->peer_rpc, PEER_RPC_WALK, read_out, node);
    node->peer.address = stream_server_address(node->peer_rpc->server);
    memcpy(node->peer.key, node->identity.key, PEER_KEY_SIZE);
    assert_int_equal(peer_rpc_start(node->peer_rpc, NULL), ERR_OK);
}

static int setup(void **state) {
    memset(nodes, 0, sizeof nodes);
    for (unsigned i = 0; i < NODES_MAX; i++) {
        start_node(&nodes[i], i + 2, 0);
    }
    *state = nodes;
    return 0;
}

static void stop_node(struct node *node) {
    if (node->peer_rpc != NULL) {
        peer_rpc_stop(node->peer_rpc);
        peer_rpc_free(node->peer_rpc);
        node->peer_rpc = NULL;
    }
}

static int teardown(void **state) {
    (void)state;
    for (unsigned i = 0; i < NODES_MAX; i++) {
        stop_node(&nodes[i]);
    }
    return 0;
}

static enum err ask(struct node *from, const struct node *to, enum peer_rpc_service service,
                    const char *question, struct buf *answer) {
    return peer_rpc_ask(from->peer_rpc, &to->peer, service, bytes_of_string(question), TIMEOUT_MS, answer,
                        NULL);
}

static void answers_go_both_ways_over_one_stream(void **state) {
    struct buf answer;
    struct ring_view_rpc stat;
    (void)state;
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(ask(&nodes[0], &nodes[1], PEER_RPC_PING, "hello", &answer), ERR_OK);
        assert_true(bytes_equal(buf_bytes(&answer), BYTES("hello")));
        assert_int_equal(ask(&nodes[1], &nodes[0], PEER_RPC_PING, "back", &answer), ERR_OK);
        assert_true(bytes_equal(buf_bytes(&answer), BYTES("back")));
    }
    peer_rpc_stat(nodes[0].peer_rpc, &stat);
    assert_int_equal(stat.streams_count, 1);
    assert_int_equal(stat.questions_count, 100);
    assert_int_equal(stat.answers_count, 100);
    assert_int_equal(stat.failed_count, 0);
    assert_true(peer_rpc_round_trip_us(nodes[0].peer_rpc, &nodes[1].peer) > 0);
    buf_done(&answer);
}

static void errors_of_the_other_side_come_back(void **state) {
    struct buf answer;
    (void)state;
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    assert_int_equal(ask(&nodes[0], &nodes[1], PEER_RPC_CONFIRM, "", &answer), ERR_NO_SPACE);
    assert_int_equal(ask(&nodes[0], &nodes[1], PEER_RPC_DECREES, "", &answer), ERR_UNSUPPORTED);
    assert_int_equal(ask(&nodes[0], &nodes[0], PEER_RPC_PING, "", &answer), ERR_INVALID);
    struct peer nobody = nodes[1].peer;
    stop_node(&nodes[1]);
    enum err err =
        peer_rpc_ask(nodes[0].peer_rpc, &nobody, PEER_RPC_PING, BYTES(""), TIMEOUT_MS, &answer, NULL);
    assert_true(err == ERR_CLOSED || err == ERR_REFUSED || err == ERR_UNREACHABLE || err == ERR_TRUNCATED);
    buf_done(&answer);
}

struct waiting {
    enum err err;
    bool is_right;
    _Atomic bool is_over;
};

static void on_later(void *context, enum err err, struct bytes answer) {
    struct waiting *waiting = context;
    waiting->err = err;
    waiting->is_right = bytes_equal(answer, err == ERR_OK ? BYTES("later") : BYTES(""));
    waiting->is_over = true;
}

static struct waiting waiting[LATER_COUNT];

static void ask_thrice(void *context) {
    (void)context;
    for (size_t i = 0; i < LATER_COUNT; i++) {
        assert_int_equal(peer_rpc_call(nodes[0].peer_rpc, &nodes[1].peer, PEER_RPC_SEARCH, BYTES(""),
                                       TIMEOUT_MS, on_later, &waiting[i]),
                         ERR_OK);
    }
}

static void give_to_nobody(void *context) {
    struct peer_rpc_ticket gone = {.line = 1000000, .number = 1, .service = PEER_RPC_SEARCH};
    (void)context;
    peer_rpc_give(nodes[2].peer_rpc, &gone, ERR_OK, BYTES("nobody"), NULL);
}

static void an_answer_may_come_later(void **state) {
    struct buf answer;
    (void)state;
    later.count = 0;
    memset(waiting, 0, sizeof waiting);
    assert_int_equal(peer_rpc_post(nodes[0].peer_rpc, ask_thrice, NULL), ERR_OK);
    await_that(waiting[0].is_over && waiting[1].is_over && waiting[2].is_over);
    assert_int_equal(waiting[0].err, ERR_NO_SPACE);
    assert_int_equal(waiting[1].err, ERR_OK);
    assert_true(waiting[0].is_right && waiting[1].is_right && waiting[2].is_right);

    /* To an asker that has gone nothing is given, and the next one is answered as ever. */
    assert_int_equal(peer_rpc_post(nodes[2].peer_rpc, give_to_nobody, NULL), ERR_OK);
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    assert_int_equal(ask(&nodes[0], &nodes[2], PEER_RPC_PING, "hello", &answer), ERR_OK);
    buf_done(&answer);
}

static void the_first_good_answer_wins(void **state) {
    struct buf answer;
    struct peer peers[NODES_MAX - 1];
    size_t index;
    (void)state;
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    for (size_t i = 1; i < NODES_MAX; i++) {
        peers[i - 1] = nodes[i].peer;
    }
    stop_node(&nodes[1]);
    stop_node(&nodes[2]);
    assert_int_equal(peer_rpc_ask_any(nodes[0].peer_rpc, peers, NODES_MAX - 1, PEER_RPC_PING, BYTES("x"),
                                      TIMEOUT_MS, NULL, NULL, &answer, &index, NULL),
                     ERR_OK);
    assert_int_equal(index, 2);
    buf_done(&answer);
}

static void strangers_are_not_heard(void **state) {
    struct buf answer;
    struct ring_view_rpc stat;
    (void)state;
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    nodes[1].stranger = &nodes[0].identity;
    assert_int_not_equal(ask(&nodes[0], &nodes[1], PEER_RPC_PING, "hello", &answer), ERR_OK);
    peer_rpc_stat(nodes[1].peer_rpc, &stat);
    assert_int_equal(stat.refused_count, 1);
    assert_int_equal(nodes[1].answers_count, 0);
    assert_int_equal(ask(&nodes[1], &nodes[0], PEER_RPC_PING, "hello", &answer), ERR_PERMISSION);
    buf_done(&answer);
}

/* A listener that accepts and then says nothing. */
static void who_is_silent_is_given_up(void **state) {
    struct stream_server *server;
    struct stream_server_config config = {.stream = {.identity = &nodes[1].identity}};
    uv_loop_t loop;
    struct buf answer;
    (void)state;
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    uv_loop_init(&loop);
    config.stream.loop = &loop;
    assert_true(address_parse(BYTES("127.0.0.9"), 0, &config.address));
    assert_int_equal(stream_server_new(&config, &server, NULL), ERR_OK);
    struct peer silent = nodes[1].peer;
    silent.address = stream_server_address(server);
    assert_int_equal(
        peer_rpc_ask(nodes[0].peer_rpc, &silent, PEER_RPC_PING, BYTES(""), SHORT_MS, &answer, NULL),
        ERR_TIMEOUT);
    stream_server_free(server);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    buf_done(&answer);
}

struct flood {
    struct peer_rpc *peer_rpc;
    const struct peer *peer;
    size_t done_count;
    size_t bad_count;
    bool is_over;
    pthread_mutex_t lock;
};

enum { PIECES_COUNT = 200 };

static void on_piece(void *context, enum err err, struct bytes answer) {
    struct flood *flood = context;
    bool is_good =
        err == ERR_OK && answer.size == PEER_RPC_PIECE_SIZE_MAX && answer.data[answer.size - 1] == 'p';
    pthread_mutex_lock(&flood->lock);
    flood->bad_count += !is_good;
    flood->is_over = ++flood->done_count == PIECES_COUNT;
    pthread_mutex_unlock(&flood->lock);
}

static void ask_for_all(void *context) {
    struct flood *flood = context;
    for (int i = 0; i < PIECES_COUNT; i++) {
        assert_int_equal(peer_rpc_call(flood->peer_rpc, flood->peer, PEER_RPC_CAPTURE, BYTES("p"), TIMEOUT_MS,
                                       on_piece, flood),
                         ERR_OK);
    }
}

static bool flood_is_over(struct flood *flood) {
    pthread_mutex_lock(&flood->lock);
    bool is_over = flood->is_over;
    pthread_mutex_unlock(&flood->lock);
    return is_over;
}

/* 200 pieces of a mebibyte asked for at once: all come, and the sender never queues them all. */
static void many_pieces_come_whole(void **state) {
    struct flood flood = {.peer_rpc = nodes[0].peer_rpc, .peer = &nodes[1].peer};
    (void)state;
    pthread_mutex_init(&flood.lock, NULL);
    nodes[1].piece_size = PEER_RPC_PIECE_SIZE_MAX;
    assert_int_equal(peer_rpc_post(nodes[0].peer_rpc, ask_for_all, &flood), ERR_OK);
    await_that(flood_is_over(&flood));
    assert_int_equal(flood.bad_count, 0);
    pthread_mutex_destroy(&flood.lock);
}

/* The rate is that of all bytes together. */
static void the_rate_is_kept(void **state) {
    struct node *slow = &nodes[2];
    struct buf answer;
    (void)state;
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    stop_node(slow);
    start_node(slow, 4, 1 << 20);
    slow->piece_size = 1 << 19;
    assert_int_equal(ask(&nodes[0], slow, PEER_RPC_PING, "open", &answer), ERR_OK);
    uint64_t start_us = clock_monotonic_us(&clock_system);
    assert_int_equal(ask(&nodes[0], slow, PEER_RPC_CAPTURE, "p", &answer), ERR_OK);
    uint64_t took_us = clock_monotonic_us(&clock_system) - start_us;
    assert_true(took_us > 300000); /* half a second's worth, less the burst */
    buf_done(&answer);
}

static void on_never(void *context, enum err err, struct bytes answer) {
    bool *is_cancelled = context;
    (void)answer;
    *is_cancelled = err != ERR_OK;
}

static void call_into_the_void(void *context) {
    struct peer nobody = nodes[1].peer;
    nobody.address.port = 1;
    nobody.key[0] ^= 1;
    assert_int_equal(
        peer_rpc_call(nodes[0].peer_rpc, &nobody, PEER_RPC_PING, BYTES(""), TIMEOUT_MS, on_never, context),
        ERR_OK);
}

static void stopping_ends_what_waits(void **state) {
    bool is_cancelled = false;
    struct buf answer;
    (void)state;
    assert_int_equal(peer_rpc_post(nodes[0].peer_rpc, call_into_the_void, &is_cancelled), ERR_OK);
    peer_rpc_stop(nodes[0].peer_rpc);
    assert_true(is_cancelled);
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    assert_int_equal(ask(&nodes[0], &nodes[1], PEER_RPC_PING, "", &answer), ERR_CLOSED);
    buf_done(&answer);
}

/* A member that sends bytes which are no messages. */
struct rude {
    const char *bytes;
    size_t size;
    bool is_closed;
};

static void rude_on_open(void *context, struct stream *stream) {
    struct rude *rude = context;
    assert_int_equal(stream_write(stream, bytes_of(rude->bytes, rude->size)), ERR_OK);
}

static void rude_on_closed(void *context, struct stream *stream, enum err err) {
    struct rude *rude = context;
    (void)stream;
    (void)err;
    rude->is_closed = true;
}

static void who_breaks_the_rules_is_cut_off_and_blamed(void **state) {
    static const char too_long[] = {0, 0, 0, 0x7f, 1, 0, 0, 0, PEER_RPC_QUESTION, PEER_RPC_PING};
    static const char unknown[] = {0, 0, 0, 0, 1, 0, 0, 0, PEER_RPC_FORMS_COUNT, 0};
    struct rude rudes[] = {{too_long, sizeof too_long, false}, {unknown, sizeof unknown, false}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct identity identity;
        struct stream *stream;
        uv_loop_t loop;
        uv_loop_init(&loop);
        assert_int_equal(identity_random(&identity), ERR_OK);
        struct stream_config config = {.loop = &loop, .identity = &identity};
        struct stream_events events = {.on_open = rude_on_open, .on_closed = rude_on_closed};
        nodes[1].blame[0] = '\0';
        assert_int_equal(stream_connect(&config, &nodes[1].peer, &events, &rudes[i], &stream), ERR_OK);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_true(rudes[i].is_closed);
        assert_int_equal(uv_loop_close(&loop), 0);
        peer_rpc_stop(nodes[1].peer_rpc);
        assert_string_equal(nodes[1].blame, "sent a message over a stream that is none");
        stop_node(&nodes[1]);
        start_node(&nodes[1], 3, 0);
    }
}

/* ---- too much ---- */

static enum err read_from(struct node *node, struct bytes question, struct buf *answer) {
    return peer_rpc_ask(nodes[0].peer_rpc, &node->peer, PEER_RPC_WALK, question, TIMEOUT_MS, answer, NULL);
}

/* What is above the rate is told so at once, by a word of its own; what was begun goes on. */
static void readers_above_the_rate_are_told_at_once(void **state) {
    enum { RATE = 50, ASKED = 400 };
    struct buf answer;
    struct ring_view_rpc stat;
    size_t busy_count = 0;
    (void)state;
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    nodes[1].peer_rpc->reads.rate = RATE; /* nobody has asked it yet */
    uint64_t from_us = clock_monotonic_us(&clock_system);
    for (size_t i = 0; i < ASKED; i++) {
        enum err err = read_from(&nodes[1], bytes_of(NULL, 0), &answer);
        assert_true(err == ERR_OK || err == ERR_BUSY);
        busy_count += err == ERR_BUSY;
    }
    uint64_t took_us = clock_monotonic_us(&clock_system) - from_us;
    peer_rpc_stat(nodes[1].peer_rpc, &stat);
    assert_int_equal(stat.shed_count, busy_count);
    assert_int_equal(stat.reads_count, ASKED - busy_count);
    assert_true(stat.reads_count <= RATE * took_us / 1000000 + RATE / 10 + 2);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(read_from(&nodes[1], BYTES("goes on"), &answer), ERR_OK);
    }
    peer_rpc_stat(nodes[1].peer_rpc, &stat);
    assert_int_equal(stat.shed_count, busy_count);
    buf_done(&answer);
}

/* Who was told is left alone for a while, longer where it comes again; one good answer ends it. */
static void who_is_busy_is_known_for_a_while(void **state) {
    struct buf answer;
    (void)state;
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    nodes[1].peer_rpc->reads.rate = 1;
    assert_int_equal(read_from(&nodes[1], bytes_of(NULL, 0), &answer), ERR_OK);
    assert_false(peer_rpc_is_busy(nodes[0].peer_rpc, &nodes[1].peer));
    for (size_t i = 0; i < 3; i++) { /* those that were under way are no further time */
        assert_int_equal(read_from(&nodes[1], bytes_of(NULL, 0), &answer), ERR_BUSY);
        assert_true(peer_rpc_is_busy(nodes[0].peer_rpc, &nodes[1].peer));
    }
    const struct standing *standing = &nodes[0].peer_rpc->standing;
    assert_int_equal(standing_count(standing, STANDING_BUSY, peer_key(&nodes[1].peer)), 1);
    await_that(!peer_rpc_is_busy(nodes[0].peer_rpc, &nodes[1].peer));
    assert_int_equal(read_from(&nodes[1], bytes_of(NULL, 0), &answer), ERR_BUSY);
    assert_int_equal(standing_count(standing, STANDING_BUSY, peer_key(&nodes[1].peer)), 2);
    assert_false(peer_rpc_is_busy(nodes[0].peer_rpc, &nodes[2].peer));
    assert_int_equal(read_from(&nodes[1], BYTES("goes on"), &answer), ERR_OK);
    assert_false(peer_rpc_is_busy(nodes[0].peer_rpc, &nodes[1].peer));
    assert_int_equal(nodes[0].blame[0], 0);
    buf_done(&answer);
}

/* Who got a listing gets a capture of it, whatever the others ask meanwhile; once. */
static void a_listing_is_not_given_in_vain(void **state) {
    struct buf answer;
    (void)state;
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    nodes[1].peer_rpc->reads.rate = 1;
    assert_int_equal(read_from(&nodes[1], BYTES("a listing"), &answer), ERR_OK);
    assert_int_equal(read_from(&nodes[1], BYTES("a listing"), &answer), ERR_BUSY);
    assert_int_equal(peer_rpc_ask(nodes[2].peer_rpc, &nodes[1].peer, PEER_RPC_WALK, bytes_of(NULL, 0),
                                  TIMEOUT_MS, &answer, NULL),
                     ERR_BUSY);
    assert_int_equal(read_from(&nodes[1], bytes_of(NULL, 0), &answer), ERR_OK);
    assert_int_equal(read_from(&nodes[1], bytes_of(NULL, 0), &answer), ERR_BUSY);
    buf_done(&answer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_go_both_ways_over_one_stream, setup, teardown),
        cmocka_unit_test_setup_teardown(errors_of_the_other_side_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(an_answer_may_come_later, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_good_answer_wins, setup, teardown),
        cmocka_unit_test_setup_teardown(strangers_are_not_heard, setup, teardown),
        cmocka_unit_test_setup_teardown(who_is_silent_is_given_up, setup, teardown),
        cmocka_unit_test_setup_teardown(many_pieces_come_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(the_rate_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(stopping_ends_what_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(readers_above_the_rate_are_told_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(who_is_busy_is_known_for_a_while, setup, teardown),
        cmocka_unit_test_setup_teardown(a_listing_is_not_given_in_vain, setup, teardown),
        cmocka_unit_test_setup_teardown(who_breaks_the_rules_is_cut_off_and_blamed, setup, teardown),
    };
    signal(SIGPIPE, SIG_IGN); /* as the program does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
