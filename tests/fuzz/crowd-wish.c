/* Arbitrary bytes as a wish and as findings. Held to: what is read is written again as the same bytes. */
#include "fuzz.h"

#include "protocol/crowd/wish.h"

static void try_wish(struct bytes bytes) {
    uint8_t memory[CROWD_WISH_SIZE_MAX];
    struct wish wish;
    if (wish_read(bytes, &wish)) {
        ASSERT(bytes_equal(wish_write(&wish, memory), bytes));
        ASSERT(!wish_prefers(&wish, wish.from_us, wish.from_us));
        ASSERT(wish_takes_time(&wish, wish.from_us));
    }
}

static void try_findings(struct bytes bytes) {
    uint8_t memory[CROWD_FINDING_SIZE_MAX];
    struct wish_finding findings[WISH_FINDINGS_MAX];
    size_t count;
    if (bytes.size <= sizeof memory && wish_read_findings(bytes, findings, &count)) {
        ASSERT(count > 0 && count <= WISH_FINDINGS_MAX);
        ASSERT(bytes_equal(wish_write_findings(findings, count, memory), bytes));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    try_wish(bytes_of(data, size));
    try_findings(bytes_of(data, size));
    return 0;
}
