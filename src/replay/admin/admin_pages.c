#include "replay/admin/admin_pages.h"

#include "replay/admin/admin_pages_state.h"
#include "replay/admin/metrics.h"
#include "replay/site/assets.h"

enum { FORM_SIZE_MAX = 4096, TOKEN_SIZE_MAX = 1024 };

/* ---- what the files share ---- */

void admin_pages_put_login(struct sheet *sheet) {
    const struct admin_pages *admin_pages = sheet->replay->admin_pages;
    if (admin_is_known(admin_pages->admin, sheet->request)) {
        return;
    }
    sheet_html(
        sheet,
        "<form method=post action=\"/login\" class=form>"
        "<input name=user value=mnemon autocomplete=username hidden>"
        "<div class=form-row><div class=\"field wide\"><label for=token>Token</label>"
        "<input id=token name=token type=password autocomplete=current-password required size=40></div>"
        "<button class=main>Log in</button></div>"
        "<p class=quiet>The token is in the file <code>token</code> in the data directory of this node; "
        "<code>mnemon serve</code> prints its path and, on a terminal, a link that logs you in.</form>\n");
}

/* Does the client ask for JSON by Accept? */
static bool admin_pages_wants_json(const struct http_request *request) {
    struct bytes accept = http_request_header(request, "Accept");
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
        sheet_answer_error(admin_pages_replay(request), request, status, "This did not work", text);
    } else {
        http_answer_status(request, status, err, text);
    }
}

void admin_pages_answer_error(struct http_request *request, enum err err, const struct err_detail *detail) {
    admin_pages_answer_problem(request, http_status(err), err, err_detail_text(detail, err));
}

/* A page that says why not, with a form to log in. */
static void answer_verdict(struct http_request *request, enum admin_verdict verdict) {
    struct sheet sheet;
    sheet_begin(&sheet, admin_pages_replay(request), request, "Log in", SHEET_NONE);
    sheet_notice(&sheet, SHEET_WARNING, admin_verdict_text(verdict));
    admin_pages_put_login(&sheet);
    sheet_answer(&sheet, admin_verdict_status(verdict));
}

/* True: go on. Else the request has been answered. */
static bool pages_check_change(struct http_request *request, const struct bytes *body) {
    enum admin_verdict verdict = admin_verdict(admin_pages_of(request)->admin, request, body);
    if (verdict == ADMIN_ALLOWED) {
        return true;
    }
    unsigned status = admin_verdict_status(verdict);
    bool is_api = bytes_starts_with(http_request_path(request), BYTES("/api/"));
    if (status == STATUS_UNAUTHORIZED) {
        http_add_header(request, "WWW-Authenticate", "Bearer realm=\"mnemon\"");
    }
    if (is_api || !sheet_is_wanted(request) || admin_pages_wants_json(request)) {
        admin_pages_answer_problem(request, status, ERR_PERMISSION, admin_verdict_text(verdict));
    } else {
        answer_verdict(request, verdict);
    }
    return false;
}

void admin_pages_begin_change(struct http_request *request) {
    (void)pages_check_change(request, NULL);
}

bool admin_pages_take_change(struct http_request *request, struct bytes *ret_body) {
    return admin_pages_body(request, ret_body) && pages_check_change(request, ret_body);
}

void admin_pages_put_form_token(struct sheet *sheet) {
    char token[ADMIN_FORM_TOKEN_SIZE + 1];
    if (admin_form_token(sheet->replay->admin_pages->admin, sheet->request, token)) {
        sheet_format(sheet, "<input type=hidden name=" ADMIN_FORM_FIELD " value=%s>", token);
    }
}

void admin_pages_put_logout(struct sheet *sheet) {
    sheet_html(sheet, "<form method=post action=\"/logout\">");
    admin_pages_put_form_token(sheet);
    sheet_html(sheet, "<button>Log out</button></form>\n");
}

void admin_pages_answer_see(struct http_request *request, const char *path) {
    http_add_header(request, "Location", path);
    http_add_header(request, "Cache-Control", "no-store");
    http_answer(request, STATUS_SEE_OTHER, "text/plain; charset=utf-8", BYTES("see there\n"));
}

bool admin_pages_body(struct http_request *request, struct bytes *ret_body) {
    enum err err = http_request_body(request, ret_body);
    if (err != ERR_OK) {
        http_answer_error(request, err, NULL);
    }
    return err == ERR_OK;
}

/* ---- small pages ---- */

/* With what its answer says of the node; with_ring: and of its ring, for programs that count. */
static void answer_by_status(struct http_request *request, const char *type, bool with_ring,
                             void (*put)(const struct node_status *status, struct buf *out)) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct arena arena;
    struct buf text;
    struct ring_view ring = {0};
    arena_init(&arena, ADMIN_PAGES_TEXT_SIZE_MAX);
    buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
    const struct node_status *status = admin_pages->table->status(admin_pages->context, &arena);
    if (status != NULL) {
        put(status, &text);
    }
    if (with_ring) {
        admin_pages->table->get_ring(admin_pages->context, &arena, &ring);
        metrics_put_ring(&ring, &text);
        admin_pages->table->put_metrics(admin_pages->context, &text);
    }
    enum err err = status == NULL ? ERR_MEMORY : text.err;
    if (err != ERR_OK) {
        http_answer_error(request, err, NULL);
    } else {
        http_add_header(request, "Cache-Control", "no-store");
        http_answer(request, STATUS_OK, type, buf_bytes(&text));
    }
    buf_done(&text);
    arena_done(&arena);
}

static void answer_status(struct http_request *request) {
    http_add_header(request, "X-Content-Type-Options", "nosniff");
    answer_by_status(request, "application/json", false, node_status_put);
}

static void answer_metrics(struct http_request *request) {
    answer_by_status(request, "text/plain; version=0.0.4; charset=utf-8", true, metrics_put);
}

static void answer_put(struct http_request *request, void (*put)(void *context, struct buf *out)) {
    struct buf text;
    buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
    put(admin_pages_of(request)->context, &text);
    http_answer_json(request, STATUS_OK, "no-store", &text);
}

static void answer_history(struct http_request *request) {
    answer_put(request, admin_pages_of(request)->table->put_history);
}

static void answer_ring(struct http_request *request) {
    answer_put(request, admin_pages_of(request)->table->put_ring);
}

static void answer_crowd(struct http_request *request) {
    answer_put(request, admin_pages_of(request)->table->put_crowd);
}

static void answer_mirrors(struct http_request *request) {
    answer_put(request, admin_pages_of(request)->table->put_mirrors);
}

static void answer_health(struct http_request *request) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct err_detail detail = {0};
    http_add_header(request, "Cache-Control", "no-store");
    if (admin_pages->table->is_healthy(admin_pages->context, &detail)) {
        http_answer(request, STATUS_OK, "text/plain; charset=utf-8", BYTES("ok\n"));
    } else {
        http_answer_status(request, STATUS_UNAVAILABLE, detail.err, detail.text);
    }
}

/* What is archived belongs to others, and to walk through all of it would never end. */
static void answer_robots(struct http_request *request) {
    http_answer(request, STATUS_OK, "text/plain; charset=utf-8",
                BYTES("User-agent: *\nDisallow: /web/\nDisallow: /save\nDisallow: /cdx\nDisallow: /details/\n"
                      "Disallow: /compare/\nDisallow: /search\nDisallow: /api/\nDisallow: /login\n"));
}

/* Browsers that ask for it take an SVG under this name too. */
static void answer_favicon(struct http_request *request) {
    const struct asset *icon = assets_find(BYTES("icon.svg"));
    ASSERT(icon != NULL);
    http_add_header(request, "Cache-Control", "public, max-age=86400");
    http_answer(request, STATUS_OK, icon->type, icon->data);
}

/* ---- logging in and out ---- */

static void answer_with(struct http_request *request, enum admin_verdict verdict) {
    if (verdict == ADMIN_ALLOWED) {
        admin_pages_answer_see(request, "/jobs");
        return;
    }
    if (sheet_is_wanted(request)) {
        answer_verdict(request, verdict);
    } else {
        http_answer_status(request, admin_verdict_status(verdict), ERR_PERMISSION,
                           admin_verdict_text(verdict));
    }
}

static void try_form(struct http_request *request, struct bytes form) {
    struct buf token;
    buf_init(&token, TOKEN_SIZE_MAX);
    bool is_given = form_get(form, "token", &token) && token.err == ERR_OK;
    answer_with(request, is_given ? admin_login(admin_pages_of(request)->admin, request, buf_bytes(&token))
                                  : ADMIN_UNKNOWN);
    buf_done(&token);
}

/* The link that a terminal shows: whoever has it has the token. */
static void answer_login(struct http_request *request) {
    struct bytes query = http_request_query(request);
    if (bytes_starts_with(query, BYTES("token="))) {
        try_form(request, query);
        return;
    }
    struct sheet sheet;
    sheet_begin(&sheet, admin_pages_replay(request), request, "Log in", SHEET_NONE);
    if (admin_is_known(admin_pages_of(request)->admin, request)) {
        sheet_html(&sheet, "<p>You are logged in: you may save pages and change jobs from here.\n");
        admin_pages_put_logout(&sheet);
    } else {
        sheet_html(&sheet, "<p>Reading needs no login. Saving pages and changing jobs does.\n");
        admin_pages_put_login(&sheet);
    }
    sheet_answer(&sheet, STATUS_OK);
}

static void post_login(struct http_request *request) {
    struct bytes form;
    if (!admin_is_own_page(request, true)) {
        answer_with(request, ADMIN_FOREIGN);
    } else if (admin_pages_body(request, &form)) {
        try_form(request, form);
    }
}

static void post_logout(struct http_request *request) {
    struct bytes form;
    if (!admin_pages_body(request, &form)) {
        return;
    }
    enum admin_verdict verdict = admin_verdict(admin_pages_of(request)->admin, request, &form);
    if (verdict == ADMIN_FOREIGN || verdict == ADMIN_FORGED) { /* a session that is over needs no proof */
        answer_with(request, verdict);
        return;
    }
    admin_logout(admin_pages_of(request)->admin, request);
    admin_pages_answer_see(request, "/login");
}

/* ---- */

size_t admin_pages_routes(struct replay *replay, struct http_route out[ADMIN_PAGES_ROUTES_MAX]) {
    static const struct http_route routes[] = {
        {.method = "GET", .path = "/api/v1/status", .answer = answer_status},
        {.method = "GET", .path = "/api/v1/history", .answer = answer_history},
        {.method = "GET", .path = "/api/v1/ring", .answer = answer_ring},
        {.method = "GET", .path = "/api/v1/crowd", .answer = answer_crowd},
        {.method = "GET", .path = "/api/v1/mirrors", .answer = answer_mirrors},
        {.method = "GET", .path = "/api/v1/groups", .answer = admin_pages_groups},
        {.method = "GET", .path = "/api/v1/groups/picture", .answer = admin_pages_group_picture},
        {.method = "GET", .path = "/dashboard", .answer = admin_pages_dashboard},
        {.method = "GET", .path = "/metrics", .answer = answer_metrics},
        {.method = "GET", .path = "/health", .answer = answer_health},
        {.method = "GET", .path = "/robots.txt", .answer = answer_robots},
        {.method = "GET", .path = "/favicon.ico", .answer = answer_favicon},
        {.method = "GET", .path = "/login", .answer = answer_login},
        {.method = "POST", .path = "/login", .body_size_max = FORM_SIZE_MAX, .answer = post_login},
        {.method = "POST", .path = "/logout", .body_size_max = FORM_SIZE_MAX, .answer = post_logout},
    };
    if (replay->admin_pages == NULL) {
        return 0;
    }
    size_t count = replay_put_routes(replay, routes, sizeof routes / sizeof *routes, out);
    count += admin_pages_jobs_routes(replay, out + count);
    count += admin_pages_find_routes(replay, out + count);
    ASSERT(count <= ADMIN_PAGES_ROUTES_MAX);
    return count;
}
