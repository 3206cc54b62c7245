#include "protocol/crowd/relay_message.h"
#include "unit.h"

static struct peer holder_at(uint8_t last) {
    struct peer peer = {.address = address_ipv4(192, 0, 2, last, 7070)};
    memset(peer.key, 0x5a, sizeof peer.key);
    return peer;
}

static void assert_request_reads_back(const struct relay_request *request) {
    uint8_t memory[RELAY_MESSAGE_SIZE_MAX + 1];
    struct relay_request read;
    struct bytes bytes = relay_write_request(request, memory);
    assert_int_equal(relay_read_request(bytes, &read, NULL), ERR_OK);
    assert_int_equal(read.kind, request->kind);
    assert_int_equal(read.number, request->number);
    assert_int_equal(read.timeout_ms, request->timeout_ms);
    assert_int_equal(read.hits_wanted, request->hits_wanted);
    assert_bytes_equal(read.wish, request->wish);
    for (size_t size = 0; size < bytes.size; size++) {
        assert_int_not_equal(relay_read_request(bytes_slice(bytes, 0, size), &read, NULL), ERR_OK);
    }
    memory[bytes.size] = 0;
    assert_int_not_equal(relay_read_request(bytes_of(memory, bytes.size + 1), &read, NULL), ERR_OK);
}

static void requests_read_back_and_nothing_less_or_more(void **state) {
    (void)state;
    assert_request_reads_back(&(struct relay_request){.kind = RELAY_STAY});
    assert_request_reads_back(&(struct relay_request){.kind = RELAY_SEARCH,
                                                      .number = 70000,
                                                      .timeout_ms = RELAY_TIMEOUT_MS_MAX,
                                                      .hits_wanted = RELAY_HITS_MAX,
                                                      .wish = BYTES("a wish")});
}

static void searches_beyond_their_bounds_are_refused(void **state) {
    (void)state;
    const struct relay_request wrong[] = {
        {.kind = RELAY_SEARCH, .hits_wanted = 0, .wish = BYTES("w")},
        {.kind = RELAY_SEARCH, .hits_wanted = RELAY_HITS_MAX + 1, .wish = BYTES("w")},
        {.kind = RELAY_SEARCH, .hits_wanted = 1, .timeout_ms = RELAY_TIMEOUT_MS_MAX + 1, .wish = BYTES("w")},
        {.kind = RELAY_SEARCH, .hits_wanted = 1},
        {.kind = RELAY_REQUESTS_END},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint8_t memory[RELAY_MESSAGE_SIZE_MAX];
        struct relay_request read;
        assert_int_not_equal(relay_read_request(relay_write_request(&wrong[i], memory), &read, NULL), ERR_OK);
    }
}

static void a_wish_reads_back(void **state) {
    (void)state;
    uint8_t memory[RELAY_WISH_SIZE_MAX];
    uint8_t longest[CROWD_WISH_SIZE_MAX];
    struct relay_notice read;
    memset(longest, 'w', sizeof longest);
    struct relay_notice notice = {.kind = RELAY_WISH, .wish = bytes_of(longest, sizeof longest)};
    struct bytes bytes = relay_write_notice(&notice, memory);
    assert_int_equal(bytes.size, sizeof longest + 3);
    assert_int_equal(relay_read_notice(bytes, &read, NULL), ERR_OK);
    assert_bytes_equal(read.wish, notice.wish);
    notice.wish = BYTES("");
    assert_int_not_equal(relay_read_notice(relay_write_notice(&notice, memory), &read, NULL), ERR_OK);
}

static void as_many_hits_as_there_can_be_fit_and_read_back(void **state) {
    (void)state;
    static uint8_t memory[RELAY_MESSAGE_SIZE_MAX + 1];
    uint8_t finding[CROWD_FINDING_SIZE_MAX];
    struct relay_notice read;
    struct relay_notice notice = {
        .kind = RELAY_FOUND, .number = 7, .outcome = RELAY_HITS, .hits_count = RELAY_HITS_MAX};
    memset(finding, 'f', sizeof finding);
    for (uint8_t i = 0; i < RELAY_HITS_MAX; i++) {
        notice.hits[i] = (struct relay_hit){
            .holder = holder_at(i + 1), .hops_count = i, .finding = bytes_of(finding, sizeof finding)};
    }
    struct bytes bytes = relay_write_notice(&notice, memory);
    assert_int_equal(relay_read_notice(bytes, &read, NULL), ERR_OK);
    assert_int_equal(read.hits_count, RELAY_HITS_MAX);
    for (uint8_t i = 0; i < RELAY_HITS_MAX; i++) {
        assert_true(peer_equal(&read.hits[i].holder, &notice.hits[i].holder));
        assert_int_equal(read.hits[i].hops_count, i);
        assert_bytes_equal(read.hits[i].finding, notice.hits[i].finding);
    }
    for (size_t size = 0; size < bytes.size; size += 13) {
        assert_int_not_equal(relay_read_notice(bytes_slice(bytes, 0, size), &read, NULL), ERR_OK);
    }
}

static void hits_fit_their_outcome(void **state) {
    (void)state;
    uint8_t memory[RELAY_MESSAGE_SIZE_MAX];
    struct relay_notice read;
    struct relay_notice notice = {.kind = RELAY_FOUND, .number = 7, .outcome = RELAY_NOTHING};
    assert_int_equal(relay_read_notice(relay_write_notice(&notice, memory), &read, NULL), ERR_OK);
    assert_int_equal(read.outcome, RELAY_NOTHING);
    notice.outcome = RELAY_HITS;
    assert_int_not_equal(relay_read_notice(relay_write_notice(&notice, memory), &read, NULL), ERR_OK);
    notice.outcome = RELAY_LATE;
    notice.hits_count = 1;
    notice.hits[0] = (struct relay_hit){.holder = holder_at(1), .finding = BYTES("f")};
    assert_int_not_equal(relay_read_notice(relay_write_notice(&notice, memory), &read, NULL), ERR_OK);
    notice.outcome = RELAY_HITS;
    notice.hits[0].finding = BYTES("");
    assert_int_not_equal(relay_read_notice(relay_write_notice(&notice, memory), &read, NULL), ERR_OK);
}

static void the_documents_vectors_hold(void **state) {
    (void)state;
    static const uint8_t stay[] = {0};
    static const uint8_t search[] = {1, 1, 0, 0, 0, 0x88, 0x27, 4, 4, 'w', 'i', 's', 'h'};
    static const uint8_t nothing[] = {1, 1, 0, 0, 0, 1, 0};
    uint8_t memory[RELAY_MESSAGE_SIZE_MAX];
    struct relay_request request = {
        .kind = RELAY_SEARCH, .number = 1, .timeout_ms = 5000, .hits_wanted = 4, .wish = BYTES("wish")};
    struct relay_notice notice = {.kind = RELAY_FOUND, .number = 1, .outcome = RELAY_NOTHING};
    assert_bytes_equal(relay_write_request(&(struct relay_request){.kind = RELAY_STAY}, memory),
                       bytes_of(stay, sizeof stay));
    assert_bytes_equal(relay_write_request(&request, memory), bytes_of(search, sizeof search));
    assert_bytes_equal(relay_write_notice(&notice, memory), bytes_of(nothing, sizeof nothing));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_read_back_and_nothing_less_or_more),
        cmocka_unit_test(searches_beyond_their_bounds_are_refused),
        cmocka_unit_test(a_wish_reads_back),
        cmocka_unit_test(as_many_hits_as_there_can_be_fit_and_read_back),
        cmocka_unit_test(hits_fit_their_outcome),
        cmocka_unit_test(the_documents_vectors_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
