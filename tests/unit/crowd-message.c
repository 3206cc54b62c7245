/* The messages of the crowd against the vectors of docs/protocol/crowd.md, and what vectors cannot say. */
#include "protocol/crowd/crowd.h"

#include <stdio.h>
#include <stdlib.h>

#include "unit.h"
#include "vectors.h"

static const uint8_t network[CROWD_NETWORK_SIZE] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* ---- the messages of the vectors ---- */

static struct crowd_neighbour entry_v4(void) {
    return (struct crowd_neighbour){.peer.address = address_ipv4(192, 0, 2, 1, 7070), .age = 3};
}

static struct crowd_neighbour entry_v6(void) {
    struct crowd_neighbour entry = {.age = 0x1234};
    assert_true(address_parse(BYTES("[2001:db8::1]:443"), 0, &entry.peer.address));
    memset(entry.peer.key, 0x5a, PEER_KEY_SIZE);
    return entry;
}

static const char *const names[] = {
    "",     "shuffle", "shuffled", "busy", "join", "challenge",   "joined",
    "walk", "welcome", "query",    "ack",  "hit",  "join-padded", "hit-of-another",
};
enum { NAMES_COUNT = sizeof names / sizeof *names };

/* False where there is none of this name. */
static bool build(struct bytes name, struct crowd_message *ret_message) {
    unsigned index = 1;
    while (index < NAMES_COUNT && !bytes_equal(name, bytes_of_string(names[index]))) {
        index++;
    }
    if (index == NAMES_COUNT) {
        return false;
    }
    struct crowd_message message = {.kind = (uint8_t)index, .number = 1};
    message.kind = bytes_equal(name, BYTES("join-padded")) ? CROWD_MESSAGE_JOIN : message.kind;
    message.kind = bytes_equal(name, BYTES("hit-of-another")) ? CROWD_MESSAGE_HIT : message.kind;
    message.token = index < CROWD_MESSAGE_KINDS_END ? UINT64_C(0x0123456789abcdef) : 0;
    message.entries_count = message.kind == CROWD_MESSAGE_WELCOME ? 1 : 2;
    message.entries[0] = entry_v4();
    message.entries[1] = entry_v6();
    message.ttl = 4;
    message.hops = 2;
    message.fanout = 5;
    message.holder = index > CROWD_MESSAGE_KINDS_END ? entry_v6().peer : message.holder;
    message.contents = message.kind == CROWD_MESSAGE_QUERY ? BYTES("wish") : BYTES("finding");
    *ret_message = message;
    return true;
}

/* ---- vectors ---- */

static enum crowd_message_verdict reads(struct bytes bytes, struct crowd_message *ret_message) {
    /* A copy of the exact size lets the sanitizers see a read past the end. */
    uint8_t *exact = malloc(bytes.size + 1);
    assert_non_null(exact);
    memcpy(exact, bytes.data, bytes.size);
    enum crowd_message_verdict verdict =
        crowd_message_read(bytes_of(exact, bytes.size), network, ret_message);
    free(exact);
    return verdict;
}

static void check_vector(struct bytes name, struct bytes hex) {
    struct crowd_message message;
    if (!build(name, &message)) {
        fail_msg("there is no message \"%.*s\"", BYTES_ARG(name));
    }
    uint8_t memory[STEP_MESSAGE_SIZE_MAX + 1];
    struct bytes written = crowd_message_write(&message, network, memory);
    char text[2 * STEP_MESSAGE_SIZE_MAX + 1];
    for (size_t i = 0; i < written.size; i++) {
        snprintf(text + 2 * i, 3, "%02x", written.data[i]);
    }
    assert_bytes_equal(bytes_of(text, 2 * written.size), hex);

    struct crowd_message again;
    assert_int_equal(crowd_message_read(written, network, &again), CROWD_MESSAGE_GOOD);
    uint8_t second[STEP_MESSAGE_SIZE_MAX];
    assert_bytes_equal(crowd_message_write(&again, network, second), written);
    for (size_t size = 0; size < written.size; size++) {
        assert_int_equal(reads(bytes_of(memory, size), &again), CROWD_MESSAGE_MALFORMED);
    }
    memory[written.size] = 0;
    assert_int_equal(reads(bytes_of(memory, written.size + 1), &again), CROWD_MESSAGE_MALFORMED);
}

static void keeps_every_vector_of_the_specification(void **state) {
    (void)state;
    assert_int_equal(vectors_walk("crowd.md", check_vector), NAMES_COUNT - 1);
}

/* ---- beyond vectors ---- */

static struct bytes write_named(const char *name, uint8_t memory[STEP_MESSAGE_SIZE_MAX]) {
    struct crowd_message message;
    assert_true(build(bytes_of_string(name), &message));
    return crowd_message_write(&message, network, memory);
}

static void every_member_comes_back(void **state) {
    (void)state;
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct crowd_message message;
    struct bytes bytes = write_named("shuffle", memory);
    assert_int_equal(crowd_message_read(bytes, network, &message), CROWD_MESSAGE_GOOD);
    assert_int_equal(message.kind, CROWD_MESSAGE_SHUFFLE);
    assert_int_equal(message.number, 1);
    assert_int_equal(message.entries_count, 2);
    struct crowd_neighbour v6 = entry_v6();
    assert_true(peer_equal(&message.entries[1].peer, &v6.peer));
    assert_int_equal(message.entries[1].age, 0x1234);

    bytes = write_named("query", memory);
    assert_int_equal(crowd_message_read(bytes, network, &message), CROWD_MESSAGE_GOOD);
    assert_int_equal(message.ttl, 4);
    assert_int_equal(message.hops, 2);
    assert_int_equal(message.fanout, 5);
    assert_bytes_equal(message.contents, BYTES("wish"));

    bytes = write_named("hit-of-another", memory);
    assert_int_equal(crowd_message_read(bytes, network, &message), CROWD_MESSAGE_GOOD);
    assert_true(peer_equal(&message.holder, &v6.peer));
    bytes = write_named("hit", memory);
    assert_int_equal(crowd_message_read(bytes, network, &message), CROWD_MESSAGE_GOOD);
    assert_int_equal(message.holder.address.port, 0);
    assert_bytes_equal(message.contents, BYTES("finding"));
}

static void members_of_another_kind_keep_what_they_held(void **state) {
    (void)state;
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct crowd_message message;
    assert_true(build(BYTES("shuffle"), &message));
    assert_int_equal(crowd_message_read(write_named("busy", memory), network, &message), CROWD_MESSAGE_GOOD);
    assert_int_equal(message.entries_count, 2);
}

static void the_largest_messages_fit_a_datagram(void **state) {
    (void)state;
    static const uint8_t contents[CROWD_FINDING_SIZE_MAX] = {1};
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct crowd_message message;
    struct crowd_message again;
    assert_true(build(BYTES("shuffled"), &message));
    message.entries_count = CROWD_SHUFFLE_MAX;
    for (unsigned i = 0; i < CROWD_SHUFFLE_MAX; i++) {
        message.entries[i] = entry_v6();
        message.entries[i].age = UINT32_MAX; /* written as the largest that there is */
    }
    struct bytes bytes = crowd_message_write(&message, network, memory);
    assert_int_equal(crowd_message_read(bytes, network, &again), CROWD_MESSAGE_GOOD);
    assert_int_equal(again.entries[15].age, UINT16_MAX);
    size_t entries_size = 0;
    for (unsigned i = 0; i < CROWD_SHUFFLE_MAX; i++) {
        entries_size += crowd_message_entry_size(&message.entries[i]);
    }
    assert_int_equal(bytes.size, CROWD_MESSAGE_HEADER_SIZE + 1 + entries_size);

    assert_true(build(BYTES("hit-of-another"), &message));
    message.contents = bytes_of(contents, sizeof contents);
    bytes = crowd_message_write(&message, network, memory);
    assert_int_equal(crowd_message_read(bytes, network, &again), CROWD_MESSAGE_GOOD);
    assert_int_equal(again.contents.size, CROWD_FINDING_SIZE_MAX);
}

static void of_another_version_or_network_only_the_header_is_read(void **state) {
    (void)state;
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct crowd_message message;
    write_named("shuffle", memory);
    memory[0] = CROWD_VERSION + 1;
    struct bytes header = bytes_of(memory, CROWD_MESSAGE_HEADER_SIZE);
    assert_int_equal(reads(header, &message), CROWD_MESSAGE_FOREIGN);
    assert_int_equal(message.version, CROWD_VERSION + 1);
    memory[0] = CROWD_VERSION;
    memory[2] ^= 1;
    assert_int_equal(reads(header, &message), CROWD_MESSAGE_FOREIGN);
    assert_int_equal(reads(bytes_slice(header, 0, header.size - 1), &message), CROWD_MESSAGE_MALFORMED);
}

/* One byte of a good message is changed: must it be malformed? */
static void expect_malformed(const char *name, size_t offset, uint8_t value) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct crowd_message message;
    struct bytes bytes = write_named(name, memory);
    assert_true(offset < bytes.size);
    memory[offset] = value;
    if (reads(bytes, &message) != CROWD_MESSAGE_MALFORMED) {
        fail_msg("%s with %u at %zu is read", name, value, offset);
    }
}

static void what_is_out_of_bounds_is_malformed(void **state) {
    (void)state;
    enum { BODY = CROWD_MESSAGE_HEADER_SIZE, FIRST = BODY + 1, SECOND = FIRST + 9 };
    expect_malformed("busy", 1, 0);
    expect_malformed("busy", 1, CROWD_MESSAGE_KINDS_END);
    expect_malformed("shuffle", BODY, CROWD_SHUFFLE_MAX + 1);
    expect_malformed("shuffle", BODY, 255);
    expect_malformed("shuffle", BODY, 1); /* bytes left over */
    expect_malformed("welcome", BODY, 2);
    expect_malformed("walk", BODY, CROWD_WALK_HOPS_MAX + 1);
    expect_malformed("join-padded", 390, 1);
    expect_malformed("query", BODY, CROWD_TTL_CAP + 1);
    expect_malformed("query", BODY + 2, 0);
    expect_malformed("query", BODY + 2, CROWD_FANOUT_MAX + 1);
    expect_malformed("query", BODY + 3, 3);
    expect_malformed("hit", BODY + 1, 2);
    expect_malformed("shuffle", FIRST, 4);     /* unknown flag */
    expect_malformed("shuffle", FIRST + 1, 0); /* 0.0.2.1 */
    expect_malformed("shuffle", FIRST + 1, 224);
    expect_malformed("shuffle", FIRST + 1, 255);
    expect_malformed("shuffle", SECOND + 1, 0xff); /* multicast */
}

static void expect_peer(struct bytes bytes, bool is_good) {
    struct wire_reader reader;
    struct peer peer;
    wire_reader_init(&reader, bytes);
    peer_read(&reader, PEER_TAGGED, &peer);
    assert_int_equal(wire_reader_finish(&reader, NULL) == ERR_OK, is_good);
}

static void a_peer_is_somewhere_and_has_one_form(void **state) {
    (void)state;
    static const uint8_t good[] = {0, 192, 0, 2, 1, 0x9e, 0x1b};
    static const uint8_t portless[] = {0, 192, 0, 2, 1, 0, 0};
    static const uint8_t zero_key[7 + PEER_KEY_SIZE] = {2, 192, 0, 2, 1, 0x9e, 0x1b};
    static const uint8_t nowhere[19] = {1, [17] = 1};
    static const uint8_t mapped[19] = {1, [11] = 0xff, [12] = 0xff, [13] = 192, [16] = 1, [17] = 1};
    expect_peer(bytes_of(good, sizeof good), true);
    expect_peer(bytes_of(portless, sizeof portless), false);
    expect_peer(bytes_of(zero_key, sizeof zero_key), false);
    expect_peer(bytes_of(nowhere, sizeof nowhere), false);
    expect_peer(bytes_of(mapped, sizeof mapped), false);
}

static void contents_are_there_and_bounded(void **state) {
    (void)state;
    uint8_t memory[STEP_MESSAGE_SIZE_MAX] = {0};
    struct crowd_message message;
    write_named("query", memory);
    enum { LENGTH = CROWD_MESSAGE_HEADER_SIZE + 3 };
    memory[LENGTH] = 0;
    assert_int_equal(reads(bytes_of(memory, LENGTH + 1), &message), CROWD_MESSAGE_MALFORMED);
    memory[LENGTH] = 0x80 | (CROWD_WISH_SIZE_MAX & 0x7f);
    memory[LENGTH + 1] = CROWD_WISH_SIZE_MAX >> 7;
    struct bytes bytes = bytes_of(memory, LENGTH + 2 + CROWD_WISH_SIZE_MAX);
    assert_int_equal(reads(bytes, &message), CROWD_MESSAGE_GOOD);
    memory[LENGTH]++;
    bytes.size++;
    assert_int_equal(reads(bytes, &message), CROWD_MESSAGE_MALFORMED);
}

static void a_join_without_a_token_is_a_third_of_the_largest_answer(void **state) {
    (void)state;
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct bytes bytes = write_named("join-padded", memory);
    assert_int_equal(bytes.size, CROWD_MESSAGE_PADDED_SIZE);
    assert_true(3 * bytes.size >= STEP_MESSAGE_SIZE_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_every_vector_of_the_specification),
        cmocka_unit_test(every_member_comes_back),
        cmocka_unit_test(members_of_another_kind_keep_what_they_held),
        cmocka_unit_test(the_largest_messages_fit_a_datagram),
        cmocka_unit_test(of_another_version_or_network_only_the_header_is_read),
        cmocka_unit_test(what_is_out_of_bounds_is_malformed),
        cmocka_unit_test(a_peer_is_somewhere_and_has_one_form),
        cmocka_unit_test(contents_are_there_and_bounded),
        cmocka_unit_test(a_join_without_a_token_is_a_third_of_the_largest_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
