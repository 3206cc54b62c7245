/*
 * grouping: nodes in one process, in no ring, each with its own loop, socket, bulk thread and directory on
 * loopback: two in a group, and one that is in another. Who may ask whom for what.
 */
#include "node/group/group_driver.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/identity.h"
#include "node/group/group_files.h"
#include "node/ring_services_state.h"
#include "scratch.h"
#include "unit.h"

enum {
    NODES_COUNT = 3,
    TURNS_MAX = 1500,
    PAUSE_US = 20000,
    TIMEOUT_MS = 20000,
    PROBE_SIZE = 64 << 10,
    LESSONS = 16
};

struct node {
    char directory[SCRATCH_PATH_SIZE];
    struct transport *transport;
    struct ring_services *ring_services;
    struct group_driver *group_driver;
};

static struct node nodes[NODES_COUNT];

static struct peer peer_of(const struct node *node) {
    return node->ring_services->self;
}

/* ---- nodes ---- */

static void write_wish(const struct node *node, const char *name, const struct node *contact) {
    struct group_wish wish;
    struct identity identity;
    memset(&wish, 0, sizeof wish);
    snprintf(wish.name, sizeof wish.name, "%s", name);
    wish.rules.admission = GROUP_ADMISSION_APPROVE;
    wish.rules.k = TOPOLOGY_K_DEFAULT;
    assert_int_equal(identity_load(&identity, node->directory, NULL), ERR_OK);
    if (contact != NULL) {
        wish.contact = peer_of(contact).address;
    } else {
        memcpy(wish.rules.founder, identity.key, PEER_KEY_SIZE);
    }
    identity_done(&identity);
    assert_int_equal(group_files_write_wish(node->directory, &wish, NULL), ERR_OK);
}

static void start_node(struct node *node, unsigned number) {
    struct err_detail detail = {0};
    static const struct settings settings = {.group_period_us = 1000000, .group_silence_us = 60000000};
    struct ring_services_config ring_services = {
        .directory = node->directory,
        .settings = &settings,
        .clock = &clock_system,
    };
    node->ring_services = ring_services_new(&ring_services);
    assert_non_null(node->ring_services);
    struct transport_config transport = {
        .directory = node->directory,
        .address = address_ipv4(127, 0, 78, (uint8_t)(1 + number), 0),
        .vnodes_count = 1,
        .clock = &clock_system,
    };
    assert_int_equal(transport_new(&transport, &node->transport, &detail), ERR_OK);
    assert_int_equal(ring_services_set_transport(node->ring_services, node->transport), ERR_OK);
    assert_int_equal(transport_start(node->transport, &detail), ERR_OK);
    assert_int_equal(ring_services_prepare(node->ring_services, &detail), ERR_OK);
    node->group_driver = ring_services_group_driver(node->ring_services);
}

static void stop_node(struct node *node) {
    ring_services_stop(node->ring_services);
    transport_stop(node->transport);
    transport_free(node->transport);
    ring_services_free(node->ring_services);
}

/* Until it holds: with a beat of all, as the node's pulse gives it. */
static void await(bool (*holds)(void)) {
    for (int turn = 0; turn < TURNS_MAX && !holds(); turn++) {
        for (size_t i = 0; i < NODES_COUNT; i++) {
            (void)group_driver_beat(nodes[i].group_driver);
        }
        usleep(PAUSE_US);
    }
    assert_true(holds());
}

static bool are_together(void) {
    struct peer first = peer_of(&nodes[0]);
    struct peer second = peer_of(&nodes[1]);
    return group_driver_is_member(nodes[0].group_driver, &second) &&
           group_driver_is_member(nodes[1].group_driver, &first);
}

static bool third_is_alone(void) {
    struct peer self = peer_of(&nodes[2]);
    return group_driver_is_member(nodes[2].group_driver, &self);
}

static int set_up(void **state) {
    if (scratch_make(state) != 0) {
        return -1;
    }
    for (unsigned i = 0; i < NODES_COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "node%u", i);
        scratch_path(*state, name, nodes[i].directory);
        assert_int_equal(mkdir(nodes[i].directory, 0700), 0);
        if (i == 1) {
            write_wish(&nodes[1], "lib", &nodes[0]);
        } else {
            write_wish(&nodes[i], i == 0 ? "lib" : "other", NULL);
        }
        start_node(&nodes[i], i);
    }
    return 0;
}

static int tear_down(void **state) {
    for (size_t i = 0; i < NODES_COUNT; i++) {
        stop_node(&nodes[i]);
    }
    return scratch_remove(state);
}

/* ---- questions ---- */

static enum err echo(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                     struct err_detail *detail) {
    (void)context;
    (void)from;
    (void)detail;
    return buf_put(answer, question);
}

static enum err ask(const struct node *from, const struct node *whom, enum peer_rpc_service service,
                    struct bytes question, size_t *ret_size) {
    struct peer peer = peer_of(whom);
    struct buf answer;
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    enum err err =
        peer_rpc_ask(from->ring_services->peer_rpc, &peer, service, question, TIMEOUT_MS, &answer, NULL);
    *ret_size = answer.size;
    buf_done(&answer);
    return err;
}

static enum err probe(const struct node *from, const struct node *whom, uint32_t size, size_t *ret_size) {
    uint8_t question[4];
    struct wire_writer writer;
    wire_writer_init(&writer, question, sizeof question);
    wire_write_u32(&writer, size);
    return ask(from, whom, PEER_RPC_PROBE, bytes_of(question, sizeof question), ret_size);
}

/* ---- tests, in this order ---- */

/* The group waits for approval: nobody is a member yet. */
static void who_was_not_approved_gets_nothing(void **state) {
    size_t size;
    (void)state;
    await(third_is_alone);
    for (int turn = 0; turn < TURNS_MAX; turn++) {
        struct buf text;
        buf_init(&text, 1 << 20);
        assert_int_equal(group_driver_put(nodes[0].group_driver, BYTES("lib"), &text, NULL), ERR_OK);
        bool has_asked = strstr(buf_string(&text), "\"asked\":[{") != NULL;
        buf_done(&text);
        if (has_asked) {
            break;
        }
        assert_true(turn < TURNS_MAX - 1);
        usleep(PAUSE_US);
    }
    assert_false(are_together());
    assert_int_not_equal(probe(&nodes[1], &nodes[0], PROBE_SIZE, &size), ERR_OK);
}

static void members_are_known_by_their_keys(void **state) {
    struct group_wish approved;
    (void)state;
    struct peer second = peer_of(&nodes[1]);
    assert_int_equal(group_files_read_wish(nodes[0].directory, "lib", &approved, NULL), ERR_OK);
    assert_int_equal(group_keys_list_add(&approved.approved, second.key), ERR_OK);
    assert_int_equal(group_files_write_wish(nodes[0].directory, &approved, NULL), ERR_OK);
    await(are_together);
    second.address.port ^= 1; /* as a stream that it opened */
    assert_true(group_driver_is_member(nodes[0].group_driver, &second));
    second.key[0] ^= 1;
    assert_false(group_driver_is_member(nodes[0].group_driver, &second));
    struct peer stranger = peer_of(&nodes[2]);
    assert_false(group_driver_is_member(nodes[0].group_driver, &stranger));
}

static bool is_measured(void) {
    struct group_driver_neighbour near[GROUP_DRIVER_NEIGHBOURS_MAX];
    return group_driver_neighbours(nodes[0].group_driver, near) == 1 && near[0].bandwidth > 0 &&
           near[0].delay_us > 0;
}

static void neighbours_are_measured(void **state) {
    struct group_driver_neighbour near[GROUP_DRIVER_NEIGHBOURS_MAX];
    (void)state;
    await(is_measured);
    struct peer second = peer_of(&nodes[1]);
    assert_int_equal(group_driver_neighbours(nodes[0].group_driver, near), 1);
    assert_true(peer_equal(&near[0].peer, &second));
    assert_string_equal(near[0].group, "lib");
    assert_int_equal(group_driver_neighbours(nodes[2].group_driver, near), 0);
}

/* A transfer that took so long lowers every estimate by a tenth, whatever probes say meanwhile. */
static bool is_slower(void) {
    struct group_driver_neighbour near[GROUP_DRIVER_NEIGHBOURS_MAX];
    struct peer second = peer_of(&nodes[1]);
    second.address.port ^= 1;
    for (int i = 0; i < LESSONS; i++) {
        group_driver_learned(nodes[0].group_driver, &second, PROBE_SIZE, UINT64_C(3600) * 1000000);
    }
    return group_driver_neighbours(nodes[0].group_driver, near) == 1 && near[0].bandwidth < 1000;
}

static void transfers_teach(void **state) {
    (void)state;
    await(is_slower);
}

static void a_member_of_a_group_is_none_of_the_ring(void **state) {
    size_t size;
    (void)state;
    peer_rpc_serve(nodes[0].ring_services->peer_rpc, PEER_RPC_PING, echo, NULL);
    assert_int_equal(probe(&nodes[1], &nodes[0], PROBE_SIZE, &size), ERR_OK);
    assert_int_equal(size, PROBE_SIZE);
    assert_int_equal(probe(&nodes[1], &nodes[0], 0, &size), ERR_OK);
    assert_int_equal(size, 0);
    assert_int_equal(ask(&nodes[1], &nodes[0], PEER_RPC_PING, BYTES("hello"), &size), ERR_PERMISSION);
}

static void a_stranger_gets_nothing(void **state) {
    size_t size;
    (void)state;
    assert_int_not_equal(probe(&nodes[2], &nodes[0], PROBE_SIZE, &size), ERR_OK);
    assert_int_equal(size, 0);
    assert_int_not_equal(ask(&nodes[2], &nodes[0], PEER_RPC_PING, BYTES("hello"), &size), ERR_OK);
    assert_int_not_equal(probe(&nodes[0], &nodes[2], PROBE_SIZE, &size), ERR_OK); /* nor is it asked */
}

static void probes_are_bounded(void **state) {
    size_t size;
    enum err err = ERR_OK;
    (void)state;
    assert_int_equal(probe(&nodes[1], &nodes[0], PEER_RPC_PIECE_SIZE_MAX + 1, &size), ERR_INVALID);
    assert_int_equal(ask(&nodes[1], &nodes[0], PEER_RPC_PROBE, BYTES("abc"), &size), ERR_INVALID);
    for (int i = 0; i < 200 && err == ERR_OK; i++) {
        err = probe(&nodes[1], &nodes[0], PEER_RPC_PIECE_SIZE_MAX, &size);
    }
    assert_int_equal(err, ERR_BUSY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_was_not_approved_gets_nothing),
        cmocka_unit_test(members_are_known_by_their_keys),
        cmocka_unit_test(neighbours_are_measured),
        cmocka_unit_test(transfers_teach),
        cmocka_unit_test(a_member_of_a_group_is_none_of_the_ring),
        cmocka_unit_test(a_stranger_gets_nothing),
        cmocka_unit_test(probes_are_bounded),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
