/* ring_json - the ring as JSON, for /api/v1/ring and "mnemon ring status --json" (docs/api.md). */
#ifndef MNEMON_NODE_TRANSPORT_RING_JSON_H
#define MNEMON_NODE_TRANSPORT_RING_JSON_H

#include "base/json.h"
#include "node/transport/transport.h"
#include "protocol/ring/charter.h"

enum { RING_JSON_ID_SIZE = 2 * RING_ID_SIZE + 1 };

/* 32 hexadecimal digits. */
const char *ring_json_format_id(struct ring_id id, char out[RING_JSON_ID_SIZE]);

/* Append an object: the charter; what /api/v1/ring/lookup says. */
void ring_json_put_charter(const struct charter *charter, struct json *json); /* "charter"; NULL: null */
void ring_json_put_answer(const struct transport_question *question, const struct transport_answer *answer,
                          struct buf *out);

/* Append members of an object: address, key, index, id. */
void ring_json_put_vnode(const struct vnode *vnode, struct json *json);

#endif
