#include "node/captures_code.h"

#include "base/wire.h"
#include "store/index.h"
#include "store/volume.h"

enum { SMALL_SIZE_MAX = 128 };

static enum err finish(const struct wire_writer *writer, struct buf *out) {
    out->size += writer->err == ERR_OK ? writer->size : 0;
    return writer->err;
}

static enum err start(struct wire_writer *writer, struct buf *out, size_t size) {
    enum err err = buf_reserve(out, size);
    if (err == ERR_OK) {
        wire_writer_init(writer, out->data + out->size, size);
    }
    return err;
}

enum err captures_code_put_question(struct buf *out, const struct captures_question *question) {
    struct wire_writer writer;
    enum err err = start(&writer, out, question->surt.size + SMALL_SIZE_MAX);
    if (err != ERR_OK) {
        return err;
    }
    wire_write_bytes(&writer, bytes_of(question->key.bytes, RINGKEY_SIZE));
    wire_write_string(&writer, question->surt);
    wire_write_bool(&writer, question->wants_description);
    wire_write_varint(&writer, question->offset);
    wire_write_varint(&writer, question->size_max);
    return finish(&writer, out);
}

enum err captures_code_read_question(struct bytes in, struct captures_question *ret_question,
                                     struct err_detail *detail) {
    struct wire_reader reader;
    struct captures_question question;
    wire_reader_init(&reader, in);
    wire_read_array(&reader, question.key.bytes, RINGKEY_SIZE);
    question.surt = wire_read_string(&reader, INDEX_SURT_SIZE_MAX);
    question.wants_description = wire_read_bool(&reader);
    question.offset = wire_read_varint(&reader, VOLUME_DOCUMENT_SIZE_MAX);
    question.size_max = (uint32_t)wire_read_varint(&reader, BULK_PIECE_SIZE_MAX);
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        *ret_question = question;
    }
    return err;
}

enum err captures_code_put_answer(struct buf *out, const struct captures_answer *answer) {
    struct wire_writer writer;
    size_t size = answer->description.size + answer->piece.size + SMALL_SIZE_MAX;
    enum err err = start(&writer, out, answer->is_there ? size : 1);
    if (err != ERR_OK) {
        return err;
    }
    wire_write_bool(&writer, answer->is_there);
    if (answer->is_there) {
        wire_write_string(&writer, answer->description);
        wire_write_varint(&writer, answer->size);
        wire_write_bool(&writer, answer->is_packed);
        wire_write_bytes(&writer, answer->piece);
    }
    return finish(&writer, out);
}

enum err captures_code_read_answer(struct bytes in, struct captures_answer *ret_answer,
                                   struct err_detail *detail) {
    struct wire_reader reader;
    struct captures_answer answer = {0};
    wire_reader_init(&reader, in);
    answer.is_there = wire_read_bool(&reader);
    if (answer.is_there) {
        answer.description = wire_read_string(&reader, CAPTURES_CODE_DESCRIPTION_SIZE_MAX);
        answer.size = wire_read_varint(&reader, VOLUME_DOCUMENT_SIZE_MAX);
        answer.is_packed = wire_read_bool(&reader);
        answer.piece = wire_read_bytes(&reader, wire_reader_left(&reader));
    }
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        *ret_answer = answer;
    }
    return err;
}
