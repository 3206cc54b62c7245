/*
 * available - the availability interface of the Wayback Machine: is there a capture of this URL?
 *
 *      /wayback/available?url=example.org&timestamp=2020
 *      {"url": "example.org", "archived_snapshots": {"closest": {"status": "200", "available": true,
 *       "url": "http://HOST/web/20200102030405/http://example.org/", "timestamp": "20200102030405"}}}
 *
 * The closest that was answered with status 200 and may be seen; {} where there is none.
 */
#ifndef MNEMON_REPLAY_CDX_AVAILABLE_H
#define MNEMON_REPLAY_CDX_AVAILABLE_H

#include "http/server/http_request.h"

/* The request's context is the struct replay. */
void available_answer(struct http_request *request);

#endif
