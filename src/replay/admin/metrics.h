/*
 * metrics - the numbers of /api/v1/status in the text format of Prometheus, version 0.0.4.
 *
 * Each name begins with mnemon_, counters end in _total, units are seconds and bytes.
 */
#ifndef MNEMON_REPLAY_ADMIN_METRICS_H
#define MNEMON_REPLAY_ADMIN_METRICS_H

#include "base/buf.h"

/* status: the JSON text. ERR_INVALID where it is none. */
enum err metrics_put(struct buf *out, struct bytes status) MUST_CHECK;

#endif
