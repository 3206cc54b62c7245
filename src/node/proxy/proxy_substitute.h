/*
 * proxy_substitute - an answer in the place of the origin's: what of a capture may reach a browser that
 * believes to be at the origin.
 *
 * Any member of the crowd may have made it, and anybody can ask for it by naming a port where nobody listens.
 * So it must do no more than a stranger's page could:
 *
 *      where       only for the same scheme, host and port as the capture's URL, and for https: only if
 *                  the certificate of its server was valid when it was captured
 *      for what    documents, pictures, styles, fonts, sound: not for scripts, workers, or what scripts fetch
 *      as what     in a sandbox without an origin and without scripts, never guessed to be another type
 *      head        fields of an allow-list, written anew
 *      seen        a mark at the top of a page
 *
 * No I/O, no state. docs/proxy.md.
 */
#ifndef MNEMON_NODE_PROXY_PROXY_SUBSTITUTE_H
#define MNEMON_NODE_PROXY_PROXY_SUBSTITUTE_H

#include "base/buf.h"
#include "http/message/fields.h"
#include "web/html/encoding.h"
#include "web/type/mime_type.h"

enum { PROXY_SUBSTITUTE_SOURCE_SIZE_MAX = 80, PROXY_SUBSTITUTE_MARK_SIZE_MAX = 4096 };

/* A capture, from wherever. */
struct proxy_substitute {
    unsigned status;
    const struct fields *fields; /* of its head; NULL: it is not HTTP */
    struct mime_type type;       /* as browsers read it */
    struct bytes url;            /* that was captured */
    struct bytes tls;            /* "verified": its server's certificate was valid when it was captured */
    struct bytes payload;
    int64_t time_us;
    char source[PROXY_SUBSTITUTE_SOURCE_SIZE_MAX];
};

/* Does the request want what a substitute may be? */
bool proxy_substitute_suits(const struct fields *request);

/* Have two URLs the same scheme, host and port? */
bool proxy_substitute_is_same_origin(struct bytes a, struct bytes b);

/* Why it must not answer a request for this URL; NULL: it may. */
const char *proxy_substitute_refusal(const struct proxy_substitute *substitute, struct bytes asked);

/* Does its type show it as a page of HTML? Then it gets a mark. */
bool proxy_substitute_is_page(const struct proxy_substitute *substitute);

/* What the page says of its encoding; NULL: nothing. Stated in the head, since a mark may push it too far
 * back. */
const struct encoding *proxy_substitute_encoding(const struct proxy_substitute *substitute,
                                                 struct bytes page);

/* Where the mark goes; SIZE_MAX: nowhere, as in a page of frames, each of which has its own. */
size_t proxy_substitute_find_place(const struct proxy_substitute *substitute, struct bytes page);

/* What a reader sees at the top of it; PROXY_SUBSTITUTE_MARK_SIZE_MAX at most. */
void proxy_substitute_put_mark(struct buf *out, const struct proxy_substitute *substitute);

bool proxy_substitute_is_redirect(const struct proxy_substitute *substitute);

/* A redirect that leads within its origin, as a URL; false: elsewhere, or nowhere. */
bool proxy_substitute_find_target(const struct proxy_substitute *substitute, struct buf *out);

/* The page that says where it leads, for one that leads elsewhere: only a reader may decide to go there. */
void proxy_substitute_put_way(struct buf *out, const struct proxy_substitute *substitute);

/* How it is sent. */
struct proxy_substitute_form {
    uint64_t size;         /* of the body */
    bool is_encoded;       /* as recorded */
    const char *undecoded; /* why, though the browser wants it decoded; NULL: it does not */
    struct bytes charset;  /* that a page says it has; may be empty */
    struct bytes target;   /* of a redirect within the origin, else empty */
    bool is_way;           /* it is the page of proxy_substitute_put_way() */
    int64_t now_us;
};

/* The head, but for what is about the browser's connection and the empty line. */
void proxy_substitute_put_head(struct buf *out, const struct proxy_substitute *substitute,
                               const struct proxy_substitute_form *form);

#endif
