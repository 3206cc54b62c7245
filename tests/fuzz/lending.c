/* lending - what another node says about a host: what is read is written as it was. */
#include "node/links/lending_code.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lending_message message;
    struct buf out;
    struct bytes input = bytes_of(data, size);
    uint64_t now_us = UINT64_C(1000000000);
    int64_t wall_us = INT64_C(1700000000000000);
    if (size > LENDING_SIZE_MAX || lending_read(input, now_us, wall_us, &message, NULL) != ERR_OK) {
        return 0;
    }
    buf_init(&out, LENDING_SIZE_MAX);
    ASSERT(lending_write(&message, now_us, wall_us, &out) == ERR_OK);
    ASSERT(bytes_equal(buf_bytes(&out), input));
    buf_done(&out);
    return 0;
}
