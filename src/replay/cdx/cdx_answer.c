#include "replay/cdx/cdx_answer.h"

#include <stdlib.h>

#include "base/json.h"
#include "web/url/percent.h"

enum {
    PIECE_SIZE = 32 << 10,
    PIECE_TIME_US = 5000,
    /* A line may have a URL of 64 KiB, as JSON six times as long, and begins below PIECE_SIZE. */
    OUT_SIZE_MAX = 1 << 20,
    LINE_SIZE = 1 << 10, /* of most */
    KEY_SIZE_MAX = 256 << 10,
    STEPS_BETWEEN_LOOKS = 16, /* at the clock */
    SECOND_US = 1000000,
};

enum phase {
    PHASE_SEEK,  /* back from the end, for the last so many */
    PHASE_LIST,  /* lines */
    PHASE_AHEAD, /* the limit is reached: is there more? */
    PHASE_COUNT, /* captures, for the number of pages */
    PHASE_OVER,
};

struct cdx_answer {
    struct archive *archive;
    struct archive_reader *reader;
    const struct clock *clock;
    struct cdx_query query;
    struct cdx_run run;
    unsigned fields; /* of a line */
    enum phase phase;
    uint64_t started_us;
    uint64_t count;        /* of lines; while seeking and counting, of captures */
    uint64_t offset_left;  /* lines to leave out */
    struct cdx_kept first; /* the one that a list of the last begins with */
    struct buf key;        /* to resume with */
    struct buf out;
    struct json json; /* in out */
    size_t consumed;
};

/* ---- lines ---- */

/*
 *                Internet Archive                         pywb
 *      text      fields with spaces between them          the same
 *      json      [["urlkey",…],                           {"urlkey": "…", …}
 *                ["org,example)/",…]]                     a line each
 *      cdxj      urlkey timestamp {"url": "…", …}         the same
 */
static bool is_table(const struct cdx_query *query) {
    return query->output == CDX_JSON && query->dialect == CDX_ARCHIVE_ORG;
}

static const char *output_type(const struct cdx_query *query) {
    switch (query->output) {
    case CDX_TEXT:
        break;
    case CDX_JSON:
        return query->dialect == CDX_ARCHIVE_ORG ? "application/json" : "application/x-ndjson";
    case CDX_CDXJ:
        return "text/x-cdxj; charset=utf-8";
    }
    return "text/plain; charset=utf-8";
}

/* The fields that a line must be filled with. */
static unsigned output_fields(const struct cdx_query *query) {
    unsigned fields =
        query->output == CDX_CDXJ ? cdx_field_bit(CDX_URLKEY) | cdx_field_bit(CDX_TIMESTAMP) : 0;
    for (size_t i = 0; i < query->shown_count; i++) {
        fields |= cdx_field_bit(query->shown[i]);
    }
    return fields;
}

/* Nothing in a field may end it, or the line. */
static void put_word(struct buf *out, struct bytes word) {
    size_t from = 0;
    for (size_t i = 0; i < word.size; i++) {
        if (word.data[i] <= ' ' || word.data[i] == 0x7f) {
            buf_put(out, bytes_slice(word, from, i));
            percent_put_byte(out, word.data[i]);
            from = i + 1;
        }
    }
    buf_put(out, bytes_skip(word, from));
}

static void put_text_line(struct buf *out, const struct cdx_query *query, struct cdx_line *line) {
    for (size_t i = 0; i < query->shown_count; i++) {
        if (i > 0) {
            buf_put_byte(out, ' ');
        }
        put_word(out, cdx_line_value(line, query->shown[i]));
    }
    buf_put_byte(out, '\n');
}

/* A field without a value is left out, and that everybody may see a capture goes without saying. */
static bool is_silent(const struct cdx_query *query, const struct cdx_line *line, enum cdx_field field) {
    return line->values[field].size == 0 || (field == CDX_ACCESS && !query->is_shown_chosen &&
                                             bytes_equal(line->values[field], BYTES("allow")));
}

static void put_object(struct json *json, const struct cdx_query *query, struct cdx_line *line) {
    json_open(json, NULL);
    for (size_t i = 0; i < query->shown_count; i++) {
        enum cdx_field field = query->shown[i];
        bool is_before = query->output == CDX_CDXJ && (field == CDX_URLKEY || field == CDX_TIMESTAMP);
        if (!is_before && !is_silent(query, line, field)) {
            json_bytes(json, cdx_field_name(CDX_PYWB, field), line->values[field]);
        }
    }
    json_close(json);
    buf_put_byte(json->out, '\n');
}

static void answer_put_row(struct json *json, const struct cdx_query *query, struct cdx_line *line) {
    json_break(json);
    json_open_list(json, NULL);
    for (size_t i = 0; i < query->shown_count; i++) {
        json_bytes(json, NULL, cdx_line_value(line, query->shown[i]));
    }
    json_close(json);
}

/* And the bracket that output_end() closes. */
static void put_header(struct json *json, const struct cdx_query *query) {
    json_open_list(json, NULL);
    json_open_list(json, NULL);
    for (size_t i = 0; i < query->shown_count; i++) {
        json_text(json, NULL, cdx_field_name(CDX_ARCHIVE_ORG, query->shown[i]));
    }
    json_close(json);
}

static void output_init(struct json *json, struct buf *out, const struct cdx_query *query) {
    if (is_table(query)) {
        json_init(json, out);
    } else {
        json_init_spaced(json, out);
    }
}

/* Append one line; the first has index 0. */
static void output_line(struct json *json, const struct cdx_query *query, struct cdx_line *line,
                        uint64_t index) {
    struct buf *out = json->out;
    if (is_table(query)) {
        if (index == 0) {
            put_header(json, query);
        }
        answer_put_row(json, query, line);
        return;
    }
    if (query->output == CDX_TEXT) {
        put_text_line(out, query, line);
        return;
    }
    if (query->output == CDX_CDXJ) {
        put_word(out, line->values[CDX_URLKEY]);
        buf_put_byte(out, ' ');
        buf_put(out, line->values[CDX_TIMESTAMP]);
        buf_put_byte(out, ' ');
    }
    put_object(json, query, line);
}

/* So that it can be put behind "resumeKey=" as it stands, and is one word. */
static void answer_put_key(struct buf *out, struct bytes key) {
    for (size_t i = 0; i < key.size; i++) {
        uint8_t byte = key.data[i];
        if (byte_is_alnum(byte) || byte == '-' || byte == '.' || byte == '_') {
            buf_put_byte(out, byte);
        } else if (byte == ' ') {
            buf_put_byte(out, '+');
        } else {
            percent_put_byte(out, byte);
        }
    }
}

static void end_table(struct json *json, uint64_t lines_count, struct bytes word) {
    if (lines_count == 0) {
        json_open_list(json, NULL);
    }
    if (word.size > 0) {
        json->wants_break = lines_count > 0;
        json_open_list(json, NULL);
        json_close(json);
        json_break(json);
        json_open_list(json, NULL);
        json_bytes(json, NULL, word);
        json_close(json);
    }
    json_close(json);
    buf_put_byte(json->out, '\n');
}

/* Append what ends so many lines: the resume key, unless it is empty, and brackets. */
static void output_end(struct json *json, const struct cdx_query *query, uint64_t lines_count,
                       struct bytes key) {
    struct buf word;
    buf_init(&word, 3 * key.size + 1);
    answer_put_key(&word, key);
    if (is_table(query)) {
        end_table(json, lines_count, buf_bytes(&word));
    } else if (key.size > 0 && query->output == CDX_JSON) {
        json_open(json, NULL);
        json_bytes(json, "resumeKey", buf_bytes(&word));
        json_close(json);
        buf_put_byte(json->out, '\n');
    } else if (key.size > 0) {
        buf_put_format(json->out, "\n%.*s\n", BYTES_ARG(buf_bytes(&word)));
    }
    buf_done(&word);
}

/* The whole answer to showNumPages. */
static void output_pages(struct json *json, const struct cdx_query *query, uint64_t pages_count) {
    if (query->output != CDX_JSON) {
        buf_put_u64(json->out, pages_count);
    } else if (query->dialect == CDX_ARCHIVE_ORG) {
        json_open_list(json, NULL);
        json_open_list(json, NULL);
        json_text(json, NULL, "numpages");
        json_close(json);
        json_break(json);
        json_open_list(json, NULL);
        json_format(json, NULL, "%ju", (uintmax_t)pages_count);
        json_close(json);
        json_close(json);
    } else {
        json_open(json, NULL);
        JSON_COUNTS(json, {"pages", pages_count}, {"pageSize", query->page_size});
        json_close(json);
    }
    buf_put_byte(json->out, '\n');
}

/* ---- from start to end ---- */

static enum err open_run(struct cdx_answer *answer, struct err_detail *detail) {
    struct cdx_query *query = &answer->query;
    answer->phase = PHASE_LIST;
    if (query->wants_pages_count) {
        query->has_page = false;
        query->filters_count = 0;
        query->collapses_count = 0;
        answer->phase = PHASE_COUNT;
    } else if (query->is_of_last) {
        answer->phase = PHASE_SEEK;
    }
    bool in_reverse = (query->sort == CDX_REVERSE) != (answer->phase == PHASE_SEEK);
    return cdx_run_open(&answer->run, answer->archive, answer->reader, query, in_reverse, detail);
}

static void free_parts(struct cdx_answer *answer) {
    archive_reader_end(answer->reader);
    cdx_query_done(&answer->query);
    cdx_kept_done(&answer->first);
    buf_done(&answer->key);
    buf_done(&answer->out);
    free(answer);
}

enum err cdx_answer_new(struct archive *archive, const struct clock *clock, enum cdx_dialect dialect,
                        struct bytes text, struct cdx_answer **ret_answer, bool *ret_is_json,
                        struct err_detail *detail) {
    *ret_is_json = false;
    struct cdx_answer *answer = calloc(1, sizeof *answer);
    if (answer == NULL) {
        return ERR_MEMORY;
    }
    enum err err = cdx_query_parse(&answer->query, dialect, text, detail);
    *ret_is_json = answer->query.output == CDX_JSON;
    if (err != ERR_OK) {
        free(answer);
        return err;
    }
    answer->archive = archive;
    answer->clock = clock;
    answer->started_us = clock_monotonic_us(clock);
    answer->offset_left = answer->query.resume_key.size > 0 ? 0 : answer->query.offset;
    answer->fields = output_fields(&answer->query);
    cdx_kept_init(&answer->first);
    buf_init(&answer->key, KEY_SIZE_MAX);
    buf_init(&answer->out, OUT_SIZE_MAX);
    output_init(&answer->json, &answer->out, &answer->query);
    buf_reserve(&answer->out, LINE_SIZE); /* else it would grow to that in steps */
    answer->reader = archive_reader_begin(archive);
    if (answer->reader == NULL) {
        cdx_query_done(&answer->query);
        free(answer);
        return ERR_MEMORY;
    }
    err = open_run(answer, detail);
    if (err != ERR_OK) {
        free_parts(answer);
        return err;
    }
    *ret_answer = answer;
    return ERR_OK;
}

void cdx_answer_free(struct cdx_answer *answer) {
    cdx_run_close(&answer->run);
    free_parts(answer);
}

const char *cdx_answer_type(const struct cdx_answer *answer) {
    return output_type(&answer->query);
}

struct bytes cdx_answer_bytes(const struct cdx_answer *answer) {
    return bytes_skip(buf_bytes(&answer->out), answer->consumed);
}

void cdx_answer_consume(struct cdx_answer *answer, size_t size) {
    answer->consumed += size;
    if (answer->consumed == answer->out.size) {
        buf_clear(&answer->out);
        answer->consumed = 0;
    }
}

bool cdx_answer_hold(struct cdx_answer *answer) {
    return archive_reader_hold(answer->reader);
}

bool cdx_answer_is_over(const struct cdx_answer *answer) {
    return answer->phase == PHASE_OVER;
}

/* ---- the list ---- */

static void end_list(struct cdx_answer *answer, struct bytes key) {
    output_end(&answer->json, &answer->query, answer->count, key);
    answer->phase = PHASE_OVER;
}

/* The limit is reached. Whether there is more matters only to a client that wants to go on. */
static enum err reach_limit(struct cdx_answer *answer, const struct capture *last) {
    const struct cdx_query *query = &answer->query;
    if (!query->wants_resume_key || query->is_of_last || query->sort == CDX_CLOSEST || last == NULL) {
        end_list(answer, bytes_of(NULL, 0));
        return ERR_OK;
    }
    answer->phase = PHASE_AHEAD;
    return cdx_run_key(&answer->run, last, &answer->key);
}

static enum err answer_put_line(struct cdx_answer *answer, const struct capture *capture) {
    struct cdx_line *line = &answer->run.line;
    if (answer->offset_left > 0) {
        answer->offset_left--;
        return ERR_OK;
    }
    cdx_line_fill(line, answer->reader, capture, answer->fields);
    output_line(&answer->json, &answer->query, line, answer->count++);
    if (answer->count == answer->query.limit) {
        return reach_limit(answer, capture);
    }
    return answer->out.err;
}

static enum err list(struct cdx_answer *answer, struct err_detail *detail) {
    struct capture capture;
    if (answer->count == answer->query.limit) { /* 0 */
        return reach_limit(answer, NULL);
    }
    enum err err = cdx_run_next(&answer->run, &capture, detail);
    if (err == ERR_OK) {
        return answer_put_line(answer, &capture);
    }
    if (err == ERR_NOT_FOUND) {
        end_list(answer, bytes_of(NULL, 0));
        return ERR_OK;
    }
    return err;
}

static enum err look_ahead(struct cdx_answer *answer, struct err_detail *detail) {
    struct capture capture;
    enum err err = cdx_run_next(&answer->run, &capture, detail);
    if (err == ERR_OK || err == ERR_NOT_FOUND) {
        end_list(answer, err == ERR_OK ? buf_bytes(&answer->key) : bytes_of(NULL, 0));
        return ERR_OK;
    }
    return err;
}

/* ---- the last so many ---- */

/* answer->first is the first of them: list it, and go on behind it. */
static enum err turn_round(struct cdx_answer *answer, struct err_detail *detail) {
    const struct capture *first = &answer->first.capture;
    bool in_reverse = !answer->run.in_reverse;
    answer->phase = PHASE_LIST;
    answer->query.limit = answer->count;
    answer->count = 0;
    if (answer->query.limit > 1) {
        struct cdx_run run;
        enum err err = cdx_run_open_behind(&run, answer->archive, answer->reader, &answer->query, in_reverse,
                                           first, detail);
        if (err != ERR_OK) {
            return err;
        }
        cdx_run_close(&answer->run);
        answer->run = run; /* what points into it, the fields of its line, is made anew for each capture */
    }
    return answer->query.limit == 0 ? ERR_OK : answer_put_line(answer, first);
}

static enum err seek(struct cdx_answer *answer, struct err_detail *detail) {
    struct capture capture;
    enum err err =
        answer->count == answer->query.limit ? ERR_NOT_FOUND : cdx_run_next(&answer->run, &capture, detail);
    if (err == ERR_NOT_FOUND) {
        return turn_round(answer, detail);
    }
    if (err == ERR_OK) {
        answer->count++;
        err = cdx_kept_set(&answer->first, &capture);
    }
    return err;
}

/* ---- pages ---- */

static enum err answer_count(struct cdx_answer *answer, struct err_detail *detail) {
    struct capture capture;
    enum err err = cdx_run_next(&answer->run, &capture, detail);
    if (err == ERR_OK) {
        answer->count++;
    }
    if (err != ERR_NOT_FOUND) {
        return err;
    }
    uint64_t size = answer->query.page_size;
    output_pages(&answer->json, &answer->query, answer->count / size + (answer->count % size > 0));
    answer->phase = PHASE_OVER;
    return ERR_OK;
}

/* ---- piece by piece ---- */

static enum err answer_step(struct cdx_answer *answer, struct err_detail *detail) {
    switch (answer->phase) {
    case PHASE_SEEK:
        return seek(answer, detail);
    case PHASE_LIST:
        return list(answer, detail);
    case PHASE_AHEAD:
        return look_ahead(answer, detail);
    case PHASE_COUNT:
        return answer_count(answer, detail);
    case PHASE_OVER:
        break;
    }
    return ERR_OK;
}

/* It takes too long. */
static enum err break_off(struct cdx_answer *answer, struct err_detail *detail) {
    bool has_key = answer->phase == PHASE_AHEAD;
    if (answer->phase == PHASE_LIST && answer->query.wants_resume_key && !answer->query.is_of_last) {
        has_key = cdx_run_key(&answer->run, NULL, &answer->key) == ERR_OK;
    }
    if (!has_key) {
        return err_set(detail, ERR_TIMEOUT,
                       "this takes longer than %d seconds; ask for less, or use showResumeKey",
                       CDX_ANSWER_TIME_MAX_S);
    }
    end_list(answer, buf_bytes(&answer->key));
    return ERR_OK;
}

enum err cdx_answer_work(struct cdx_answer *answer, struct err_detail *detail) {
    uint64_t begin_us = 0;
    while (answer->phase != PHASE_OVER && answer->out.size < PIECE_SIZE) {
        enum err err = answer_step(answer, detail);
        if (err == ERR_OK) {
            continue;
        }
        if (err != ERR_BUSY) {
            return err;
        }
        answer->run.steps_left = STEPS_BETWEEN_LOOKS;
        uint64_t now_us = clock_monotonic_us(answer->clock);
        begin_us = begin_us == 0 ? now_us : begin_us;
        if (now_us - answer->started_us > CDX_ANSWER_TIME_MAX_S * (uint64_t)SECOND_US) {
            return break_off(answer, detail);
        }
        if (now_us - begin_us > PIECE_TIME_US) {
            return ERR_OK;
        }
    }
    return answer->out.err;
}
