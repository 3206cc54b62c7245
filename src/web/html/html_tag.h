/*
 * html_tag - the states of the tokenizer inside a tag: its name and its attributes.
 *
 * The states are those of the standard from "tag name" to "self-closing start tag"; those that only differ in
 * parse errors are one. Nothing is looked at twice, however the bytes arrive: a scan goes on where the last
 * one ended, in a view that starts at the same '<' and has become longer.
 */
#ifndef MNEMON_WEB_HTML_HTML_TAG_H
#define MNEMON_WEB_HTML_HTML_TAG_H

#include "base/bytes.h"

enum { HTML_ATTRIBUTES_MAX = 256 };

enum html_quote { HTML_NO_VALUE, HTML_UNQUOTED, HTML_SINGLE_QUOTED, HTML_DOUBLE_QUOTED };

/* Positions are relative to the source of the tag. */
struct html_attribute {
    uint64_t name_key; /* html_key() of the name */
    uint32_t name_from;
    uint32_t name_to;
    uint32_t value_from; /* without quotes */
    uint32_t value_to;
    enum html_quote quote;
};

/* Which part of a tag the next byte belongs to. */
enum html_tag_state {
    HTML_TAG_NAME,
    HTML_TAG_BEFORE_NAME,
    HTML_TAG_ATTRIBUTE,
    HTML_TAG_AFTER_NAME,
    HTML_TAG_BEFORE_VALUE,
    HTML_TAG_VALUE,
    HTML_TAG_SLASH,
    HTML_TAG_OVER,
};

struct html_tag {
    enum html_tag_state state;
    size_t at; /* next byte */
    uint32_t name_from;
    uint32_t name_to;
    uint64_t name_key;
    uint64_t key; /* of the name that is being read */
    bool is_end_tag;
    bool is_self_closing;
    bool is_cut; /* only its end is looked for */
    size_t attributes_count;
    size_t current; /* the attribute that is being read */
    struct html_attribute
        attributes[HTML_ATTRIBUTES_MAX + 1]; /* in the last one is written what does not count */
};

/* A tag begins; its name starts at the index. */
void html_tag_start(struct html_tag *tag, size_t name_from, bool is_end_tag);

/* Read on. True at the end of the tag: tag->at is behind its '>'. */
bool html_tag_scan(struct html_tag *tag, struct bytes view);

/* The tag is too long: forget the attribute that is being read, and look for the end of the tag only. */
void html_tag_cut(struct html_tag *tag);

#endif
