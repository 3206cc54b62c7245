#include "replay/pages/find.h"

#include <stdlib.h>

#include "base/utc.h"
#include "http/server/form.h"
#include "replay/pages/find_state.h"
#include "replay/site/sheet.h"

enum {
    STATUS_OK = 200,
    STATUS_WRONG = 400,
    STATUS_NOT_FOUND = 404,
    STATUS_FAILED = 500,
    STATUS_LATER = 503,
    TIME_DIGITS_MAX = 14,
    SECOND_US = 1000000,
};

static const char off_text[] =
    "Full-text search is switched off on this node (search.enabled in mnemon.conf).";

unsigned find_status(const struct find *find) {
    switch (find->job.err) {
    case ERR_OK:
        return STATUS_OK;
    case ERR_INVALID:
    case ERR_LIMIT:
        return STATUS_WRONG;
    case ERR_TIMEOUT:
    case ERR_BUSY:
        return STATUS_LATER;
    default:
        return STATUS_FAILED;
    }
}

bool find_next_part(struct bytes *snippet, struct bytes *ret_part, bool *ret_is_found) {
    if (snippet->size == 0) {
        return false;
    }
    *ret_is_found = snippet->data[0] == SEARCH_MARK_START;
    *snippet = *ret_is_found ? bytes_skip(*snippet, 1) : *snippet;
    size_t size = bytes_find_byte(*snippet, *ret_is_found ? SEARCH_MARK_END : SEARCH_MARK_START);
    *ret_part = bytes_slice(*snippet, 0, size);
    *snippet = bytes_skip(*snippet, size + (*ret_is_found && size < snippet->size));
    return true;
}

/* ---- what is asked ---- */

/* "2026-01-31" is "20260131"; a whole time of RFC 3339 is taken too. */
static bool read_time(struct bytes text, bool wants_latest, int64_t *ret_time_us) {
    uint8_t digits[TIME_DIGITS_MAX];
    size_t digits_count = 0;
    bool is_short = true;
    for (size_t i = 0; i < text.size && is_short; i++) {
        if (byte_is_digit(text.data[i]) && digits_count < sizeof digits) {
            digits[digits_count++] = text.data[i];
        } else {
            is_short = text.data[i] == '-' && (i == 4 || i == 7);
        }
    }
    bool is_time = is_short ? utc_parse_digits(bytes_of(digits, digits_count), wants_latest, ret_time_us)
                            : utc_parse_rfc3339(text, ret_time_us);
    if (is_time && wants_latest) {
        *ret_time_us += SECOND_US - 1 - *ret_time_us % SECOND_US; /* captures have fractions of seconds */
    }
    return is_time;
}

static enum err read_period(struct find *find) {
    struct search_question *question = &find->job.question;
    struct bytes from = bytes_trim(buf_bytes(&find->from));
    struct bytes to = bytes_trim(buf_bytes(&find->to));
    question->from_us = INT64_MIN;
    question->to_us = INT64_MAX;
    if ((from.size > 0 && !read_time(from, false, &question->from_us)) ||
        (to.size > 0 && !read_time(to, true, &question->to_us))) {
        return err_set(&find->job.detail, ERR_INVALID,
                       "\"from\" and \"to\" are dates such as 2026, 2026-01-31 or 20260131120000");
    }
    return ERR_OK;
}

/* A number of the query; as it was where there is none. */
static enum err read_number(struct find *find, struct bytes query, const char *name, uint64_t min,
                            uint64_t max, uint64_t *number) {
    struct buf text;
    uint64_t value;
    buf_init(&text, FIND_TIME_SIZE_MAX);
    bool is_there = form_get(query, name, &text) && (text.size > 0 || text.err != ERR_OK);
    bool is_good = text.err == ERR_OK && bytes_to_u64(buf_bytes(&text), max, &value) && value >= min;
    buf_done(&text);
    if (is_there && !is_good) {
        return err_set(&find->job.detail, ERR_INVALID, "\"%s\" is a number from %ju to %ju", name,
                       (uintmax_t)min, (uintmax_t)max);
    }
    *number = is_there ? value : *number;
    return ERR_OK;
}

static enum err read_place(struct find *find, struct bytes query) {
    uint64_t offset = 0;
    uint64_t limit = FIND_PAGE_COUNT;
    enum err err = read_number(find, query, "page", 1, FIND_PAGES_MAX, &find->page);
    offset = (find->page - 1) * FIND_PAGE_COUNT;
    err = err == ERR_OK ? read_number(find, query, "offset", 0, SEARCH_OFFSET_MAX, &offset) : err;
    err = err == ERR_OK ? read_number(find, query, "limit", 1, SEARCH_LIMIT_MAX, &limit) : err;
    find->job.question.offset = (size_t)offset;
    find->job.question.limit = (size_t)limit;
    return err;
}

static enum err read_question(struct find *find) {
    struct bytes query = http_request_query(find->request);
    struct search_question *question = &find->job.question;
    const struct {
        const char *name;
        struct buf *value;
    } fields[] = {{"q", &find->words}, {"host", &find->host}, {"from", &find->from}, {"to", &find->to}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        form_get(query, fields[i].name, fields[i].value);
        if (fields[i].value->err != ERR_OK) {
            return err_set(&find->job.detail, ERR_LIMIT, "\"%s\" may have %zu bytes at most", fields[i].name,
                           fields[i].value->size_max);
        }
    }
    question->words = buf_bytes(&find->words);
    question->host = bytes_trim(buf_bytes(&find->host));
    enum err err = read_period(find);
    return err == ERR_OK ? read_place(find, query) : err;
}

/* ---- requests ---- */

static bool is_api(const struct http_request *request) {
    return bytes_starts_with(http_request_path(request), BYTES("/api/"));
}

static void answer_off(struct replay *replay, struct http_request *request) {
    if (is_api(request)) {
        http_answer_status(request, STATUS_NOT_FOUND, ERR_NOT_FOUND, off_text);
        return;
    }
    struct sheet sheet;
    sheet_begin(&sheet, replay, request, "Search", SHEET_SEARCH);
    sheet_notice(&sheet, SHEET_PLAIN, off_text);
    sheet_answer(&sheet, STATUS_OK);
}

static struct find *find_new(struct replay *replay, struct http_request *request) {
    struct find *find = calloc(1, sizeof *find);
    if (find == NULL) {
        return NULL;
    }
    find->replay = replay;
    find->request = request;
    find->page = 1;
    search_job_init(&find->job);
    buf_init(&find->words, SEARCH_WORDS_SIZE_MAX);
    buf_init(&find->host, FIND_HOST_SIZE_MAX);
    buf_init(&find->from, FIND_TIME_SIZE_MAX);
    buf_init(&find->to, FIND_TIME_SIZE_MAX);
    return find;
}

/* It is answered: from the asker's thread. */
static void wake(void *context) {
    struct find *find = context;
    http_request_resume(find->request);
}

static void ask(struct find *find) {
    find->job.archive = find->replay->archive;
    find->job.done = wake;
    find->job.context = find;
    http_request_suspend(find->request);
    if (search_ask(find->replay->search, &find->job) != ERR_OK) {
        find->job.err = err_set(&find->job.detail, ERR_BUSY, "too many are searching right now: try again");
        wake(find);
    }
}

static void respond(struct find *find) {
    if (is_api(find->request)) {
        find_answer_json(find);
    } else {
        find_answer_page(find);
    }
}

static void answer(struct http_request *request) {
    struct replay *replay = http_request_context(request);
    struct find *find = http_request_state(request);
    if (replay->search == NULL) {
        answer_off(replay, request);
        return;
    }
    if (find != NULL) {
        respond(find);
        return;
    }
    find = find_new(replay, request);
    if (find == NULL) {
        http_answer_error(request, ERR_MEMORY, NULL);
        return;
    }
    http_request_set_state(request, find);
    find->job.err = read_question(find);
    find->is_asked = is_api(request) || bytes_trim(buf_bytes(&find->words)).size > 0;
    if (find->job.err == ERR_OK && find->is_asked) {
        ask(find);
    } else {
        respond(find);
    }
}

static void end(struct http_request *request) {
    struct find *find = http_request_state(request);
    if (find != NULL) {
        search_job_done(&find->job);
        buf_done(&find->words);
        buf_done(&find->host);
        buf_done(&find->from);
        buf_done(&find->to);
        free(find);
    }
}

size_t find_routes(struct replay *replay, struct http_route out[FIND_ROUTES_MAX]) {
    static const char *const paths[] = {"/search", "/api/v1/search"};
    size_t count = sizeof paths / sizeof *paths;
    for (size_t i = 0; i < count; i++) {
        out[i] = (struct http_route){
            .method = "GET", .path = paths[i], .context = replay, .answer = answer, .end = end};
    }
    return count;
}
