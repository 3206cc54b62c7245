#include "replay/admin/desk.h"

#include <microhttpd.h>

#include "replay/admin/desk_state.h"
#include "replay/admin/metrics.h"
#include "replay/site/assets.h"

enum { PATH_SIZE_MAX = 128 };

/* ---- what the files share ---- */

bool desk_wants_json(const struct http_request *request) {
    struct bytes accept = http_request_header(request, MHD_HTTP_HEADER_ACCEPT);
    return bytes_find(accept, BYTES("application/json")) < accept.size;
}

void desk_answer_problem(struct http_request *request, unsigned status, enum err err, const char *text) {
    bool is_api = bytes_starts_with(http_request_path(request), BYTES("/api/"));
    if (!is_api && desk_wants_json(request)) {
        struct buf body;
        buf_init(&body, DESK_TEXT_SIZE_MAX);
        buf_put_format(&body, "{\"error\":\"%s\",\"text\":", err_name(err));
        buf_put_json(&body, bytes_of_string(text));
        buf_put_string(&body, "}");
        desk_answer_json(request, status, &body);
    } else if (!is_api && sheet_is_wanted(request)) {
        sheet_answer_error(desk_replay(request), request, status, "That did not work", text);
    } else {
        http_answer_status(request, status, err, text);
    }
}

void desk_answer_error(struct http_request *request, enum err err, const struct err_detail *detail) {
    desk_answer_problem(request, http_status(err), err, err_detail_text(detail, err));
}

void desk_begin_change(struct http_request *request) {
    struct replay *replay = desk_replay(request);
    enum admin_verdict verdict = admin_verdict(replay->desk->admin, request);
    if (verdict == ADMIN_ALLOWED) {
        return;
    }
    unsigned status = admin_verdict_status(verdict);
    const char *text = admin_verdict_text(verdict);
    bool is_api = bytes_starts_with(http_request_path(request), BYTES("/api/"));
    if (status == MHD_HTTP_UNAUTHORIZED) {
        http_add_header(request, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"mnemon\"");
    }
    if (is_api || !sheet_is_wanted(request) || desk_wants_json(request)) {
        desk_answer_problem(request, status, ERR_PERMISSION, text);
        return;
    }
    struct sheet sheet;
    sheet_begin(&sheet, replay, request, "Log in", SHEET_NONE);
    sheet_notice(&sheet, SHEET_WARNING, text);
    desk_put_login(&sheet);
    sheet_answer(&sheet, status);
}

void desk_answer_see(struct http_request *request, const char *path) {
    http_add_header(request, MHD_HTTP_HEADER_LOCATION, path);
    http_add_header(request, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    http_answer(request, DESK_SEE_OTHER, "text/plain; charset=utf-8", BYTES("see there\n"));
}

void desk_answer_json(struct http_request *request, unsigned status, struct buf *text) {
    buf_put_byte(text, '\n');
    if (text->err != ERR_OK) {
        http_answer_error(request, text->err, "the answer is too long");
    } else {
        http_add_header(request, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
        http_add_header(request, "X-Content-Type-Options", "nosniff");
        http_answer(request, status, "application/json", buf_bytes(text));
    }
    buf_done(text);
}

bool desk_body(struct http_request *request, struct bytes *ret_body) {
    enum err err = http_request_body(request, ret_body);
    if (err != ERR_OK) {
        http_answer_error(request, err, NULL);
    }
    return err == ERR_OK;
}

const json_t *desk_member(const json_t *object, const char *path) {
    struct bytes rest = bytes_of_string(path);
    struct bytes part;
    while (object != NULL && rest.size > 0 && bytes_split(&rest, '.', &part)) {
        char name[PATH_SIZE_MAX];
        ASSERT(part.size < sizeof name);
        memcpy(name, part.data, part.size);
        name[part.size] = '\0';
        object = json_object_get(object, name);
    }
    return object;
}

uint64_t desk_number(const json_t *object, const char *path) {
    double number = desk_real(object, path);
    return number > 0 ? (uint64_t)number : 0;
}

double desk_real(const json_t *object, const char *path) {
    return json_number_value(desk_member(object, path));
}

const char *desk_string(const json_t *object, const char *path) {
    const char *text = json_string_value(desk_member(object, path));
    return text == NULL ? "" : text;
}

/* ---- small pages ---- */

static void answer_status(struct http_request *request) {
    const struct desk *desk = desk_of(request);
    struct buf text;
    buf_init(&text, DESK_TEXT_SIZE_MAX);
    desk->table->put_status(desk->context, &text);
    desk_answer_json(request, DESK_OK, &text);
}

static void answer_history(struct http_request *request) {
    const struct desk *desk = desk_of(request);
    struct buf text;
    buf_init(&text, DESK_TEXT_SIZE_MAX);
    desk->table->put_history(desk->context, &text);
    desk_answer_json(request, DESK_OK, &text);
}

static void answer_metrics(struct http_request *request) {
    const struct desk *desk = desk_of(request);
    struct buf status;
    struct buf text;
    buf_init(&status, DESK_TEXT_SIZE_MAX);
    buf_init(&text, DESK_TEXT_SIZE_MAX);
    desk->table->put_status(desk->context, &status);
    enum err err = metrics_put(&text, buf_bytes(&status));
    if (err != ERR_OK) {
        http_answer_error(request, err, NULL);
    } else {
        http_add_header(request, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
        http_answer(request, DESK_OK, "text/plain; version=0.0.4; charset=utf-8", buf_bytes(&text));
    }
    buf_done(&status);
    buf_done(&text);
}

static void answer_health(struct http_request *request) {
    const struct desk *desk = desk_of(request);
    struct err_detail detail = {0};
    http_add_header(request, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (desk->table->is_healthy(desk->context, &detail)) {
        http_answer(request, DESK_OK, "text/plain; charset=utf-8", BYTES("ok\n"));
    } else {
        http_answer_status(request, DESK_UNAVAILABLE, detail.err, detail.text);
    }
}

/* What is archived belongs to others, and to walk through all of it would never end. */
static void answer_robots(struct http_request *request) {
    http_answer(request, DESK_OK, "text/plain; charset=utf-8",
                BYTES("User-agent: *\nDisallow: /web/\nDisallow: /save\nDisallow: /cdx\nDisallow: /details/\n"
                      "Disallow: /compare/\nDisallow: /search\nDisallow: /api/\nDisallow: /login\n"));
}

/* Browsers that ask for it take an SVG under this name too. */
static void answer_favicon(struct http_request *request) {
    const struct asset *icon = assets_find(BYTES("icon.svg"));
    ASSERT(icon != NULL);
    http_add_header(request, MHD_HTTP_HEADER_CACHE_CONTROL, "public, max-age=86400");
    http_answer(request, DESK_OK, icon->type, icon->data);
}

static const struct http_route routes[] = {
    {.method = "GET", .path = "/api/v1/status", .answer = answer_status},
    {.method = "GET", .path = "/api/v1/history", .answer = answer_history},
    {.method = "GET", .path = "/metrics", .answer = answer_metrics},
    {.method = "GET", .path = "/health", .answer = answer_health},
    {.method = "GET", .path = "/robots.txt", .answer = answer_robots},
    {.method = "GET", .path = "/favicon.ico", .answer = answer_favicon},
};

size_t desk_routes(struct replay *replay, struct http_route out[DESK_ROUTES_MAX]) {
    if (replay->desk == NULL) {
        return 0;
    }
    size_t count = 0;
    for (; count < sizeof routes / sizeof *routes; count++) {
        out[count] = routes[count];
        out[count].context = replay;
    }
    count += desk_save_routes(replay, out + count);
    count += desk_jobs_routes(replay, out + count);
    count += desk_dashboard_routes(replay, out + count);
    count += desk_ring_routes(replay, out + count);
    count += desk_find_routes(replay, out + count);
    count += desk_crowd_routes(replay, out + count);
    count += desk_groups_routes(replay, out + count);
    count += desk_mirrors_routes(replay, out + count);
    count += desk_login_routes(replay, out + count);
    ASSERT(count <= DESK_ROUTES_MAX);
    return count;
}
