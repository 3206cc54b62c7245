/*
 * cdx - the CDX server interface in both its dialects, and the availability interface: which captures there
 * are, for programs. docs/api.md.
 *
 *      cdx_query.h     parameters of a request (cdx_filter.h: filter=, cdx_field.h: fields)
 *      cdx_run.h       the captures that are meant
 *      cdx_answer.h    them as lines, piece by piece (cdx_output.h: the lines)
 *
 *      /wayback/available?url=example.org&timestamp=2020
 *      {"url": "example.org", "archived_snapshots": {"closest": {"status": "200", "available": true,
 *       "url": "http://HOST/web/20200102030405/http://example.org/", "timestamp": "20200102030405"}}}
 *
 * That is the closest capture that was answered with status 200 and may be seen; {} if there is none.
 */
#ifndef MNEMON_REPLAY_CDX_CDX_H
#define MNEMON_REPLAY_CDX_CDX_H

#include "replay/site/replay.h"

enum { CDX_ROUTES_MAX = 6 };

/* How many there are. */
size_t cdx_routes(struct replay *replay, struct http_route out[CDX_ROUTES_MAX]);

#endif
