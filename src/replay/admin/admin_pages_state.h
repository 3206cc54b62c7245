/* admin_pages_state - what the files of admin_pages.h share. Private to them. */
#ifndef MNEMON_REPLAY_ADMIN_ADMIN_PAGES_STATE_H
#define MNEMON_REPLAY_ADMIN_ADMIN_PAGES_STATE_H

#include "http/server/form.h"
#include "replay/admin/admin_pages.h"
#include "replay/site/fill.h"

enum {
    ADMIN_PAGES_BODY_SIZE_MAX = 8 << 20, /* of a request: seeds may be many */
    ADMIN_PAGES_URL_SIZE_MAX = 64 << 10,
};

static inline struct replay *admin_pages_replay(const struct http_request *request) {
    return http_request_context(request);
}

static inline struct admin_pages *admin_pages_of(const struct http_request *request) {
    return admin_pages_replay(request)->admin_pages;
}

/*
 * For http_route.begin: refuses a client that may not change things, with a page for people, else with text.
 * What comes by cookie shows only in its body that it is a form of ours: admin_pages_take_change() comes
 * first in every answer of such a route.
 */
void admin_pages_begin_change(struct http_request *request);

/* The body of a request that may change things; else it has been answered. */
bool admin_pages_take_change(struct http_request *request, struct bytes *ret_body);

/* The hidden field that shows that a form is ours; nothing for a client that is not logged in. */
void admin_pages_put_form_token(struct sheet *sheet);

/* The answer for an error with its sentence: a page for people, JSON under /api/ and if it is asked for.
 */
void admin_pages_answer_error(struct http_request *request, enum err err, const struct err_detail *detail);
void admin_pages_answer_problem(struct http_request *request, unsigned status, enum err err,
                                const char *text);

/* 303: look there. */
void admin_pages_answer_see(struct http_request *request, const char *path);

/* The body, if it is at most ADMIN_PAGES_BODY_SIZE_MAX; else the request has been answered. */
bool admin_pages_body(struct http_request *request, struct bytes *ret_body);

/* A login form; nothing for a client that is logged in. */
void admin_pages_put_login(struct sheet *sheet);

/* A button to log out. */
void admin_pages_put_logout(struct sheet *sheet);

/* How many there are. */
size_t admin_pages_jobs_routes(struct replay *replay, struct http_route *out);
size_t admin_pages_find_routes(struct replay *replay, struct http_route *out);

/* Answers of routes. */
void admin_pages_dashboard(struct http_request *request);
void admin_pages_groups(struct http_request *request);
void admin_pages_group_picture(struct http_request *request);

/* A section of the dashboard; nothing for a node that has no ring. */
void admin_pages_put_ring(struct sheet *sheet, const struct admin_pages *admin_pages, struct arena *arena);

#endif
