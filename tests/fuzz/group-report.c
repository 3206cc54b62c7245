/* Arbitrary bytes as a report of estimates. Held to: what is read is written again as the same bytes. */
#include "fuzz.h"

#include "protocol/group/estimate.h"

/* What was reported goes on being measured. */
static void learn(struct estimate *estimate, uint64_t now_us) {
    uint64_t size = estimate->bandwidth;
    ASSERT(estimate_learn_round_trip(estimate, estimate->round_trip_us / 2, now_us));
    ASSERT(!estimate_learn_round_trip(estimate, ESTIMATE_ROUND_TRIP_US_MAX + UINT64_C(1), now_us));
    ASSERT(estimate_learn_transfer(estimate, size, estimate->round_trip_us, now_us) ==
           (size >= ESTIMATE_TRANSFER_SIZE_MIN));
    ASSERT(estimate->round_trip_us > 0 && estimate->bandwidth <= ESTIMATE_BANDWIDTH_MAX);
}

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
        learn(&entries[i].estimate, now_us);
    }
    return 0;
}
