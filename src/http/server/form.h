/* form - what an HTML form sends, as a query or as a body: "url=http%3A%2F%2Fexample.org%2F&scope=page". */
#ifndef MNEMON_HTTP_SERVER_FORM_H
#define MNEMON_HTTP_SERVER_FORM_H

#include "base/buf.h"

/*
 * Append the decoded value of the first field of that name; its own size_max bounds it. False if there is
 * none. An empty value is one. Check out->err.
 */
bool form_get(struct bytes form, const char *name, struct buf *out);

/* Append a name or a value as it is meant: a '+' is a space. */
void form_put_decoded(struct buf *out, struct bytes text);

#endif
