/* mirroring - what another node asks about a collection, and answers: what is read is written as it was. */
#include "node/mirroring_code.h"

#include "fuzz.h"

static void put(const struct mirroring_question *question, struct buf *out) {
    if (question->kind == MIRRORING_VERSION) {
        mirroring_put_version_question(out, question->port, question->publisher, question->name,
                                       question->statement);
    } else {
        mirroring_put_chunks_question(out, question->id, question->digests_count);
        buf_put(out, question->digests);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct mirroring_question question;
    struct bytes input = bytes_of(data, size);
    struct bytes statement;
    uint8_t key[PEER_KEY_SIZE];
    struct buf out;
    if (size > BULK_QUESTION_SIZE_MAX) {
        return 0;
    }
    buf_init(&out, BULK_QUESTION_SIZE_MAX);
    if (mirroring_read_question(input, &question, NULL) == ERR_OK) {
        put(&question, &out);
        ASSERT(bytes_equal(buf_bytes(&out), input));
    }
    if (mirroring_read_version_answer(input, key, &statement) == ERR_OK) {
        buf_clear(&out);
        mirroring_put_version_answer(&out, key, statement);
        ASSERT(bytes_equal(buf_bytes(&out), input));
    }
    buf_done(&out);
    return 0;
}
