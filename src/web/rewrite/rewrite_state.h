/*
 * rewrite_state - what is inside a struct rewrite. One machine in several files:
 *
 *      rewrite.c        documents of all formats, and from the text of a reference to a replay URL
 *      rewrite_html.c   tokens of HTML and XML, and the text in them
 *      rewrite_tag.c    attributes
 *      rewrite_text.c   style sheets, import maps, playlists, values of attributes that are more than a URL
 *
 * rewrite_rules.h says what becomes of which attribute, rewrite_script.h rewrites scripts.
 */
#ifndef MNEMON_WEB_REWRITE_REWRITE_STATE_H
#define MNEMON_WEB_REWRITE_REWRITE_STATE_H

#include "web/html/css.h"
#include "web/html/html.h"
#include "web/html/transcode.h"
#include "web/html/tree.h"
#include "web/rewrite/rewrite.h"
#include "web/rewrite/rewrite_rules.h"
#include "web/rewrite/rewrite_script.h"

enum {
    REWRITE_OUT_SIZE = 1 << 15,
    REWRITE_VALUE_SIZE_MAX = 1 << 21,     /* of an attribute, decoded */
    REWRITE_CHANGED_SIZE_MAX = 1 << 23,   /* of an attribute, rewritten */
    REWRITE_COLLECTED_SIZE_MAX = 1 << 18, /* import maps, lines of playlists, URLs that are text in XML */
    REWRITE_CONVERTED_SIZE_MAX = 1 << 18,
};

/* What the text that comes next is. */
enum rewrite_text {
    REWRITE_TEXT_PLAIN,
    REWRITE_TEXT_STYLE,
    REWRITE_TEXT_SCRIPT,
    REWRITE_TEXT_IMPORT_MAP,
    REWRITE_TEXT_URL,          /* of an element in a feed */
    REWRITE_TEXT_ABSOLUTE_URL, /* of an element in DASH */
};

struct rewrite {
    struct rewrite_place place;
    rewrite_put *put;
    void *context;
    enum err err;     /* the first failure; nothing is done after it */
    bool is_over;     /* or was never started */
    bool has_begun;   /* the head is through */
    bool is_decoded;  /* what the tokenizers see is UTF-8, whatever the document was in */
    bool is_declared; /* the document says what encoding it is in */
    unsigned depth;   /* of srcdoc in srcdoc */
    const struct encoding *encoding;
    struct transcode transcode;
    struct buf head;
    struct buf converted; /* a piece, in UTF-8 */
    struct buf out;       /* what has not been put yet */

    const struct url *base;
    struct url own_base; /* of <base href> */
    bool has_own_base;
    struct url url;       /* of the reference that is resolved */
    struct buf replay;    /* its replay URL */
    struct buf utf8;      /* text of the document, if that was not in UTF-8 */
    struct buf value;     /* the same, references resolved */
    struct buf reference; /* a URL as it is parsed */
    struct buf css_value; /* of url() */
    struct buf changed;   /* what becomes of a value */
    struct buf collected; /* text that is looked at as a whole */
    bool is_collecting;   /* false: it was too long and passes */

    struct rewrite_rules rules;
    struct words words; /* of scripts */
    struct html html;
    struct tree tree;
    struct css css; /* of a document or element */
    struct css value_css;
    struct rewrite_script script; /* of a document or element */
    struct rewrite_script value_script;
    struct rewrite *inner; /* for srcdoc, once there was one */

    bool is_inserted;       /* place.insert is out, or will never be */
    bool has_root;          /* XML: the first start tag was there */
    bool in_instruction;    /* <?…?> of XML */
    enum rewrite_text text; /* what the text of the current element is */
    unsigned text_element;
    bool is_escaped;       /* it is written with character references */
    bool is_after_bracket; /* ']' was the last byte of it that came out */
};

/* rewrite.c */
void rewrite_out(struct rewrite *rewrite, struct bytes text);

static inline bool rewrite_is_xml(const struct rewrite *rewrite) {
    return rewrite->place.format == REWRITE_XML || rewrite->place.format == REWRITE_DASH;
}

/* What comes out is in UTF-8. */
static inline bool rewrite_is_utf8(const struct rewrite *rewrite) {
    return rewrite->is_decoded || rewrite->encoding == encoding_utf8;
}

/* The slice of the document in UTF-8: itself, or a copy in rewrite->utf8. */
struct bytes rewrite_to_utf8(struct rewrite *rewrite, struct bytes raw);

/* What the slice means, in UTF-8, by flags of enum html_decoding; itself, or in rewrite->value or ->utf8. */
struct bytes rewrite_decode(struct rewrite *rewrite, struct bytes raw, unsigned decoding);

/* The replay URL of the reference, in rewrite->replay; false if it is left alone. */
bool rewrite_resolve(struct rewrite *rewrite, enum rewrite_modifier modifier, struct bytes text,
                     struct bytes *ret_url);

/* Whether the reference has a scheme or starts with '/'. */
bool rewrite_is_absolute(struct bytes text);

/* Remember a failure; true if there is none. A limit only means that something stays as it is. */
bool rewrite_check(struct rewrite *rewrite, enum err err);

/* rewrite_html.c: tokens of HTML and XML, and the text in them */
void rewrite_html_start(struct rewrite *rewrite);
void rewrite_html_feed(struct rewrite *rewrite, struct bytes piece);
void rewrite_html_end(struct rewrite *rewrite);

/* Put text so that it means the same in a value of these quotes, or with HTML_NO_VALUE as text. */
void rewrite_out_escaped(struct rewrite *rewrite, struct bytes text, enum html_quote quote);

/* Add to rewrite->collected, until that would be too long to be looked at as a whole: then all of it passes.
 */
void rewrite_collect(struct rewrite *rewrite, struct bytes text);

/* rewrite_tag.c: the attributes of a start tag that mean something to us, the first of each name. */
struct rewrite_tag {
    const struct html_token *token;
    unsigned element;
    uint64_t mask; /* bit i: found[i] is there */
    bool has_handlers;
    const struct html_attribute *found[REWRITE_ATTRIBUTES_COUNT];
    uint8_t ids[HTML_ATTRIBUTES_MAX]; /* of the attributes, in their order */
};
_Static_assert(REWRITE_ATTRIBUTES_COUNT <= 64, "one bit each");

void rewrite_tag_find(const struct rewrite *rewrite, struct rewrite_tag *tag, const struct html_token *token);

/* Put the tag with what is changed in it. */
void rewrite_tag_out(struct rewrite *rewrite, const struct rewrite_tag *tag);

static inline bool rewrite_tag_has(const struct rewrite_tag *tag, unsigned attribute) {
    return (tag->mask >> attribute & 1) != 0;
}

/* The value of the attribute as it is written, without spaces at its ends; empty if there is none. */
struct bytes rewrite_tag_word(const struct rewrite_tag *tag, unsigned attribute);

/* rewrite_text.c: true with the new value of an attribute in rewrite->changed, false if it stays. */
bool rewrite_value_url(struct rewrite *rewrite, enum rewrite_modifier modifier, struct bytes value);
bool rewrite_value_srcset(struct rewrite *rewrite, enum rewrite_modifier modifier, struct bytes value);
bool rewrite_value_refresh(struct rewrite *rewrite, struct bytes value);
bool rewrite_value_css(struct rewrite *rewrite, struct bytes value);
bool rewrite_value_script(struct rewrite *rewrite, struct bytes value);
bool rewrite_value_html(struct rewrite *rewrite, struct bytes value);

/* Style sheets; what comes out goes to put. is_utf8: the text has been decoded already. */
struct rewrite_css {
    struct css *css;
    rewrite_put *put;
    void *context;
    bool is_utf8;
};
void rewrite_css_feed(struct rewrite *rewrite, const struct rewrite_css *where, struct bytes piece);
void rewrite_css_end(struct rewrite *rewrite, const struct rewrite_css *where);

void rewrite_import_map(struct rewrite *rewrite, struct bytes text);

void rewrite_playlist_feed(struct rewrite *rewrite, struct bytes piece);
void rewrite_playlist_end(struct rewrite *rewrite);

/* The place of a script in this document; put gets the rewrite as its context. */
struct rewrite_script_place rewrite_script_place_of(struct rewrite *rewrite, bool is_module,
                                                    rewrite_put *put);

#endif
