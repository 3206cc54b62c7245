/*
 * logins - users and passwords that a person gave for one run, each for one origin: scheme, host and port.
 *
 *      mnemon archive http://user:secret@example.org/      "Basic dXNlcjpzZWNyZXQ=" for http://example.org
 *
 * They are in the memory of the process only. No file, record, message or other node sees them; the URLs
 * that are fetched with them have no user and password of their own (url_remove_userinfo()).
 *
 * Filled before the engine begins, then only read: any thread may ask.
 */
#ifndef MNEMON_CRAWL_FETCH_LOGINS_H
#define MNEMON_CRAWL_FETCH_LOGINS_H

#include "web/url/url.h"

enum { LOGINS_MAX = 1000, LOGINS_TEXT_SIZE_MAX = 1024 }; /* of a user, a colon and a password */

struct login {
    struct buf origin; /* "https://example.org:8443" */
    struct buf value;  /* of Authorization: "Basic …" */
};

struct logins {
    struct login *items;
    size_t count;
};

void logins_init(struct logins *logins);

/* Passwords are wiped from memory. */
void logins_done(struct logins *logins);

/*
 * Take user and password of a web URL, if it has any. ERR_INVALID if its origin has others already, ERR_LIMIT
 * above LOGINS_MAX or LOGINS_TEXT_SIZE_MAX, ERR_MEMORY. The detail says which, without naming them.
 */
enum err logins_add(struct logins *logins, const struct url *url, struct err_detail *detail) MUST_CHECK;

/* The value of Authorization for exactly the URL's origin; empty if there is none. logins may be NULL. */
struct bytes logins_find(const struct logins *logins, const struct url *url);

#endif
