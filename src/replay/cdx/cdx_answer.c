#include "replay/cdx/cdx_answer.h"

#include <stdlib.h>

#include "replay/cdx/cdx_output.h"

enum {
    PIECE_SIZE = 32 << 10,
    PIECE_TIME_US = 5000,
    /* A line may have a URL of 64 KiB, as JSON six times as long, and begins below PIECE_SIZE. */
    OUT_SIZE_MAX = 1 << 20,
    LINE_SIZE = 1 << 10, /* of most */
    ORIGIN_SIZE_MAX = 1 << 10,
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
    struct buf origin;
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
    bool is_begun;  /* a piece has been made: what the head of the answer says is settled */
    bool is_marked; /* there it says that this may not be all */
};

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
    buf_done(&answer->origin);
    buf_done(&answer->out);
    free(answer);
}

enum err cdx_answer_new(struct archive *archive, const struct clock *clock, enum cdx_dialect dialect,
                        struct bytes text, struct bytes origin, struct cdx_answer **ret_answer,
                        bool *ret_is_json, struct err_detail *detail) {
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
    answer->fields = cdx_output_fields(&answer->query);
    cdx_kept_init(&answer->first);
    buf_init(&answer->key, KEY_SIZE_MAX);
    buf_init(&answer->origin, ORIGIN_SIZE_MAX);
    buf_put(&answer->origin, origin);
    answer->query.origin = buf_bytes(&answer->origin);
    buf_init(&answer->out, OUT_SIZE_MAX);
    cdx_output_init(&answer->json, &answer->out, &answer->query);
    buf_reserve(&answer->out, LINE_SIZE); /* else it would grow to that in steps */
    answer->reader = archive_reader_begin(archive);
    if (answer->reader == NULL) {
        buf_done(&answer->origin);
        cdx_query_done(&answer->query);
        free(answer);
        return ERR_MEMORY;
    }
    archive_reader_set_trust(answer->reader, answer->query.trust);
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
    return cdx_output_type(&answer->query);
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

const struct absent *cdx_answer_absent(const struct cdx_answer *answer) {
    return archive_reader_absent(answer->reader);
}

void cdx_answer_mark(struct cdx_answer *answer) {
    answer->is_marked = true;
}

bool cdx_answer_is_empty(const struct cdx_answer *answer) {
    return answer->phase == PHASE_OVER && answer->count == 0;
}

bool cdx_answer_is_over(const struct cdx_answer *answer) {
    return answer->phase == PHASE_OVER;
}

/* ---- the list ---- */

static void end_list(struct cdx_answer *answer, struct bytes key) {
    cdx_output_end(&answer->json, &answer->query, answer->count, key);
    cdx_output_partial(&answer->json, &answer->query, cdx_answer_absent(answer));
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
    cdx_output_line(&answer->json, &answer->query, line, answer->count++);
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
    cdx_output_pages(&answer->json, &answer->query, answer->count / size + (answer->count % size > 0));
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

static enum err answer_make_piece(struct cdx_answer *answer, struct err_detail *detail) {
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

enum err cdx_answer_work(struct cdx_answer *answer, struct err_detail *detail) {
    enum err err = answer_make_piece(answer, detail);
    const struct absent *absent = cdx_answer_absent(answer);
    if (err == ERR_OK && answer->is_begun && !answer->is_marked && absent->is_any) {
        err = err_set(detail, ERR_UNREACHABLE, "%s did not answer", absent->text);
    }
    answer->is_begun = true;
    return err;
}
