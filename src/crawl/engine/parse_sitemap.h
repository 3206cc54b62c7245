/*
 * parse_sitemap - what a site lists for crawlers (crawl/rules/sitemap.h), without its content encodings, as a
 * job. Its params are those of parse/parse_decode.h.
 *
 * What comes out is a list:
 *
 *      bool     is it a further sitemap?
 *      string   the URL as it is written
 */
#ifndef MNEMON_CRAWL_ENGINE_PARSE_SITEMAP_H
#define MNEMON_CRAWL_ENGINE_PARSE_SITEMAP_H

#include <stdbool.h>

#include "parse/parse_job.h"

extern const struct parse_kind parse_sitemap;

/* The next of the list. False: that was the last one, or what follows is no entry. The slice is of *rest. */
bool parse_sitemap_read(struct bytes *rest, struct bytes *ret_text, bool *ret_is_sitemap);

#endif
