/* Any bytes as a message of the crowd: what is read is within its bounds, and is written as it was read. */
#include "fuzz.h"

#include "protocol/crowd/crowd.h"

static void check(const struct crowd_message *message) {
    bool has_entries = message->kind == CROWD_MESSAGE_SHUFFLE || message->kind == CROWD_MESSAGE_SHUFFLED ||
                       message->kind == CROWD_MESSAGE_JOINED || message->kind == CROWD_MESSAGE_WALK ||
                       message->kind == CROWD_MESSAGE_WELCOME;
    ASSERT(message->version == CROWD_VERSION && message->kind < CROWD_MESSAGE_KINDS_END);
    ASSERT(!has_entries || message->entries_count <= CROWD_SHUFFLE_MAX);
    for (unsigned i = 0; has_entries && i < message->entries_count; i++) {
        ASSERT(address_is_possible(&message->entries[i].peer.address));
    }
    if (message->kind == CROWD_MESSAGE_QUERY) {
        ASSERT(message->ttl <= CROWD_TTL_CAP && message->fanout <= CROWD_FANOUT_MAX);
        ASSERT(message->fanout > 0 && message->contents.size > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t network[CROWD_NETWORK_SIZE];
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct crowd_message message;
    if (crowd_message_read(bytes_of(data, size), network, &message) != CROWD_MESSAGE_GOOD) {
        return 0;
    }
    check(&message);
    ASSERT(size <= STEP_MESSAGE_SIZE_MAX);
    struct bytes again = crowd_message_write(&message, network, memory);
    ASSERT(bytes_equal(again, bytes_of(data, size))); /* one form */
    return 0;
}
