/*
 * url - a URL as the WHATWG URL standard (https://url.spec.whatwg.org) understands it.
 *
 * url_parse() reads any text a page may hold, resolves it against a base, and keeps the normalised form, the
 * href, together with the places of its parts:
 *
 *     https://user:pass@example.com:1234/foo/bar?baz#quux
 *     |    |  |  | |  | |         | |  ||      | | | |  |
 *     scheme  user pass  host      port path    query fragment
 *
 * The accessors give slices of the href, which hold until the next url_parse() or url_done().
 *
 * Memory: the href is the only allocation. A struct that is used again keeps it, so parsing into one struct
 * over and over allocates nothing once it has seen a URL of usual length. Only domains that need IDNA or
 * percent-decoding and input with tabs or line breaks inside take memory from the heap, for the call.
 *
 * Input is bytes; what is not UTF-8 counts as U+FFFD, just as a browser's decoder would read it. Queries are
 * always encoded as UTF-8. Nothing is shared: any thread may use its own structs.
 */
#ifndef MNEMON_WEB_URL_URL_H
#define MNEMON_WEB_URL_URL_H

#include "web/url/host.h"

/* Longest input and longest href, in bytes. Browsers vary from 64 KiB to 2 MiB; servers refuse far less. */
enum { URL_SIZE_MAX = 1 << 16 };

enum { URL_PORT_NONE = -1 };

/* The special schemes; any other is URL_SCHEME_OTHER. */
enum url_scheme_type {
    URL_SCHEME_OTHER,
    URL_SCHEME_HTTP,
    URL_SCHEME_HTTPS,
    URL_SCHEME_WS,
    URL_SCHEME_WSS,
    URL_SCHEME_FTP,
    URL_SCHEME_FILE,
};

/* Part of the href from byte `from` up to byte `to`. No part but the scheme starts at 0, so 0 means absent.
 */
struct url_span {
    uint32_t from;
    uint32_t to;
};

struct url {
    struct buf href;
    struct url_span scheme; /* without ':' */
    struct url_span username;
    struct url_span password;
    struct url_span host;
    struct url_span path;
    struct url_span query;    /* without '?' */
    struct url_span fragment; /* without '#' */
    int32_t port;             /* URL_PORT_NONE if it is absent or the scheme's default */
    enum url_scheme_type scheme_type;
    enum url_host_type host_type;
    bool path_is_opaque; /* no '/' at its start: mailto:x. Only a fragment can be resolved against it */
};

void url_init(struct url *url);
void url_done(struct url *url);

/*
 * Parse the input, relative to the base if there is one (may be NULL). The base must hold a URL; neither it
 * nor the input may be part of *url. ERR_INVALID for what is not a URL, with the byte of the input that shows
 * it in detail->offset and the reason in plain English; ERR_LIMIT above URL_SIZE_MAX; ERR_MEMORY. After a
 * failure *url is empty.
 */
MUST_CHECK enum err url_parse(struct url *url, struct bytes input, const struct url *base,
                              struct err_detail *detail);

/*
 * Drop user and password, in place. A URL that is stored, listed, sent to other nodes or used as a base must
 * not have them: whoever sees the URL would see the password.
 */
void url_remove_userinfo(struct url *url);

/* Of the href of a web URL, without parsing it again. Of any other text: is there an '@' where they would be?
 */
bool url_href_has_userinfo(struct bytes href);

/*
 * What of a text may be shown if it is no URL: that behind the last '@', or all of it without one. A password
 * may be before it, wherever the text is broken.
 */
struct bytes url_text_without_userinfo(struct bytes text);

/* Append "https://example.com:8080", or "null" if the standard says that the origin is opaque. */
enum err url_put_origin(const struct url *url, struct buf *out);

/* The port to connect to: the URL's own or its scheme's; URL_PORT_NONE if neither has one. */
int32_t url_port_or_default(const struct url *url);

static inline struct bytes url_slice(const struct url *url, struct url_span span) {
    return bytes_slice(buf_bytes(&url->href), span.from, span.to);
}

static inline struct bytes url_href(const struct url *url) {
    return buf_bytes(&url->href);
}

static inline struct bytes url_scheme(const struct url *url) {
    return url_slice(url, url->scheme);
}

static inline struct bytes url_username(const struct url *url) {
    return url_slice(url, url->username);
}

static inline struct bytes url_password(const struct url *url) {
    return url_slice(url, url->password);
}

static inline bool url_has_userinfo(const struct url *url) {
    return url_username(url).size > 0 || url_password(url).size > 0;
}

static inline struct bytes url_host(const struct url *url) {
    return url_slice(url, url->host);
}

static inline struct bytes url_path(const struct url *url) {
    return url_slice(url, url->path);
}

static inline struct bytes url_query(const struct url *url) {
    return url_slice(url, url->query);
}

static inline struct bytes url_fragment(const struct url *url) {
    return url_slice(url, url->fragment);
}

/* "http://a/?" has a query, an empty one. */
static inline bool url_has_query(const struct url *url) {
    return url->query.from != 0;
}

static inline bool url_has_fragment(const struct url *url) {
    return url->fragment.from != 0;
}

/* Without '#' and what is behind it. */
static inline struct bytes url_href_without_fragment(const struct url *url) {
    struct bytes href = url_href(url);
    return url_has_fragment(url) ? bytes_slice(href, 0, url->fragment.from - 1) : href;
}

static inline bool url_is_special(const struct url *url) {
    return url->scheme_type != URL_SCHEME_OTHER;
}

/* http or https: what the crawler fetches. */
static inline bool url_is_web(const struct url *url) {
    return url->scheme_type == URL_SCHEME_HTTP || url->scheme_type == URL_SCHEME_HTTPS;
}

#endif
