/*
 * refresh - where <meta http-equiv=refresh> and the Refresh header lead: "5; url=next.html".
 * https://html.spec.whatwg.org/multipage/semantics.html#shared-declarative-refresh-steps
 */
#ifndef MNEMON_WEB_HTML_REFRESH_H
#define MNEMON_WEB_HTML_REFRESH_H

#include "base/bytes.h"

/* The URL in the value, a slice of it; false if it has none and the page itself is meant, or makes no
 * sense. */
bool refresh_url(struct bytes value, struct bytes *ret_url);

#endif
