/*
 * wayback_path - what a target under /web/ asks for, in all the spellings that the Wayback Machine and pywb
 * take.
 *
 *      20260102030405/http://example.org/       this capture; 0 to 14 digits, and a modifier behind them:
 *      20260102030405id_/http://example.org/    "id_", "im_" … (web/rewrite/rewrite.h)
 *      20260102030405~0123456789abcdef/http://… this one of several captures of that second (stamp.h)
 *      http://example.org/                      the newest, or what Accept-Datetime says: Memento's TimeGate
 *      * and http://example.org/                calendar, with a slash between; "2026*" of that year
 *      2009-2015/http://example.org/            calendar of that time only; "2009-", "-2015", "2009-2015*"
 * too
 *      * and http://example.org/a*              list of all URLs that begin so; "*.example.org" of a domain
 *      ~KEY/…                                   one of these, asked by a replayed page (wayback_safety.h)
 *
 * The URL is all that follows, query included, with 1 to 3 slashes before it and behind its scheme. Without a
 * scheme it is http. One that was percent-encoded as a whole ("http%3A%2F%2F…") is decoded.
 */
#ifndef MNEMON_REPLAY_ARCHIVE_WAYBACK_PATH_H
#define MNEMON_REPLAY_ARCHIVE_WAYBACK_PATH_H

#include "base/buf.h"
#include "web/rewrite/rewrite.h"

enum wayback_kind {
    WAYBACK_CAPTURE,  /* one capture of a URL */
    WAYBACK_CALENDAR, /* all of a URL */
    WAYBACK_LIST,     /* all URLs of a prefix */
};

enum { WAYBACK_DIGITS_MAX = 14, WAYBACK_MODIFIER_SIZE_MAX = 4 };

struct wayback_path {
    enum wayback_kind kind;
    struct bytes key;         /* behind the "~"; empty if there is none */
    struct bytes digits;      /* of the time; may be empty */
    uint64_t id;              /* behind the digits: of this very capture; 0: none (stamp.h) */
    struct bytes modifier;    /* as it was written: "im_"; may be empty */
    enum rewrite_modifier as; /* what it stands for */
    int64_t from_us;          /* of a range: its first moment; else INT64_MIN */
    int64_t time_us;          /* the last moment that the digits stand for; INT64_MAX without any */
    struct buf url;           /* with its scheme; no control characters and no spaces */
    bool has_scheme;          /* it was given; else http was put before it */
};

void wayback_path_init(struct wayback_path *path);
void wayback_path_done(struct wayback_path *path);

/*
 * The target behind "/web/", percent-encoding, query and all; its slices are borrowed. ERR_INVALID with what
 * is wrong, ERR_LIMIT above URL_SIZE_MAX, ERR_NOT_FOUND if nothing is asked for at all.
 */
enum err wayback_path_parse(struct wayback_path *path, struct bytes target,
                            struct err_detail *detail) MUST_CHECK;

/* Without digits: the TimeGate's business. */
static inline bool wayback_path_is_gate(const struct wayback_path *path) {
    return path->kind == WAYBACK_CAPTURE && path->digits.size == 0;
}

/* The URL as it was asked for: without a scheme if none was given, so that captures by any scheme fit. */
static inline struct bytes wayback_path_asked(const struct wayback_path *path) {
    return bytes_skip(buf_bytes(&path->url), path->has_scheme ? 0 : sizeof "http://" - 1);
}

/* Append a URL so that it can be part of a path or of a header: what has no place there is percent-encoded.
 */
void wayback_put_url(struct buf *out, struct bytes url);

#endif
