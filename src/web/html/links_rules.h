/*
 * links_rules - which attribute of which element refers to what: a table that is also the documentation.
 */
#ifndef MNEMON_WEB_HTML_LINKS_RULES_H
#define MNEMON_WEB_HTML_LINKS_RULES_H

#include <stddef.h>

enum link_kind {
    LINK_PAGE,    /* somewhere to go: a, area, link rel=next, feed entries */
    LINK_EMBED,   /* part of the page: images, styles, scripts, fonts, media, frames, manifests */
    LINK_REFRESH, /* where meta refresh or the Refresh header leads */
    LINK_FORM,    /* action of a form with method GET; only with options.forms */
    LINK_GUESS,   /* looks like a URL: strings in scripts and JSON, previews; with options.guesses */
};
enum { LINK_KINDS_COUNT = LINK_GUESS + 1 };

/* Each element and each attribute stands here once, with its name in lower case, as words.h wants it. */
#define LINKS_CONSTANT(constant, name) constant,

#define LINKS_ELEMENTS(X)                       \
    X(LINKS_OTHER, "*") /* any other element */ \
    X(LINKS_A, "a")                             \
    X(LINKS_AMP_IMG, "amp-img")                 \
    X(LINKS_AMP_VIDEO, "amp-video")             \
    X(LINKS_AREA, "area")                       \
    X(LINKS_AUDIO, "audio")                     \
    X(LINKS_BASE, "base")                       \
    X(LINKS_BGSOUND, "bgsound")                 \
    X(LINKS_BODY, "body")                       \
    X(LINKS_BUTTON, "button")                   \
    X(LINKS_COMMENTS, "comments") /* RSS */     \
    X(LINKS_CONTENT, "content")   /* Atom */    \
    X(LINKS_CONTENT_ENCODED, "content:encoded") \
    X(LINKS_DESCRIPTION, "description")         \
    X(LINKS_EMBED_ELEMENT, "embed")             \
    X(LINKS_ENCLOSURE, "enclosure")             \
    X(LINKS_FEIMAGE, "feimage")                 \
    X(LINKS_FORM_ELEMENT, "form")               \
    X(LINKS_FRAME, "frame")                     \
    X(LINKS_GUID, "guid")                       \
    X(LINKS_IFRAME, "iframe")                   \
    X(LINKS_IMAGE, "image")                     \
    X(LINKS_IMG, "img")                         \
    X(LINKS_INPUT, "input")                     \
    X(LINKS_ITUNES_IMAGE, "itunes:image")       \
    X(LINKS_LAYER, "layer")                     \
    X(LINKS_LINK, "link")                       \
    X(LINKS_ATOM_LINK, "atom:link")             \
    X(LINKS_MEDIA_CONTENT, "media:content")     \
    X(LINKS_MEDIA_THUMBNAIL, "media:thumbnail") \
    X(LINKS_META, "meta")                       \
    X(LINKS_OBJECT, "object")                   \
    X(LINKS_OUTLINE, "outline") /* OPML */      \
    X(LINKS_SCRIPT_ELEMENT, "script")           \
    X(LINKS_SOURCE, "source")                   \
    X(LINKS_STYLE_ELEMENT, "style")             \
    X(LINKS_SUMMARY, "summary")                 \
    X(LINKS_TABLE, "table")                     \
    X(LINKS_TBODY, "tbody")                     \
    X(LINKS_TD, "td")                           \
    X(LINKS_TFOOT, "tfoot")                     \
    X(LINKS_TH, "th")                           \
    X(LINKS_THEAD, "thead")                     \
    X(LINKS_TR, "tr")                           \
    X(LINKS_TRACK, "track")                     \
    X(LINKS_URL, "url") /* RSS, in image */     \
    X(LINKS_USE, "use")                         \
    X(LINKS_VIDEO, "video")

enum links_element { LINKS_ELEMENTS(LINKS_CONSTANT) LINKS_ELEMENTS_COUNT };

#define LINKS_ATTRIBUTES(X)                                 \
    X(LINKS_NO_ATTRIBUTE, "")                               \
    X(LINKS_ACTION, "action")                               \
    X(LINKS_AS, "as")                                       \
    X(LINKS_BACKGROUND, "background")                       \
    X(LINKS_CONTENT_ATTRIBUTE, "content")                   \
    X(LINKS_DATA, "data")                                   \
    X(LINKS_DATA_BACKGROUND, "data-background")             \
    X(LINKS_DATA_BACKGROUND_IMAGE, "data-background-image") \
    X(LINKS_DATA_BG, "data-bg")                             \
    X(LINKS_DATA_LAZY, "data-lazy")                         \
    X(LINKS_DATA_LAZY_SRC, "data-lazy-src")                 \
    X(LINKS_DATA_LAZY_SRCSET, "data-lazy-srcset")           \
    X(LINKS_DATA_ORIGINAL, "data-original")                 \
    X(LINKS_DATA_POSTER, "data-poster")                     \
    X(LINKS_DATA_SRC, "data-src")                           \
    X(LINKS_DATA_SRCSET, "data-srcset")                     \
    X(LINKS_DYNSRC, "dynsrc")                               \
    X(LINKS_FORMACTION, "formaction")                       \
    X(LINKS_FORMMETHOD, "formmethod")                       \
    X(LINKS_HREF, "href")                                   \
    X(LINKS_HTMLURL, "htmlurl")                             \
    X(LINKS_HTTP_EQUIV, "http-equiv")                       \
    X(LINKS_IMAGESRCSET, "imagesrcset")                     \
    X(LINKS_ISPERMALINK, "ispermalink")                     \
    X(LINKS_LONGDESC, "longdesc")                           \
    X(LINKS_LOWSRC, "lowsrc")                               \
    X(LINKS_METHOD, "method")                               \
    X(LINKS_NAME, "name")                                   \
    X(LINKS_POSTER, "poster")                               \
    X(LINKS_PROPERTY, "property")                           \
    X(LINKS_REL, "rel")                                     \
    X(LINKS_SRC, "src")                                     \
    X(LINKS_SRCDOC, "srcdoc")                               \
    X(LINKS_SRCSET, "srcset")                               \
    X(LINKS_STYLE, "style")                                 \
    X(LINKS_TYPE, "type")                                   \
    X(LINKS_URL_ATTRIBUTE, "url")                           \
    X(LINKS_XLINK_HREF, "xlink:href")                       \
    X(LINKS_XMLURL, "xmlurl")

enum links_attribute { LINKS_ATTRIBUTES(LINKS_CONSTANT) LINKS_ATTRIBUTES_COUNT };

/* [0] is what unknown ones are reported as. */
extern const char *const links_element_names[LINKS_ELEMENTS_COUNT];
extern const char *const links_attribute_names[LINKS_ATTRIBUTES_COUNT];

enum links_form {
    LINKS_AS_URL,
    LINKS_AS_LAZY_URL, /* a URL, if it looks like one: scripts put other things there, too */
    LINKS_AS_SRCSET,
    LINKS_AS_CSS,
    LINKS_AS_HTML,
};

struct links_rule {
    enum links_element
        element; /* LINKS_OTHER: of any element that has no rule of its own for the attribute */
    enum links_attribute attribute;
    enum links_form form;
    enum link_kind kind;
};

enum { LINKS_RULES_COUNT_MAX = 255 };
extern const struct links_rule links_rules[];
extern const size_t links_rules_count;

#endif
