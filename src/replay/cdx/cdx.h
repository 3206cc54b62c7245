/*
 * cdx - the CDX server interface in both its dialects, and the availability interface: which captures there
 * are, for programs. docs/api.md.
 *
 *      cdx_query.h     parameters of a request (cdx_filter.h: filter=, cdx_field.h: fields)
 *      cdx_run.h       the captures that are meant
 *      cdx_output.h    them as lines
 *      cdx_answer.h    all of it, piece by piece
 *      available.h     /wayback/available
 */
#ifndef MNEMON_REPLAY_CDX_CDX_H
#define MNEMON_REPLAY_CDX_CDX_H

#include "replay/site/replay.h"

enum { CDX_ROUTES_MAX = 6 };

/* How many there are. */
size_t cdx_routes(struct replay *replay, struct http_route out[CDX_ROUTES_MAX]);

#endif
