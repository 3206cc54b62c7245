/*
 * parse - the basic URL parser of the standard, behind url_parse().
 *
 * The standard describes a state machine over code points that fills a record, and a serialiser. Here each
 * state is a function that consumes its part of the input and appends it to the href at once: the parts are
 * met in the order in which they are written, so nothing is kept in between and dots in a path just cut
 * back what was written. https://url.spec.whatwg.org/#concept-basic-url-parser
 */
#ifndef MNEMON_WEB_URL_PARSE_H
#define MNEMON_WEB_URL_PARSE_H

#include "web/url/url.h"

/* url_parse() for input that is trimmed, of bounded size and without tabs and newlines; *url is empty. */
MUST_CHECK enum err parse_run(struct url *url, struct bytes input, const struct url *base,
                              struct err_detail *detail);

#endif
