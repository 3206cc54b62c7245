/* datagram: real sockets on loopback, peers and those who only pretend to be. */
#include "clock-manual.h"
#include "net/datagram.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/prng.h"
#include "net/socket_address.h"
#include "unit.h"

enum { TURNS_MAX = 200000, INPUT_SIZE = 2048, ANSWERS_COUNT = 10, INBOX_COUNT = 64, LOST_WAIT_MS = 300 };

struct node {
    struct identity identity;
    struct clock_manual clock;
    struct datagram *datagram;
    struct peer peer; /* how others reach it */
    size_t messages_count;
    struct datagram_message last; /* without its bytes */
    uint8_t last_bytes[DATAGRAM_PAYLOAD_SIZE_MAX];
    size_t last_size;
    size_t refusals_count;
    struct datagram_refusal refusal;
    size_t answers_count; /* how many long answers each message gets */
};

struct world {
    uv_loop_t loop;
    struct node a;
    struct node b;
    /* A socket without any of our code behind it, and an identity of its own. */
    int raw;
    struct identity raw_identity;
    struct sessions raw_sessions;
    size_t raw_sent_count;
    size_t raw_received_count;
    size_t raw_received_bytes;
    uint8_t inbox[INBOX_COUNT][INPUT_SIZE]; /* what came to it */
    size_t inbox_sizes[INBOX_COUNT];
    size_t inbox_count;
    size_t inbox_taken;
    uint64_t lost_count; /* sent, but nobody will ever get it: its receiver was closed */
};

static const int64_t START_US = INT64_C(1767225600000000);
static const struct peer nobody;

static void on_message(void *context, const struct datagram_message *message) {
    struct node *node = context;
    static const uint8_t long_answer[DATAGRAM_PAYLOAD_SIZE_MAX];
    node->messages_count++;
    node->last = *message;
    node->last_size = message->bytes.size;
    if (message->bytes.size > 0) {
        memcpy(node->last_bytes, message->bytes.data, message->bytes.size);
    }
    for (size_t i = 0; i < node->answers_count; i++) {
        (void)datagram_send(node->datagram, &message->from, DATAGRAM_RING,
                            bytes_of(long_answer, sizeof long_answer));
    }
}

static void on_refusal(void *context, const struct datagram_refusal *refusal) {
    struct node *node = context;
    node->refusals_count++;
    node->refusal = *refusal;
}

static void open_node_at(struct world *world, struct node *node, struct address address) {
    struct err_detail detail;
    struct datagram_config config = {
        .loop = &world->loop,
        .clock = &node->clock.clock,
        .identity = &node->identity,
        .address = address,
        .on_message = on_message,
        .on_refusal = on_refusal,
        .context = node,
    };
    if (datagram_new(&config, &node->datagram, &detail) != ERR_OK) {
        fail_msg("%s", detail.text);
    }
    node->peer.address = datagram_address(node->datagram);
    memcpy(node->peer.key, node->identity.key, PEER_KEY_SIZE);
}

static void open_node(struct world *world, struct node *node, uint8_t host) {
    open_node_at(world, node, address_ipv4(127, 0, 0, host, node->peer.address.port));
}

static void start_node(struct world *world, struct node *node, uint8_t host) {
    assert_int_equal(identity_random(&node->identity), ERR_OK);
    clock_manual_init(&node->clock, START_US);
    clock_manual_advance(&node->clock, 60000000);
    open_node(world, node, host);
    clock_manual_advance(&node->clock, 1000000);
}

static int set_up(void **state) {
    struct world *world = calloc(1, sizeof *world);
    struct sockaddr_storage name;
    struct address address = address_ipv4(127, 0, 0, 9, 0);
    assert_non_null(world);
    assert_int_equal(uv_loop_init(&world->loop), 0);
    start_node(world, &world->a, 2);
    start_node(world, &world->b, 3);
    assert_int_equal(identity_random(&world->raw_identity), ERR_OK);
    assert_int_equal(
        sessions_init(&world->raw_sessions, &world->raw_identity, &(struct sessions_config){0}, START_US),
        ERR_OK);
    world->raw = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(world->raw, socket_address_put(&address, &name), sizeof(struct sockaddr_in)), 0);
    *state = world;
    return 0;
}

static int tear_down(void **state) {
    struct world *world = *state;
    datagram_free(world->a.datagram);
    datagram_free(world->b.datagram);
    uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    sessions_done(&world->raw_sessions);
    close(world->raw);
    free(world);
    return 0;
}

static void raw_collect(struct world *world) {
    uint8_t input[INPUT_SIZE];
    ssize_t size;
    while ((size = recv(world->raw, input, sizeof input, 0)) >= 0) {
        world->raw_received_count++;
        world->raw_received_bytes += (size_t)size;
        assert_true(world->inbox_count < INBOX_COUNT);
        memcpy(world->inbox[world->inbox_count], input, (size_t)size);
        world->inbox_sizes[world->inbox_count++] = (size_t)size;
    }
}

/* Datagrams that were sent and have not come. */
static uint64_t under_way(const struct world *world) {
    const struct datagram_stats *a = datagram_stats(world->a.datagram);
    const struct datagram_stats *b = datagram_stats(world->b.datagram);
    return a->sent + b->sent + world->raw_sent_count - a->received - b->received - world->raw_received_count -
           world->lost_count;
}

/* Let the loop go on until everything has come; what does not come for a while was lost. */
static void settle(struct world *world) {
    for (size_t idle_ms = 0; idle_ms < LOST_WAIT_MS;) {
        uint64_t before = under_way(world);
        uv_run(&world->loop, UV_RUN_NOWAIT);
        raw_collect(world);
        uint64_t after = under_way(world);
        if (after == 0) {
            return;
        }
        if (after == before) {
            usleep(1000); /* a turn; too many without progress end the wait */
            idle_ms++;
        }
    }
    world->lost_count += under_way(world);
}

/* All clocks go on together: what comes later is sent later. */
static void advance(struct world *world, uint64_t by_us) {
    clock_manual_advance(&world->a.clock, by_us);
    clock_manual_advance(&world->b.clock, by_us);
}

static void raw_send(struct world *world, const struct node *to, struct bytes bytes) {
    struct sockaddr_storage name;
    ssize_t sent = sendto(world->raw, bytes.data, bytes.size, 0, socket_address_put(&to->peer.address, &name),
                          sizeof(struct sockaddr_in));
    assert_int_equal(sent, bytes.size);
    world->raw_sent_count++;
}

static size_t raw_seal(struct world *world, const struct node *to, uint8_t kind, struct bytes payload,
                       uint8_t out[INPUT_SIZE]) {
    struct session *session = sessions_with(&world->raw_sessions, to->identity.key);
    assert_non_null(session);
    return sessions_seal(&world->raw_sessions, session, kind, payload, to->clock.wall_now_us, out);
}

/* The next datagram at the raw socket; 0 where there is none. */
static size_t raw_receive(struct world *world, uint8_t out[INPUT_SIZE]) {
    if (world->inbox_taken == world->inbox_count) {
        world->inbox_taken = world->inbox_count = 0;
        return 0;
    }
    size_t size = world->inbox_sizes[world->inbox_taken];
    memcpy(out, world->inbox[world->inbox_taken++], size);
    return size;
}

static size_t raw_drain(struct world *world) {
    uint8_t input[INPUT_SIZE];
    size_t count = 0;
    while (raw_receive(world, input) > 0) {
        count++;
    }
    return count;
}

/* Its socket closes; the counts of the life that ends stay in the balance. */
static void restart_begins(struct world *world, struct node *node) {
    const struct datagram_stats *stats = datagram_stats(node->datagram);
    world->raw_sent_count += stats->sent;
    world->raw_received_count += stats->received;
    datagram_free(node->datagram);
    uv_run(&world->loop, UV_RUN_NOWAIT);
}

static void messages_go_both_ways_and_name_their_sender(void **state) {
    struct world *world = *state;
    assert_int_equal(datagram_send(world->a.datagram, &world->b.peer, DATAGRAM_RING, BYTES("question")),
                     ERR_OK);
    settle(world);
    assert_int_equal(world->b.messages_count, 1);
    assert_bytes_equal(bytes_of(world->b.last_bytes, world->b.last_size), BYTES("question"));
    assert_true(peer_equal(&world->b.last.from, &world->a.peer));
    assert_int_equal(datagram_send(world->b.datagram, &world->b.last.from, DATAGRAM_LINKS, BYTES("")),
                     ERR_OK);
    settle(world);
    assert_int_equal(world->a.messages_count, 1);
    assert_int_equal(world->a.last.kind, DATAGRAM_LINKS);
    assert_int_equal(world->a.last_size, 0);
    assert_true(peer_equal(&world->a.last.from, &world->b.peer));
    /* Both have proved themselves meanwhile: long messages go too. */
    uint8_t longest[DATAGRAM_PAYLOAD_SIZE_MAX] = {1};
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(datagram_send(world->b.datagram, &world->a.peer, DATAGRAM_RING,
                                       bytes_of(longest, sizeof longest)),
                         ERR_OK);
    }
    settle(world);
    assert_int_equal(world->a.messages_count, 101);
    assert_int_equal(datagram_stats(world->b.datagram)->unproved, 0);
}

/* A socket at :: serves both families. */
static void ipv6_and_ipv4_meet_in_one_socket(void **state) {
    struct world *world = *state;
    struct address everywhere = {.port = 0};
    struct datagram *probe = NULL;
    struct datagram_config config = {
        .loop = &world->loop, .identity = &world->a.identity, .address = everywhere};
    if (datagram_new(&config, &probe, NULL) != ERR_OK) {
        skip(); /* a system without IPv6 */
    }
    datagram_free(probe);
    restart_begins(world, &world->b);
    open_node_at(world, &world->b, everywhere);
    advance(world, 1000000);
    uint16_t port = world->b.peer.address.port;
    world->b.peer.address = address_ipv4(127, 0, 0, 1, port);
    assert_int_equal(datagram_send(world->a.datagram, &world->b.peer, DATAGRAM_RING, BYTES("hello")), ERR_OK);
    settle(world);
    assert_int_equal(world->b.messages_count, 1);
    assert_true(address_equal(&world->b.last.from.address, &world->a.peer.address));
    assert_int_equal(datagram_send(world->b.datagram, &world->b.last.from, DATAGRAM_RING, BYTES("hello")),
                     ERR_OK);
    settle(world);
    assert_int_equal(world->a.messages_count, 1);
}

static void whoever_is_at_an_address_is_asked_who_he_is(void **state) {
    struct world *world = *state;
    struct peer somebody = {.address = world->b.peer.address};
    assert_int_equal(datagram_send(world->a.datagram, &somebody, DATAGRAM_RING, BYTES("one")), ERR_OK);
    assert_int_equal(datagram_send(world->a.datagram, &somebody, DATAGRAM_RING, BYTES("two")), ERR_OK);
    settle(world);
    assert_int_equal(world->b.messages_count, 2);
    assert_true(peer_equal(&world->b.last.from, &world->a.peer));
    assert_int_equal(datagram_send(world->a.datagram, &somebody, DATAGRAM_RING, BYTES("three")), ERR_OK);
    settle(world);
    assert_int_equal(world->b.messages_count, 3);
}

static void somebody_else_at_an_address_is_found_out(void **state) {
    struct world *world = *state;
    struct peer somebody = {.address = world->b.peer.address};
    assert_int_equal(datagram_send(world->a.datagram, &somebody, DATAGRAM_RING, BYTES("one")), ERR_OK);
    settle(world);
    restart_begins(world, &world->b);
    assert_int_equal(identity_random(&world->b.identity), ERR_OK);
    open_node(world, &world->b, 3);
    advance(world, 11000000);
    assert_int_equal(datagram_send(world->a.datagram, &somebody, DATAGRAM_RING, BYTES("two")), ERR_OK);
    settle(world);
    assert_int_equal(world->b.messages_count, 2);
}

static void a_key_that_nobody_asked_for_is_not_believed(void **state) {
    struct world *world = *state;
    uint8_t out[PLAIN_SIZE_MAX];
    struct plain_here here = {.cookie = {1}};
    memcpy(here.key, world->raw_identity.key, sizeof here.key);
    raw_send(world, &world->a, plain_write_here(&here, out));
    settle(world);
    assert_int_equal(datagram_stats(world->a.datagram)->proofs, 0);
    assert_int_equal(datagram_stats(world->a.datagram)->malformed, 1);
}

/* The raw socket stands for a made-up source: it never answers a challenge. */
static void an_unproved_address_gets_three_times_what_it_sent(void **state) {
    struct world *world = *state;
    uint8_t out[INPUT_SIZE];
    size_t sent_bytes = 0;
    world->a.answers_count = ANSWERS_COUNT;
    for (size_t i = 0; i < 50; i++) {
        static const uint8_t payload[DATAGRAM_PAYLOAD_SIZE_MAX];
        size_t size = raw_seal(world, &world->a, DATAGRAM_RING, bytes_of(payload, i * 20), out);
        raw_send(world, &world->a, bytes_of(out, size));
        sent_bytes += size;
        settle(world);
        raw_drain(world);
        assert_true(world->raw_received_bytes <= 3 * sent_bytes);
        advance(world, 2000000);
    }
    assert_int_equal(world->a.messages_count, 50);
    assert_true(world->raw_received_bytes > sent_bytes); /* the answers did go out */
    assert_true(datagram_stats(world->a.datagram)->unproved > 0);
}

static void an_address_that_returns_the_cookie_gets_everything_until_its_proof_ends(void **state) {
    struct world *world = *state;
    uint8_t out[INPUT_SIZE];
    uint8_t input[INPUT_SIZE];
    uint8_t opened_bytes[INPUT_SIZE];
    struct sessions_opened opened;
    world->a.answers_count = ANSWERS_COUNT;
    size_t size = raw_seal(world, &world->a, DATAGRAM_RING, BYTES("hello"), out);
    raw_send(world, &world->a, bytes_of(out, size));
    settle(world);
    size = raw_receive(world, input);
    struct sessions_now now = {.monotonic_us = 1, .wall_us = world->a.clock.wall_now_us};
    assert_int_equal(sessions_open(&world->raw_sessions, bytes_of(input, size), now, opened_bytes, &opened),
                     SEAL_FRESH);
    assert_int_equal(opened.head.kind, DATAGRAM_CHALLENGE);
    assert_int_equal(raw_drain(world), 0); /* 65 bytes asked: no room for 1,260 */
    size = raw_seal(world, &world->a, DATAGRAM_PROOF, opened.payload, out);
    raw_send(world, &world->a, bytes_of(out, size));
    size = raw_seal(world, &world->a, DATAGRAM_RING, BYTES("again"), out);
    raw_send(world, &world->a, bytes_of(out, size));
    settle(world);
    assert_int_equal(raw_drain(world), ANSWERS_COUNT);
    assert_int_equal(datagram_stats(world->a.datagram)->proofs, 1);
    advance(world, UINT64_C(3700000000));
    size = raw_seal(world, &world->a, DATAGRAM_RING, BYTES("later"), out);
    raw_send(world, &world->a, bytes_of(out, size));
    settle(world);
    assert_int_equal(raw_drain(world), 1); /* a challenge again */
}

static void a_silent_address_gets_a_few_only(void **state) {
    struct world *world = *state;
    struct peer silent = {.address = address_ipv4(127, 0, 0, 9, 0)};
    struct sockaddr_storage name;
    socklen_t name_size = sizeof name;
    memcpy(silent.key, world->raw_identity.key, PEER_KEY_SIZE);
    assert_int_equal(getsockname(world->raw, (struct sockaddr *)&name, &name_size), 0);
    assert_true(socket_address_get((struct sockaddr *)&name, &silent.address));
    size_t ok_count = 0;
    for (size_t i = 0; i < 100; i++) {
        ok_count += datagram_send(world->a.datagram, &silent, DATAGRAM_RING, BYTES("hello")) == ERR_OK;
    }
    assert_int_equal(ok_count, 7);
    settle(world);
    assert_int_equal(raw_drain(world), 8); /* with the challenge */
}

static void what_came_before_is_dropped(void **state) {
    struct world *world = *state;
    uint8_t out[INPUT_SIZE];
    size_t size = raw_seal(world, &world->a, DATAGRAM_RING, BYTES("once"), out);
    for (size_t i = 0; i < 10; i++) {
        raw_send(world, &world->a, bytes_of(out, size));
    }
    settle(world);
    assert_int_equal(world->a.messages_count, 1);
    assert_int_equal(datagram_stats(world->a.datagram)->verdicts[SEAL_REPLAYED], 9);
}

static void a_wrong_clock_is_told_to_both_sides(void **state) {
    struct world *world = *state;
    world->b.clock.wall_now_us += INT64_C(3600000000);
    assert_int_equal(datagram_send(world->b.datagram, &world->a.peer, DATAGRAM_RING, BYTES("hello")), ERR_OK);
    settle(world);
    assert_int_equal(world->a.messages_count, 0);
    assert_true(world->a.refusals_count > 0 && world->a.refusal.is_by_us);
    assert_string_equal(plain_reason_name(world->a.refusal.reason), "clock");
    assert_true(peer_equal(&world->a.refusal.peer, &world->b.peer));
    assert_true(world->a.refusal.ahead_us > INT64_C(3590000000));
    assert_true(world->b.refusals_count > 0 && !world->b.refusal.is_by_us);
    assert_string_equal(plain_reason_name(world->b.refusal.reason), "clock");
    assert_true(world->b.refusal.ahead_us < -INT64_C(3590000000));
}

static void another_version_is_refused_with_less_than_it_sent(void **state) {
    struct world *world = *state;
    uint8_t out[INPUT_SIZE];
    uint8_t input[INPUT_SIZE];
    size_t size = raw_seal(world, &world->a, DATAGRAM_RING, BYTES("hello"), out);
    struct plain_refuse refuse;
    out[0] = 0x28;
    raw_send(world, &world->a, bytes_of(out, size));
    settle(world);
    size_t answer_size = raw_receive(world, input);
    assert_true(answer_size < size);
    assert_true(plain_read_refuse(bytes_of(input, answer_size), &refuse));
    assert_int_equal(refuse.reason, PLAIN_REASON_VERSION);
    assert_int_equal(refuse.version, SEAL_VERSION);
    assert_memory_equal(refuse.echo, out + SEAL_ECHO_OFFSET, SEAL_ECHO_SIZE);
    assert_int_equal(world->a.refusal.version, 2);
    for (size_t i = 0; i < 1000; i++) {
        raw_send(world, &world->a, bytes_of(out, size));
        settle(world);
    }
    assert_true(raw_drain(world) < 20); /* a few a second, and no time has passed */
    /* A refusal of what was never sent says nothing. */
    raw_send(world, &world->b, bytes_of(input, answer_size));
    settle(world);
    assert_int_equal(world->b.refusals_count, 0);
}

static void garbage_is_counted_and_dropped(void **state) {
    struct world *world = *state;
    const struct datagram_stats *stats = datagram_stats(world->a.datagram);
    uint8_t garbage[INPUT_SIZE];
    struct prng prng;
    prng_init(&prng, 1);
    for (size_t i = 0; i < 3000; i++) {
        size_t size = prng_below(&prng, 1400);
        prng_fill(&prng, garbage, size);
        if (size > 0 && i % 2 == 0) {
            garbage[0] = (uint8_t)(0x10 | (garbage[0] & 15));
        }
        raw_send(world, &world->a, bytes_of(garbage, size));
        settle(world);
    }
    assert_int_equal(stats->received, 3000);
    assert_int_equal(stats->delivered, 0);
    assert_int_equal(world->a.messages_count, 0);
    raw_drain(world);
    assert_true(world->raw_received_bytes <= 20 * PLAIN_REFUSE_SIZE);
    assert_int_equal(stats->malformed + stats->verdicts[SEAL_SHORT] + stats->verdicts[SEAL_OTHER] +
                         stats->verdicts[SEAL_STRANGE] + stats->verdicts[SEAL_FORGED],
                     3000);
}

static void kinds_that_are_none_are_dropped(void **state) {
    struct world *world = *state;
    uint8_t out[INPUT_SIZE];
    size_t sent_count = 0;
    for (uint8_t kind = 3; kind < SEAL_KINDS_COUNT; kind++) {
        if (kind < DATAGRAM_RING || kind >= DATAGRAM_KINDS_COUNT) {
            size_t size = raw_seal(world, &world->a, kind, BYTES("?"), out);
            raw_send(world, &world->a, bytes_of(out, size));
            sent_count++;
        }
    }
    settle(world);
    assert_int_equal(datagram_stats(world->a.datagram)->malformed, sent_count);
    assert_int_equal(world->a.messages_count, 0);
    assert_int_equal(raw_drain(world), 0);
}

static void a_flood_from_one_address_is_cut_off(void **state) {
    struct world *world = *state;
    uint8_t byte = 0;
    for (size_t i = 0; i < 21000; i++) {
        raw_send(world, &world->a, bytes_of(&byte, 1));
        if (i % 64 == 0) {
            settle(world);
        }
    }
    settle(world);
    const struct datagram_stats *stats = datagram_stats(world->a.datagram);
    assert_int_equal(stats->received - stats->limited, 20000);
    assert_int_equal(datagram_send(world->b.datagram, &world->a.peer, DATAGRAM_RING, BYTES("hello")), ERR_OK);
    settle(world);
    assert_int_equal(world->a.messages_count, 1);
}

static void a_peer_that_restarts_with_its_clock_set_back_comes_through(void **state) {
    struct world *world = *state;
    assert_int_equal(datagram_send(world->a.datagram, &world->b.peer, DATAGRAM_RING, BYTES("one")), ERR_OK);
    settle(world);
    restart_begins(world, &world->a);
    world->a.clock.wall_now_us -= INT64_C(300000000);
    world->b.clock.monotonic_now_us += UINT64_C(3700000000); /* proofs end too */
    open_node(world, &world->a, 2);
    for (size_t i = 0; i < 10 && world->b.messages_count < 2; i++) { /* who wants an answer sends again */
        clock_manual_advance(&world->a.clock, 2000000);
        clock_manual_advance(&world->b.clock, 2000000);
        (void)datagram_send(world->a.datagram, &world->b.peer, DATAGRAM_RING, BYTES("two"));
        settle(world);
    }
    assert_int_equal(world->b.messages_count, 2);
    assert_true(datagram_stats(world->b.datagram)->verdicts[SEAL_STALE] > 0);
}

static void what_cannot_be_sent_is_said(void **state) {
    struct world *world = *state;
    struct peer self = world->a.peer;
    assert_int_equal(datagram_send(world->a.datagram, &self, DATAGRAM_RING, BYTES("")), ERR_INVALID);
    assert_int_equal(datagram_send(world->a.datagram, &nobody, DATAGRAM_RING, BYTES("")), ERR_INVALID);
    struct datagram *second = NULL;
    struct err_detail detail = {0};
    struct datagram_config config = {
        .loop = &world->loop, .identity = &world->a.identity, .address = world->a.peer.address};
    assert_int_not_equal(datagram_new(&config, &second, &detail), ERR_OK);
    assert_null(second);
    assert_non_null(strstr(detail.text, "127.0.0.2"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(messages_go_both_ways_and_name_their_sender, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ipv6_and_ipv4_meet_in_one_socket, set_up, tear_down),
        cmocka_unit_test_setup_teardown(whoever_is_at_an_address_is_asked_who_he_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(somebody_else_at_an_address_is_found_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_key_that_nobody_asked_for_is_not_believed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_unproved_address_gets_three_times_what_it_sent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_address_that_returns_the_cookie_gets_everything_until_its_proof_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_silent_address_gets_a_few_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_came_before_is_dropped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wrong_clock_is_told_to_both_sides, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_version_is_refused_with_less_than_it_sent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(garbage_is_counted_and_dropped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(kinds_that_are_none_are_dropped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_flood_from_one_address_is_cut_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_peer_that_restarts_with_its_clock_set_back_comes_through, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_sent_is_said, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
