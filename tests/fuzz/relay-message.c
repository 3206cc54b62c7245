/* Any bytes as what a light member and its relay say: what is read is within its bounds, and is written as it
 * was read. */
#include "fuzz.h"

#include "protocol/crowd/relay_message.h"

static void check_request(struct bytes bytes) {
    uint8_t memory[RELAY_MESSAGE_SIZE_MAX];
    struct relay_request request;
    if (relay_read_request(bytes, &request, NULL) != ERR_OK) {
        return;
    }
    ASSERT(request.kind < RELAY_REQUESTS_END && request.wish.size <= CROWD_WISH_SIZE_MAX);
    ASSERT(request.kind != RELAY_SEARCH ||
           (request.hits_wanted > 0 && request.hits_wanted <= RELAY_HITS_MAX && request.wish.size > 0 &&
            request.timeout_ms <= RELAY_TIMEOUT_MS_MAX));
    ASSERT(bytes_equal(relay_write_request(&request, memory), bytes)); /* one form */
}

static void check_notice(struct bytes bytes) {
    uint8_t memory[RELAY_MESSAGE_SIZE_MAX];
    struct relay_notice notice;
    if (relay_read_notice(bytes, &notice, NULL) != ERR_OK) {
        return;
    }
    ASSERT(notice.kind < RELAY_NOTICES_END && notice.hits_count <= RELAY_HITS_MAX);
    for (size_t i = 0; i < notice.hits_count; i++) {
        ASSERT(peer_is_possible(&notice.hits[i].holder));
        ASSERT(notice.hits[i].finding.size > 0 && notice.hits[i].finding.size <= CROWD_FINDING_SIZE_MAX);
    }
    ASSERT(bytes_equal(relay_write_notice(&notice, memory), bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t verdict;
    struct bytes bytes = bytes_of(data, size);
    check_request(bytes);
    check_notice(bytes);
    ASSERT(relay_read_verdict(bytes, &verdict) != ERR_OK || verdict < RELAY_VERDICTS_END);
    return 0;
}
