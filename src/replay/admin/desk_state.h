/* desk_state - what the files of desk*.c share. Private to them. */
#ifndef MNEMON_REPLAY_ADMIN_DESK_STATE_H
#define MNEMON_REPLAY_ADMIN_DESK_STATE_H

#include <jansson.h>

#include "http/server/form.h"
#include "replay/admin/desk.h"
#include "replay/site/sheet.h"

enum {
    DESK_BODY_SIZE_MAX = 8 << 20, /* of a request: seeds may be many */
    DESK_URL_SIZE_MAX = 64 << 10,
    DESK_OK = 200,
    DESK_CREATED = 201,
    DESK_ACCEPTED = 202,
    DESK_SEE_OTHER = 303,
    DESK_BAD_REQUEST = 400,
    DESK_TOO_MANY = 429,
    DESK_UNAVAILABLE = 503,
};

static inline struct replay *desk_replay(const struct http_request *request) {
    return http_request_context(request);
}

static inline struct desk *desk_of(const struct http_request *request) {
    return desk_replay(request)->desk;
}

/* For http_route.begin: answers who may not change things, with a page for people, else with text. */
void desk_begin_change(struct http_request *request);

/* The answer for an error with its sentence: a page for people, JSON under /api/ and where it is asked for.
 */
void desk_answer_error(struct http_request *request, enum err err, const struct err_detail *detail);
void desk_answer_problem(struct http_request *request, unsigned status, enum err err, const char *text);

/* 303: look there. */
void desk_answer_see(struct http_request *request, const char *path);

/* The buffer as JSON, with its line end; the buffer is released. */
void desk_answer_json(struct http_request *request, unsigned status, struct buf *take_text);

/* Does the client ask for JSON by Accept? */
bool desk_wants_json(const struct http_request *request);

/* The body, where it is at most DESK_BODY_SIZE_MAX; else it has been answered. */
bool desk_body(struct http_request *request, struct bytes *ret_body);

/* A login form, or, for who is logged in, nothing. */
void desk_put_login(struct sheet *sheet);

/* Members of parsed JSON; 0 and "" where there is no such thing. Path: "store.volumes". */
const json_t *desk_member(const json_t *object, const char *path);
uint64_t desk_number(const json_t *object, const char *path);
double desk_real(const json_t *object, const char *path);
const char *desk_string(const json_t *object, const char *path);

/* desk_save.c, desk_jobs.c, desk_dashboard.c, desk_ring.c, desk_find.c …: how many there are. */
size_t desk_save_routes(struct replay *replay, struct http_route *out);
size_t desk_jobs_routes(struct replay *replay, struct http_route *out);
size_t desk_dashboard_routes(struct replay *replay, struct http_route *out);
size_t desk_ring_routes(struct replay *replay, struct http_route *out);
size_t desk_find_routes(struct replay *replay, struct http_route *out);
size_t desk_crowd_routes(struct replay *replay, struct http_route *out);
size_t desk_groups_routes(struct replay *replay, struct http_route *out);
size_t desk_mirrors_routes(struct replay *replay, struct http_route *out);
size_t desk_login_routes(struct replay *replay, struct http_route *out);

/* The ring, for the dashboard: its state, its neighbours, and where the script draws it. Nothing without one.
 */
void desk_put_ring(struct sheet *sheet, const struct desk *desk);

/* desk_crowd.c: the crowd, for the dashboard; nothing without one. */
void desk_put_crowd(struct sheet *sheet, const struct desk *desk);

/* desk_groups.c: the groups, for the dashboard; nothing without one. */
void desk_put_groups(struct sheet *sheet, const struct desk *desk);

/* desk_mirrors.c: the collections, for the dashboard; nothing without one. */
void desk_put_mirrors(struct sheet *sheet, const struct desk *desk);

/* desk_together.c: copies, links, leases, decrees, from the parsed /api/v1/ring. */
void desk_put_together(struct sheet *sheet, const json_t *ring);

#endif
