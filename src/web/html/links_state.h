/*
 * links_state - what is inside a struct links. One machine in two files: links.c does documents of all
 * formats and reports what refers to something, links_html.c tags and text of HTML and XML. links_rules.h,
 * which rewriting uses too, says which attribute of which element refers to what.
 */
#ifndef MNEMON_WEB_HTML_LINKS_STATE_H
#define MNEMON_WEB_HTML_LINKS_STATE_H

#include "web/html/css.h"
#include "web/html/guess.h"
#include "web/html/html.h"
#include "web/html/links.h"
#include "web/html/links_rules.h"
#include "web/html/transcode.h"
#include "web/html/tree.h"

enum {
    LINKS_TEXT_SIZE_MAX = 1 << 20,      /* an attribute, decoded */
    LINKS_INNER_SIZE_MAX = 1 << 20,     /* documents in srcdoc attributes and feeds, together */
    LINKS_COLLECTED_SIZE_MAX = 1 << 16, /* the text of one element that is a URL, or a line */
    LINKS_CONVERTED_SIZE_MAX = 1 << 18,
    LINKS_INNER_PLACES_MAX = 512,
};

/* What the text that comes next is. */
enum links_text {
    LINKS_TEXT_NONE,
    LINKS_TEXT_STYLE,
    LINKS_TEXT_SCRIPT,
    LINKS_TEXT_URL,  /* of an element of a feed */
    LINKS_TEXT_HTML, /* escaped or in CDATA, in a feed */
};

/* A document in this one: where it starts in links->inner, and where it was. Those too many follow the last.
 */
struct links_inner_place {
    size_t at;
    uint64_t offset;
};

/*
 * A set of hashes of bounded size: "was this URL of this page reported before?" Emptied in no time by
 * counting the documents. What finds no room near its place is not remembered, so the answer "no" may be
 * wrong, on large pages; "yes" is wrong once in 2^48.
 */
enum { ONCE_SLOTS_COUNT = 4096 };

struct once {
    uint16_t generation;              /* of the document; never 0 */
    uint64_t slots[ONCE_SLOTS_COUNT]; /* 48 bits of the hash, 16 of the generation it is of */
};

struct links {
    struct links_options options;
    links_found *found;
    void *context;
    enum links_format format;
    enum err err;    /* the first failure; nothing is done after it */
    bool is_over;    /* links_finish() was called */
    bool has_begun;  /* the format is decided, the head is through */
    bool is_inner;   /* in the documents that were inside of this one */
    bool is_decoded; /* what the tokenizers see is UTF-8 already */
    const struct url *base;
    struct url own_base; /* of <base href> */
    bool has_own_base;
    struct url url; /* of the link that is reported */
    struct once once;
    struct buf head;                        /* the first bytes, until there are enough of them */
    const struct encoding *header_encoding; /* of Content-Type, or NULL */
    const struct encoding *encoding;
    struct transcode transcode;
    struct buf converted; /* a piece, in UTF-8 */
    struct html html;
    struct tree tree;
    struct css css;
    struct guess guess;
    struct words elements;
    struct words attributes;
    uint8_t rules[LINKS_ELEMENTS_COUNT][LINKS_ATTRIBUTES_COUNT]; /* index of a rule + 1, or 0 */
    enum links_text text;                                        /* what the text of the current element is */
    unsigned text_element;                                       /* that element */
    enum link_kind text_kind;                                    /* of LINKS_TEXT_URL */
    uint64_t text_offset;                                        /* of its first byte, once there is one */
    bool has_text;
    bool in_instruction;  /* <?…?> of XML */
    struct buf collected; /* that text, a processing instruction, or a line of a playlist */
    struct buf value;     /* of an attribute, decoded */
    struct buf utf8;      /* the same before that, if it was not in UTF-8 */
    struct buf reference; /* a URL as it is parsed */
    struct buf css_value;
    struct buf inner;      /* HTML from srcdoc and feeds, to be looked at in the end */
    uint64_t inner_offset; /* of the one that is looked at */
    size_t inner_places_count;
    struct links_inner_place inner_places[LINKS_INNER_PLACES_MAX];
};

/* links.c */

/*
 * What the slice of the document means, in UTF-8, character references resolved by flags of enum
 * html_decoding. In the document itself if nothing is to be done, else in links->value.
 */
struct bytes links_decode(struct links *links, struct bytes raw, unsigned decoding);

/* Resolve the text and report it, as a link with the kind, names and offset of this one. */
void links_report(struct links *links, const struct link *link, struct bytes text);

/*
 * Style sheets. link->element is where they are; link->attribute too, for a style attribute, else NULL;
 * link->offset is that of the first byte. is_utf8: the text has been decoded already.
 */
struct links_css {
    struct link link;
    bool is_utf8;
};
void links_css_feed(struct links *links, struct bytes piece, const struct links_css *where);
void links_css_end(struct links *links, const struct links_css *where);

/* Report what may be URLs in a text, if guesses are wanted. */
void links_guess_text(struct links *links, const struct link *link, struct bytes text);

/* A script or JSON; guess_start() was called. */
void links_guess_feed(struct links *links, struct bytes piece, const char *element);

/* links_html.c */
void links_html_start(struct links *links);
void links_html_feed(struct links *links, struct bytes piece);
void links_html_end(struct links *links);

/* The kind of a link with this rel (and `as`); false if nobody follows it. */
bool links_rel_kind(struct bytes rel, bool has_as, enum link_kind *ret_kind);

#endif
