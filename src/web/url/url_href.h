/*
 * url_href - url_parse() for what somebody else claims to be the href of a web URL already: the same result,
 * several times as fast for what is usual. Nothing is believed: what is not plainly in its normal form is
 * parsed.
 */
#ifndef MNEMON_WEB_URL_URL_HREF_H
#define MNEMON_WEB_URL_URL_HREF_H

#include "web/url/url.h"

/* As url_parse() without a base. The href must not be part of *url. */
enum err url_parse_href(struct url *url, struct bytes href) MUST_CHECK;

#endif
