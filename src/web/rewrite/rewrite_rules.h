/*
 * rewrite_rules - what becomes of which attribute of which element: the table of links_rules.h, which says
 * what is a URL, and what only replay needs.
 */
#ifndef MNEMON_WEB_REWRITE_REWRITE_RULES_H
#define MNEMON_WEB_REWRITE_REWRITE_RULES_H

#include "web/html/links_rules.h"
#include "web/html/words.h"

/* Names that links_rules.h has no use for; the numbers go on behind its own. */
enum rewrite_element {
    REWRITE_BASEURL = LINKS_ELEMENTS_COUNT, /* DASH */
    REWRITE_BLOCKQUOTE,
    REWRITE_DEL,
    REWRITE_HEAD,
    REWRITE_HTML_ELEMENT,
    REWRITE_INS,
    REWRITE_LOCATION, /* DASH */
    REWRITE_Q,
    REWRITE_ELEMENTS_COUNT,
};

enum rewrite_attribute {
    REWRITE_CITE = LINKS_ATTRIBUTES_COUNT,
    REWRITE_CROSSORIGIN,
    REWRITE_FORMTARGET,
    REWRITE_INITIALIZATION, /* DASH */
    REWRITE_INTEGRITY,
    REWRITE_MANIFEST,
    REWRITE_MEDIA, /* DASH */
    REWRITE_NONCE,
    REWRITE_PING,
    REWRITE_SOURCEURL, /* DASH */
    REWRITE_TARGET,
    REWRITE_ATTRIBUTES_COUNT,
};

/* What is done with a value. */
enum rewrite_form {
    REWRITE_AS_NOTHING,
    REWRITE_AS_URL,
    REWRITE_AS_ABSOLUTE_URL, /* only if it is one */
    REWRITE_AS_LINK,         /* a URL whose modifier depends on rel and as */
    REWRITE_AS_SCRIPT,       /* a URL whose modifier depends on type */
    REWRITE_AS_SRCSET,
    REWRITE_AS_CSS,
    REWRITE_AS_HTML,
    REWRITE_AS_REFRESH, /* content of meta */
    REWRITE_AS_POLICY,  /* http-equiv of meta */
    REWRITE_AS_WINDOW,  /* target */
    REWRITE_AS_CORS,
    REWRITE_AS_DROPPED,
};

enum rewrite_where { REWRITE_ANYWHERE, REWRITE_IN_XML, REWRITE_IN_DASH };

struct rewrite_rule {
    uint8_t form;
    uint8_t modifier;
    uint8_t where;
};

struct rewrite_rules {
    const char *element_names[REWRITE_ELEMENTS_COUNT];
    const char *attribute_names[REWRITE_ATTRIBUTES_COUNT];
    struct words elements;
    struct words attributes;
    struct rewrite_rule rules[REWRITE_ELEMENTS_COUNT][REWRITE_ATTRIBUTES_COUNT];
};

void rewrite_rules_init(struct rewrite_rules *rules);

#endif
