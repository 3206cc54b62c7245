/*
 * admin - decides which requests may change things here, and which may ask at all.
 *
 * Whoever has the token of the node may change things: a program sends it with each request (Authorization:
 * Bearer …), a person shows it once at /login and is known by a cookie from then on. The cookie is a random
 * number that means something in this process only; it is never sent along from other sites (SameSite=Strict)
 * nor from replayed pages, which have an origin of their own. A request that changes something by cookie must
 * also say that it comes from a page of this host (Origin, Sec-Fetch-Site), and show what only such a page
 * was told: the session's form token, an HMAC of its cookie with a secret of this process, in the field
 * ADMIN_FORM_FIELD of the form or in the header ADMIN_FORM_HEADER.
 *
 * admin_check() stands in front of every request:
 *   - a node that listens on a loopback address answers only to names of this machine, so that a page of the
 *     Web whose name suddenly leads to 127.0.0.1 (DNS rebinding) gets nothing;
 *   - an address other than loopback has a rate, but for requests of those who may operate the node;
 *   - if reads need a login too, it asks for one. The parts of a replayed page come without the cookie:
 *     they are given to addresses from which somebody is logged in.
 *
 * Any thread.
 */
#ifndef MNEMON_REPLAY_ADMIN_ADMIN_H
#define MNEMON_REPLAY_ADMIN_ADMIN_H

#include "base/clock.h"
#include "base/config.h"
#include "http/server/http_request.h"

struct admin;

enum { ADMIN_SESSIONS_MAX = 64, ADMIN_COOKIE_SIZE_MAX = 256, ADMIN_FORM_TOKEN_SIZE = 64 };

#define ADMIN_FORM_FIELD "csrf"
#define ADMIN_FORM_HEADER "X-CSRF-Token"

struct admin_config {
    const char *token;        /* outlives it */
    struct config_list hosts; /* names it answers to beside those of this machine; "*": any; outlives it */
    bool is_loopback;         /* listens there alone: names are checked */
    bool reads_need_login;
    uint64_t rate; /* requests a second of one address, twice as many at once; 0: any */
    const struct clock *clock;
};

struct admin *admin_new(const struct admin_config *config); /* NULL: out of memory */
void admin_free(struct admin *admin);

/* For http_server_config.check; the context is a struct admin. */
bool admin_check(void *admin, struct http_request *request);

enum admin_verdict {
    ADMIN_ALLOWED,
    ADMIN_UNKNOWN, /* neither token nor cookie */
    ADMIN_WRONG,   /* a token or a cookie, but none that is valid */
    ADMIN_FOREIGN, /* a valid cookie, but the request does not come from a page of ours */
    ADMIN_FORGED,  /* likewise, but it does not show the form token */
    ADMIN_LIMITED, /* too many wrong tokens from there: Retry-After has been added */
};

/*
 * May this request change things? body: what was sent. Before it is there, it is NULL, and the answer is what
 * can be said without it: ask again with the body before anything is changed.
 */
enum admin_verdict admin_verdict(struct admin *admin, struct http_request *request, const struct bytes *body);

/* The form token of the request's session; false, and "", if it has none. */
bool admin_form_token(struct admin *admin, const struct http_request *request,
                      char out[ADMIN_FORM_TOKEN_SIZE + 1]);

/* The same for people: what is wrong, and what to do. */
const char *admin_verdict_text(enum admin_verdict verdict);
unsigned admin_verdict_status(enum admin_verdict verdict);

/* Does it carry a valid cookie or token? For what a page offers, not for what it may do. */
bool admin_is_known(struct admin *admin, const struct http_request *request);

/* Take a token that was typed in: ADMIN_ALLOWED has added the cookie to the answer that follows. */
enum admin_verdict admin_login(struct admin *admin, struct http_request *request, struct bytes token);

/* Forget the session of the request, which has shown its form token; let the browser forget its cookie. */
void admin_logout(struct admin *admin, struct http_request *request);

/* Does a form come from a page of this host? Without any sign: is_lenient. */
bool admin_is_own_page(const struct http_request *request, bool is_lenient);

/*
 * May a node that only this machine can reach be called so, by the value of a Host header? localhost and what
 * ends in .localhost, 127.0.0.0/8, [::1], with any port, and what is listed. No header at all is allowed:
 * browsers always send one.
 */
bool admin_host_is_own(struct bytes host, const struct config_list *others);

/* Requests that were refused for their rate. */
uint64_t admin_refused_count(struct admin *admin);

#endif
