/*
 * pages - what the archive shows to people: start, calendar, list, details, comparison, what it holds. A file
 * for each page; pages_kit.h has what they use of each other.
 *
 *      pages_start.c       /                        search form, suggestions, what is new, how much there is
 *      pages_calendar.c    /web/…*…/URL             the captures of one URL, by year; called by wayback.c
 *      pages_list.c        /web/…*…/PREFIX…         the URLs of a prefix, a host or a domain; likewise
 *      pages_details.c     /details/TIME/URL        all that is known of one capture
 *      pages_compare.c     /compare/TIME/TIME/URL   two captures side by side, or as a diff
 *      pages_holdings.c    /holdings                hosts, types, months, volumes; from survey.h
 *
 * What they show, programs get as JSON under /api/v1/ (docs/api.md). No request looks at more than a bounded
 * number of captures; if that cuts something off, the page says so.
 */
#ifndef MNEMON_REPLAY_PAGES_PAGES_H
#define MNEMON_REPLAY_PAGES_PAGES_H

#include "replay/site/replay.h"

enum { PAGES_ROUTES_MAX = 12 };

/* How many there are. */
size_t pages_routes(struct replay *replay, struct http_route out[PAGES_ROUTES_MAX]);

/* The route for what has none: a page with a way on, for browsers. Behind all others. */
struct http_route pages_fallback(struct replay *replay);

/* Answer with the calendar of the URL, as anybody writes it; year 0: the newest that has captures. */
void pages_calendar(struct replay *replay, struct http_request *request, struct bytes url, int32_t year,
                    int64_t from_us, int64_t to_us);

/* Answer with the URLs that "example.org/a*" or "*.example.org" stands for (store/instance/query.h). */
void pages_list(struct replay *replay, struct http_request *request, struct bytes prefix);

#endif
