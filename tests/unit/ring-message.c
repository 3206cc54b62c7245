/* The messages of the ring against the vectors of docs/protocol/ring.md, and what vectors cannot say. */
#include "protocol/ring/ring.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "base/prng.h"
#include "unit.h"
#include "vectors.h"

static struct sha256 sha256;

static const uint8_t charter[RING_CHARTER_SIZE] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static int start(void **state) {
    (void)state;
    return sha256_init(&sha256) == ERR_OK ? 0 : -1;
}

static int stop(void **state) {
    (void)state;
    sha256_done(&sha256);
    return 0;
}

/* ---- the messages of the vectors ---- */

static struct vnode vnode_v4(uint8_t last, uint8_t index) {
    struct vnode vnode = {.peer.address = address_ipv4(192, 0, 2, last, 7070), .index = index};
    vnode.id = ring_id_of_node(&sha256, &vnode.peer.address, index);
    return vnode;
}

static struct vnode vnode_v6(void) {
    struct vnode vnode = {.index = 31};
    assert_true(address_parse(BYTES("[2001:db8::1]:443"), 0, &vnode.peer.address));
    memset(vnode.peer.key, 0x5a, PEER_KEY_SIZE);
    vnode.id = ring_id_of_node(&sha256, &vnode.peer.address, 31);
    return vnode;
}

static struct message message_of(uint8_t kind) {
    struct message message = {.version = RING_VERSION, .kind = kind, .number = 1, .token = 2};
    memcpy(message.charter, charter, RING_CHARTER_SIZE);
    return message;
}

static struct message state_message(void) {
    struct message message = message_of(MESSAGE_STATE);
    message.to = 3;
    message.status = MESSAGE_MEMBER;
    message.predecessor = vnode_v4(1, 0);
    message.vnodes[0] = vnode_v6();
    message.vnodes[1] = (struct vnode){.id = ring_id_add_power(message.vnodes[0].id, 0)};
    message.vnodes_count = 2;
    return message;
}

static struct message found_message(void) {
    struct message message = message_of(MESSAGE_FOUND);
    message.to = 0;
    message.status = FOUND_OWNER;
    message.predecessor = vnode_v4(1, 0);
    message.vnodes[0] = vnode_v4(2, 0);
    message.vnodes_count = 1;
    return message;
}

static struct message nodes_message(uint8_t kind) {
    struct message message = message_of(kind);
    message.status = MODE_SMALL;
    message.is_whole = true;
    message.vnodes[0] = vnode_v4(1, 0);
    message.vnodes[1] = vnode_v4(2, 4);
    message.nodes_vnodes_count[0] = 1;
    message.nodes_vnodes_count[1] = 28;
    message.vnodes_count = 2;
    return message;
}

/* False where there is none of this name. */
static bool build(struct bytes name, struct message *ret_message) {
    static const char *const names[MESSAGE_KINDS_END] = {
        "",      "ask-state", "state", "notify",  "ping",      "pong",       "find",
        "found", "ask-nodes", "nodes", "refused", "challenge", "ask-before", "before"};
    uint8_t kind = 1;
    while (kind < MESSAGE_KINDS_END && !bytes_equal(name, bytes_of_string(names[kind]))) {
        kind++;
    }
    if (kind == MESSAGE_KINDS_END) {
        return false;
    }
    struct message message = message_of(kind);
    message.to = 3;
    message.from = 31;
    if (kind == MESSAGE_STATE) {
        message = state_message();
    } else if (kind == MESSAGE_PONG) {
        message.status = MESSAGE_NONE;
    } else if (kind == MESSAGE_FIND) {
        message.key = (struct ring_id){UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210)};
        message.wanted = 7;
    } else if (kind == MESSAGE_FOUND) {
        message = found_message();
    } else if (kind == MESSAGE_NODES || kind == MESSAGE_ASK_NODES) {
        message = nodes_message(kind);
    } else if (kind == MESSAGE_REFUSED) {
        message.status = RING_OTHER_CHARTER;
    } else if (kind == MESSAGE_NOTIFY || kind == MESSAGE_ASK_BEFORE) {
        message.wanted = kind == MESSAGE_ASK_BEFORE ? 7 : 0;
        message.digest = UINT64_C(0x0123456789abcdef);
    } else if (kind == MESSAGE_BEFORE) {
        message.vnodes[message.vnodes_count++] = vnode_v4(1, 0);
        message.vnodes[message.vnodes_count++] = vnode_v6();
    }
    *ret_message = message;
    return true;
}

/* ---- vectors ---- */

static bool reads(struct bytes bytes, struct message *ret_message) {
    /* A copy of the exact size lets the sanitizers see a read past the end. */
    uint8_t *exact = malloc(bytes.size + 1);
    assert_non_null(exact);
    memcpy(exact, bytes.data, bytes.size);
    bool is_read = message_read(bytes_of(exact, bytes.size), charter, &sha256, ret_message);
    free(exact);
    return is_read;
}

static void check_vector(struct bytes name, struct bytes hex) {
    struct message message;
    if (!build(name, &message)) {
        fail_msg("there is no message \"%.*s\"", BYTES_ARG(name));
    }
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct bytes written = message_write(&message, memory);
    char text[2 * STEP_MESSAGE_SIZE_MAX + 1];
    for (size_t i = 0; i < written.size; i++) {
        snprintf(text + 2 * i, 3, "%02x", written.data[i]);
    }
    assert_bytes_equal(bytes_of(text, 2 * written.size), hex);

    struct message again;
    assert_true(reads(written, &again));
    uint8_t second[STEP_MESSAGE_SIZE_MAX];
    assert_bytes_equal(message_write(&again, second), written);
    for (size_t size = 0; size < written.size; size++) {
        assert_false(reads(bytes_of(memory, size), &again));
    }
    memory[written.size] = 0;
    assert_false(reads(bytes_of(memory, written.size + 1), &again));
}

static void keeps_every_vector_of_the_specification(void **state) {
    (void)state;
    assert_int_equal(vectors_walk("ring.md", check_vector), MESSAGE_KINDS_END - 1);
}

/* ---- beyond vectors ---- */

static void the_largest_message_fits_a_datagram(void **state) {
    (void)state;
    struct message message = state_message();
    message.predecessor = vnode_v6();
    message.vnodes_count = RING_LIST_MAX;
    for (unsigned i = 0; i < RING_LIST_MAX; i++) {
        message.vnodes[i] = vnode_v6();
    }
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    assert_true(message_write(&message, memory).size <= STEP_MESSAGE_SIZE_MAX);
    message.kind = MESSAGE_NODES;
    message.status = MODE_SMALL;
    message.vnodes_count = MESSAGE_VNODES_MAX;
    message.vnodes[MESSAGE_VNODES_MAX - 1] = vnode_v6();
    memset(message.nodes_vnodes_count, 1, sizeof message.nodes_vnodes_count);
    assert_true(message_write(&message, memory).size <= STEP_MESSAGE_SIZE_MAX);
    message.kind = MESSAGE_FOUND;
    message.status = FOUND_OWNER;
    message.vnodes_count = RING_LIST_MAX;
    assert_true(message_write(&message, memory).size <= STEP_MESSAGE_SIZE_MAX);
}

static void a_padded_question_is_a_third_of_the_largest_answer(void **state) {
    (void)state;
    struct message message;
    assert_true(build(BYTES("find"), &message));
    message.is_padded = true;
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct bytes written = message_write(&message, memory);
    assert_int_equal(written.size, MESSAGE_PADDED_SIZE);
    assert_true(3 * written.size >= STEP_MESSAGE_SIZE_MAX);
    assert_true(reads(written, &message));
    memory[written.size - 1] = 1;
    assert_false(reads(written, &message)); /* padding is zeros */
}

static void of_another_version_or_charter_only_the_header_is_read(void **state) {
    (void)state;
    struct message message;
    assert_true(build(BYTES("find"), &message));
    message.version = RING_VERSION + 1;
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct bytes written = message_write(&message, memory);
    struct message again;
    assert_true(reads(bytes_slice(written, 0, MESSAGE_HEADER_SIZE), &again));
    assert_int_equal(again.version, RING_VERSION + 1);
    message.version = RING_VERSION;
    message.charter[0] ^= 1;
    written = message_write(&message, memory);
    assert_true(reads(bytes_slice(written, 0, MESSAGE_HEADER_SIZE), &again));
    assert_false(reads(bytes_slice(written, 0, MESSAGE_HEADER_SIZE - 1), &again));
}

static void ids_go_round_the_circle(void **state) {
    (void)state;
    struct ring_id a = {1, 0};
    struct ring_id b = {2, 0};
    assert_true(ring_id_is_between(a, (struct ring_id){1, 1}, b));
    assert_false(ring_id_is_between(a, a, b));
    assert_false(ring_id_is_between(a, b, b));
    assert_true(ring_id_is_between(b, (struct ring_id){0, 5}, a)); /* past zero */
    assert_true(ring_id_is_between(a, b, a));                      /* everything but a */
    assert_false(ring_id_is_between(a, a, a));
    assert_true(ring_id_is_owned(a, b, b));
    assert_true(ring_id_is_owned(a, a, a));
    struct ring_id last = {UINT64_MAX, UINT64_MAX};
    assert_true(ring_id_equal(ring_id_add_power(last, 0), (struct ring_id){0, 0}));
    assert_true(ring_id_equal(ring_id_distance(last, (struct ring_id){0, 1}), (struct ring_id){0, 2}));
}

static void ports_and_the_end_of_an_ipv6_address_do_not_move_a_vnode(void **state) {
    (void)state;
    struct address a;
    struct address b;
    assert_true(address_parse(BYTES("[2001:db8::1]:443"), 0, &a));
    assert_true(address_parse(BYTES("[2001:db8::ffff:2]:80"), 0, &b));
    assert_true(ring_id_equal(ring_id_of_node(&sha256, &a, 5), ring_id_of_node(&sha256, &b, 5)));
    assert_false(ring_id_equal(ring_id_of_node(&sha256, &a, 5), ring_id_of_node(&sha256, &a, 6)));
    struct address c = address_ipv4(192, 0, 2, 1, 1);
    struct address d = address_ipv4(192, 0, 2, 2, 1);
    assert_false(ring_id_equal(ring_id_of_node(&sha256, &c, 0), ring_id_of_node(&sha256, &d, 0)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_every_vector_of_the_specification),
        cmocka_unit_test(the_largest_message_fits_a_datagram),
        cmocka_unit_test(a_padded_question_is_a_third_of_the_largest_answer),
        cmocka_unit_test(of_another_version_or_charter_only_the_header_is_read),
        cmocka_unit_test(ids_go_round_the_circle),
        cmocka_unit_test(ports_and_the_end_of_an_ipv6_address_do_not_move_a_vnode),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
