#include "protocol/search/search_code.h"

#include "base/utf8.h"

static bool text_is_good(struct bytes text, bool may_have_marks) {
    bool is_open = false;
    for (size_t i = 0; i < text.size; i++) {
        if (!search_code_is_control(text.data[i])) {
            continue;
        }
        if (!may_have_marks || !search_code_is_mark(text.data[i], is_open)) {
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
        .left_count = wire_read_varint(wire, SEARCH_CODE_COUNT_MAX),
        .documents_count = wire_read_varint(wire, SEARCH_CODE_COUNT_MAX),
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
