/*
 * frontier - any bytes as entries of the frontier. The first byte says what kind. Whatever is read must be
 * written as the same entry again.
 */
#include "crawl/frontier/frontier_code.h"
#include "fuzz.h"

static void check_keys(struct bytes input) {
    uint8_t again[FRONTIER_CODE_KEY_SIZE_MAX];
    uint32_t host;
    uint64_t number;
    if (frontier_code_read_host_key(input, 'h', &host) == ERR_OK) {
        ASSERT(bytes_equal(frontier_code_host_key(again, 'h', host), input));
    }
    if (frontier_code_read_url_key(input, 'u', &number) == ERR_OK) {
        ASSERT(bytes_equal(frontier_code_url_key(again, 'u', number), input));
    }
    if (frontier_code_read_queue_key(input, &host, &number) == ERR_OK) {
        ASSERT(bytes_equal(frontier_code_queue_key(again, host, number), input));
        uint64_t position = frontier_code_position(
            frontier_code_priority(number), frontier_code_depth(number), frontier_code_sequence(number));
        ASSERT(position == number);
    }
}

static void check_small(struct bytes input) {
    uint8_t again[FRONTIER_CODE_SMALL_SIZE_MAX];
    uint32_t counts[8];
    size_t count;
    struct frontier_position place;
    struct frontier_meta meta;
    if (frontier_code_read_counts(input, counts, 8, &count) == ERR_OK) {
        for (size_t i = 0, from = 0; i < count; i++) {
            struct bytes one = frontier_code_count(again, counts[i]);
            ASSERT(bytes_equal(bytes_slice(input, from, from + one.size), one));
            from += one.size;
        }
    }
    if (frontier_code_read_place(input, &place) == ERR_OK) {
        ASSERT(bytes_equal(frontier_code_place(again, &place), input));
    }
    if (frontier_code_read_meta(input, &meta) == ERR_OK) {
        ASSERT(bytes_equal(frontier_code_meta(again, &meta), input));
    }
}

static void check_host(struct bytes input) {
    static uint8_t again[FRONTIER_CODE_RECORD_SIZE_MAX];
    uint64_t domain;
    struct bytes name;
    if (frontier_code_read_host(input, &domain, &name) == ERR_OK) {
        ASSERT(bytes_equal(frontier_code_host(again, domain, name), input));
    }
}

static void check_waiting(struct bytes input) {
    static uint8_t again[FRONTIER_CODE_RECORD_SIZE_MAX];
    struct frontier_waiting waiting;
    if (frontier_code_read_waiting(input, &waiting) == ERR_OK) {
        ASSERT(bytes_equal(frontier_code_waiting(again, &waiting), input));
    }
}

static void check_record(struct bytes input) {
    static uint8_t again[FRONTIER_CODE_RECORD_SIZE_MAX];
    struct frontier_record record;
    if (frontier_code_read_record(input, &record) == ERR_OK) {
        ASSERT(bytes_equal(frontier_code_record(again, &record), input));
        ASSERT(frontier_code_record_position(&record) <= FRONTIER_CODE_POSITION_END);
    }
}

/* The first byte says how long the key is. */
static void check_outgoing(struct bytes input) {
    static uint8_t key[FRONTIER_CODE_OUTGOING_KEY_SIZE_MAX];
    uint8_t value[FRONTIER_CODE_SMALL_SIZE_MAX];
    struct frontier_outgoing link;
    size_t size = input.size > 0 ? input.data[0] : 0;
    if (size >= input.size) {
        return;
    }
    struct bytes key_read = bytes_slice(input, 1, 1 + size);
    struct bytes value_read = bytes_skip(input, 1 + size);
    if (frontier_code_read_outgoing(key_read, value_read, &link) == ERR_OK) {
        ASSERT(bytes_equal(frontier_code_outgoing_key(key, link.place, link.url), key_read));
        ASSERT(bytes_equal(frontier_code_outgoing(value, link.priority, link.depth), value_read));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const checks[])(struct bytes input) = {check_keys,    check_small,  check_host,
                                                         check_waiting, check_record, check_outgoing};
    if (size > 0) {
        checks[data[0] % (sizeof checks / sizeof *checks)](bytes_of(data + 1, size - 1));
    }
    return 0;
}
