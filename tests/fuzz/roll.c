/*
 * roll - memberships that another node gives, and its questions for them. What is read must be within its
 * bounds and, written again, give the same bytes; nothing that the founder has not signed is a member's.
 */
#include "protocol/ring/roll.h"

#include "fuzz.h"

static bool roll_verify(const uint8_t key[PEER_KEY_SIZE], const char *context, struct bytes message,
                        const uint8_t signature[CHARTER_SIGNATURE_SIZE]) {
    (void)key;
    (void)context;
    (void)message;
    return signature[0] == 1;
}

static void roll_try_answer(struct bytes input) {
    static const uint8_t ring[CHARTER_ID_SIZE];
    struct roll_entry entries[ROLL_ASKED_MAX];
    uint8_t again[ROLL_ANSWER_SIZE_MAX];
    struct wire_writer writer;
    size_t count;
    if (roll_read_answer(input, entries, &count, NULL) != ERR_OK) {
        return;
    }
    ASSERT(count <= ROLL_ASKED_MAX);
    wire_writer_init(&writer, again, sizeof again);
    wire_write_varint(&writer, count);
    for (size_t i = 0; i < count; i++) {
        static const struct charter charter;
        struct roll_period period;
        roll_write_entry(&writer, &entries[i]);
        enum err err = roll_check(&entries[i], &charter, ring, roll_verify, &period);
        ASSERT(err == ERR_MISMATCH || entries[i].membership.invitation.signature[0] == 1 ||
               memcmp(charter.founder, entries[i].key, PEER_KEY_SIZE) == 0);
    }
    ASSERT(writer.err == ERR_OK && bytes_equal(wire_writer_bytes(&writer), input));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bytes input = bytes_of(data, size);
    uint64_t starts[ROLL_ASKED_MAX];
    uint8_t again[ROLL_QUESTION_SIZE_MAX];
    struct wire_writer writer;
    size_t count;
    if (roll_read_question(input, starts, &count, NULL) == ERR_OK) {
        wire_writer_init(&writer, again, sizeof again);
        roll_write_question(&writer, starts, count);
        ASSERT(bytes_equal(wire_writer_bytes(&writer), input));
    }
    roll_try_answer(input);
    return 0;
}
