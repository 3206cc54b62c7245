/* host_leases - what another node says about a host: what is read is written as it was. */
#include "node/leases/host_leases_code.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct host_leases_message message;
    struct buf out;
    struct bytes input = bytes_of(data, size);
    uint64_t now_us = UINT64_C(1000000000);
    int64_t wall_us = INT64_C(1700000000000000);
    if (size > HOST_LEASES_SIZE_MAX || host_leases_read(input, now_us, wall_us, &message, NULL) != ERR_OK) {
        return 0;
    }
    buf_init(&out, HOST_LEASES_SIZE_MAX);
    ASSERT(host_leases_write(&message, now_us, wall_us, &out) == ERR_OK);
    ASSERT(bytes_equal(buf_bytes(&out), input));
    buf_done(&out);
    return 0;
}
