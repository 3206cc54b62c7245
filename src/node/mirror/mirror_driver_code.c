#include "node/mirror/mirror_driver_code.h"

#include "base/wire.h"

enum { HEAD_SIZE_MAX = 512 };

/* In the place of a chunk's size: 0 and 1 are none, the size follows from 2 on. */
enum { NOT_HERE, WITHHELD, SIZE_FROM };

/* ---- questions ---- */

void mirror_driver_put_version_question(struct buf *out, uint16_t port,
                                        const uint8_t publisher[PEER_KEY_SIZE], struct bytes name,
                                        struct bytes statement) {
    uint8_t memory[HEAD_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_u8(&writer, MIRROR_DRIVER_VERSION);
    wire_write_u16(&writer, port);
    wire_write_bytes(&writer, bytes_of(publisher, PEER_KEY_SIZE));
    wire_write_string(&writer, name);
    wire_write_string(&writer, statement);
    buf_put(out, wire_writer_bytes(&writer));
}

void mirror_driver_put_chunks_question(struct buf *out, const uint8_t id[VERSION_ID_SIZE], bool is_needed,
                                       size_t digests_count) {
    uint8_t memory[HEAD_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_u8(&writer, MIRROR_DRIVER_CHUNKS);
    wire_write_bytes(&writer, bytes_of(id, VERSION_ID_SIZE));
    wire_write_bool(&writer, is_needed);
    wire_write_varint(&writer, digests_count);
    buf_put(out, wire_writer_bytes(&writer));
}

void mirror_driver_put_parts_question(struct buf *out, const uint8_t id[VERSION_ID_SIZE],
                                      const uint8_t root[SHA256_SIZE]) {
    buf_put_byte(out, MIRROR_DRIVER_PARTS);
    buf_put(out, bytes_of(id, VERSION_ID_SIZE));
    buf_put(out, bytes_of(root, SHA256_SIZE));
}

static void read_version(struct wire_reader *reader, struct mirror_driver_question *question) {
    question->port = wire_read_u16(reader);
    wire_read_array(reader, question->publisher, PEER_KEY_SIZE);
    question->name = wire_read_string(reader, VERSION_NAME_SIZE_MAX);
    question->statement = wire_read_string(reader, VERSION_SIZE_MAX);
    if (reader->err == ERR_OK && !version_name_is_valid(question->name)) {
        wire_read_fail(reader, ERR_INVALID, "not the name of a collection");
    }
}

enum err mirror_driver_read_question(struct bytes input, struct mirror_driver_question *ret_question,
                                     struct err_detail *detail) {
    struct wire_reader reader;
    *ret_question = (struct mirror_driver_question){0};
    wire_reader_init(&reader, input);
    ret_question->kind =
        (enum mirror_driver_question_kind)wire_read_u8_max(&reader, MIRROR_DRIVER_KINDS_COUNT - 1);
    switch (ret_question->kind) {
    case MIRROR_DRIVER_VERSION:
        read_version(&reader, ret_question);
        break;
    case MIRROR_DRIVER_CHUNKS:
        wire_read_array(&reader, ret_question->id, VERSION_ID_SIZE);
        ret_question->is_needed = wire_read_bool(&reader);
        ret_question->digests_count = (size_t)wire_read_varint(&reader, MIRROR_DRIVER_DIGESTS_MAX);
        ret_question->digests = wire_read_bytes(&reader, ret_question->digests_count * SHA256_SIZE);
        break;
    case MIRROR_DRIVER_PARTS:
        wire_read_array(&reader, ret_question->id, VERSION_ID_SIZE);
        wire_read_array(&reader, ret_question->root, SHA256_SIZE);
        break;
    case MIRROR_DRIVER_KINDS_COUNT:
        break;
    }
    return wire_reader_finish(&reader, detail);
}

/* ---- answers ---- */

void mirror_driver_put_version_answer(struct buf *out, const uint8_t self[PEER_KEY_SIZE],
                                      struct bytes statement) {
    uint8_t memory[HEAD_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_bytes(&writer, bytes_of(self, PEER_KEY_SIZE));
    wire_write_string(&writer, statement);
    buf_put(out, wire_writer_bytes(&writer));
}

enum err mirror_driver_read_version_answer(struct bytes input, uint8_t ret_key[PEER_KEY_SIZE],
                                           struct bytes *ret_statement) {
    struct wire_reader reader;
    wire_reader_init(&reader, input);
    wire_read_array(&reader, ret_key, PEER_KEY_SIZE);
    *ret_statement = wire_read_string(&reader, VERSION_SIZE_MAX);
    return wire_reader_finish(&reader, NULL);
}

void mirror_driver_begin_chunks_answer(struct buf *out) {
    buf_put_byte(out, 0);
}

static void put_varint(struct buf *out, uint64_t value) {
    uint8_t memory[WIRE_VARINT_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_varint(&writer, value);
    buf_put(out, wire_writer_bytes(&writer));
}

void mirror_driver_put_chunk(struct buf *out, struct bytes chunk) {
    ASSERT(chunk.size > 0 && chunk.size <= CHUNKER_SIZE_MAX);
    put_varint(out, chunk.size - 1 + SIZE_FROM);
    buf_put(out, chunk);
}

void mirror_driver_put_no_chunk(struct buf *out, bool is_withheld) {
    buf_put_byte(out, is_withheld ? WITHHELD : NOT_HERE);
}

struct bytes mirror_driver_read_chunk(struct wire_reader *reader, bool *ret_is_withheld) {
    uint64_t code = wire_read_varint(reader, CHUNKER_SIZE_MAX - 1 + SIZE_FROM);
    *ret_is_withheld = code == WITHHELD;
    return code < SIZE_FROM ? bytes_of(NULL, 0) : wire_read_bytes(reader, (size_t)code - SIZE_FROM + 1);
}

void mirror_driver_put_parts_answer(struct buf *out, const struct mirror_driver_parts *parts) {
    ASSERT(parts->count <= MIRROR_DRIVER_PARTS_MAX && parts->bits.size == (parts->count + 7) / 8);
    buf_put_byte(out, parts->is_whole);
    put_varint(out, parts->count);
    buf_put(out, parts->bits);
}

enum err mirror_driver_read_parts_answer(struct bytes input, struct mirror_driver_parts *ret_parts) {
    struct wire_reader reader;
    wire_reader_init(&reader, input);
    ret_parts->is_whole = wire_read_bool(&reader);
    ret_parts->count = (size_t)wire_read_varint(&reader, MIRROR_DRIVER_PARTS_MAX);
    ret_parts->bits = wire_read_bytes(&reader, (ret_parts->count + 7) / 8);
    return wire_reader_finish(&reader, NULL);
}

void mirror_driver_end_chunks_answer(struct buf *out, bool may_come) {
    if (out->err == ERR_OK) {
        out->data[0] = may_come;
    }
}
