#include "replay/pages/find.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/utc.h"
#include "base/value.h"
#include "http/server/form.h"
#include "http/server/http_request.h"
#include "replay/search/search.h"
#include "replay/search/search_ring.h"
#include "replay/site/fill.h"
#include "replay/site/partial.h"

enum {
    TIME_DIGITS_MAX = 14,
    SECOND_US = 1000000,
    FIND_JSON_SIZE_MAX = 16 << 20,
    FIND_PAGE_COUNT = 20, /* results on a page */
    FIND_PAGES_MAX = SEARCH_OFFSET_MAX / FIND_PAGE_COUNT,
    FIND_RING_PAGES_MAX = SEARCH_RING_RESULTS_MAX / FIND_PAGE_COUNT,
    FIND_TEXT_SIZE_MAX = 8 << 10, /* of a sentence that names nodes */
    FIND_HOST_SIZE_MAX = 512,
    FIND_TIME_SIZE_MAX = 64,
};

enum { FIND_WORDS, FIND_HOST, FIND_FROM, FIND_TO, FIND_FIELDS_COUNT };

struct find {
    struct replay *replay;
    struct http_request *request;
    bool is_asked; /* the job holds a question; else there are no words yet */
    struct search_job job;
    struct buf fields[FIND_FIELDS_COUNT]; /* as typed */
    uint64_t page;                        /* from 1 */
    struct absent absent;                 /* what was not searched, or not surely all of it */
    bool is_here_only;                    /* the reader does not want the ring */
    bool is_in_ring;                      /* of whose captures this node has a part */
    bool is_ring_away;                    /* it cannot be asked now */
    uint64_t ring_count;                  /* captures, about; 0: not known */
    struct search_ring_report report;     /* of the ring, if that was searched */
};

static const struct {
    const char *name;
    size_t size_max;
    const char *label;
    const char *hint;
} fields[FIND_FIELDS_COUNT] = {
    [FIND_WORDS] = {"q", SEARCH_WORDS_SIZE_MAX, NULL, NULL},
    [FIND_HOST] = {"host", FIND_HOST_SIZE_MAX, "Host, with its subdomains", "example.org"},
    [FIND_FROM] = {"from", FIND_TIME_SIZE_MAX, "Archived from", "2026-01-31"},
    [FIND_TO] = {"to", FIND_TIME_SIZE_MAX, "to", "2026-12"},
};

static const char off_text[] =
    "Full-text search is switched off on this node (search.enabled in mnemon.conf).";

/* The status that fits what became of the job. */
static unsigned find_status(const struct find *find) {
    switch (find->job.err) {
    case ERR_OK:
        return STATUS_OK;
    case ERR_INVALID:
    case ERR_LIMIT:
        return STATUS_BAD_REQUEST;
    case ERR_TIMEOUT:
    case ERR_BUSY:
        return STATUS_UNAVAILABLE;
    default:
        return STATUS_INTERNAL;
    }
}

/*
 * Step through a snippet: false at the end, else a part of it without marks, and whether it is what was
 * looked for.
 */
static bool find_next_part(struct bytes *snippet, struct bytes *ret_part, bool *ret_is_found) {
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
static bool find_read_time(struct bytes text, bool wants_latest, int64_t *ret_time_us) {
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
    struct bytes from = bytes_trim(buf_bytes(&find->fields[FIND_FROM]));
    struct bytes to = bytes_trim(buf_bytes(&find->fields[FIND_TO]));
    question->from_us = INT64_MIN;
    question->to_us = INT64_MAX;
    if ((from.size > 0 && !find_read_time(from, false, &question->from_us)) ||
        (to.size > 0 && !find_read_time(to, true, &question->to_us))) {
        return err_set(&find->job.detail, ERR_INVALID,
                       "\"from\" and \"to\" are dates such as 2026, 2026-01-31 or 20260131120000");
    }
    return ERR_OK;
}

/* A number of the query; as it was if there is none. */
static enum err find_read_number(struct find *find, struct bytes query, const char *name, uint64_t min,
                                 uint64_t max, uint64_t *number) {
    struct buf text;
    uint64_t value;
    buf_init(&text, FIND_TIME_SIZE_MAX);
    bool is_there = form_get(query, name, &text) && (text.size > 0 || text.err != ERR_OK);
    bool is_good = text.err == ERR_OK && bytes_to_u64(buf_bytes(&text), max, &value) && value >= min;
    bool is_short = text.err == ERR_MEMORY;
    buf_done(&text);
    if (is_short) {
        return ERR_MEMORY;
    }
    if (is_there && !is_good) {
        return err_set(&find->job.detail, ERR_INVALID, "\"%s\" is a number from %ju to %ju", name,
                       (uintmax_t)min, (uintmax_t)max);
    }
    *number = is_there ? value : *number;
    return ERR_OK;
}

/* "node": only what is on this one. */
static enum err find_read_scope(struct find *find, struct bytes query) {
    struct buf text;
    buf_init(&text, FIND_TIME_SIZE_MAX);
    bool is_there = form_get(query, "scope", &text) && (text.size > 0 || text.err != ERR_OK);
    find->is_here_only = is_there && bytes_equal(buf_bytes(&text), BYTES("node"));
    bool is_good = !is_there || find->is_here_only || bytes_equal(buf_bytes(&text), BYTES("ring"));
    buf_done(&text);
    return is_good ? ERR_OK : err_set(&find->job.detail, ERR_INVALID, "\"scope\" is ring or node");
}

static enum err find_read_place(struct find *find, struct bytes query) {
    uint64_t offset = 0;
    uint64_t limit = FIND_PAGE_COUNT;
    enum err err = find_read_number(find, query, "page", 1, FIND_PAGES_MAX, &find->page);
    offset = (find->page - 1) * FIND_PAGE_COUNT;
    err = err == ERR_OK ? find_read_number(find, query, "offset", 0, SEARCH_OFFSET_MAX, &offset) : err;
    err = err == ERR_OK ? find_read_number(find, query, "limit", 1, SEARCH_LIMIT_MAX, &limit) : err;
    find->job.question.offset = (size_t)offset;
    find->job.question.limit = (size_t)limit;
    return err == ERR_OK ? find_read_scope(find, query) : err;
}

static enum err read_question(struct find *find) {
    struct bytes query = http_request_query(find->request);
    struct search_question *question = &find->job.question;
    for (size_t i = 0; i < FIND_FIELDS_COUNT; i++) {
        form_get(query, fields[i].name, &find->fields[i]);
        if (find->fields[i].err != ERR_OK) {
            return err_set(&find->job.detail, ERR_LIMIT, "\"%s\" may have %zu bytes at most", fields[i].name,
                           fields[i].size_max);
        }
    }
    question->words = buf_bytes(&find->fields[FIND_WORDS]);
    question->host = bytes_trim(buf_bytes(&find->fields[FIND_HOST]));
    enum err err = read_period(find);
    return err == ERR_OK ? find_read_place(find, query) : err;
}

/* ---- what a search over the ring has covered ---- */

/* "12 %", and never 0 or 100 of what is neither. */
static void put_percent(struct buf *out, double share) {
    double percent = share * 100;
    if (percent < 0.1) {
        buf_put_string(out, "less than 0.1 %");
    } else {
        buf_put_format(out, percent < 10 || (percent > 99 && percent < 100) ? "%.1f %%" : "%.0f %%", percent);
    }
}

/* The nodes that hold the missing share, or the unsure one, with why: "192.0.2.7:4100 does not answer". */
static void put_named(struct buf *out, const struct search_ring_report *report, bool is_missing) {
    size_t count = 0;
    for (size_t i = 0; i < report->named_count; i++) {
        const struct search_ring_node *node = &report->named[i];
        if ((is_missing ? node->missing : node->behind) <= 0) {
            continue;
        }
        buf_put_format(out, "%s%s ", count++ > 0 ? ", " : "", node->address);
        if (node->reason != NULL) {
            buf_put_string(out, node->reason);
        } else if (node->left_count > 0) {
            VALUE_PUT(out, "has not yet read {count} of its captures", node->left_count);
        } else {
            buf_put_string(out,
                           node->lacks_volumes ? "cannot search all of its volumes" : "may lack some of it");
        }
    }
    if (report->named_count == SEARCH_RING_NODES_MAX) {
        buf_put_string(out, ", and perhaps others");
    }
}

/* A sentence each; nothing if there is nothing to say. */
static void put_missing(struct buf *out, const struct search_ring_report *report) {
    if (report->missing_count > 0) {
        buf_put_string(out, "Not searched: ");
        put_percent(out, report->missing);
        buf_put_string(out, " of the ring, since no node that holds it has answered: ");
        put_named(out, report, true);
        buf_put_byte(out, '.');
    }
}

static void put_unsure(struct buf *out, const struct search_ring_report *report) {
    if (report->behind_count > 0) {
        buf_put_string(out, "Pages may be missing of ");
        put_percent(out, report->behind);
        buf_put_string(out, " of the ring: ");
        put_named(out, report, false);
        buf_put_byte(out, '.');
    }
}

static void put_gone(struct buf *out, const struct search_ring_report *report) {
    for (size_t i = 0; i < report->gone_count && i < SEARCH_RING_GONE_MAX; i++) {
        buf_put_format(
            out, "%s%s",
            i > 0 ? ", " : "Not found is what only nodes held that have gone lately: ", report->gone[i]);
    }
    if (report->gone_count > SEARCH_RING_GONE_MAX) {
        VALUE_PUT(out, " and {count} more", (uint64_t)report->gone_count - SEARCH_RING_GONE_MAX);
    }
    if (report->gone_count > 0) {
        buf_put_byte(out, '.');
    }
}

static void put_whole(struct buf *out, const struct search_ring_report *report) {
    if (report->is_ring && report->missing_count + report->behind_count + report->gone_count == 0) {
        VALUE_PUT(out, "Searched: the whole ring of {count} nodes, by asking {count} of them.",
                  (uint64_t)report->nodes_count, (uint64_t)report->answered_count);
    }
}

/* ---- as JSON ---- */

/* The text as a whole; then its parts, of which the second, fourth … are what was looked for. */
static void put_snippet_json(struct json *json, struct bytes snippet) {
    struct buf text;
    struct bytes rest = snippet;
    struct bytes part;
    bool is_found;
    bool was_found = true;
    buf_init(&text, FIND_JSON_SIZE_MAX);
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

static void put_result_json(struct json *json, const struct search_result *result) {
    json_break(json);
    json_open(json, NULL);
    json_bytes(json, "url", result->url);
    json_timestamp(json, "timestamp", result->time_us);
    json_bytes(json, "title", result->title);
    json_bytes(json, "language", result->language);
    if (result->node.size > 0) {
        json_bytes(json, "node", result->node);
    }
    put_snippet_json(json, result->snippet);
    json_digits(json, "score", result->score, 6);
    json_close(json);
}

static void put_index(struct json *json, const struct find *find) {
    struct search_stat stat;
    search_stat(find->replay->search, &stat);
    json_open(json, "index");
    JSON_COUNTS(json, {"documents", stat.documents_count}, {"captures", stat.captures_count},
                {"captures_left", stat.left_count});
    if (find->is_in_ring) {
        json_count(json, "ring_captures", find->ring_count);
    }
    json_close(json);
}

static double to_percent(double share) {
    return share * 100;
}

typedef void find_sentence(struct buf *out, const struct search_ring_report *report);

/* What was not searched before what was. */
static const struct {
    find_sentence *put;
    const char *id;  /* on the page */
    bool is_warning; /* stands before the results */
} sentences[] = {
    {put_missing, "missing", true},
    {put_unsure, "unsure", true},
    {put_gone, "gone", true},
    {put_whole, "scope", false},
};
enum { SENTENCES_COUNT = sizeof sentences / sizeof *sentences };

static void put_ring_text(struct json *json, const struct search_ring_report *report) {
    struct buf text;
    buf_init(&text, FIND_TEXT_SIZE_MAX);
    for (size_t i = 0; i < SENTENCES_COUNT; i++) {
        size_t before = text.size;
        buf_put_string(&text, before > 0 ? " " : "");
        size_t start = text.size;
        sentences[i].put(&text, report);
        text.size = text.size > start ? text.size : before;
    }
    json_bytes(json, "text", buf_bytes(&text));
    buf_done(&text);
}

static void put_ring(struct json *json, const struct search_ring_report *report) {
    json_break(json);
    json_open(json, "ring");
    put_ring_text(json, report);
    json_digits(json, "searched_percent", to_percent(report->whole), 6);
    json_digits(json, "unsure_percent", to_percent(report->behind), 6);
    json_digits(json, "missing_percent", to_percent(report->missing), 6);
    JSON_COUNTS(json, {"parts", report->parts_count}, {"parts_searched", report->whole_count},
                {"parts_unsure", report->behind_count}, {"parts_missing", report->missing_count},
                {"nodes", report->nodes_count}, {"asked", report->asked_count},
                {"answered", report->answered_count}, {"milliseconds", report->took_us / 1000});
    json_open_list(json, "gone");
    for (size_t i = 0; i < report->gone_count && i < SEARCH_RING_GONE_MAX; i++) {
        json_text(json, NULL, report->gone[i]);
    }
    json_close(json);
    json_open_list(json, "because_of");
    for (size_t i = 0; i < report->named_count; i++) {
        const struct search_ring_node *node = &report->named[i];
        json_open(json, NULL);
        json_text(json, "node", node->address);
        json_text(json, "why", node->reason != NULL ? node->reason : "answered");
        json_digits(json, "missing_percent", to_percent(node->missing), 6);
        json_digits(json, "unsure_percent", to_percent(node->behind), 6);
        JSON_COUNTS(json, {"captures_left", node->left_count});
        json_bool(json, "lacks_volumes", node->lacks_volumes);
        json_close(json);
    }
    json_close(json);
    json_close(json);
}

static void find_answer_json(struct find *find) {
    const struct search_job *job = &find->job;
    if (job->err != ERR_OK) {
        http_answer_status(find->request, find_status(find), job->err,
                           err_detail_text(&job->detail, job->err));
        return;
    }
    struct buf out;
    struct json json;
    buf_init(&out, FIND_JSON_SIZE_MAX);
    json_begin(&json, &out);
    json_open_list(&json, "results");
    for (size_t i = 0; i < job->results_count; i++) {
        put_result_json(&json, &job->results[i]);
    }
    json_close(&json);
    json_break(&json);
    JSON_COUNTS(&json, {"offset", job->question.offset}, {"limit", job->question.limit});
    json_bool(&json, "has_more", job->has_more);
    absent_put_json(&find->absent, &json);
    if (find->report.is_ring) {
        put_ring(&json, &find->report);
    }
    put_index(&json, find);
    json_end(&json);
    http_answer_json(find->request, find_status(find), "no-cache", &out);
}

/* ---- the page ---- */

static void find_put_form(struct sheet *sheet, const struct find *find) {
    FILL(sheet,
         "<form action=\"/search\" method=get role=search>\n<div class=search>"
         "<label class=unseen for=words>Words</label><input id=words name=q type=search required "
         "autocomplete=off enterkeyhint=search value=\"{text}\"><button class=main>Search</button></div>\n"
         "<div class=form-row>\n",
         {.text = buf_bytes(&find->fields[FIND_WORDS])});
    for (size_t i = FIND_HOST; i < FIND_FIELDS_COUNT; i++) {
        const char *name = fields[i].name;
        FILL(
            sheet,
            "<span class=field><label for={html}>{html}</label>"
            "<input id={html} name={html} placeholder=\"{html}\" autocomplete=off value=\"{text}\"></span>\n",
            {.string = name}, {.string = fields[i].label}, {.string = name}, {.string = name},
            {.string = fields[i].hint}, {.text = buf_bytes(&find->fields[i])});
    }
    sheet_html(sheet, "</div>\n</form>\n");
}

static void put_help(struct sheet *sheet) {
    sheet_html(sheet, "<p class=quiet>Finds archived pages in which all words occur. "
                      "<code>\"two words\"</code> finds words side by side, <code>-word</code> leaves out "
                      "pages with that word, "
                      "<code>word*</code> finds words that begin so.</p>\n");
}

/* How far the index is, if it is not complete. */
static void put_state(struct sheet *sheet, struct search *search, bool is_in_ring) {
    struct search_stat stat;
    search_stat(search, &stat);
    if (stat.error[0] != '\0') {
        FILL(sheet, "<p class=\"notice bad\">The full-text index is not being updated: {string}</p>\n",
             {.string = stat.error});
    } else if (stat.left_count > 0 || !stat.is_open) {
        uint64_t read_count =
            stat.left_count < stat.captures_count ? stat.captures_count - stat.left_count : 0;
        FILL(
            sheet,
            "<p class=\"notice warning\" id=index-state>The full-text index is being built: {count} of about "
            "{count} captures read so far.</p>\n",
            {.number = read_count}, {.number = stat.captures_count});
    } else {
        FILL(sheet, "<p class=quiet id=index-state>{count} {html} in the index{html}.</p>\n",
             {.number = stat.documents_count}, {.string = stat.documents_count == 1 ? "page" : "pages"},
             {.string = is_in_ring ? " of this node" : ""});
    }
}

/* What the search has covered. */
static void put_report(struct sheet *sheet, const struct search_ring_report *report, bool is_warning) {
    struct buf text;
    buf_init(&text, FIND_TEXT_SIZE_MAX);
    for (size_t i = 0; i < SENTENCES_COUNT; i++) {
        buf_clear(&text);
        sentences[i].put(&text, report);
        if (text.size > 0 && sentences[i].is_warning == is_warning) {
            FILL(sheet, "<p class=\"{html}\" id={html}>{text}</p>\n",
                 {.string = is_warning ? "notice warning" : "quiet"}, {.string = sentences[i].id},
                 {.text = buf_bytes(&text)});
        }
    }
    buf_done(&text);
}

/* A node of a ring searches what it has: how much of all that is. */
static void put_scope(struct sheet *sheet, const struct find *find) {
    struct search_stat stat;
    if (find->report.is_ring) {
        put_report(sheet, &find->report, false);
        return;
    }
    search_stat(find->replay->search, &stat);
    uint64_t read_count = stat.left_count < stat.captures_count ? stat.captures_count - stat.left_count : 0;
    if (find->is_in_ring && find->ring_count > 0) {
        FILL(sheet,
             "<p class=quiet id=scope>On this node: {count} of about {count} captures of the ring.</p>\n",
             {.number = read_count}, {.number = find->ring_count});
    } else if (find->is_in_ring) {
        FILL(sheet, "<p class=quiet id=scope>On this node: {count} captures of the ring.</p>\n",
             {.number = read_count});
    }
}

static void put_snippet(struct sheet *sheet, struct bytes snippet) {
    struct bytes part;
    bool is_found;
    while (find_next_part(&snippet, &part, &is_found)) {
        FILL(sheet, is_found ? "<mark>{text}</mark>" : "{text}", {.text = part});
    }
}

static void put_result(struct sheet *sheet, const struct search_result *result) {
    FILL(sheet,
         "<li><a href=\"{replay}\"><bdi>{text}</bdi></a>\n<span class=\"url quiet\">{text}</span>\n<p "
         "dir=auto",
         {.text = result->url, .time_us = result->time_us},
         {.text = result->title.size > 0 ? result->title : result->url}, {.text = result->url});
    if (result->language.size > 0) {
        FILL(sheet, " lang=\"{text}\"", {.text = result->language});
    }
    sheet_html(sheet, ">");
    put_snippet(sheet, result->snippet);
    FILL(sheet,
         "</p>\n<span class=quiet>{date} · <a href=\"/web/*/{url}\">all versions<span class=unseen> of "
         "{text}</span></a>",
         {.time_us = result->time_us}, {.text = result->url}, {.text = result->url});
    if (result->node.size > 0) {
        FILL(sheet, " · found by {text}", {.text = result->node});
    }
    sheet_html(sheet, "</span></li>\n");
}

/* The same question, another page. */
static void put_turn(struct sheet *sheet, const struct find *find, uint64_t page, const char *rel,
                     const char *label) {
    FILL(sheet, "<li><a class=button rel={html} href=\"/search?q={argument}", {.string = rel},
         {.text = buf_bytes(&find->fields[FIND_WORDS])});
    for (size_t i = FIND_HOST; i < FIND_FIELDS_COUNT; i++) {
        if (find->fields[i].size > 0) {
            FILL(sheet, "&amp;{html}={argument}", {.string = fields[i].name},
                 {.text = buf_bytes(&find->fields[i])});
        }
    }
    if (find->is_here_only) {
        sheet_html(sheet, "&amp;scope=node");
    }
    FILL(sheet, "&amp;page={number}\">{html}</a></li>\n", {.number = page}, {.string = label});
}

static void put_results(struct sheet *sheet, const struct find *find) {
    const struct search_job *job = &find->job;
    if (job->results_count == 0) {
        sheet_html(sheet, find->page > 1
                              ? "<p>There is nothing more.</p>\n"
                              : "<p>No archived page that is searched has all of these words.</p>\n");
    } else {
        sheet_html(sheet, "<ol class=entries id=results>\n");
        for (size_t i = 0; i < job->results_count; i++) {
            put_result(sheet, &job->results[i]);
        }
        sheet_html(sheet, "</ol>\n");
    }
    sheet_html(sheet, "<ul class=actions>\n");
    if (find->page > 1) {
        put_turn(sheet, find, find->page - 1, "prev", "Previous results");
    }
    uint64_t pages_max = find->report.is_ring ? FIND_RING_PAGES_MAX : FIND_PAGES_MAX;
    if (job->has_more && find->page < pages_max) {
        put_turn(sheet, find, find->page + 1, "next", "More results");
    }
    sheet_html(sheet, "</ul>\n");
}

static void find_answer_page(struct find *find) {
    struct sheet sheet;
    sheet_begin(&sheet, find->replay, find->request, "Search", SHEET_SEARCH);
    find_put_form(&sheet, find);
    if (find->job.err != ERR_OK) {
        FILL(&sheet, "<p class=\"notice bad\" role=alert>{string}</p>\n",
             {.string = err_detail_text(&find->job.detail, find->job.err)});
    } else if (find->is_asked) {
        put_report(&sheet, &find->report, true);
        put_results(&sheet, find);
    }
    if (!find->is_asked || find->job.err != ERR_OK) {
        put_help(&sheet);
    }
    put_state(&sheet, find->replay->search, find->is_in_ring || find->report.is_ring);
    put_scope(&sheet, find);
    if (find->absent.is_any && !find->report.is_ring) {
        FILL(&sheet, "<p class=\"notice warning\" id=partial>Not searched: {string}.</p>\n",
             {.string = find->absent.text});
    }
    sheet_answer(&sheet, find_status(find));
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
    for (size_t i = 0; i < FIND_FIELDS_COUNT; i++) {
        buf_init(&find->fields[i], fields[i].size_max);
    }
    return find;
}

/* It is answered: from the asker's thread. */
static void find_wake(void *context) {
    struct find *find = context;
    http_request_resume(find->request);
}

/* Of the whole ring, or, if there is none, or it cannot be asked, here. */
static enum err find_ask_ring(struct find *find) {
    struct replay *replay = find->replay;
    if (replay->search_ring == NULL || find->is_here_only) {
        return ERR_NOT_FOUND;
    }
    return replay->search_ring(replay->lead_context, &find->job, &find->report);
}

static void find_ask(struct find *find) {
    find->job.archive = find->replay->archive;
    find->job.done = find_wake;
    find->job.context = find;
    http_request_suspend(find->request);
    enum err err = find_ask_ring(find);
    find->is_ring_away = err == ERR_UNREACHABLE;
    if (err == ERR_NOT_FOUND || err == ERR_UNREACHABLE) {
        err = search_ask(find->replay->search, &find->job);
    }
    if (err != ERR_OK) {
        bool is_busy = err == ERR_BUSY;
        find->job.err =
            is_busy ? err_set(&find->job.detail, ERR_BUSY, "too many are searching right now: try again")
                    : err;
        find_wake(find);
    }
}

/* Who did not answer for what, or not surely for all of it. */
static void add_unsearched(struct find *find) {
    const struct search_ring_report *report = &find->report;
    char name[ADDRESS_TEXT_SIZE_MAX + 8];
    for (size_t i = 0; i < report->named_count; i++) {
        snprintf(name, sizeof name, "node %s", report->named[i].address);
        absent_add_string(&find->absent, name);
    }
    for (size_t i = 0; i < report->gone_count && i < SEARCH_RING_GONE_MAX; i++) {
        snprintf(name, sizeof name, "node %s", report->gone[i]);
        absent_add_string(&find->absent, name);
    }
}

static void respond(struct find *find) {
    const struct replay *replay = find->replay;
    find->is_in_ring =
        replay->count_ring != NULL && replay->count_ring(replay->lead_context, &find->ring_count);
    if (find->report.is_ring) {
        add_unsearched(find);
    } else {
        search_add_absent(replay->search, &find->absent);
    }
    if (!find->report.is_ring && (find->is_in_ring || find->is_ring_away)) {
        absent_add_string(&find->absent, "the other nodes of the ring");
    }
    partial_add_header(find->request, &find->absent);
    if (is_api(find->request)) {
        find_answer_json(find);
    } else {
        find_answer_page(find);
    }
}

static void answer_find(struct http_request *request) {
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
    find->is_asked = is_api(request) || bytes_trim(find->job.question.words).size > 0;
    if (find->job.err == ERR_OK && find->is_asked) {
        find_ask(find);
    } else {
        respond(find);
    }
}

static void end_find(struct http_request *request) {
    struct find *find = http_request_state(request);
    if (find != NULL) {
        search_job_done(&find->job);
        for (size_t i = 0; i < FIND_FIELDS_COUNT; i++) {
            buf_done(&find->fields[i]);
        }
        free(find);
    }
}

size_t find_routes(struct replay *replay, struct http_route out[FIND_ROUTES_MAX]) {
    static const struct http_route routes[] = {
        {.method = "GET", .path = "/search", .answer = answer_find, .end = end_find},
        {.method = "GET", .path = "/api/v1/search", .answer = answer_find, .end = end_find},
    };
    return replay_put_routes(replay, routes, sizeof routes / sizeof *routes, out);
}
