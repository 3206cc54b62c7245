/*
 * wayback_type - the type that a capture is sent with.
 *
 * Never the text that the server sent: browsers and this program could read that differently. It is the
 * essence of the type as web/type/mime_type.h reads it, with its charset if that is the label of an encoding,
 * so it has one meaning for everybody. The server's own text goes as X-Archive-Orig-Content-Type.
 *
 * Browsers are told not to guess (nosniff). What they would have guessed for the archived page is decided
 * here instead: what has no type gets that of its first bytes; an image or a script that is labelled as
 * something else gets its type if it is asked for as one.
 */
#ifndef MNEMON_REPLAY_WAYBACK_WAYBACK_TYPE_H
#define MNEMON_REPLAY_WAYBACK_WAYBACK_TYPE_H

#include "http/server/http_request.h"
#include "web/rewrite/rewrite.h"
#include "web/type/mime_type.h"

/* What a header says of its document; no type for those that say nothing ("unknown/unknown"). */
struct mime_type wayback_type_stated(struct bytes content_type);

/* What a document is asked for as: by its URL, else by the browser. */
enum rewrite_modifier wayback_type_asked(const struct http_request *request, enum rewrite_modifier as);

/*
 * What it is sent as: a type always, its charset valid or none. format: how it is rewritten. head: its first
 * bytes, decoded; empty if they are not known.
 */
struct mime_type wayback_type_sent(const struct mime_type *stated, enum rewrite_modifier as,
                                   enum rewrite_format format, struct bytes head);

#endif
