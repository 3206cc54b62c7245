#include <stdio.h>

#include "base/json.h"
#include "base/utc.h"
#include "replay/admin/admin_pages_state.h"
#include "replay/admin/ring_text.h"

enum { RING_TEXT_SIZE_MAX = 1024 };

static const char REFRESH_S[] = "2";

/* What the form offers; POST /api/v1/jobs takes all that job.conf has. */
static const char *const form_fields[] = {"scope", "depth", "period", "limit", "delay", "exclude"};

/* ---- the page ---- */

static void put_add_form(struct sheet *sheet) {
    sheet_html(sheet, "<form method=post action=\"/jobs\" class=form>\n");
    admin_pages_put_form_token(sheet);
    sheet_html(
        sheet,
        "<div class=field><label for=urls>URLs, one per line</label>"
        "<textarea id=urls name=urls rows=2 required placeholder=\"https://example.org/\"></textarea></div>\n"
        "<div class=form-row>\n"
        "<div class=field><label for=scope>Scope</label><select id=scope name=scope>"
        "<option value=page>the page alone<option value=prefix>everything below the URL"
        "<option value=host selected>its host<option value=domain>its domain<option "
        "value=any>any host</select></div>\n"
        "<div class=field><label for=period>Every</label><input id=period name=period value=\"1 d\" "
        "size=6></div>\n"
        "<div class=field><label for=depth>Depth</label>"
        "<input id=depth name=depth inputmode=numeric size=5 placeholder=any></div>\n"
        "<div class=field><label for=limit>URLs per visit</label>"
        "<input id=limit name=limit inputmode=numeric size=7 placeholder=any></div>\n"
        "<button class=main>Add job</button></div></form>\n");
}

/* As one writes it in the form below. */
static void put_period(struct sheet *sheet, uint64_t seconds) {
    static const struct {
        uint64_t seconds;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    size_t i = 0;
    while (seconds % units[i].seconds != 0) {
        i++;
    }
    sheet_format(sheet, "%ju %s", (uintmax_t)(seconds / units[i].seconds), units[i].name);
}

static void put_button(struct sheet *sheet, const char *name, const char *action, const char *word) {
    sheet_format(sheet, "<form method=post action=\"/jobs/%s/%s\">", name, action);
    admin_pages_put_form_token(sheet);
    sheet_format(sheet, "<button%s>%s</button></form> ", strcmp(action, "remove") == 0 ? " class=danger" : "",
                 word);
}

static void put_seeds(struct sheet *sheet, const struct job_view *job) {
    struct bytes first = job->seeds_shown_count > 0 ? job->seeds[0] : BYTES("");
    FILL(sheet, "<a href=\"/web/*/{url}\">{text}</a>", {.text = first}, {.text = first});
    if (job->seeds_count > 1) {
        FILL(sheet, " and {count} more", {.number = job->seeds_count - 1});
    }
}

/* The counts of the row are this node's own. */
static void put_ring_progress(struct sheet *sheet, const struct job_view *job) {
    struct buf text;
    if (job->ring == NULL) {
        return;
    }
    buf_init(&text, RING_TEXT_SIZE_MAX);
    ring_text_put_job(job->ring, job->ring_unreported_count, &text);
    FILL(sheet, "<small>Whole ring: <span class=whole>{text}</span></small><br>", {.text = buf_bytes(&text)});
    buf_done(&text);
}

/* Its names are checked: they need no escaping. The script finds its cells by their classes. */
static void put_job(struct sheet *sheet, const struct job_view *job, bool is_known) {
    sheet_format(sheet, "<tr data-job=\"%s\"><td>", job->name);
    put_seeds(sheet, job);
    sheet_html(sheet, "<br>");
    put_ring_progress(sheet, job);
    FILL(sheet,
         "<small>{html}</small><td class=state>{string}<td class=\"stored number\">{count}"
         "<td class=\"waiting number\">{count}<td class=\"known number\">{count}"
         "<td class=\"received number\">{size}<td class=\"failed number\">{count}<td>",
         {.string = job->name}, {.string = job->state}, {.number = job->stored_count},
         {.number = job->waiting_count}, {.number = job->known_count}, {.number = job->received_size},
         {.number = job->failed_count});
    put_period(sheet, job->period_s);
    if (is_known) {
        sheet_html(sheet, "<td><div class=actions>");
        put_button(sheet, job->name, job->is_paused ? "resume" : "pause",
                   job->is_paused ? "Resume" : "Pause");
        put_button(sheet, job->name, "remove", "Remove");
        sheet_html(sheet, "</div>");
    }
    sheet_html(sheet, "\n");
}

static void jobs_put_table(struct sheet *sheet, const struct job_view *jobs, size_t count, bool is_known) {
    if (count == 0) {
        sheet_html(sheet,
                   "<p>There are no jobs yet. A job is a site that this node archives again and again; "
                   "<code>mnemon job add URL</code> adds one too.\n");
        return;
    }
    sheet_table_begin(sheet, "Jobs of this node");
    sheet_html(sheet, "<thead><tr><th>Site<th>State<th class=number>Stored<th class=number>Waiting<th "
                      "class=number>Known<th class=number>Received<th class=number>Failed<th>Every");
    sheet_html(sheet, is_known ? "<th>Change\n<tbody>" : "\n<tbody>");
    for (size_t i = 0; i < count; i++) {
        put_job(sheet, &jobs[i], is_known);
    }
    sheet_table_end(sheet);
}

static void put_waiting(struct sheet *sheet, const struct node_status *status) {
    if (status == NULL || status->waiting_count == 0) {
        sheet_html(sheet, "<p id=waiting class=quiet>The crawl is not waiting for any host.\n");
        return;
    }
    sheet_html(sheet, "<h2>Hosts that the crawl is waiting for</h2>\n<ul id=waiting>");
    for (size_t i = 0; i < status->waiting_count; i++) {
        FILL(sheet, "<li>{string}: {string}", {.string = status->waiting[i].about},
             {.string = status->waiting[i].text});
    }
    sheet_html(sheet, "</ul>\n");
}

static void answer_page(struct http_request *request) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct arena arena;
    struct job_view *jobs;
    arena_init(&arena, ADMIN_PAGES_TEXT_SIZE_MAX);
    size_t jobs_count = admin_pages->table->list_jobs(admin_pages->context, &arena, &jobs);
    const struct node_status *status = admin_pages->table->status(admin_pages->context, &arena);
    bool is_known = admin_is_known(admin_pages->admin, request);
    struct sheet sheet;
    sheet_begin(&sheet, admin_pages_replay(request), request, "Jobs", SHEET_JOBS);
    sheet_script(&sheet, "jobs.js");
    jobs_put_table(&sheet, jobs, jobs_count, is_known);
    put_waiting(&sheet, status);
    sheet_html(&sheet, "<h2>Add a job</h2>\n");
    if (is_known) {
        put_add_form(&sheet);
        admin_pages_put_logout(&sheet);
    } else {
        sheet_html(&sheet, "<p>To add, pause or remove jobs, log in.\n");
        admin_pages_put_login(&sheet);
    }
    sheet_answer(&sheet, STATUS_OK);
    arena_done(&arena);
}

/* ---- changes ---- */

/* For people the list of jobs, for programs what was done to which job. */
static void answer_changed(struct http_request *request, enum err err, const struct err_detail *detail,
                           unsigned status, struct bytes name, const char *word) {
    struct buf text;
    struct json json;
    if (err != ERR_OK) {
        admin_pages_answer_error(request, err, detail);
    } else if (!bytes_starts_with(http_request_path(request), BYTES("/api/"))) {
        admin_pages_answer_see(request, "/jobs");
    } else {
        buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
        json_begin(&json, &text);
        json_bytes(&json, "job", name);
        json_bool(&json, word, true);
        json_end(&json);
        http_answer_json(request, status, "no-store", &text);
    }
}

static void jobs_add(struct http_request *request, struct bytes wish) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct err_detail detail = {0};
    char name[ADMIN_PAGES_NAME_SIZE_MAX] = "";
    enum err err = admin_pages->table->add_job(admin_pages->context, wish, name, &detail);
    answer_changed(request, err, &detail, STATUS_CREATED, bytes_of_string(name), "added");
}

static void post_add(struct http_request *request) {
    struct bytes form;
    if (!admin_pages_take_change(request, &form)) {
        return;
    }
    struct buf wish;
    struct buf value;
    struct json json;
    buf_init(&wish, 2 * ADMIN_PAGES_BODY_SIZE_MAX);
    buf_init(&value, ADMIN_PAGES_BODY_SIZE_MAX);
    form_get(form, "urls", &value);
    json_begin(&json, &wish);
    json_bytes(&json, "urls", buf_bytes(&value));
    for (size_t i = 0; i < sizeof form_fields / sizeof *form_fields; i++) {
        buf_clear(&value);
        if (form_get(form, form_fields[i], &value) && bytes_trim(buf_bytes(&value)).size > 0) {
            json_bytes(&json, form_fields[i], bytes_trim(buf_bytes(&value)));
        }
    }
    json_end(&json);
    if (wish.err == ERR_OK) {
        jobs_add(request, buf_bytes(&wish));
    } else {
        admin_pages_answer_error(request, wish.err, NULL);
    }
    buf_done(&wish);
    buf_done(&value);
}

static void api_add(struct http_request *request) {
    struct bytes wish;
    if (admin_pages_take_change(request, &wish)) {
        jobs_add(request, wish);
    }
}

/* "NAME/pause" */
static void change_job(struct http_request *request) {
    static const char *const words[][2] = {{"pause", "paused"}, {"resume", "resumed"}, {"remove", "removed"}};
    enum { WORDS_COUNT = sizeof words / sizeof *words, REMOVE = WORDS_COUNT - 1 };
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct err_detail detail = {0};
    struct bytes body;
    if (!admin_pages_take_change(request, &body)) {
        return;
    }
    struct bytes action = http_request_rest(request);
    struct bytes name;
    bytes_split(&action, '/', &name);
    size_t i = 0;
    while (i < WORDS_COUNT && !bytes_equal(action, bytes_of_string(words[i][0]))) {
        i++;
    }
    enum err err = i == WORDS_COUNT ? err_set(&detail, ERR_NOT_FOUND,
                                              "there is no such action; use pause, resume or remove")
                   : i == REMOVE    ? admin_pages->table->remove_job(admin_pages->context, name, &detail)
                                 : admin_pages->table->pause_job(admin_pages->context, name, i == 0, &detail);
    answer_changed(request, err, &detail, STATUS_OK, name, i < WORDS_COUNT ? words[i][1] : NULL);
}

static void api_remove(struct http_request *request) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct bytes name = http_request_rest(request);
    struct err_detail detail = {0};
    struct bytes body;
    if (!admin_pages_take_change(request, &body)) {
        return;
    }
    enum err err = admin_pages->table->remove_job(admin_pages->context, name, &detail);
    answer_changed(request, err, &detail, STATUS_OK, name, "removed");
}
/* ---- for programs ---- */

static void answer_list(struct http_request *request) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct arena arena;
    struct job_view *jobs;
    struct buf text;
    struct json json;
    arena_init(&arena, ADMIN_PAGES_TEXT_SIZE_MAX);
    buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
    size_t count = admin_pages->table->list_jobs(admin_pages->context, &arena, &jobs);
    json_begin(&json, &text);
    json_open_list(&json, "jobs");
    for (size_t i = 0; i < count; i++) {
        job_view_put(&jobs[i], &json);
    }
    json_end(&json);
    http_answer_json(request, STATUS_OK, "no-store", &text);
    arena_done(&arena);
}

static void answer_one(struct http_request *request) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct err_detail detail = {0};
    struct arena arena;
    struct job_view job;
    arena_init(&arena, ADMIN_PAGES_TEXT_SIZE_MAX);
    enum err err =
        admin_pages->table->get_job(admin_pages->context, http_request_rest(request), &arena, &job, &detail);
    if (err != ERR_OK) {
        admin_pages_answer_error(request, err, &detail);
    } else {
        struct buf text;
        struct json json;
        buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
        json_init(&json, &text);
        job_view_put(&job, &json);
        http_answer_json(request, STATUS_OK, "no-store", &text);
    }
    arena_done(&arena);
}

/* ---- saving a page ---- */

static void put_save_form(struct sheet *sheet, struct bytes url) {
    sheet_html(sheet, "<form method=post action=\"/save\" class=form>");
    admin_pages_put_form_token(sheet);
    FILL(sheet,
         "<div class=form-row><div class=\"field wide\"><label for=url>URL of the page</label>"
         "<input id=url name=url type=url required size=60 placeholder=\"https://…\" value=\"{text}\"></div>"
         "<button class=main>Save this page now</button></div>"
         "<p class=quiet>This node fetches the page once, with everything it needs to be shown.</form>\n",
         {.text = url});
}

static void answer_save_page(struct http_request *request) {
    struct sheet sheet;
    struct buf url;
    struct bytes query = http_request_query(request);
    buf_init(&url, ADMIN_PAGES_URL_SIZE_MAX);
    buf_put(&url, http_request_rest(request));
    if (query.size > 0) {
        buf_put_byte(&url, '?');
        buf_put(&url, query);
    }
    sheet_begin(&sheet, admin_pages_replay(request), request, "Save a page", SHEET_NONE);
    admin_pages_put_login(&sheet);
    put_save_form(&sheet, buf_bytes(&url));
    buf_done(&url);
    sheet_answer(&sheet, STATUS_OK);
}

static void answer_begun(struct http_request *request, struct bytes url, const char *id) {
    if (sheet_is_wanted(request)) {
        char path[ADMIN_PAGES_NAME_SIZE_MAX + 32];
        snprintf(path, sizeof path, "/save/status/%s", id);
        admin_pages_answer_see(request, path);
        return;
    }
    struct buf text;
    struct json json;
    buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
    json_begin(&json, &text);
    json_bytes(&json, "url", url);
    json_text(&json, "job_id", id);
    json_end(&json);
    http_answer_json(request, STATUS_OK, "no-store", &text);
}

static void jobs_save(struct http_request *request, struct bytes url) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct err_detail detail = {0};
    char id[ADMIN_PAGES_NAME_SIZE_MAX];
    enum err err = admin_pages->table->save(admin_pages->context, url, id, &detail);
    if (err == ERR_OK) {
        answer_begun(request, url, id);
    } else if (err == ERR_BUSY) {
        http_add_header(request, "Retry-After", "10");
        admin_pages_answer_problem(request, STATUS_TOO_MANY, err, err_detail_text(&detail, err));
    } else {
        admin_pages_answer_error(request, err, &detail);
    }
}

static void post_save(struct http_request *request) {
    struct bytes form;
    struct buf url;
    if (!admin_pages_take_change(request, &form)) {
        return;
    }
    buf_init(&url, ADMIN_PAGES_URL_SIZE_MAX);
    bool is_given = form_get(form, "url", &url) && url.err == ERR_OK && url.size > 0;
    if (is_given) {
        jobs_save(request, bytes_trim(buf_bytes(&url)));
    } else {
        admin_pages_answer_problem(request, STATUS_BAD_REQUEST, ERR_INVALID, "which page? send url=…");
    }
    buf_done(&url);
}

static void put_outcome(struct sheet *sheet, const struct save_view *save) {
    struct bytes url = bytes_of_string(save->url);
    struct bytes timestamp = bytes_of_string(save->timestamp != NULL ? save->timestamp : "");
    int64_t time_us;
    FILL(sheet, "<p><code>{text}</code>\n", {.text = url});
    if (strcmp(save->status, "success") == 0 && utc_parse_digits(timestamp, false, &time_us)) {
        sheet_notice(sheet, SHEET_GOOD, "Saved.");
        FILL(sheet, "<p><a href=\"{replay}\">See it as of {time}</a>\n", {.text = url, .time_us = time_us},
             {.time_us = time_us});
    } else if (strcmp(save->status, "error") == 0) {
        sheet_notice(sheet, SHEET_BAD, save->message != NULL ? save->message : "");
        put_save_form(sheet, url);
    } else {
        sheet_notice(sheet, SHEET_PLAIN, "The page is being fetched. This page reloads by itself.");
        http_add_header(sheet->request, "Refresh", REFRESH_S);
    }
    FILL(sheet, "<p class=quiet>{count} stored, {count} waiting, {count} failed\n",
         {.number = save->stored_count}, {.number = save->waiting_count}, {.number = save->failed_count});
}

static void answer_save_status(struct http_request *request) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct err_detail detail = {0};
    struct arena arena;
    struct save_view save;
    arena_init(&arena, ADMIN_PAGES_TEXT_SIZE_MAX);
    enum err err = admin_pages->table->get_save(admin_pages->context, http_request_rest(request), &arena,
                                                &save, &detail);
    if (err != ERR_OK) {
        admin_pages_answer_error(request, err, &detail);
    } else if (sheet_is_wanted(request)) {
        struct sheet sheet;
        sheet_begin(&sheet, admin_pages_replay(request), request, "Saving a page", SHEET_NONE);
        put_outcome(&sheet, &save);
        sheet_answer(&sheet, STATUS_OK);
    } else {
        struct buf text;
        struct json json;
        buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
        json_init(&json, &text);
        save_view_put(&save, &json);
        http_answer_json(request, STATUS_OK, "no-store", &text);
    }
    arena_done(&arena);
}

/* ---- */

size_t admin_pages_jobs_routes(struct replay *replay, struct http_route *out) {
    enum {
        SMALL_SIZE_MAX = 4096, /* an empty form, and what clients may add to it */
        SAVE_SIZE_MAX = 3 * ADMIN_PAGES_URL_SIZE_MAX,
        ADD_SIZE_MAX = ADMIN_PAGES_BODY_SIZE_MAX,
    };
    static const struct http_route routes[] = {
        {.method = "POST", .path = "/save", .body_size_max = SAVE_SIZE_MAX, .answer = post_save},
        {.method = "GET", .path = "/save", .answer = answer_save_page},
        {.method = "GET", .path = "/save/status/*", .answer = answer_save_status},
        {.method = "GET", .path = "/save/*", .answer = answer_save_page},
        {.method = "GET", .path = "/jobs", .answer = answer_page},
        {.method = "POST", .path = "/jobs", .body_size_max = ADD_SIZE_MAX, .answer = post_add},
        {.method = "POST", .path = "/jobs/*", .body_size_max = SMALL_SIZE_MAX, .answer = change_job},
        {.method = "GET", .path = "/api/v1/jobs", .answer = answer_list},
        {.method = "POST", .path = "/api/v1/jobs", .body_size_max = ADD_SIZE_MAX, .answer = api_add},
        {.method = "GET", .path = "/api/v1/jobs/*", .answer = answer_one},
        {.method = "POST", .path = "/api/v1/jobs/*", .body_size_max = SMALL_SIZE_MAX, .answer = change_job},
        {.method = "DELETE", .path = "/api/v1/jobs/*", .body_size_max = SMALL_SIZE_MAX, .answer = api_remove},
    };
    size_t count = replay_put_routes(replay, routes, sizeof routes / sizeof *routes, out);
    for (size_t i = 0; i < count; i++) {
        out[i].begin = strcmp(out[i].method, "GET") == 0 ? NULL : admin_pages_begin_change;
    }
    return count;
}
