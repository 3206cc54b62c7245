/*
 * attest-fixture - signatures of the first version, as archives have them: no program makes them any more.
 */
#ifndef MNEMON_TESTS_ATTEST_FIXTURE_H
#define MNEMON_TESTS_ATTEST_FIXTURE_H

#include "base/wire.h"
#include "crawl/engine/attest.h"
#include "unit.h"

/* Its sum is set. The text must live as long as the document. */
static inline void attest_fixture_sign_first(const struct identity *identity, struct sha256 *sha256,
                                             struct document *document, char text[ATTEST_TEXT_SIZE]) {
    uint8_t memory[1024];
    uint8_t head[SHA256_SIZE];
    uint8_t signature[IDENTITY_SIGNATURE_SIZE];
    struct wire_writer writer;
    struct bytes message;
    sha256_digest(sha256, document->head, head);
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_string(&writer, document->url);
    wire_write_u64(&writer, (uint64_t)document->time_us);
    wire_write_bytes(&writer, bytes_of(head, sizeof head));
    wire_write_bytes(&writer, bytes_of(document->sum->digest, SHA256_SIZE));
    wire_write_varint(&writer, document->sum->size);
    wire_write_string(&writer, document->ip_address);
    wire_write_string(&writer, document->tls);
    wire_write_bool(&writer, document->is_not_modified);
    assert_int_equal(wire_writer_finish(&writer, &message), ERR_OK);
    identity_sign(identity, "mnemon capture 1", message, signature);
    document->signature = bytes_of_string(attest_format(identity->key, signature, text));
}

#endif
