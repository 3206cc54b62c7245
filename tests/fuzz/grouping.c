/* grouping - a question about a group, and its answers, from anybody: what is read is written as it was. */
#include "node/group/grouping_code.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct grouping_message message;
    uint8_t memory[GROUPING_CODE_SIZE_MAX];
    struct bytes input = bytes_of(data, size);
    if (grouping_code_read(input, &message) == ERR_OK) {
        ASSERT(group_files_name_is_valid(message.name));
        ASSERT(message.rules.k <= TOPOLOGY_K_MAX && message.rules.generator <= TOPOLOGY_TREE);
        ASSERT(bytes_equal(grouping_code_write(&message, memory), input));
    }
    return 0;
}
