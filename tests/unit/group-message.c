/* The messages of a group against the vectors of docs/protocol/group.md, and what vectors cannot say. */
#include "protocol/group/group.h"

#include <stdlib.h>

#include "group-vectors.h"
#include "unit.h"

static const uint8_t id[GROUP_ID_SIZE] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static const char *const names[GROUP_MESSAGE_KINDS_END] = {
    "",
    "message-join",
    "message-challenge",
    "message-taken",
    "message-refused",
    "message-request",
    "message-echo",
    "message-echoed",
    "message-stranger",
    "message-report",
    "message-reported",
    "message-piece",
    "message-ack",
    "message-pulse",
    "message-leave",
    "message-left",
};

static struct group_message build(uint8_t kind) {
    struct group_message message = {.kind = kind, .number = 0x1122334455667788, .held = {511, 7}};
    switch ((enum group_message_kind)kind) {
    case GROUP_MESSAGE_JOIN:
        message.token = 0x99;
        message.papers = BYTES("invitation");
        break;
    case GROUP_MESSAGE_CHALLENGE:
        message.token = 0x99;
        break;
    case GROUP_MESSAGE_TAKEN:
    case GROUP_MESSAGE_REQUEST:
        message.peer.address = address_ipv4(192, 0, 2, 1, 7070);
        memset(message.peer.key, 0x5a, PEER_KEY_SIZE);
        message.papers = kind == GROUP_MESSAGE_REQUEST ? BYTES("invitation") : (struct bytes){0};
        break;
    case GROUP_MESSAGE_REPORT:
        message.heard = BYTES("\x00\x7f\x80\xff");
        message.estimates = BYTES("\x01");
        break;
    case GROUP_MESSAGE_PIECE:
        message.version = (struct group_version){511, 8};
        message.piece = 1;
        message.pieces_count = 2;
        message.contents = BYTES("the end of a document");
        break;
    case GROUP_MESSAGE_ACK:
        message.version = (struct group_version){511, 8};
        message.mask = 3;
        break;
    case GROUP_MESSAGE_PULSE:
        message.version = (struct group_version){511, 8};
        message.beat = 12;
        memset(message.signature, 0xa5, GROUP_SIGNATURE_SIZE);
        break;
    default:
        break;
    }
    return message;
}

static enum group_message_verdict read_exactly(struct bytes bytes, struct group_message *ret_message) {
    uint8_t *exact = malloc(bytes.size + 1); /* of the exact size: the sanitizers see a read past the end */
    assert_non_null(exact);
    memcpy(exact, bytes.data, bytes.size);
    enum group_message_verdict verdict = group_message_read(bytes_of(exact, bytes.size), id, ret_message);
    free(exact);
    return verdict;
}

static void keeps_the_vectors_of_the_specification(void **state) {
    (void)state;
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    for (uint8_t kind = GROUP_MESSAGE_JOIN; kind < GROUP_MESSAGE_KINDS_END; kind++) {
        struct group_message message = build(kind);
        vector_check(names[kind], group_message_write(&message, id, memory));
    }
}

static void reads_what_was_written_and_nothing_else(void **state) {
    (void)state;
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    uint8_t again[STEP_MESSAGE_SIZE_MAX];
    for (uint8_t kind = GROUP_MESSAGE_JOIN; kind < GROUP_MESSAGE_KINDS_END; kind++) {
        struct group_message message = build(kind);
        struct group_message read;
        struct bytes written = group_message_write(&message, id, memory);
        assert_int_equal(group_message_read(written, id, &read), GROUP_MESSAGE_GOOD);
        assert_bytes_equal(group_message_write(&read, id, again), written);
        for (size_t size = 0; size < written.size; size++) {
            bool is_report =
                kind == GROUP_MESSAGE_REPORT && size + 1 >= written.size; /* estimates to the end */
            assert_true(is_report ||
                        read_exactly(bytes_slice(written, 0, size), &read) == GROUP_MESSAGE_MALFORMED);
        }
    }
}

static void knows_strangers(void **state) {
    (void)state;
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct group_message message = build(GROUP_MESSAGE_ECHO);
    struct group_message read;
    struct bytes written = group_message_write(&message, id, memory);
    memory[0] = GROUP_VERSION + 1;
    assert_int_equal(group_message_read(written, id, &read), GROUP_MESSAGE_FOREIGN);
    memory[0] = GROUP_VERSION;
    memory[2] ^= 1;
    assert_int_equal(group_message_read(written, id, &read), GROUP_MESSAGE_FOREIGN);
    memory[2] ^= 1;
    memory[1] = GROUP_MESSAGE_KINDS_END;
    assert_int_equal(group_message_read(written, id, &read), GROUP_MESSAGE_MALFORMED);
    memory[1] = 0;
    assert_int_equal(group_message_read(written, id, &read), GROUP_MESSAGE_MALFORMED);
}

static void refuses_pieces_that_are_none(void **state) {
    (void)state;
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct group_message message = build(GROUP_MESSAGE_PIECE);
    struct group_message read;
    struct bytes written = group_message_write(&message, id, memory);
    uint8_t *piece = &memory[GROUP_MESSAGE_HEADER_SIZE + 8];
    piece[0] = 2; /* of two */
    assert_int_equal(group_message_read(written, id, &read), GROUP_MESSAGE_MALFORMED);
    piece[0] = 0; /* not the last, and short */
    assert_int_equal(group_message_read(written, id, &read), GROUP_MESSAGE_MALFORMED);
    piece[0] = 1;
    piece[1] = GROUP_PIECES_MAX + 1;
    assert_int_equal(group_message_read(written, id, &read), GROUP_MESSAGE_MALFORMED);
    piece[1] = 2;
    assert_int_equal(group_message_read(written, id, &read), GROUP_MESSAGE_GOOD);
}

static void the_largest_fit(void **state) {
    (void)state;
    static const uint8_t zeros[STEP_MESSAGE_SIZE_MAX];
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct group_message message = build(GROUP_MESSAGE_REPORT);
    message.heard = bytes_of(zeros, GROUP_MEMBERS_MAX);
    message.estimates = bytes_of(zeros, group_message_estimates_size_max(GROUP_MEMBERS_MAX));
    assert_int_equal(group_message_write(&message, id, memory).size, STEP_MESSAGE_SIZE_MAX);
    message = build(GROUP_MESSAGE_REQUEST);
    memset(message.peer.address.ip, 0x20, 16);
    message.papers = bytes_of(zeros, GROUP_PAPERS_SIZE_MAX);
    assert_true(group_message_write(&message, id, memory).size <= STEP_MESSAGE_SIZE_MAX);
    message = build(GROUP_MESSAGE_PIECE);
    message.contents = bytes_of(zeros, GROUP_PIECE_SIZE);
    assert_true(group_message_write(&message, id, memory).size <= STEP_MESSAGE_SIZE_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_vectors_of_the_specification),
        cmocka_unit_test(reads_what_was_written_and_nothing_else),
        cmocka_unit_test(knows_strangers),
        cmocka_unit_test(refuses_pieces_that_are_none),
        cmocka_unit_test(the_largest_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
