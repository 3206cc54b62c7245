/* Arbitrary bytes as a report of estimates. Held to: what is read is written again as the same bytes. */
#include "fuzz.h"

#include "protocol/group/estimate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct estimate_entry entries[GROUP_MEMBERS_MAX];
    static uint8_t memory[1 + GROUP_MEMBERS_MAX * ESTIMATE_ENTRY_SIZE_MAX];
    const uint64_t now_us = UINT64_MAX / 2; /* later than any age */
    size_t count;
    if (estimate_read_report(bytes_of(data, size), now_us, entries, &count) != ERR_OK) {
        return 0;
    }
    struct bytes report;
    ASSERT(estimate_write_report(entries, count, now_us, memory, sizeof memory, &report) == count);
    ASSERT(bytes_equal(report, bytes_of(data, size)));
    for (size_t i = 0; i < count; i++) {
        ASSERT(estimate_cost_us(&entries[i].estimate, ESTIMATE_SIZE_REFERENCE) != COSTS_UNKNOWN_US);
    }
    return 0;
}
