#include "node/captures/captures_code.h"

#include "base/wire.h"
#include "store/index/index.h"
#include "store/volume/volume.h"

enum {
    SMALL_SIZE_MAX = 128,
    ADDRESS_SIZE = 18,
    REFERRAL_SIZE_MAX = 2 + CAPTURES_CODE_PEERS_MAX * (ADDRESS_SIZE + PEER_KEY_SIZE),
};
enum status { STATUS_ABSENT, STATUS_THERE, STATUS_REFERRAL };

static enum err captures_finish(const struct wire_writer *writer, struct buf *out) {
    out->size += writer->err == ERR_OK ? writer->size : 0;
    return writer->err;
}

static enum err captures_start(struct wire_writer *writer, struct buf *out, size_t size) {
    enum err err = buf_reserve(out, size);
    if (err == ERR_OK) {
        wire_writer_init(writer, out->data + out->size, size);
    }
    return err;
}

enum err captures_code_put_question(struct buf *out, const struct captures_question *question) {
    struct wire_writer writer;
    enum err err = captures_start(&writer, out, question->surt.size + SMALL_SIZE_MAX);
    if (err != ERR_OK) {
        return err;
    }
    wire_write_bytes(&writer, bytes_of(question->key.bytes, RINGKEY_SIZE));
    wire_write_string(&writer, question->surt);
    wire_write_bool(&writer, question->wants_description);
    wire_write_varint(&writer, question->offset);
    wire_write_varint(&writer, question->size_max);
    if (question->address.port != 0) {
        peer_write_address(&writer, PEER_PLAIN, &question->address);
    }
    return captures_finish(&writer, out);
}

enum err captures_code_read_question(struct bytes in, struct captures_question *ret_question,
                                     struct err_detail *detail) {
    struct wire_reader reader;
    struct captures_question question = {0};
    wire_reader_init(&reader, in);
    wire_read_array(&reader, question.key.bytes, RINGKEY_SIZE);
    question.surt = wire_read_string(&reader, INDEX_SURT_SIZE_MAX);
    question.wants_description = wire_read_bool(&reader);
    question.offset = wire_read_varint(&reader, VOLUME_DOCUMENT_SIZE_MAX);
    question.size_max = (uint32_t)wire_read_varint(&reader, PEER_RPC_PIECE_SIZE_MAX);
    if (wire_reader_left(&reader) > 0) {
        peer_read_address(&reader, PEER_PLAIN, &question.address);
    }
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        *ret_question = question;
    }
    return err;
}

static void write_referral(struct wire_writer *writer, const struct captures_answer *answer) {
    ASSERT(answer->peers_count <= CAPTURES_CODE_PEERS_MAX);
    wire_write_u8(writer, answer->peers_count);
    for (size_t i = 0; i < answer->peers_count; i++) {
        peer_write(writer, PEER_PLAIN, &answer->peers[i]);
    }
}

static void read_referral(struct wire_reader *reader, struct captures_answer *answer) {
    answer->peers_count = wire_read_u8_max(reader, CAPTURES_CODE_PEERS_MAX);
    for (size_t i = 0; i < answer->peers_count; i++) {
        peer_read(reader, PEER_PLAIN, &answer->peers[i]);
    }
}

enum err captures_code_put_answer(struct buf *out, const struct captures_answer *answer) {
    struct wire_writer writer;
    size_t size = answer->description.size + answer->piece.size + SMALL_SIZE_MAX;
    enum status status = answer->is_referral ? STATUS_REFERRAL
                         : answer->is_there  ? STATUS_THERE
                                             : STATUS_ABSENT;
    enum err err = captures_start(&writer, out,
                                  status == STATUS_THERE    ? size
                                  : status == STATUS_ABSENT ? 1
                                                            : REFERRAL_SIZE_MAX);
    if (err != ERR_OK) {
        return err;
    }
    wire_write_u8(&writer, (uint8_t)status);
    if (status == STATUS_REFERRAL) {
        write_referral(&writer, answer);
    } else if (status == STATUS_THERE) {
        wire_write_string(&writer, answer->description);
        wire_write_varint(&writer, answer->size);
        wire_write_bool(&writer, answer->is_packed);
        wire_write_bytes(&writer, answer->piece);
    }
    return captures_finish(&writer, out);
}

enum err captures_code_read_answer(struct bytes in, struct captures_answer *ret_answer,
                                   struct err_detail *detail) {
    struct wire_reader reader;
    struct captures_answer answer = {0};
    wire_reader_init(&reader, in);
    uint8_t status = wire_read_u8_max(&reader, STATUS_REFERRAL);
    answer.is_there = status == STATUS_THERE;
    answer.is_referral = status == STATUS_REFERRAL;
    if (answer.is_referral) {
        read_referral(&reader, &answer);
    } else if (answer.is_there) {
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

/* ---- many at once ---- */

enum err captures_code_put_many(struct buf *out, const struct captures_many *many) {
    struct wire_writer writer;
    enum err err = captures_start(&writer, out, SMALL_SIZE_MAX + many->count * (RINGKEY_SIZE + 1));
    if (err != ERR_OK) {
        return err;
    }
    wire_write_varint(&writer, many->size_max);
    wire_write_varint(&writer, many->count);
    for (uint32_t i = 0; i < many->count; i++) {
        wire_write_bytes(&writer, bytes_of(many->keys[i].bytes, RINGKEY_SIZE));
        wire_write_bool(&writer, many->is_about[i]);
    }
    return captures_finish(&writer, out);
}

enum err captures_code_read_many(struct bytes in, struct captures_many *ret_many, struct err_detail *detail) {
    struct wire_reader reader;
    wire_reader_init(&reader, in);
    ret_many->size_max = (uint32_t)wire_read_varint(&reader, PEER_RPC_PIECE_SIZE_MAX);
    ret_many->count = (uint32_t)wire_read_varint(&reader, CAPTURES_CODE_KEYS_MAX);
    for (uint32_t i = 0; i < ret_many->count && reader.err == ERR_OK; i++) {
        wire_read_array(&reader, ret_many->keys[i].bytes, RINGKEY_SIZE);
        ret_many->is_about[i] = wire_read_bool(&reader);
    }
    return wire_reader_finish(&reader, detail);
}

enum err captures_code_put_entry(struct buf *out, enum captures_many_status status,
                                 const struct captures_answer *answer) {
    enum { LENGTH_SIZE = 4 };
    uint8_t mark = (uint8_t)status;
    size_t start = out->size;
    enum err err = buf_put(out, bytes_of(&mark, 1));
    if (err != ERR_OK || status != CAPTURES_THERE) {
        return err;
    }
    uint8_t room[LENGTH_SIZE] = {0};
    err = buf_put(out, bytes_of(room, sizeof room));
    err = err == ERR_OK ? captures_code_put_answer(out, answer) : err;
    if (err != ERR_OK) {
        out->size = start;
        return err;
    }
    struct wire_writer writer;
    wire_writer_init(&writer, out->data + start + 1, LENGTH_SIZE);
    wire_write_u32(&writer, (uint32_t)(out->size - start - 1 - LENGTH_SIZE));
    return writer.err;
}

enum err captures_code_read_entry(struct wire_reader *reader, enum captures_many_status *ret_status,
                                  struct captures_answer *ret_answer) {
    *ret_status = (enum captures_many_status)wire_read_u8_max(reader, CAPTURES_ALONE);
    if (reader->err != ERR_OK || *ret_status != CAPTURES_THERE) {
        return reader->err;
    }
    uint32_t size = wire_read_u32(reader);
    struct bytes capture = wire_read_bytes(reader, size);
    if (reader->err != ERR_OK) {
        return reader->err;
    }
    enum err err = captures_code_read_answer(capture, ret_answer, NULL);
    return err == ERR_OK && !ret_answer->is_there ? ERR_INVALID : err;
}
