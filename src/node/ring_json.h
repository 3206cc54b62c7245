/* ring_json - the ring as JSON, for /api/v1/ring and "mnemon ring status --json" (docs/api.md). */
#ifndef MNEMON_NODE_RING_JSON_H
#define MNEMON_NODE_RING_JSON_H

#include "base/buf.h"
#include "ring/charter.h"

/* Append an object. */
void ring_json_put_charter(const struct charter *charter, struct buf *out);

#endif
