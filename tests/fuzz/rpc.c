/* rpc - a message of another node: what is read is written as it was. */
#include "net/rpc.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t out[DATAGRAM_PAYLOAD_SIZE_MAX];
    struct rpc_message message;
    struct bytes input = bytes_of(data, size);
    if (size <= DATAGRAM_PAYLOAD_SIZE_MAX && rpc_read(input, &message)) {
        ASSERT(bytes_equal(rpc_write(&message, out), input));
    }
    return 0;
}
