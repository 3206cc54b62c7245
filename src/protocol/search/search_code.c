#include "protocol/search/search_code.h"

#include "base/utf8.h"

enum {
    COUNT_MAX = 1 << 30,
    HEAD_SIZE_MAX = 3 + 4 * WIRE_VARINT_SIZE_MAX,
    ARC_SIZE = 2 * RING_ID_SIZE,
    RESULT_SIZE_MAX = SEARCH_CODE_URL_SIZE_MAX + SEARCH_CODE_TITLE_SIZE_MAX + SEARCH_CODE_LANGUAGE_SIZE_MAX +
                      SEARCH_CODE_SNIPPET_SIZE_MAX + SEARCH_CODE_DIGEST_SIZE + 8 + 5 * WIRE_VARINT_SIZE_MAX,
};

/* ---- writing ---- */

/* Room behind what is there. */
static enum err search_code_begin(struct buf *out, size_t room, struct wire_writer *ret_writer) {
    enum err err = buf_reserve(out, room);
    if (err == ERR_OK) {
        wire_writer_init(ret_writer, out->data + out->size, room);
    }
    return err;
}

static enum err search_code_end(struct buf *out, const struct wire_writer *writer) {
    struct bytes written;
    enum err err = wire_writer_finish(writer, &written);
    out->size += err == ERR_OK ? written.size : 0;
    return err;
}

enum err search_code_put_question(struct buf *out, const struct search_code_question *question) {
    struct wire_writer writer;
    enum err err = search_code_begin(out, SEARCH_CODE_QUESTION_SIZE_MAX, &writer);
    if (err != ERR_OK) {
        return err;
    }
    wire_write_string(&writer, question->words);
    wire_write_string(&writer, question->host);
    wire_write_u64(&writer, (uint64_t)question->from_us);
    wire_write_u64(&writer, (uint64_t)question->to_us);
    wire_write_varint(&writer, question->count);
    return search_code_end(out, &writer);
}

enum err search_code_put_head(struct buf *out, const struct search_code_head *head,
                              const struct search_code_arc *arcs) {
    struct wire_writer writer;
    uint8_t id[RING_ID_SIZE];
    enum err err = search_code_begin(out, HEAD_SIZE_MAX + (size_t)head->arcs_count * ARC_SIZE, &writer);
    if (err != ERR_OK) {
        return err;
    }
    wire_write_bool(&writer, head->has_everything);
    wire_write_bool(&writer, head->lacks_volumes);
    wire_write_bool(&writer, head->has_more);
    wire_write_varint(&writer, head->left_count < COUNT_MAX ? head->left_count : COUNT_MAX);
    wire_write_varint(&writer, head->documents_count < COUNT_MAX ? head->documents_count : COUNT_MAX);
    wire_write_varint(&writer, head->arcs_count);
    wire_write_varint(&writer, head->results_count);
    for (uint32_t i = 0; i < head->arcs_count; i++) {
        ring_id_write(arcs[i].from, id);
        wire_write_bytes(&writer, bytes_of(id, sizeof id));
        ring_id_write(arcs[i].to, id);
        wire_write_bytes(&writer, bytes_of(id, sizeof id));
    }
    return search_code_end(out, &writer);
}

enum err search_code_put_result(struct buf *out, const struct search_code_result *result) {
    struct wire_writer writer;
    enum err err = search_code_begin(out, RESULT_SIZE_MAX, &writer);
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
    return search_code_end(out, &writer);
}

static bool is_control(uint8_t byte) {
    return byte < ' ' || byte == 0x7f;
}

/* Is the byte a mark that fits what is open? */
static bool is_mark(uint8_t byte, bool is_open) {
    return byte == (is_open ? SEARCH_CODE_MARK_END : SEARCH_CODE_MARK_START);
}

void search_code_put_text(struct buf *out, struct bytes text, size_t size_max, bool keeps_marks) {
    bool is_open = false;
    size_t size = 0;
    size_max -= keeps_marks; /* for the last mark */
    while (text.size > 0) {
        size_t length = utf8_length(text);
        if (size + (length > 0 ? length : 1) > size_max) {
            break;
        }
        uint8_t byte = text.data[0];
        if (length == 1 && is_control(byte)) {
            bool is_kept = keeps_marks && is_mark(byte, is_open);
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

/* ---- reading ---- */

static bool text_is_good(struct bytes text, bool may_have_marks) {
    bool is_open = false;
    for (size_t i = 0; i < text.size; i++) {
        if (!is_control(text.data[i])) {
            continue;
        }
        if (!may_have_marks || !is_mark(text.data[i], is_open)) {
            return false;
        }
        is_open = !is_open;
    }
    return !is_open && utf8_is_valid(text);
}

enum err search_code_read_question(struct bytes input, struct search_code_question *ret_question,
                                   struct err_detail *detail) {
    struct wire_reader reader;
    wire_reader_init(&reader, input);
    struct search_code_question question = {
        .words = wire_read_string(&reader, SEARCH_CODE_WORDS_SIZE_MAX),
        .host = wire_read_string(&reader, SEARCH_CODE_HOST_SIZE_MAX),
        .from_us = (int64_t)wire_read_u64(&reader),
        .to_us = (int64_t)wire_read_u64(&reader),
        .count = (uint32_t)wire_read_varint(&reader, SEARCH_CODE_RESULTS_MAX),
    };
    wire_read_check(&reader, question.count > 0, "no result is wanted");
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        *ret_question = question;
    }
    return err;
}

bool search_code_read_head(struct search_code_reader *reader, struct bytes input,
                           struct search_code_head *ret_head) {
    struct wire_reader *wire = &reader->wire;
    wire_reader_init(wire, input);
    struct search_code_head head = {
        .has_everything = wire_read_bool(wire),
        .lacks_volumes = wire_read_bool(wire),
        .has_more = wire_read_bool(wire),
        .left_count = wire_read_varint(wire, COUNT_MAX),
        .documents_count = wire_read_varint(wire, COUNT_MAX),
        .arcs_count = (uint32_t)wire_read_varint(wire, SEARCH_CODE_ARCS_MAX),
        .results_count = (uint32_t)wire_read_varint(wire, SEARCH_CODE_RESULTS_MAX),
    };
    wire_read_check(wire, !head.has_everything || head.arcs_count == 0, "everything, and arcs");
    if (wire->err != ERR_OK) {
        return false;
    }
    reader->arcs_left = head.arcs_count;
    reader->results_left = head.results_count;
    reader->score = SEARCH_CODE_SCORE_MAX;
    *ret_head = head;
    return true;
}

static struct ring_id read_id(struct wire_reader *wire) {
    struct bytes bytes = wire_read_bytes(wire, RING_ID_SIZE);
    return bytes.size == RING_ID_SIZE ? ring_id_read(bytes.data) : (struct ring_id){0};
}

bool search_code_next_arc(struct search_code_reader *reader, struct search_code_arc *ret_arc) {
    if (reader->arcs_left == 0) {
        return false;
    }
    reader->arcs_left--;
    struct search_code_arc arc = {.from = read_id(&reader->wire)};
    arc.to = read_id(&reader->wire);
    if (reader->wire.err != ERR_OK) {
        return false;
    }
    *ret_arc = arc;
    return true;
}

bool search_code_next_result(struct search_code_reader *reader, struct search_code_result *ret_result) {
    struct wire_reader *wire = &reader->wire;
    if (reader->results_left == 0) {
        return false;
    }
    reader->results_left--;
    struct search_code_result result = {
        .url = wire_read_string(wire, SEARCH_CODE_URL_SIZE_MAX),
        .title = wire_read_string(wire, SEARCH_CODE_TITLE_SIZE_MAX),
        .language = wire_read_string(wire, SEARCH_CODE_LANGUAGE_SIZE_MAX),
        .snippet = wire_read_string(wire, SEARCH_CODE_SNIPPET_SIZE_MAX),
        .time_us = (int64_t)wire_read_u64(wire),
    };
    wire_read_array(wire, result.digest, sizeof result.digest);
    result.score = wire_read_varint(wire, SEARCH_CODE_SCORE_MAX);
    wire_read_check(wire, result.score <= reader->score, "results out of order");
    wire_read_check(wire, result.url.size > 0, "a result without a URL");
    bool is_good = text_is_good(result.url, false) && text_is_good(result.title, false) &&
                   text_is_good(result.language, false) && text_is_good(result.snippet, true);
    wire_read_check(wire, is_good, "a text that is none");
    if (wire->err != ERR_OK) {
        return false;
    }
    reader->score = result.score;
    *ret_result = result;
    return true;
}

enum err search_code_check_answer(struct bytes input, struct err_detail *detail) {
    struct search_code_reader reader;
    struct search_code_head head;
    struct search_code_arc arc;
    struct search_code_result result;
    if (search_code_read_head(&reader, input, &head)) {
        while (search_code_next_arc(&reader, &arc)) {
        }
        while (search_code_next_result(&reader, &result)) {
        }
    }
    return wire_reader_finish(&reader.wire, detail);
}
