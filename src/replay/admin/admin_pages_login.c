#include <microhttpd.h>

#include "replay/admin/admin_pages_state.h"

enum { FORM_SIZE_MAX = 4096, TOKEN_SIZE_MAX = 1024 };

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
        "<p class=quiet>The token lies in the file <code>token</code> of the data directory of this node; "
        "<code>mnemon serve</code> prints where, and on a terminal a link that logs in.</form>\n");
}

static void put_known(struct sheet *sheet) {
    sheet_html(sheet, "<p>You are logged in: you may save pages and change jobs from here.\n"
                      "<form method=post action=\"/logout\"><button>Log out</button></form>\n");
}

static void answer_with(struct http_request *request, enum admin_verdict verdict) {
    if (verdict == ADMIN_ALLOWED) {
        admin_pages_answer_see(request, "/jobs");
        return;
    }
    unsigned status = admin_verdict_status(verdict);
    if (!sheet_is_wanted(request)) {
        http_answer_status(request, status, ERR_PERMISSION, admin_verdict_text(verdict));
        return;
    }
    struct sheet sheet;
    sheet_begin(&sheet, admin_pages_replay(request), request, "Log in", SHEET_NONE);
    sheet_notice(&sheet, SHEET_WARNING, admin_verdict_text(verdict));
    admin_pages_put_login(&sheet);
    sheet_answer(&sheet, status);
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
        put_known(&sheet);
    } else {
        sheet_html(&sheet, "<p>Reading needs no login. Saving pages and changing jobs does.\n");
        admin_pages_put_login(&sheet);
    }
    sheet_answer(&sheet, ADMIN_PAGES_OK);
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
    if (!admin_is_own_page(request, true)) {
        answer_with(request, ADMIN_FOREIGN);
        return;
    }
    admin_logout(admin_pages_of(request)->admin, request);
    admin_pages_answer_see(request, "/login");
}

size_t admin_pages_login_routes(struct replay *replay, struct http_route *out) {
    out[0] =
        (struct http_route){.method = "GET", .path = "/login", .context = replay, .answer = answer_login};
    out[1] = (struct http_route){.method = "POST",
                                 .path = "/login",
                                 .context = replay,
                                 .body_size_max = FORM_SIZE_MAX,
                                 .answer = post_login};
    out[2] = (struct http_route){.method = "POST",
                                 .path = "/logout",
                                 .context = replay,
                                 .body_size_max = FORM_SIZE_MAX,
                                 .answer = post_logout};
    return 3;
}
