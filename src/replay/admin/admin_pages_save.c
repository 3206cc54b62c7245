#include <microhttpd.h>
#include <stdio.h>

#include "base/json.h"
#include "base/utc.h"
#include "replay/admin/admin_pages_state.h"

enum { FORM_SIZE_MAX = 3 * ADMIN_PAGES_URL_SIZE_MAX, REFRESH_S = 2 };

/* ---- asking for it ---- */

static void put_form(struct sheet *sheet, struct bytes url) {
    sheet_html(sheet, "<form method=post action=\"/save\" class=form>"
                      "<div class=form-row><div class=\"field wide\"><label for=url>URL of the page</label>"
                      "<input id=url name=url type=url required size=60 placeholder=\"https://…\" value=\"");
    sheet_text(sheet, url);
    sheet_html(
        sheet,
        "\"></div><button class=main>Save this page now</button></div>"
        "<p class=quiet>The page and what it needs to be shown is fetched once, by this node.</form>\n");
}

static void answer_page(struct http_request *request) {
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
    put_form(&sheet, buf_bytes(&url));
    buf_done(&url);
    sheet_answer(&sheet, ADMIN_PAGES_OK);
}

/* ---- doing it ---- */

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
    http_answer_json(request, ADMIN_PAGES_OK, "no-store", &text);
}

static void save(struct http_request *request, struct bytes url) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct err_detail detail = {0};
    char id[ADMIN_PAGES_NAME_SIZE_MAX];
    enum err err = admin_pages->table->save(admin_pages->context, url, id, &detail);
    if (err == ERR_OK) {
        answer_begun(request, url, id);
    } else if (err == ERR_BUSY) {
        http_add_header(request, MHD_HTTP_HEADER_RETRY_AFTER, "10");
        admin_pages_answer_problem(request, ADMIN_PAGES_TOO_MANY, err, err_detail_text(&detail, err));
    } else {
        admin_pages_answer_error(request, err, &detail);
    }
}

static void post_save(struct http_request *request) {
    struct bytes form;
    struct buf url;
    if (!admin_pages_body(request, &form)) {
        return;
    }
    buf_init(&url, ADMIN_PAGES_URL_SIZE_MAX);
    bool is_given = form_get(form, "url", &url) && url.err == ERR_OK && url.size > 0;
    if (is_given) {
        save(request, bytes_trim(buf_bytes(&url)));
    } else {
        admin_pages_answer_problem(request, ADMIN_PAGES_BAD_REQUEST, ERR_INVALID, "which page? send url=…");
    }
    buf_done(&url);
}

/* ---- how it went ---- */

static void put_counts(struct sheet *sheet, const struct save_view *save) {
    sheet_html(sheet, "<p class=quiet>");
    sheet_count(sheet, save->stored_count);
    sheet_html(sheet, " stored, ");
    sheet_count(sheet, save->waiting_count);
    sheet_html(sheet, " waiting, ");
    sheet_count(sheet, save->failed_count);
    sheet_html(sheet, " failed\n");
}

static void put_outcome(struct sheet *sheet, const struct save_view *save) {
    struct bytes url = bytes_of_string(save->url);
    struct bytes timestamp = bytes_of_string(save->timestamp != NULL ? save->timestamp : "");
    int64_t time_us;
    sheet_html(sheet, "<p><code>");
    sheet_text(sheet, url);
    sheet_html(sheet, "</code>\n");
    if (strcmp(save->status, "success") == 0 && utc_parse_digits(timestamp, false, &time_us)) {
        sheet_notice(sheet, SHEET_GOOD, "Saved.");
        sheet_html(sheet, "<p><a href=\"");
        sheet_replay_url(sheet, time_us, "", url);
        sheet_html(sheet, "\">See it as of ");
        sheet_time(sheet, time_us);
        sheet_html(sheet, "</a>\n");
    } else if (strcmp(save->status, "error") == 0) {
        sheet_notice(sheet, SHEET_BAD, save->message != NULL ? save->message : "");
        put_form(sheet, url);
    } else {
        sheet_notice(sheet, SHEET_PLAIN, "It is being fetched. This page looks again by itself.");
        char seconds[8];
        snprintf(seconds, sizeof seconds, "%d", REFRESH_S);
        http_add_header(sheet->request, "Refresh", seconds);
    }
    put_counts(sheet, save);
}

static void answer_status(struct http_request *request) {
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
        sheet_answer(&sheet, ADMIN_PAGES_OK);
    } else {
        struct buf text;
        struct json json;
        buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
        json_init(&json, &text);
        save_view_put(&save, &json);
        http_answer_json(request, ADMIN_PAGES_OK, "no-store", &text);
    }
    arena_done(&arena);
}

size_t admin_pages_save_routes(struct replay *replay, struct http_route *out) {
    const struct http_route routes[] = {
        {.method = "POST",
         .path = "/save",
         .body_size_max = FORM_SIZE_MAX,
         .begin = admin_pages_begin_change,
         .answer = post_save},
        {.method = "GET", .path = "/save", .answer = answer_page},
        {.method = "GET", .path = "/save/status/*", .answer = answer_status},
        {.method = "GET", .path = "/save/*", .answer = answer_page},
    };
    size_t count = sizeof routes / sizeof *routes;
    for (size_t i = 0; i < count; i++) {
        out[i] = routes[i];
        out[i].context = replay;
    }
    return count;
}
