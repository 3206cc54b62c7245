#include "protocol/ring/node_report.h"

#include "base/wire.h"

static const char SIGNATURE_CONTEXT[] = "report";

/* ---- writing ---- */

static void report_write_values(struct wire_writer *writer, const uint64_t *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        wire_write_varint(writer, values[i] < NODE_REPORT_VALUE_MAX ? values[i] : NODE_REPORT_VALUE_MAX);
    }
}

struct bytes node_report_write(const struct node_report *report, charter_sign *sign, const void *signer,
                               uint8_t out[NODE_REPORT_SIZE_MAX]) {
    uint8_t signature[CHARTER_SIGNATURE_SIZE];
    struct wire_writer writer;
    ASSERT(report->jobs_count <= NODE_REPORT_JOBS_MAX && report->proofs_count <= NODE_REPORT_PROOFS_MAX);
    wire_writer_init(&writer, out, NODE_REPORT_SIZE_MAX);
    wire_write_u8(&writer, NODE_REPORT_LAYOUT);
    wire_write_bytes(&writer, bytes_of(report->ring, sizeof report->ring));
    wire_write_bytes(&writer, bytes_of(report->key, sizeof report->key));
    wire_write_u64(&writer, report->number);
    wire_write_u64(&writer, report->time_us);
    wire_write_string(&writer, bytes_of_string(report->program));
    wire_write_u8(&writer, NODE_REPORT_VALUES_COUNT);
    report_write_values(&writer, report->values, NODE_REPORT_VALUES_COUNT);
    wire_write_u8(&writer, (uint8_t)report->jobs_count);
    for (size_t i = 0; i < report->jobs_count; i++) {
        wire_write_bytes(&writer, bytes_of(report->jobs[i].id, NODE_REPORT_JOB_SIZE));
        wire_write_u8(&writer, report->jobs[i].state);
        report_write_values(&writer, report->jobs[i].values, NODE_REPORT_JOB_VALUES_COUNT);
    }
    wire_write_u8(&writer, (uint8_t)report->proofs_count);
    for (size_t i = 0; i < report->proofs_count; i++) {
        wire_write_bytes(&writer, bytes_of(report->proofs[i].key, PEER_KEY_SIZE));
        report_write_values(&writer, report->proofs[i].values, NODE_REPORT_PROOF_VALUES_COUNT);
    }
    sign(signer, SIGNATURE_CONTEXT, wire_writer_bytes(&writer), signature);
    wire_write_bytes(&writer, bytes_of(signature, sizeof signature));
    return wire_writer_bytes(&writer);
}

/* ---- reading ---- */

static void report_read_values(struct wire_reader *reader, uint64_t *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        values[i] = wire_read_varint(reader, NODE_REPORT_VALUE_MAX);
    }
}

static void report_read_numbers(struct wire_reader *reader, struct node_report *report) {
    size_t count = wire_read_u8_max(reader, NODE_REPORT_VALUES_MAX);
    for (size_t i = 0; i < count; i++) {
        uint64_t value = wire_read_varint(reader, NODE_REPORT_VALUE_MAX);
        if (i < NODE_REPORT_VALUES_COUNT) {
            report->values[i] = value;
        }
    }
}

static void report_read_jobs(struct wire_reader *reader, struct node_report *report) {
    report->jobs_count = wire_read_u8_max(reader, NODE_REPORT_JOBS_MAX);
    for (size_t i = 0; i < report->jobs_count; i++) {
        struct node_report_job *job = &report->jobs[i];
        wire_read_array(reader, job->id, sizeof job->id);
        job->state = wire_read_u8(reader);
        report_read_values(reader, job->values, NODE_REPORT_JOB_VALUES_COUNT);
    }
}

static void report_read_proofs(struct wire_reader *reader, struct node_report *report) {
    report->proofs_count = wire_read_u8_max(reader, NODE_REPORT_PROOFS_MAX);
    for (size_t i = 0; i < report->proofs_count; i++) {
        struct node_report_proof *proof = &report->proofs[i];
        wire_read_array(reader, proof->key, sizeof proof->key);
        report_read_values(reader, proof->values, NODE_REPORT_PROOF_VALUES_COUNT);
    }
}

/* All but the signature. */
static enum err report_parse(struct bytes body, struct node_report *report, struct err_detail *detail) {
    struct wire_reader reader;
    wire_reader_init(&reader, body);
    wire_read_version(&reader, NODE_REPORT_LAYOUT, "a report of another layout");
    wire_read_array(&reader, report->ring, sizeof report->ring);
    wire_read_array(&reader, report->key, sizeof report->key);
    report->number = wire_read_u64(&reader);
    report->time_us = wire_read_u64(&reader);
    struct bytes program = wire_read_string(&reader, DIALECT_PROGRAM_SIZE_MAX);
    wire_read_check(&reader, dialect_program_is_valid(program), "no version of a program");
    if (program.size > 0 && reader.err == ERR_OK) {
        memcpy(report->program, program.data, program.size);
    }
    report_read_numbers(&reader, report);
    report_read_jobs(&reader, report);
    report_read_proofs(&reader, report);
    while (wire_reader_left(&reader) > 0) {
        (void)wire_read_u8(&reader);
        (void)wire_read_string(&reader, DIALECT_FIELD_SIZE_MAX);
    }
    return wire_reader_finish(&reader, detail);
}

enum err node_report_read(struct bytes input, charter_verify *verify, struct node_report *ret_report,
                          struct err_detail *detail) {
    *ret_report = (struct node_report){.number = 0};
    if (input.size > NODE_REPORT_SIZE_MAX) {
        return err_set(detail, ERR_LIMIT, "a report that is too long");
    }
    if (input.size < CHARTER_SIGNATURE_SIZE) {
        return err_set(detail, ERR_TRUNCATED, "no report");
    }
    struct bytes body = bytes_slice(input, 0, input.size - CHARTER_SIGNATURE_SIZE);
    enum err err = report_parse(body, ret_report, detail);
    if (err == ERR_OK && verify != NULL &&
        !verify(ret_report->key, SIGNATURE_CONTEXT, body, input.data + body.size)) {
        return err_set(detail, ERR_MISMATCH, "a report that its node has not signed");
    }
    return err;
}
