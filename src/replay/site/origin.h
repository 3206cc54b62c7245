/*
 * origin - under which name a client reached this server: the beginning of links that it can follow.
 */
#ifndef MNEMON_REPLAY_SITE_ORIGIN_H
#define MNEMON_REPLAY_SITE_ORIGIN_H

#include "http/server/http_request.h"

/* The Host header if it is a valid one, else "localhost": part of policies and links. */
struct bytes origin_host(const struct http_request *request);

/* Append "http://HOST"; https if a proxy before the server says so. */
void origin_put(struct buf *out, const struct http_request *request);

#endif
