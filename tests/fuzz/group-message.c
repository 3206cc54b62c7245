/* Any bytes as a message of a group: what is read is within its bounds, and is written as it was read. */
#include "fuzz.h"

#include "protocol/group/group.h"

static void check(const struct group_message *message) {
    ASSERT(message->kind > 0 && message->kind < GROUP_MESSAGE_KINDS_END);
    ASSERT(message->papers.size <= GROUP_PAPERS_SIZE_MAX && message->heard.size <= GROUP_MEMBERS_MAX);
    if (message->kind == GROUP_MESSAGE_PIECE) {
        ASSERT(message->piece < message->pieces_count && message->pieces_count <= GROUP_PIECES_MAX);
        ASSERT(message->contents.size > 0 && message->contents.size <= GROUP_PIECE_SIZE);
    }
    if (message->kind == GROUP_MESSAGE_REPORT) {
        ASSERT(message->estimates.size <= STEP_MESSAGE_SIZE_MAX);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t id[GROUP_ID_SIZE];
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct group_message message;
    if (group_message_read(bytes_of(data, size), id, &message) != GROUP_MESSAGE_GOOD) {
        return 0;
    }
    check(&message);
    struct bytes again = group_message_write(&message, id, memory);
    ASSERT(bytes_equal(again, bytes_of(data, size))); /* one form */
    return 0;
}
