#include "base/utc.h"
#include "replay/pages/find_state.h"

enum { JSON_SIZE_MAX = 16 << 20 };

static void put_member(struct buf *out, const char *name, struct bytes text) {
    buf_put_format(out, "\"%s\":", name);
    buf_put_json(out, text);
}

/* The text as a whole; then its parts, of which the second, fourth … are what was looked for. */
static void put_snippet(struct buf *out, struct bytes snippet) {
    struct buf text;
    struct buf parts;
    struct bytes part;
    bool is_found;
    bool was_found = true;
    buf_init(&text, JSON_SIZE_MAX);
    buf_init(&parts, JSON_SIZE_MAX);
    while (find_next_part(&snippet, &part, &is_found)) {
        if (is_found == was_found) {
            buf_put_string(&parts, parts.size == 0 ? "\"\"" : ",\"\""); /* nothing is between two words */
        }
        buf_put_string(&parts, parts.size == 0 ? "" : ",");
        buf_put_json(&parts, part);
        buf_put(&text, part);
        was_found = is_found;
    }
    put_member(out, "snippet", buf_bytes(&text));
    buf_put_string(out, ",\"snippet_parts\":[");
    buf_put(out, buf_bytes(&parts));
    buf_put_string(out, "]");
    out->err = out->err == ERR_OK && parts.err != ERR_OK ? parts.err : out->err;
    buf_done(&text);
    buf_done(&parts);
}

static void put_result(struct buf *out, const struct search_result *result) {
    char digits[UTC_DIGITS_SIZE];
    buf_put_byte(out, '{');
    put_member(out, "url", result->url);
    buf_put_format(out, ",\"timestamp\":\"%s\",", utc_format_digits(result->time_us, digits));
    put_member(out, "title", result->title);
    buf_put_byte(out, ',');
    put_member(out, "language", result->language);
    buf_put_byte(out, ',');
    put_snippet(out, result->snippet);
    buf_put_format(out, ",\"score\":%.6g}", result->score);
}

static void put_index(struct buf *out, struct search *search) {
    struct search_stat stat;
    search_stat(search, &stat);
    buf_put_format(out, "\"index\":{\"documents\":%ju,\"captures\":%ju,\"captures_left\":%ju}",
                   (uintmax_t)stat.documents_count, (uintmax_t)stat.captures_count,
                   (uintmax_t)stat.left_count);
}

void find_answer_json(struct find *find) {
    const struct search_job *job = &find->job;
    if (job->err != ERR_OK) {
        http_answer_status(find->request, find_status(find), job->err,
                           err_detail_text(&job->detail, job->err));
        return;
    }
    struct buf out;
    buf_init(&out, JSON_SIZE_MAX);
    buf_put_string(&out, "{\"results\":[");
    for (size_t i = 0; i < job->results_count; i++) {
        buf_put_string(&out, i == 0 ? "\n" : ",\n");
        put_result(&out, &job->results[i]);
    }
    buf_put_format(&out, "],\n\"offset\":%zu,\"limit\":%zu,\"has_more\":%s,", job->question.offset,
                   job->question.limit, job->has_more ? "true" : "false");
    put_index(&out, find->replay->search);
    buf_put_string(&out, "}\n");
    if (out.err != ERR_OK) {
        http_answer_error(find->request, out.err, NULL);
    } else {
        http_add_header(find->request, "Cache-Control", "no-cache");
        http_add_header(find->request, "X-Content-Type-Options", "nosniff");
        http_answer(find->request, find_status(find), "application/json", buf_bytes(&out));
    }
    buf_done(&out);
}
