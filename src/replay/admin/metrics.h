/*
 * metrics - the numbers of /api/v1/status, and of copies in a ring, in the text format of Prometheus, version
 * 0.0.4.
 *
 * Each name begins with mnemon_, counters end in _total, units are seconds and bytes.
 */
#ifndef MNEMON_REPLAY_ADMIN_METRICS_H
#define MNEMON_REPLAY_ADMIN_METRICS_H

#include "replay/admin/node_status.h"
#include "replay/admin/ring_view.h"

void metrics_put(const struct node_status *status, struct buf *out);

/* Of a node that is in a ring. */
void metrics_put_ring(const struct ring_view *ring, struct buf *out);

#endif
