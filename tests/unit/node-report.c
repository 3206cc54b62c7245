#include "protocol/ring/node_report.h"

#include "net/identity.h"
#include "unit.h"

static void make(struct identity *identity, struct node_report *report) {
    static const uint8_t seed[IDENTITY_SEED_SIZE] = {7};
    *report = (struct node_report){.number = 42, .time_us = 1700000000000000, .program = "0.3.0"};
    assert_int_equal(identity_from_seed(identity, seed), ERR_OK);
    memset(report->ring, 'r', sizeof report->ring);
    memcpy(report->key, identity->key, sizeof report->key);
    for (size_t i = 0; i < NODE_REPORT_VALUES_COUNT; i++) {
        report->values[i] = 1000 * i;
    }
    report->jobs_count = NODE_REPORT_JOBS_MAX;
    for (size_t i = 0; i < report->jobs_count; i++) {
        memset(report->jobs[i].id, (int)i, NODE_REPORT_JOB_SIZE);
        report->jobs[i].state = 3;
        report->jobs[i].values[NODE_REPORT_JOB_STORED] = i;
    }
    report->proofs_count = NODE_REPORT_PROOFS_MAX;
    for (size_t i = 0; i < report->proofs_count; i++) {
        memset(report->proofs[i].key, (int)i, PEER_KEY_SIZE);
        report->proofs[i].values[NODE_REPORT_PROVED_S] = NODE_REPORT_VALUE_MAX;
    }
}

static void what_is_written_is_read(void **state) {
    struct identity identity;
    struct node_report report;
    struct node_report read;
    uint8_t memory[NODE_REPORT_SIZE_MAX];
    (void)state;
    make(&identity, &report);
    struct bytes encoded = node_report_write(&report, identity_sign, &identity, memory);
    assert_true(encoded.size < 4096);
    assert_int_equal(node_report_read(encoded, identity_verify, &read, NULL), ERR_OK);
    assert_memory_equal(read.key, report.key, sizeof read.key);
    assert_memory_equal(read.ring, report.ring, sizeof read.ring);
    assert_string_equal(read.program, "0.3.0");
    assert_true(read.number == 42 && read.time_us == report.time_us);
    assert_memory_equal(read.values, report.values, sizeof read.values);
    assert_int_equal(read.jobs_count, NODE_REPORT_JOBS_MAX);
    assert_memory_equal(read.jobs, report.jobs, sizeof read.jobs);
    assert_int_equal(read.proofs_count, NODE_REPORT_PROOFS_MAX);
    assert_memory_equal(read.proofs, report.proofs, sizeof read.proofs);
}

static void no_byte_can_be_changed_or_missing(void **state) {
    struct identity identity;
    struct node_report report;
    struct node_report read;
    uint8_t memory[NODE_REPORT_SIZE_MAX];
    (void)state;
    make(&identity, &report);
    report.jobs_count = 1;
    report.proofs_count = 1;
    struct bytes encoded = node_report_write(&report, identity_sign, &identity, memory);
    for (size_t i = 0; i < encoded.size; i++) {
        memory[i] ^= 1;
        assert_int_not_equal(node_report_read(encoded, identity_verify, &read, NULL), ERR_OK);
        memory[i] ^= 1;
        assert_int_not_equal(node_report_read(bytes_slice(encoded, 0, i), identity_verify, &read, NULL),
                             ERR_OK);
    }
    assert_int_equal(node_report_read(encoded, identity_verify, &read, NULL), ERR_OK);
    memory[0] = NODE_REPORT_LAYOUT + 1;
    assert_int_equal(node_report_read(encoded, identity_verify, &read, NULL), ERR_UNSUPPORTED);
}

/* Signs nothing: the bytes are what counts. */
static void sign_with_zeros(const void *signer, const char *context, struct bytes message,
                            uint8_t out[CHARTER_SIGNATURE_SIZE]) {
    (void)signer, (void)context, (void)message;
    memset(out, 0, CHARTER_SIGNATURE_SIZE);
}

static void what_later_programs_add_is_passed_over(void **state) {
    static const uint8_t field[] = {200, 3, 'a', 'b', 'c'};
    struct identity identity;
    struct node_report report;
    struct node_report read;
    uint8_t memory[NODE_REPORT_SIZE_MAX];
    (void)state;
    make(&identity, &report);
    struct bytes encoded = node_report_write(&report, sign_with_zeros, NULL, memory);
    size_t at = encoded.size - CHARTER_SIGNATURE_SIZE;
    memmove(memory + at + sizeof field, memory + at, CHARTER_SIGNATURE_SIZE);
    memcpy(memory + at, field, sizeof field);
    struct bytes longer = bytes_of(memory, encoded.size + sizeof field);
    assert_int_equal(node_report_read(longer, NULL, &read, NULL), ERR_OK);
    assert_memory_equal(read.proofs, report.proofs, sizeof read.proofs);
    assert_int_equal(node_report_read(bytes_of(memory, NODE_REPORT_SIZE_MAX + 1), NULL, &read, NULL),
                     ERR_LIMIT);
}

static void a_value_that_is_too_large_is_written_as_the_largest(void **state) {
    struct identity identity;
    struct node_report report;
    struct node_report read;
    uint8_t memory[NODE_REPORT_SIZE_MAX];
    (void)state;
    make(&identity, &report);
    report.values[NODE_REPORT_USED_SIZE] = UINT64_MAX;
    struct bytes encoded = node_report_write(&report, identity_sign, &identity, memory);
    assert_int_equal(node_report_read(encoded, identity_verify, &read, NULL), ERR_OK);
    assert_true(read.values[NODE_REPORT_USED_SIZE] == NODE_REPORT_VALUE_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(no_byte_can_be_changed_or_missing),
        cmocka_unit_test(what_later_programs_add_is_passed_over),
        cmocka_unit_test(a_value_that_is_too_large_is_written_as_the_largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
