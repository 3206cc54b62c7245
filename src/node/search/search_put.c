#include "node/search/search_put.h"

#include "base/utf8.h"

enum {
    HEAD_SIZE_MAX = 3 + 4 * WIRE_VARINT_SIZE_MAX,
    ARC_SIZE = 2 * RING_ID_SIZE,
    RESULT_SIZE_MAX = SEARCH_CODE_URL_SIZE_MAX + SEARCH_CODE_TITLE_SIZE_MAX + SEARCH_CODE_LANGUAGE_SIZE_MAX +
                      SEARCH_CODE_SNIPPET_SIZE_MAX + SEARCH_CODE_DIGEST_SIZE + 8 + 5 * WIRE_VARINT_SIZE_MAX,
};

/* Room behind what is there. */
static enum err search_put_begin(struct buf *out, size_t room, struct wire_writer *ret_writer) {
    enum err err = buf_reserve(out, room);
    if (err == ERR_OK) {
        wire_writer_init(ret_writer, out->data + out->size, room);
    }
    return err;
}

static enum err search_put_end(struct buf *out, const struct wire_writer *writer) {
    struct bytes written;
    enum err err = wire_writer_finish(writer, &written);
    out->size += err == ERR_OK ? written.size : 0;
    return err;
}

enum err search_put_question(struct buf *out, const struct search_code_question *question) {
    struct wire_writer writer;
    enum err err = search_put_begin(out, SEARCH_CODE_QUESTION_SIZE_MAX, &writer);
    if (err != ERR_OK) {
        return err;
    }
    wire_write_string(&writer, question->words);
    wire_write_string(&writer, question->host);
    wire_write_u64(&writer, (uint64_t)question->from_us);
    wire_write_u64(&writer, (uint64_t)question->to_us);
    wire_write_varint(&writer, question->count);
    return search_put_end(out, &writer);
}

enum err search_put_head(struct buf *out, const struct search_code_head *head,
                         const struct search_code_arc *arcs) {
    struct wire_writer writer;
    uint8_t id[RING_ID_SIZE];
    enum err err = search_put_begin(out, HEAD_SIZE_MAX + (size_t)head->arcs_count * ARC_SIZE, &writer);
    if (err != ERR_OK) {
        return err;
    }
    wire_write_bool(&writer, head->has_everything);
    wire_write_bool(&writer, head->lacks_volumes);
    wire_write_bool(&writer, head->has_more);
    wire_write_varint(&writer,
                      head->left_count < SEARCH_CODE_COUNT_MAX ? head->left_count : SEARCH_CODE_COUNT_MAX);
    wire_write_varint(&writer, head->documents_count < SEARCH_CODE_COUNT_MAX ? head->documents_count
                                                                             : SEARCH_CODE_COUNT_MAX);
    wire_write_varint(&writer, head->arcs_count);
    wire_write_varint(&writer, head->results_count);
    for (uint32_t i = 0; i < head->arcs_count; i++) {
        ring_id_write(arcs[i].from, id);
        wire_write_bytes(&writer, bytes_of(id, sizeof id));
        ring_id_write(arcs[i].to, id);
        wire_write_bytes(&writer, bytes_of(id, sizeof id));
    }
    return search_put_end(out, &writer);
}

enum err search_put_result(struct buf *out, const struct search_code_result *result) {
    struct wire_writer writer;
    enum err err = search_put_begin(out, RESULT_SIZE_MAX, &writer);
    if (err != ERR_OK) {
        return err;
    }
    wire_write_string(&writer, result->url);
    wire_write_string(&writer, result->title);
    wire_write_string(&writer, result->language);
    wire_write_string(&writer, result->snippet);
    wire_write_u64(&writer, (uint64_t)result->time_us);
    wire_write_bytes(&writer, bytes_of(result->digest, sizeof result->digest));
    wire_write_varint(&writer, result->score);
    return search_put_end(out, &writer);
}

void search_put_text(struct buf *out, struct bytes text, size_t size_max, bool keeps_marks) {
    bool is_open = false;
    size_t size = 0;
    size_max -= keeps_marks; /* for the last mark */
    while (text.size > 0) {
        size_t length = utf8_length(text);
        if (size + (length > 0 ? length : 1) > size_max) {
            break;
        }
        uint8_t byte = text.data[0];
        if (length == 1 && search_code_is_control(byte)) {
            bool is_kept = keeps_marks && search_code_is_mark(byte, is_open);
            is_open = is_open != is_kept;
            buf_put_byte(out, is_kept ? byte : ' ');
            size++;
        } else {
            buf_put(out, bytes_slice(text, 0, length));
            size += length;
        }
        text = bytes_skip(text, length > 0 ? length : 1);
    }
    if (is_open) {
        buf_put_byte(out, SEARCH_CODE_MARK_END);
    }
}
