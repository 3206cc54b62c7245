/* mirror_driver - what another node asks about a collection, and answers: what is read is written as it was.
 */
#include "node/mirror/mirror_driver_code.h"

#include "fuzz.h"

static void put(const struct mirror_driver_question *question, struct buf *out) {
    if (question->kind == MIRROR_DRIVER_VERSION) {
        mirror_driver_put_version_question(out, question->port, question->publisher, question->name,
                                           question->statement);
    } else if (question->kind == MIRROR_DRIVER_CHUNKS) {
        mirror_driver_put_chunks_question(out, question->id, question->is_needed, question->digests_count);
        buf_put(out, question->digests);
    } else {
        mirror_driver_put_parts_question(out, question->id, question->root);
    }
}

/* The pieces of an answer, as far as it is one. */
static void read_chunks(struct bytes input, struct buf *out) {
    struct wire_reader reader;
    wire_reader_init(&reader, input);
    buf_clear(out);
    while (reader.err == ERR_OK && wire_reader_left(&reader) > 0) {
        bool is_withheld;
        struct bytes chunk = mirror_driver_read_chunk(&reader, &is_withheld);
        if (reader.err == ERR_OK && chunk.size > 0) {
            mirror_driver_put_chunk(out, chunk);
        } else if (reader.err == ERR_OK) {
            mirror_driver_put_no_chunk(out, is_withheld);
        }
    }
    ASSERT(reader.err != ERR_OK || bytes_equal(buf_bytes(out), input));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct mirror_driver_question question;
    struct bytes input = bytes_of(data, size);
    struct bytes statement;
    struct mirror_driver_parts parts;
    uint8_t key[PEER_KEY_SIZE];
    struct buf out;
    if (size > PEER_RPC_QUESTION_SIZE_MAX) {
        return 0;
    }
    buf_init(&out, PEER_RPC_QUESTION_SIZE_MAX);
    if (mirror_driver_read_question(input, &question, NULL) == ERR_OK) {
        put(&question, &out);
        ASSERT(bytes_equal(buf_bytes(&out), input));
    }
    if (mirror_driver_read_version_answer(input, key, &statement) == ERR_OK) {
        buf_clear(&out);
        mirror_driver_put_version_answer(&out, key, statement);
        ASSERT(bytes_equal(buf_bytes(&out), input));
    }
    if (mirror_driver_read_parts_answer(input, &parts) == ERR_OK) {
        buf_clear(&out);
        mirror_driver_put_parts_answer(&out, &parts);
        ASSERT(bytes_equal(buf_bytes(&out), input));
    }
    read_chunks(input, &out);
    buf_done(&out);
    return 0;
}
