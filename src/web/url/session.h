/*
 * session - session ids that servers put into URLs, and which would make every visit a new page.
 *
 * The patterns are those of the Internet Archive's `surt`, for text in lower case:
 *
 *   query  jsessionid=32  phpsessid=32  sid=32  (32 letters or digits)
 *          aspsessionid + 8 letters + "=" + 24 letters
 *          cfid=… & cftoken=…
 *   path   /(24 letters or digits)/ and /(x(24)y(24)…)/ before a name with ".aspx"
 *
 * As there, the name is matched at its end ("mysid=…" counts), and each must be followed by '&' or by
 * nothing.
 */
#ifndef MNEMON_WEB_URL_SESSION_H
#define MNEMON_WEB_URL_SESSION_H

#include "base/bytes.h"

/* Remove the session ids in place, an '&' behind each too, and return the new size. */
size_t session_strip_query(uint8_t *query, size_t size);

/* The same for a path: "/(s(…))/x.aspx" becomes "/x.aspx". */
size_t session_strip_path(uint8_t *path, size_t size);

#endif
