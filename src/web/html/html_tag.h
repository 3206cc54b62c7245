/*
 * html_tag - the states of the tokenizer inside a tag: its name and its attributes.
 *
 * The states are those of the standard from "tag name" to "self-closing start tag"; those that only differ in
 * parse errors are one. Nothing is looked at twice, however the bytes arrive: a scan goes on where the last
 * one ended, in a view that starts at the same '<' and has become longer.
 */
#ifndef MNEMON_WEB_HTML_HTML_TAG_H
#define MNEMON_WEB_HTML_HTML_TAG_H

#include "web/html/html.h"

/* A tag begins; its name starts at the index. */
void html_tag_start(struct html_tag *tag, size_t name_from, bool is_end_tag);

/* Read on. True at the end of the tag: tag->at is behind its '>'. */
bool html_tag_scan(struct html_tag *tag, struct bytes view);

/* The tag is too long: forget the attribute that is being read, and look for the end of the tag only. */
void html_tag_cut(struct html_tag *tag);

#endif
