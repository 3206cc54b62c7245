/*
 * node-report - what another node says of itself: signed by it, so anything at all. What is read is within
 * its bounds and, written again without what later programs add, is read as the same.
 */
#include "protocol/ring/node_report.h"

#include "fuzz.h"

static void sign(const void *signer, const char *context, struct bytes message,
                 uint8_t out[CHARTER_SIGNATURE_SIZE]) {
    (void)signer, (void)context, (void)message;
    memset(out, 0, CHARTER_SIGNATURE_SIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct node_report report;
    struct node_report again;
    uint8_t memory[NODE_REPORT_SIZE_MAX];
    if (node_report_read(bytes_of(data, size), NULL, &report, NULL) != ERR_OK) {
        return 0;
    }
    ASSERT(report.jobs_count <= NODE_REPORT_JOBS_MAX && report.proofs_count <= NODE_REPORT_PROOFS_MAX);
    ASSERT(dialect_program_is_valid(bytes_of_string(report.program)));
    for (size_t i = 0; i < NODE_REPORT_VALUES_COUNT; i++) {
        ASSERT(report.values[i] <= NODE_REPORT_VALUE_MAX);
    }
    struct bytes written = node_report_write(&report, sign, NULL, memory);
    ASSERT(node_report_read(written, NULL, &again, NULL) == ERR_OK);
    ASSERT(report.number == again.number && report.time_us == again.time_us);
    ASSERT(memcmp(report.values, again.values, sizeof report.values) == 0);
    ASSERT(report.jobs_count == again.jobs_count && report.proofs_count == again.proofs_count);
    for (size_t i = 0; i < report.jobs_count; i++) {
        ASSERT(report.jobs[i].state == again.jobs[i].state);
        ASSERT(memcmp(report.jobs[i].values, again.jobs[i].values, sizeof report.jobs[i].values) == 0);
    }
    return 0;
}
