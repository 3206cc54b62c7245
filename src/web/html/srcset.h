/*
 * srcset - the URLs of a srcset attribute: "a.png 1x, b,c.png 2x".
 * https://html.spec.whatwg.org/multipage/images.html#parsing-a-srcset-attribute
 */
#ifndef MNEMON_WEB_HTML_SRCSET_H
#define MNEMON_WEB_HTML_SRCSET_H

#include "base/bytes.h"

/* Cut the next URL off *rest, a slice of it. False if there is none. Descriptors are passed over unread.
 */
bool srcset_next(struct bytes *rest, struct bytes *ret_url);

#endif
