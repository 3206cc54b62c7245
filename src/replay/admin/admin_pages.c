#include "replay/admin/admin_pages.h"

#include <microhttpd.h>

#include "replay/admin/admin_pages_state.h"
#include "replay/admin/metrics.h"
#include "replay/site/assets.h"

enum { PATH_SIZE_MAX = 128 };

/* ---- what the files share ---- */

/* Does the client ask for JSON by Accept? */
static bool admin_pages_wants_json(const struct http_request *request) {
    struct bytes accept = http_request_header(request, MHD_HTTP_HEADER_ACCEPT);
    return bytes_find(accept, BYTES("application/json")) < accept.size;
}

void admin_pages_answer_problem(struct http_request *request, unsigned status, enum err err,
                                const char *text) {
    bool is_api = bytes_starts_with(http_request_path(request), BYTES("/api/"));
    if (!is_api && admin_pages_wants_json(request)) {
        struct buf body;
        buf_init(&body, ADMIN_PAGES_TEXT_SIZE_MAX);
        http_put_error(&body, err, text);
        http_answer_json(request, status, "no-store", &body);
    } else if (!is_api && sheet_is_wanted(request)) {
        sheet_answer_error(admin_pages_replay(request), request, status, "That did not work", text);
    } else {
        http_answer_status(request, status, err, text);
    }
}

void admin_pages_answer_error(struct http_request *request, enum err err, const struct err_detail *detail) {
    admin_pages_answer_problem(request, http_status(err), err, err_detail_text(detail, err));
}

void admin_pages_begin_change(struct http_request *request) {
    struct replay *replay = admin_pages_replay(request);
    enum admin_verdict verdict = admin_verdict(replay->admin_pages->admin, request);
    if (verdict == ADMIN_ALLOWED) {
        return;
    }
    unsigned status = admin_verdict_status(verdict);
    const char *text = admin_verdict_text(verdict);
    bool is_api = bytes_starts_with(http_request_path(request), BYTES("/api/"));
    if (status == MHD_HTTP_UNAUTHORIZED) {
        http_add_header(request, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"mnemon\"");
    }
    if (is_api || !sheet_is_wanted(request) || admin_pages_wants_json(request)) {
        admin_pages_answer_problem(request, status, ERR_PERMISSION, text);
        return;
    }
    struct sheet sheet;
    sheet_begin(&sheet, replay, request, "Log in", SHEET_NONE);
    sheet_notice(&sheet, SHEET_WARNING, text);
    admin_pages_put_login(&sheet);
    sheet_answer(&sheet, status);
}

void admin_pages_answer_see(struct http_request *request, const char *path) {
    http_add_header(request, MHD_HTTP_HEADER_LOCATION, path);
    http_add_header(request, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    http_answer(request, ADMIN_PAGES_SEE_OTHER, "text/plain; charset=utf-8", BYTES("see there\n"));
}

bool admin_pages_body(struct http_request *request, struct bytes *ret_body) {
    enum err err = http_request_body(request, ret_body);
    if (err != ERR_OK) {
        http_answer_error(request, err, NULL);
    }
    return err == ERR_OK;
}

/* ---- small pages ---- */

/* With what its answer says of the node. */
static void answer_by_status(struct http_request *request, const char *type,
                             void (*put)(const struct node_status *status, struct buf *out)) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct arena arena;
    struct buf text;
    arena_init(&arena, ADMIN_PAGES_TEXT_SIZE_MAX);
    buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
    const struct node_status *status = admin_pages->table->status(admin_pages->context, &arena);
    if (status != NULL) {
        put(status, &text);
    }
    enum err err = status == NULL ? ERR_MEMORY : text.err;
    if (err != ERR_OK) {
        http_answer_error(request, err, NULL);
    } else {
        http_add_header(request, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
        http_answer(request, ADMIN_PAGES_OK, type, buf_bytes(&text));
    }
    buf_done(&text);
    arena_done(&arena);
}

static void answer_status(struct http_request *request) {
    http_add_header(request, "X-Content-Type-Options", "nosniff");
    answer_by_status(request, "application/json", node_status_put);
}

static void answer_metrics(struct http_request *request) {
    answer_by_status(request, "text/plain; version=0.0.4; charset=utf-8", metrics_put);
}

static void answer_history(struct http_request *request) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct buf text;
    buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
    admin_pages->table->put_history(admin_pages->context, &text);
    http_answer_json(request, ADMIN_PAGES_OK, "no-store", &text);
}

static void answer_health(struct http_request *request) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct err_detail detail = {0};
    http_add_header(request, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (admin_pages->table->is_healthy(admin_pages->context, &detail)) {
        http_answer(request, ADMIN_PAGES_OK, "text/plain; charset=utf-8", BYTES("ok\n"));
    } else {
        http_answer_status(request, ADMIN_PAGES_UNAVAILABLE, detail.err, detail.text);
    }
}

/* What is archived belongs to others, and to walk through all of it would never end. */
static void answer_robots(struct http_request *request) {
    http_answer(request, ADMIN_PAGES_OK, "text/plain; charset=utf-8",
                BYTES("User-agent: *\nDisallow: /web/\nDisallow: /save\nDisallow: /cdx\nDisallow: /details/\n"
                      "Disallow: /compare/\nDisallow: /search\nDisallow: /api/\nDisallow: /login\n"));
}

/* Browsers that ask for it take an SVG under this name too. */
static void answer_favicon(struct http_request *request) {
    const struct asset *icon = assets_find(BYTES("icon.svg"));
    ASSERT(icon != NULL);
    http_add_header(request, MHD_HTTP_HEADER_CACHE_CONTROL, "public, max-age=86400");
    http_answer(request, ADMIN_PAGES_OK, icon->type, icon->data);
}

static const struct http_route routes[] = {
    {.method = "GET", .path = "/api/v1/status", .answer = answer_status},
    {.method = "GET", .path = "/api/v1/history", .answer = answer_history},
    {.method = "GET", .path = "/metrics", .answer = answer_metrics},
    {.method = "GET", .path = "/health", .answer = answer_health},
    {.method = "GET", .path = "/robots.txt", .answer = answer_robots},
    {.method = "GET", .path = "/favicon.ico", .answer = answer_favicon},
};

size_t admin_pages_routes(struct replay *replay, struct http_route out[ADMIN_PAGES_ROUTES_MAX]) {
    if (replay->admin_pages == NULL) {
        return 0;
    }
    size_t count = 0;
    for (; count < sizeof routes / sizeof *routes; count++) {
        out[count] = routes[count];
        out[count].context = replay;
    }
    count += admin_pages_save_routes(replay, out + count);
    count += admin_pages_jobs_routes(replay, out + count);
    count += admin_pages_dashboard_routes(replay, out + count);
    count += admin_pages_ring_routes(replay, out + count);
    count += admin_pages_find_routes(replay, out + count);
    count += admin_pages_crowd_routes(replay, out + count);
    count += admin_pages_groups_routes(replay, out + count);
    count += admin_pages_mirrors_routes(replay, out + count);
    count += admin_pages_login_routes(replay, out + count);
    ASSERT(count <= ADMIN_PAGES_ROUTES_MAX);
    return count;
}
