#include "replay/pages/pages_parts.h"

#include "base/json.h"
#include "replay/survey/survey.h"

/*
 * Suggestions while somebody types: hosts by the survey, which is in memory, URLs by a short walk over the
 * index. What is typed after the last answer is on its way already, so being quick counts more than being
 * complete.
 */
enum {
    QUESTION_SIZE_MAX = 500,
    SUGGESTIONS_MAX = 10,
    HOSTS_MAX = 6,        /* of them, at most */
    LOOKED_AT_MAX = 2000, /* captures */
};

struct suggestions {
    struct archive_reader *reader;
    struct json *json;
    size_t count;
};

/* Does the name, or one of its labels if is_inside, begin so? */
static bool fits(struct bytes name, struct bytes text, bool is_inside) {
    if (!is_inside) {
        return bytes_starts_with_ignore_case(name, text);
    }
    for (size_t i = 0; i + 1 < name.size; i++) {
        if (name.data[i] == '.' && bytes_starts_with_ignore_case(bytes_skip(name, i + 1), text)) {
            return true;
        }
    }
    return false;
}

bool pages_host_is_seen(struct archive_reader *reader, const struct survey_host *host) {
    struct buf surt; /* of a page that nobody has: a rule that holds for it holds for the host */
    buf_init(&surt, URL_SIZE_MAX);
    buf_put(&surt, host->surt);
    buf_put_string(&surt, ")/?");
    struct capture capture = {.surt = buf_bytes(&surt), .time_us = host->last_us};
    bool is_seen = surt.err == ERR_OK && archive_verdict(reader, &capture) != ACCESS_EXCLUDE;
    buf_done(&surt);
    return is_seen;
}

static void begin_suggestion(struct suggestions *out, const char *kind, struct bytes text) {
    out->count++;
    json_open(out->json, NULL);
    json_text(out->json, "kind", kind);
    json_bytes(out->json, "text", text);
}

static void suggest_hosts(struct suggestions *out, const struct survey_snapshot *snapshot,
                          struct bytes text) {
    for (int is_inside = 0; is_inside < 2; is_inside++) {
        for (size_t i = 0; i < snapshot->hosts_count && out->count < HOSTS_MAX; i++) {
            const struct survey_host *host = snapshot->hosts[SURVEY_BY_CAPTURES][i];
            bool is_new = is_inside == 0 || !fits(host->name, text, false);
            if (is_new && fits(host->name, text, is_inside != 0) && pages_host_is_seen(out->reader, host)) {
                begin_suggestion(out, "host", host->name);
                json_count(out->json, "captures", host->total.captures_count);
                json_close(out->json);
            }
        }
    }
}

static void suggest_url(struct suggestions *out, const struct capture *capture) {
    begin_suggestion(out, "url", capture->url);
    json_timestamp(out->json, "timestamp", capture->time_us);
    json_close(out->json);
}

/* One of each SURT, its oldest: a walk in the order of the index meets it first. */
static void suggest_urls(struct suggestions *out, struct bytes text) {
    struct archive_walk *walk;
    struct archive_range range = {
        .url = text, .match = QUERY_PREFIX, .from_us = INT64_MIN, .to_us = INT64_MAX};
    struct buf last;
    struct capture capture;
    if (archive_walk_open(out->reader, &range, &walk, NULL) != ERR_OK) {
        return; /* it is no beginning of a URL yet */
    }
    buf_init(&last, INDEX_SURT_SIZE_MAX);
    for (size_t i = 0; i < LOOKED_AT_MAX && out->count < SUGGESTIONS_MAX; i++) {
        if (archive_walk_next(walk, &capture, NULL) != ERR_OK) {
            break;
        }
        if (last.size == 0 || !bytes_equal(capture.surt, buf_bytes(&last))) {
            buf_clear(&last);
            buf_put(&last, capture.surt);
            suggest_url(out, &capture);
        }
    }
    buf_done(&last);
    archive_walk_close(walk);
}

static struct bytes without_scheme(struct bytes text) {
    size_t scheme = bytes_find(text, BYTES("://"));
    text = scheme < text.size ? bytes_skip(text, scheme + 3) : text;
    return bytes_starts_with_ignore_case(text, BYTES("www.")) ? bytes_skip(text, 4) : text;
}

static void suggest(struct replay *replay, struct suggestions *out, struct bytes question) {
    struct bytes text = without_scheme(question);
    if (text.size == 0 || bytes_find_byte(text, '*') < text.size) {
        return;
    }
    if (bytes_find_byte(text, '/') == text.size) {
        const struct survey_snapshot *snapshot = survey_get(replay->survey);
        if (snapshot != NULL) {
            suggest_hosts(out, snapshot, text);
        }
        survey_release(snapshot);
    }
    if (bytes_find_byte(text, '.') < text.size || bytes_find_byte(text, '/') < text.size) {
        suggest_urls(out, text);
    }
}

void pages_suggest(struct http_request *request) {
    struct replay *replay = http_request_context(request);
    struct archive_reader *reader = archive_reader_begin_here(replay->archive);
    struct buf question;
    struct buf text;
    struct json json;
    buf_init(&question, QUESTION_SIZE_MAX);
    buf_init(&text, PAGES_JSON_SIZE_MAX);
    json_init(&json, &text);
    if (reader == NULL) {
        http_answer_error(request, ERR_MEMORY, NULL);
    } else if (!pages_argument(request, "q", &question)) {
        http_answer_error(request, ERR_INVALID, "q is missing, or longer than 500 bytes");
    } else {
        struct suggestions out = {.reader = reader, .json = &json};
        json_open(&json, NULL);
        json_bytes(&json, "query", buf_bytes(&question));
        json_open_list(&json, "suggestions");
        suggest(replay, &out, bytes_trim(buf_bytes(&question)));
        json_close(&json);
        json_close(&json);
        http_answer_json(request, PAGES_OK, "no-cache", &text);
    }
    buf_done(&text);
    buf_done(&question);
    archive_reader_end(reader);
}
