#include "base/json.h"
#include "replay/pages/find_state.h"

enum { JSON_SIZE_MAX = 16 << 20 };

/* The text as a whole; then its parts, of which the second, fourth … are what was looked for. */
static void put_snippet(struct json *json, struct bytes snippet) {
    struct buf text;
    struct bytes rest = snippet;
    struct bytes part;
    bool is_found;
    bool was_found = true;
    buf_init(&text, JSON_SIZE_MAX);
    while (find_next_part(&rest, &part, &is_found)) {
        buf_put(&text, part);
    }
    json_bytes(json, "snippet", buf_bytes(&text));
    buf_done(&text);
    json_open_list(json, "snippet_parts");
    while (find_next_part(&snippet, &part, &is_found)) {
        if (is_found == was_found) {
            json_text(json, NULL, ""); /* nothing is between two words */
        }
        json_bytes(json, NULL, part);
        was_found = is_found;
    }
    json_close(json);
}

static void put_result(struct json *json, const struct search_result *result) {
    json_break(json);
    json_open(json, NULL);
    json_bytes(json, "url", result->url);
    json_timestamp(json, "timestamp", result->time_us);
    json_bytes(json, "title", result->title);
    json_bytes(json, "language", result->language);
    put_snippet(json, result->snippet);
    json_digits(json, "score", result->score, 6);
    json_close(json);
}

static void put_index(struct json *json, struct search *search) {
    struct search_stat stat;
    search_stat(search, &stat);
    json_open(json, "index");
    JSON_COUNTS(json, {"documents", stat.documents_count}, {"captures", stat.captures_count},
                {"captures_left", stat.left_count});
    json_close(json);
}

void find_answer_json(struct find *find) {
    const struct search_job *job = &find->job;
    if (job->err != ERR_OK) {
        http_answer_status(find->request, find_status(find), job->err,
                           err_detail_text(&job->detail, job->err));
        return;
    }
    struct buf out;
    struct json json;
    buf_init(&out, JSON_SIZE_MAX);
    json_begin(&json, &out);
    json_open_list(&json, "results");
    for (size_t i = 0; i < job->results_count; i++) {
        put_result(&json, &job->results[i]);
    }
    json_close(&json);
    json_break(&json);
    JSON_COUNTS(&json, {"offset", job->question.offset}, {"limit", job->question.limit});
    json_bool(&json, "has_more", job->has_more);
    put_index(&json, find->replay->search);
    json_end(&json);
    http_answer_json(find->request, find_status(find), "no-cache", &out);
}
