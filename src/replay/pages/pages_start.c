#include "base/json.h"
#include "replay/pages/pages_kit.h"
#include "replay/survey/survey.h"

enum {
    QUESTION_SIZE_MAX = 2000,
    LOCATION_SIZE_MAX = 3 * QUESTION_SIZE_MAX + 64,
    RECENT_MAX = 8,
};

/* ---- where a question leads ---- */

static bool looks_like_url(struct bytes text) {
    bool has_space = bytes_find_byte(text, ' ') < text.size;
    size_t dot = bytes_find_byte(text, '.');
    bool has_dot = dot < text.size && dot + 1 < text.size && dot > 0;
    return !has_space && (bytes_find(text, BYTES("://")) < text.size || has_dot ||
                          bytes_starts_with(text, BYTES("localhost")) ||
                          bytes_find_byte(text, ':') < text.size || text.data[0] == '[');
}

static void answer_question(struct replay *replay, struct http_request *request, struct bytes question) {
    struct sheet location = {.replay = replay}; /* only to write a URL in it */
    buf_init(&location.out, LOCATION_SIZE_MAX);
    bool has_star = bytes_find_byte(question, '*') < question.size;
    if (has_star || looks_like_url(question)) {
        sheet_html(&location, "/web/*/");
        wayback_put_url(&location.out, question);
    } else {
        sheet_html(&location, "/search?q=");
        sheet_argument(&location, question);
    }
    const char *text = buf_string(&location.out);
    if (text == NULL) {
        http_answer_error(request, location.out.err, NULL);
    } else {
        http_add_header(request, "Location", text);
        http_answer(request, STATUS_FOUND, "text/plain; charset=utf-8", bytes_of(NULL, 0));
    }
    buf_done(&location.out);
}

/* ---- the page ---- */

static void start_put_form(struct sheet *sheet) {
    sheet_html(sheet, "<form class=search role=search action=\"/\" method=get>"
                      "<label class=unseen for=question>Address, beginning of an address, or words</label>"
                      "<input id=question name=q type=search required maxlength=2000 autocomplete=off "
                      "autocapitalize=none spellcheck=false enterkeyhint=search "
                      "placeholder=\"example.org\">"
                      "<button class=main>Search</button>"
                      "<ul class=suggestions id=suggestions role=listbox aria-label=Suggestions hidden></ul>"
                      "</form>\n<p class=quiet>An address leads to its calendar. With a star at the end, "
                      "<code>example.org/news*</code>, it lists all addresses that begin with it. "
                      "Words are looked up in the text of the pages.</p>\n");
}

static void put_figure(struct sheet *sheet, const char *name, uint64_t value, bool is_size) {
    FILL(sheet,
         is_size ? "<div><dt>{html}</dt><dd>{size}</dd></div>" : "<div><dt>{html}</dt><dd>{count}</dd></div>",
         {.string = name}, {.number = value});
}

void pages_put_figures(struct sheet *sheet, const struct survey_snapshot *snapshot) {
    const struct survey_total *total = &snapshot->total;
    uint64_t size = 0;
    for (size_t i = 0; i < snapshot->volumes_count; i++) {
        size += snapshot->volumes[i].stat.size;
    }
    sheet_html(sheet, "<dl class=figures>");
    put_figure(sheet, "captures", total->captures_count, false);
    put_figure(sheet, "different documents", total->captures_count - total->revisits_count, false);
    put_figure(sheet, snapshot->hosts_count == 1 ? "host" : "hosts", snapshot->hosts_count, false);
    put_figure(sheet, "on disk", size, true);
    put_figure(sheet, "saved by storing duplicates once", total->saved_size, true);
    sheet_html(sheet, "</dl>\n");
}

/* Rules may have changed since the survey: each is looked for again. */
static void put_recent(struct sheet *sheet, struct archive_reader *reader,
                       const struct survey_snapshot *snapshot) {
    struct capture capture;
    size_t count = 0;
    for (size_t i = 0; i < snapshot->newest_count && count < RECENT_MAX; i++) {
        const struct survey_page *page = &snapshot->newest[i];
        if (archive_find(reader, page->surt, bytes_of(NULL, 0), page->time_us, ARCHIVE_CLOSEST, &capture,
                         NULL) != ERR_OK) {
            continue;
        }
        sheet_html(sheet, count++ == 0 ? "<h2>Archived most recently</h2>\n<ul class=entries>" : "");
        FILL(sheet,
             "<li><a class=url href=\"{replay}\">{text}</a><span class=quiet>{time} · <a "
             "href=\"/web/*/{url}\">"
             "all versions<span class=unseen> of {text}</span></a></span></li>\n",
             {.text = capture.url, .time_us = capture.time_us}, {.text = capture.url},
             {.time_us = capture.time_us}, {.text = capture.url}, {.text = capture.url});
    }
    sheet_html(sheet, count > 0 ? "</ul>\n" : "");
}

static bool is_empty(struct archive_reader *reader) {
    struct archive_walk *walk;
    struct archive_range range = {.url = BYTES("*"), .from_us = INT64_MIN, .to_us = INT64_MAX};
    struct capture capture;
    if (archive_walk_open(reader, &range, &walk, NULL) != ERR_OK) {
        return false;
    }
    enum err err = archive_walk_next(walk, &capture, NULL);
    archive_walk_close(walk);
    return err == ERR_NOT_FOUND;
}

static void put_beginning(struct sheet *sheet) {
    sheet_html(
        sheet,
        "<section class=card aria-labelledby=begin><h2 id=begin>This archive is still empty</h2>\n"
        "<p>There are three ways to begin:</p>\n<ol class=steps>"
        "<li><a href=\"/save\">Save a page</a> now, or give the archive <a href=\"/jobs\">a job</a>: a whole "
        "site, once or again and again.</li>"
        "<li>On the command line, while this node is not running: "
        "<code>mnemon archive https://example.org/</code></li>"
        "<li>Import WARC or WACZ files that you have: <code>mnemon import "
        "FILE…</code></li></ol></section>\n");
}

static void put_holdings(struct sheet *sheet, struct archive_reader *reader) {
    const struct survey_snapshot *snapshot = survey_get(sheet->replay->survey);
    bool has_figures = snapshot != NULL && snapshot->total.captures_count > 0;
    if (has_figures) {
        put_recent(sheet, reader, snapshot);
        sheet_html(sheet, "<h2>What this archive holds</h2>\n");
        pages_put_figures(sheet, snapshot);
        sheet_html(sheet, snapshot->is_complete ? "" : "<p class=quiet>So far; counting goes on.</p>\n");
        sheet_html(sheet, "<p class=actions><a class=button href=\"/holdings\">Hosts, types and years</a>"
                          "<a class=button href=\"/save\">Save a page now</a></p>\n");
    } else if (is_empty(reader) && !archive_reader_absent(reader)->is_any) {
        put_beginning(sheet);
    } else {
        sheet_notice(sheet, SHEET_PLAIN, "The contents of this archive are being counted.");
    }
    survey_release(snapshot);
}

static void answer_page(struct replay *replay, struct http_request *request) {
    struct archive_reader *reader = archive_reader_begin_here(replay->archive);
    if (reader == NULL) {
        http_answer_error(request, ERR_MEMORY, NULL);
        return;
    }
    struct sheet sheet;
    sheet_begin_bare(&sheet, replay, request, replay->title, SHEET_START);
    sheet_html(&sheet, "<section class=hero><h1>Pages as they were</h1>\n"
                       "<p class=lead>This archive keeps what was on the web, day by day. Type an address "
                       "to see its versions.</p>\n");
    start_put_form(&sheet);
    sheet_html(&sheet, "</section>\n");
    put_holdings(&sheet, reader);
    archive_reader_end(reader);
    sheet_script(&sheet, "start.js");
    sheet_answer(&sheet, STATUS_OK);
}

void pages_start(struct http_request *request) {
    struct replay *replay = http_request_context(request);
    struct buf question;
    buf_init(&question, QUESTION_SIZE_MAX);
    bool has_question = pages_argument(request, "q", &question);
    struct bytes text = bytes_trim(buf_bytes(&question));
    if (question.err != ERR_OK) {
        struct err_detail detail;
        enum err err = err_set(&detail, ERR_INVALID, "The question is too long.");
        pages_answer_error(replay, request, err, &detail);
    } else if (has_question && text.size > 0) {
        answer_question(replay, request, text);
    } else {
        answer_page(replay, request);
    }
    buf_done(&question);
}

/* ---- suggestions ---- */

/*
 * Suggestions while somebody types: hosts by the survey, which is in memory, URLs by a short walk over the
 * index. What is typed after the last answer is on its way already, so being quick counts more than being
 * complete.
 */
enum {
    TYPED_SIZE_MAX = 500,
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
    buf_init(&question, TYPED_SIZE_MAX);
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
        absent_put_json(archive_reader_absent(reader), &json);
        json_close(&json);
        pages_add_partial(request, reader);
        http_answer_json(request, STATUS_OK, "no-cache", &text);
    }
    buf_done(&text);
    buf_done(&question);
    archive_reader_end(reader);
}
