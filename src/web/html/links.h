/*
 * links - every URL that a document refers to, found while its bytes stream by.
 *
 * The bytes of a document (decoded from any transfer and content coding) go in by pieces of any size; for
 * each URL that a browser would follow or fetch the callback is called, with the URL resolved and normalised.
 * HTML, XHTML, SVG, RSS, Atom and other XML, CSS, web manifests, JSON, scripts and HLS playlists are
 * understood; of anything else nothing is reported.
 *
 * What is left out: URLs that are not http or https (javascript:, mailto:, data:, blob:, about: …),
 * references to a place in the same document ("#top"), and texts that are no URLs. A URL is reported once per
 * kind and document, as far as a table of bounded size remembers it. <base href> counts from where it stands.
 *
 * One struct serves one document after the other (links_start … links_finish) and one thread at a time; each
 * worker has its own. Once it has seen a few usual pages it allocates nothing more. Memory is bounded
 * whatever the input holds (about 70 KB, at most some 6 MiB), time is linear in the input.
 */
#ifndef MNEMON_WEB_HTML_LINKS_H
#define MNEMON_WEB_HTML_LINKS_H

#include "web/html/links_rules.h"
#include "web/url/url.h"

struct link {
    enum link_kind kind;
    struct bytes href;     /* absolute, without fragment; a slice of url->href */
    const struct url *url; /* its parts, fragment included; valid during the callback */
    const char *element;   /* static: "img"; "*" for an unknown element, "" outside of elements */
    const char *attribute; /* static: "srcset"; "url" and "@import" in CSS, "text" for plain text, "header" */
    uint64_t offset;       /* of the text in the document (of the attribute for what is inside one) */
};

typedef void links_found(void *context, const struct link *link);

struct links_options {
    bool forms;   /* report the actions of GET forms */
    bool guesses; /* report what looks like a URL in scripts, JSON-LD and JSON */
};

/* What a document is taken for. */
enum links_format {
    LINKS_NONE, /* no links are looked for */
    LINKS_HTML,
    LINKS_XML, /* XHTML, SVG, RSS, Atom … */
    LINKS_CSS,
    LINKS_MANIFEST, /* web application manifest */
    LINKS_JSON,     /* guesses only */
    LINKS_SCRIPT,   /* guesses only */
    LINKS_PLAYLIST, /* HLS */
    LINKS_UNKNOWN,  /* the type does not say; the first bytes will */
};

struct links;

/* NULL if there is no memory. */
struct links *links_new(void);
void links_free(struct links *links); /* may be NULL */

/*
 * What links_feed() would make of a document of this Content-Type ("text/html; charset=utf-8"; empty if
 * there was none). For LINKS_NONE a caller may save itself the feeding.
 */
enum links_format links_format_of(struct bytes content_type);

/* What the first bytes look like, after the MIME Sniffing standard; LINKS_NONE if they say nothing. */
enum links_format links_sniff(struct bytes head);

/*
 * Begin a document. content_type: the value of the header, or empty. base: the document's URL, borrowed until
 * links_finish(). options: copied, NULL for none. An unfinished document before it is forgotten.
 */
void links_start(struct links *links, struct bytes content_type, const struct url *base,
                 const struct links_options *options, links_found *found, void *context);

/*
 * A field of the HTTP response head, after links_start() and before the first byte of the body: Link and
 * Refresh are looked at, all others are ignored. May be called for every field.
 */
void links_header(struct links *links, struct bytes name, struct bytes value);

/* The next bytes of the document; not kept. ERR_MEMORY is the only failure; the document is then over. */
MUST_CHECK enum err links_feed(struct links *links, struct bytes piece);

/* The document is over; the last links are reported. */
MUST_CHECK enum err links_finish(struct links *links);

/* What the document was taken for; LINKS_UNKNOWN as long as too few of its bytes have come. */
enum links_format links_taken_for(const struct links *links);

/* "page", "embed", "refresh", "form", "guess". */
const char *link_kind_name(enum link_kind kind);

#endif
