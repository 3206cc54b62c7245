/*
 * links_text - the text that all models of links have learnt, one URL a line: shapes of URLs, names of
 * well-known sites, words. It is a part of the protocol and never changes.
 */
#ifndef MNEMON_PROTOCOL_LINKS_LINKS_TEXT_H
#define MNEMON_PROTOCOL_LINKS_LINKS_TEXT_H

#include <stddef.h>

extern const char *const links_text[];
extern const size_t links_text_count;

#endif
