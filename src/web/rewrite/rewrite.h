/*
 * rewrite - archived documents made to lead into the archive: every URL in them becomes a replay URL.
 *
 *      <img src="/a.png">    in http://example.org/x, of 2026-01-02 03:04:05, becomes
 *      <img src="/web/20260102030405im_/http://example.org/a.png">
 *
 * The bytes of a document (decoded from any transfer and content coding) go in by pieces of any size and come
 * out of the sink by pieces. What is not a URL passes byte for byte. HTML, XHTML, SVG, feeds and other XML,
 * CSS, scripts (conservatively, see rewrite_script.h), modules, import maps, HLS and DASH playlists are
 * understood; anything else passes as it is. So does JSON: it is read by scripts, which hand the URLs in it
 * to the browser by ways that the replay script watches, and which may compare them.
 *
 * Left alone: data:, blob:, javascript: (its code is rewritten like a script), mailto: and other schemes that
 * are not http, https, ws, wss or relative; references to a place in the same document ("#top"); what is a
 * replay URL already; in playlists what is relative, because it stays right.
 *
 * In HTML the attributes that would keep a page from working are changed as well: integrity, nonce and ping
 * go; http-equiv of a content security policy becomes data-http-equiv; a target that is not the same window
 * becomes _self, because the sandbox of the replay frame allows no other; crossorigin stays (the replay
 * server allows every origin) but for "use-credentials", which becomes "anonymous", because the sandbox has
 * no origin to hold credentials for. Attributes that scripts copy into place when an image comes into sight
 * (data-src …) stay: the replay script sees the copy.
 *
 * In style sheets @import is "cs_" and every other URL "oe_": fonts and images cannot be told apart there. Of
 * scripts and styles in XML and in SVG, whose text has character references, the text is escaped anew; it
 * means the same. If such a document is in an old encoding, that text stays as it is.
 *
 * A document is rewritten in its own bytes; replay URLs are ASCII. Only one in UTF-16 or ISO-2022-JP, where
 * '<' may be part of another character, comes out in UTF-8. rewrite_charset() says how to label it: always
 * do, because the header wins over what a <meta> in it says.
 *
 * A reference becomes at most REWRITE_GROWTH_MAX bytes longer, else it stays: a small page with a huge <base>
 * would make a huge one.
 *
 * One struct serves one document after the other and one thread at a time. Memory is bounded whatever the
 * input holds, time is linear in the input.
 */
#ifndef MNEMON_WEB_REWRITE_REWRITE_H
#define MNEMON_WEB_REWRITE_REWRITE_H

#include "base/buf.h"
#include "web/rewrite/rewrite_modifier.h"
#include "web/url/url.h"

enum { REWRITE_GROWTH_MAX = 4096, REWRITE_DEPTH_MAX = 4 /* of srcdoc in srcdoc */ };

/* How a document is rewritten. */
enum rewrite_format {
    REWRITE_AS_IS,
    REWRITE_HTML,
    REWRITE_XML, /* XHTML, SVG, RSS, Atom … */
    REWRITE_CSS,
    REWRITE_CLASSIC_SCRIPT,
    REWRITE_MODULE_SCRIPT,
    REWRITE_JSON,
    REWRITE_HLS,
    REWRITE_DASH,
};

/*
 * From the Content-Type (empty if there was none), from what the document was asked for as, and if both
 * are vague (text/plain asked for as a script, no type at all) from its first bytes. Never rewritten: what
 * was asked for raw, and images, media, fonts and archives whatever they claim.
 */
enum rewrite_format rewrite_format_of(struct bytes content_type, enum rewrite_modifier modifier,
                                      struct bytes head);

struct rewrite;

/* Slices are borrowed until rewrite_finish(). */
struct rewrite_place {
    struct bytes prefix;    /* before the timestamp: "/web/" or "http://archive.example:8080/web/" */
    struct bytes timestamp; /* 14 digits, for all URLs in the document */
    const struct url *url;  /* of the document; the base of its references */
    struct bytes content_type;
    enum rewrite_format format;
    /*
     * HTML only: put where a script runs before all others, in front of everything but doctype, comments,
     * <html> and <head>. In XHTML likewise, if it is not empty.
     */
    struct bytes insert;
};

/* Where the output goes; an error ends the document with it. */
typedef enum err rewrite_put(void *context, struct bytes piece);

struct rewrite *rewrite_new(void); /* NULL: out of memory */
void rewrite_free(struct rewrite *rewrite);

/* An unfinished document before it is forgotten. */
void rewrite_start(struct rewrite *rewrite, const struct rewrite_place *place, rewrite_put *put,
                   void *context);

/* ERR_MEMORY and what the sink returned are the only failures; the document is then over. */
enum err rewrite_feed(struct rewrite *rewrite, struct bytes piece) MUST_CHECK;
enum err rewrite_finish(struct rewrite *rewrite) MUST_CHECK;

/*
 * The charset to put in the Content-Type of what comes out: "UTF-8"; NULL if the document declares none
 * (by byte order mark, Content-Type, <meta> or <?xml?>). Known once the first byte has come out, or
 * rewrite_finish() was called.
 */
const char *rewrite_charset(const struct rewrite *rewrite);

#endif
