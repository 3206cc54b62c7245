/*
 * canon - the canonical form of a URL: one spelling for all the spellings that an archive holds to be one
 * page.
 *
 * It is for keys and hashes, never for fetching: paths lose their capitals, hosts their "www.". The rules are
 * those of the Internet Archive's `surt` package, which pywb and OutbackCDX share:
 *
 *   - drop the fragment, user and password, default port, "www" + digits + "." before a host
 *   - unescape %XX until nothing is left to unescape, then escape once: controls, space, '#', '%', not ASCII
 *   - host: ASCII, lower case, single dots; IPv4 in any notation becomes dotted
 *   - path: resolve "." and "..", collapse "//", lower case, no session ids, no slash at its end
 *   - query: lower case, no session ids, arguments sorted, dropped if empty
 *   - without a host (dns:, urn:, mailto:) the path is just text, and its slashes and dots stay
 *
 * Input is any text, not only what url_parse() accepts: CDX queries leave out "http://", old indexes hold
 * hosts that no browser opens. So the text is split as RFC 2396 says; give it a URL's href to agree with
 * browsers.
 *
 * We differ from `surt` on purpose in these points:
 *   - The rules are applied until they change nothing, so canonical(canonical(x)) is canonical(x). A single
 *     pass is not: "www.www.a", two session ids in one query, "%3F" in a path.
 *   - International hosts follow UTS #46, as in browsers (faß.de is not fass.de).
 *   - IPv4 may be hexadecimal. IPv6 keeps its brackets, else its last piece and a port would be one.
 *   - "example.org:8080/x" and "localhost:8080/x" are a host and a port, not a scheme.
 *   - The scheme is in lower case.
 */
#ifndef MNEMON_WEB_URL_CANON_H
#define MNEMON_WEB_URL_CANON_H

#include "base/buf.h"

/* A result with its places; its memory is kept and used again by the next canon_run(). */
struct canon {
    struct buf url;
    size_t host_start; /* host_start == host_end if there is no host */
    size_t host_end;   /* here ":port" may follow */
    size_t path_start;
    struct buf previous; /* work: the input of the last pass */
};

void canon_init(struct canon *canon);
void canon_done(struct canon *canon);

/*
 * Compute the canonical form of the text. ERR_INVALID if it has none (no host in an http: URL, a port that
 * is no number), with the reason; ERR_LIMIT if text or form are above URL_SIZE_MAX; ERR_MEMORY. After a
 * failure the form is empty.
 */
MUST_CHECK enum err canon_run(struct canon *canon, struct bytes text, struct err_detail *detail);

/* The canonical form, until the next canon_run() or canon_done(). */
static inline struct bytes canon_url(const struct canon *canon) {
    return buf_bytes(&canon->url);
}

#endif
