/*
 * links_rules - which attribute of which element refers to what: a table that is also the documentation.
 */
#ifndef MNEMON_WEB_HTML_LINKS_RULES_H
#define MNEMON_WEB_HTML_LINKS_RULES_H

#include "web/html/links.h"

enum links_element {
    LINKS_OTHER, /* any other element */
    LINKS_A,
    LINKS_AMP_IMG,
    LINKS_AMP_VIDEO,
    LINKS_AREA,
    LINKS_AUDIO,
    LINKS_BASE,
    LINKS_BGSOUND,
    LINKS_BODY,
    LINKS_BUTTON,
    LINKS_COMMENTS, /* RSS */
    LINKS_CONTENT,  /* Atom */
    LINKS_CONTENT_ENCODED,
    LINKS_DESCRIPTION,
    LINKS_EMBED_ELEMENT,
    LINKS_ENCLOSURE,
    LINKS_FEIMAGE,
    LINKS_FORM_ELEMENT,
    LINKS_FRAME,
    LINKS_GUID,
    LINKS_IFRAME,
    LINKS_IMAGE,
    LINKS_IMG,
    LINKS_INPUT,
    LINKS_ITUNES_IMAGE,
    LINKS_LAYER,
    LINKS_LINK,
    LINKS_ATOM_LINK,
    LINKS_MEDIA_CONTENT,
    LINKS_MEDIA_THUMBNAIL,
    LINKS_META,
    LINKS_OBJECT,
    LINKS_OUTLINE, /* OPML */
    LINKS_SCRIPT_ELEMENT,
    LINKS_SOURCE,
    LINKS_STYLE_ELEMENT,
    LINKS_SUMMARY,
    LINKS_TABLE,
    LINKS_TBODY,
    LINKS_TD,
    LINKS_TFOOT,
    LINKS_TH,
    LINKS_THEAD,
    LINKS_TR,
    LINKS_TRACK,
    LINKS_URL, /* RSS, in image */
    LINKS_USE,
    LINKS_VIDEO,
    LINKS_ELEMENTS_COUNT,
};

enum links_attribute {
    LINKS_NO_ATTRIBUTE,
    LINKS_ACTION,
    LINKS_AS,
    LINKS_BACKGROUND,
    LINKS_CONTENT_ATTRIBUTE,
    LINKS_DATA,
    LINKS_DATA_BACKGROUND,
    LINKS_DATA_BACKGROUND_IMAGE,
    LINKS_DATA_BG,
    LINKS_DATA_LAZY,
    LINKS_DATA_LAZY_SRC,
    LINKS_DATA_LAZY_SRCSET,
    LINKS_DATA_ORIGINAL,
    LINKS_DATA_POSTER,
    LINKS_DATA_SRC,
    LINKS_DATA_SRCSET,
    LINKS_DYNSRC,
    LINKS_FORMACTION,
    LINKS_FORMMETHOD,
    LINKS_HREF,
    LINKS_HTMLURL,
    LINKS_HTTP_EQUIV,
    LINKS_IMAGESRCSET,
    LINKS_ISPERMALINK,
    LINKS_LONGDESC,
    LINKS_LOWSRC,
    LINKS_METHOD,
    LINKS_NAME,
    LINKS_POSTER,
    LINKS_PROPERTY,
    LINKS_REL,
    LINKS_SRC,
    LINKS_SRCDOC,
    LINKS_SRCSET,
    LINKS_STYLE,
    LINKS_TYPE,
    LINKS_URL_ATTRIBUTE,
    LINKS_XLINK_HREF,
    LINKS_XMLURL,
    LINKS_ATTRIBUTES_COUNT,
};

/* In lower case, as the tables of words.h want them; [0] is what unknown ones are reported as. */
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
