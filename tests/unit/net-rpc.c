/* rpc: over real sockets, with peers that lose, delay, repeat and forge answers. */
#include "net/rpc.h"

#include <stdlib.h>

#include "unit.h"

enum { TURNS_MAX = 2000000, CALLS_COUNT = 500 };

struct node {
    struct identity identity;
    struct datagram *datagram;
    struct rpc *rpc;
    struct peer peer;
    size_t requests_count;
    size_t drop_every; /* of the requests that come: 0 none, 1 all */
};

struct world {
    uv_loop_t loop;
    struct node nodes[3];
    /* What happened to the calls. */
    size_t done_count;
    size_t ok_count;
    size_t timeouts_count;
    size_t cancelled_count;
    size_t wrong_count; /* answers to another question */
};

/* One call of a test. */
struct call_record {
    struct world *world;
    uint32_t value;
    bool is_done;
    enum err err;
};

static void on_request(void *context, const struct rpc_ticket *ticket, struct bytes request) {
    struct node *node = context;
    node->requests_count++;
    if (node->drop_every > 0 && node->requests_count % node->drop_every == 0) {
        return;
    }
    rpc_answer(node->rpc, ticket, request);
}

static void on_message(void *context, const struct datagram_message *message) {
    struct node *node = context;
    if (node->rpc != NULL) {
        rpc_take(node->rpc, message);
    }
}

static void on_done(void *context, enum err err, struct bytes answer) {
    struct call_record *record = context;
    struct world *world = record->world;
    assert_false(record->is_done);
    record->is_done = true;
    record->err = err;
    world->done_count++;
    world->ok_count += err == ERR_OK;
    world->timeouts_count += err == ERR_TIMEOUT;
    world->cancelled_count += err == ERR_CANCELLED;
    if (err == ERR_OK) {
        world->wrong_count += !bytes_equal(answer, bytes_of(&record->value, sizeof record->value));
    } else {
        assert_int_equal(answer.size, 0);
    }
}

static int set_up(void **state) {
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    assert_int_equal(uv_loop_init(&world->loop), 0);
    for (uint8_t i = 0; i < 3; i++) {
        struct node *node = &world->nodes[i];
        struct datagram_config config = {
            .loop = &world->loop,
            .identity = &node->identity,
            .address = address_ipv4(127, 0, 0, (uint8_t)(2 + i), 0),
            .on_message = on_message,
            .context = node,
        };
        assert_int_equal(identity_random(&node->identity), ERR_OK);
        assert_int_equal(datagram_new(&config, &node->datagram, NULL), ERR_OK);
        node->peer.address = datagram_address(node->datagram);
        memcpy(node->peer.key, node->identity.key, PEER_KEY_SIZE);
        struct rpc_config rpc_config = {.loop = &world->loop, .datagram = node->datagram};
        rpc_config.on_request = on_request;
        rpc_config.context = node;
        rpc_config.tries_max = 6; /* the first are lost while addresses prove themselves */
        assert_int_equal(rpc_new(&rpc_config, &node->rpc), ERR_OK);
    }
    *state = world;
    return 0;
}

static int tear_down(void **state) {
    struct world *world = *state;
    for (size_t i = 0; i < 3; i++) {
        rpc_free(world->nodes[i].rpc);
        world->nodes[i].rpc = NULL;
        datagram_free(world->nodes[i].datagram);
    }
    uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    free(world);
    return 0;
}

static void ask(struct world *world, size_t from, size_t to, struct call_record *record, uint32_t value) {
    uint64_t number;
    *record = (struct call_record){.world = world, .value = value};
    assert_int_equal(rpc_call(world->nodes[from].rpc, &world->nodes[to].peer,
                              bytes_of(&record->value, sizeof record->value), on_done, record, &number),
                     ERR_OK);
}

static void run_until_done(struct world *world, size_t count) {
    for (size_t i = 0; i < TURNS_MAX && world->done_count < count; i++) {
        uv_run(&world->loop, UV_RUN_ONCE);
    }
    assert_int_equal(world->done_count, count);
}

static void every_question_gets_its_own_answer(void **state) {
    struct world *world = *state;
    struct call_record *records = calloc(CALLS_COUNT, sizeof *records);
    assert_non_null(records);
    for (uint32_t i = 0; i < CALLS_COUNT; i++) {
        ask(world, 0, 1 + i % 2, &records[i], i);
    }
    run_until_done(world, CALLS_COUNT);
    assert_int_equal(world->ok_count, CALLS_COUNT);
    assert_int_equal(world->wrong_count, 0);
    free(records);
}

static void what_is_lost_is_asked_again(void **state) {
    struct world *world = *state;
    struct call_record records[20];
    world->nodes[1].drop_every = 5;
    for (uint32_t i = 0; i < 20; i++) {
        ask(world, 0, 1, &records[i], i);
    }
    run_until_done(world, 20);
    assert_int_equal(world->ok_count, 20);
    assert_int_equal(world->wrong_count, 0);
    assert_true(rpc_stats(world->nodes[0].rpc)->repeated > 0);
}

static void a_window_bounds_what_is_under_way(void **state) {
    struct world *world = *state;
    struct call_record *records = calloc(CALLS_COUNT, sizeof *records);
    assert_non_null(records);
    world->nodes[1].drop_every = 1;
    for (uint32_t i = 0; i < CALLS_COUNT; i++) {
        ask(world, 0, 1, &records[i], i);
    }
    for (size_t i = 0; i < 100; i++) {
        uv_run(&world->loop, UV_RUN_NOWAIT);
    }
    assert_true(world->nodes[1].requests_count <= RPC_WINDOW_FIRST);
    rpc_free(world->nodes[0].rpc);
    world->nodes[0].rpc = NULL;
    assert_int_equal(world->cancelled_count, CALLS_COUNT);
    free(records);
}

static void more_calls_than_allowed_are_refused(void **state) {
    struct world *world = *state;
    struct call_record *records = calloc(1024, sizeof *records);
    uint64_t number;
    assert_non_null(records);
    for (uint32_t i = 0; i < 1024; i++) {
        ask(world, 0, 1, &records[i], i);
    }
    assert_int_equal(rpc_call(world->nodes[0].rpc, &world->nodes[1].peer, BYTES(""), on_done, NULL, &number),
                     ERR_BUSY);
    rpc_free(world->nodes[0].rpc);
    world->nodes[0].rpc = NULL;
    free(records);
}

static void silence_ends_and_a_cancelled_call_is_not_told(void **state) {
    struct world *world = *state;
    struct call_record silent;
    struct call_record cancelled = {.world = world};
    uint64_t number;
    struct rpc *rpc;
    struct rpc_config config = {.loop = &world->loop, .datagram = world->nodes[0].datagram, .tries_max = 2};
    assert_int_equal(rpc_new(&config, &rpc), ERR_OK);
    world->nodes[1].drop_every = 1;
    rpc_free(world->nodes[0].rpc);
    world->nodes[0].rpc = rpc;
    ask(world, 0, 1, &silent, 1);
    assert_int_equal(rpc_call(rpc, &world->nodes[1].peer, BYTES("x"), on_done, &cancelled, &number), ERR_OK);
    rpc_cancel(rpc, number);
    rpc_cancel(rpc, number);
    run_until_done(world, 1);
    assert_int_equal(world->timeouts_count, 1);
    assert_false(cancelled.is_done);
    assert_int_equal(rpc_stats(rpc)->timeouts, 1);
}

static void an_answer_of_somebody_else_is_dropped(void **state) {
    struct world *world = *state;
    struct call_record record;
    uint64_t number;
    world->nodes[1].drop_every = 1;
    record = (struct call_record){.world = world};
    assert_int_equal(
        rpc_call(world->nodes[0].rpc, &world->nodes[1].peer, BYTES(""), on_done, &record, &number), ERR_OK);
    struct rpc_ticket ticket = {.peer = world->nodes[0].peer, .number = number};
    rpc_answer(world->nodes[2].rpc, &ticket, BYTES("forged")); /* the right number, but from another */
    for (size_t i = 0; i < TURNS_MAX && rpc_stats(world->nodes[0].rpc)->late == 0; i++) {
        uv_run(&world->loop, UV_RUN_ONCE);
    }
    assert_int_equal(rpc_stats(world->nodes[0].rpc)->late, 1);
    assert_false(record.is_done);
    rpc_cancel(world->nodes[0].rpc, number);
    ticket.number++;
    rpc_answer(world->nodes[1].rpc, &ticket, BYTES("never asked for"));
    for (size_t i = 0; i < TURNS_MAX && rpc_stats(world->nodes[0].rpc)->late == 1; i++) {
        uv_run(&world->loop, UV_RUN_ONCE);
    }
    assert_false(record.is_done);
}

static void what_is_no_message_is_counted(void **state) {
    struct world *world = *state;
    static const char *const bad[] = {"", "\2ABCDEFGH", "\0ABCDEFG"};
    static const size_t sizes[] = {0, 9, 8};
    for (size_t i = 0; i < 3; i++) {
        struct datagram_message message = {.from = world->nodes[1].peer, .kind = DATAGRAM_RPC};
        message.bytes = bytes_of(bad[i], sizes[i]);
        rpc_take(world->nodes[0].rpc, &message);
    }
    assert_int_equal(rpc_stats(world->nodes[0].rpc)->malformed, 3);
    assert_int_equal(world->nodes[0].requests_count, 0);
}

static void a_peer_that_cannot_be_asked_is_said(void **state) {
    struct world *world = *state;
    uint64_t number;
    assert_int_equal(rpc_call(world->nodes[0].rpc, &world->nodes[0].peer, BYTES(""), on_done, NULL, &number),
                     ERR_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_question_gets_its_own_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_lost_is_asked_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_window_bounds_what_is_under_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(more_calls_than_allowed_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(silence_ends_and_a_cancelled_call_is_not_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_answer_of_somebody_else_is_dropped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_message_is_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_peer_that_cannot_be_asked_is_said, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
