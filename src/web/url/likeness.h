/*
 * likeness - how near a URL is to the one that was asked for, if both have the same SURT.
 *
 *      asked                    captured                      likeness
 *      http://example.org/a     http://EXAMPLE.org:80/a#top   same: both are this URL
 *      http://example.org/a     https://www.example.org/a     site: another scheme, "www." more or less
 *      http://example.org/a     http://example.org/A/         form: capitals, order of arguments, a slash,
 *                                                             session ids
 *      example.org/a            https://example.org/a         same: no scheme was asked for
 *
 * Servers tell these URLs apart, so an archive must: what is nearer goes before what is closer in time.
 */
#ifndef MNEMON_WEB_URL_LIKENESS_H
#define MNEMON_WEB_URL_LIKENESS_H

#include "web/url/url.h"

/* The nearest first. */
enum likeness_degree { LIKENESS_SAME, LIKENESS_SITE, LIKENESS_FORM, LIKENESS_DEGREES_COUNT };

/* What was asked for. Its memory is used again by the next likeness_ask(). */
struct likeness {
    struct url asked;
    struct url other; /* work */
    struct buf text;  /* the same */
    bool is_any;      /* nothing was asked for: all are the same */
    bool has_scheme;
};

void likeness_init(struct likeness *likeness);
void likeness_done(struct likeness *likeness);

/* Any text that has a SURT, with a scheme or without; empty: every URL is as near as any other. */
enum err likeness_ask(struct likeness *likeness, struct bytes url) MUST_CHECK;

/* Of a URL with the same SURT. Mostly costs one comparison; another spelling is parsed. */
enum likeness_degree likeness_of(struct likeness *likeness, struct bytes url);

#endif
