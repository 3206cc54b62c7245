/* group_driver - a question about a group, and its answers, from anybody: what is read is written as it was.
 */
#include "node/group/group_driver_code.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct group_driver_message message;
    uint8_t memory[GROUP_DRIVER_CODE_SIZE_MAX];
    struct bytes input = bytes_of(data, size);
    if (group_driver_code_read(input, &message) == ERR_OK) {
        ASSERT(group_files_name_is_valid(message.name));
        ASSERT(message.rules.k <= TOPOLOGY_K_MAX && message.rules.generator <= TOPOLOGY_TREE);
        ASSERT(bytes_equal(group_driver_code_write(&message, memory), input));
    }
    return 0;
}
