#include "node/transport/ring_json.h"

#include <stdio.h>

#include "base/hex.h"
#include "base/utc.h"
#include "net/identity.h"

enum { US_PER_S = 1000000 };

static const char *json_bool(bool value) {
    return value ? "true" : "false";
}

static void put_keys(const struct charter *charter, struct buf *out) {
    char key[IDENTITY_TEXT_SIZE];
    for (size_t i = 0; i < charter->removed_count; i++) {
        buf_put_format(out, "%s\"%s\"", i > 0 ? "," : "", identity_key_format(charter->removed[i], key));
    }
}

static void put_id(const struct charter *charter, struct buf *out) {
    struct sha256 sha256;
    uint8_t id[CHARTER_ID_SIZE];
    char digits[2 * CHARTER_ID_SIZE + 1];
    if (sha256_init(&sha256) != ERR_OK) {
        buf_put_string(out, "null");
        return;
    }
    charter_id(charter, &sha256, id);
    sha256_done(&sha256);
    hex_encode(bytes_of(id, sizeof id), digits);
    buf_put_format(out, "\"%s\"", digits);
}

void ring_json_put_charter(const struct charter *charter, struct buf *out) {
    char key[IDENTITY_TEXT_SIZE];
    char created[UTC_RFC3339_SIZE];
    char signed_at[UTC_RFC3339_SIZE];
    buf_put_format(out, "{\"name\":\"%s\",\"id\":", charter->name);
    put_id(charter, out);
    buf_put_format(out, ",\"founder\":\"%s\",\"created\":\"%s\",\"version\":%u,\"signed\":\"%s\"",
                   identity_key_format(charter->founder, key),
                   utc_format_rfc3339((int64_t)charter->created_s * US_PER_S, created), charter->version,
                   utc_format_rfc3339((int64_t)charter->signed_s * US_PER_S, signed_at));
    buf_put_format(out, ",\"replicas\":%u,\"list_size\":%u,\"witnesses\":%u,\"mapping\":\"%s\"",
                   charter->replicas, charter->list_size, charter->witnesses,
                   charter_mappings[charter->mapping]);
    buf_put_format(out, ",\"period_seconds\":%u,\"open\":%s,\"members_may_add_jobs\":%s,\"scope\":[",
                   charter->period_s, json_bool(charter->is_open), json_bool(charter->members_may_add_jobs));
    for (size_t i = 0; i < charter->scope_count; i++) {
        buf_put_string(out, i > 0 ? "," : "");
        buf_put_json(out, bytes_of(charter->scope[i].text, charter->scope[i].size));
    }
    buf_put_string(out, "],\"removed\":[");
    put_keys(charter, out);
    buf_put_string(out, "]}");
}

const char *ring_json_format_id(struct ring_id id, char out[RING_JSON_ID_SIZE]) {
    snprintf(out, RING_JSON_ID_SIZE, "%016jx%016jx", (uintmax_t)id.high, (uintmax_t)id.low);
    return out;
}

void ring_json_put_vnode(const struct vnode *vnode, struct buf *out) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    char id[RING_JSON_ID_SIZE];
    buf_put_format(out, "\"address\":\"%s\",\"key\":\"%s\",\"index\":%u,\"id\":\"%s\"",
                   address_format(&vnode->peer.address, address), identity_key_format(vnode->peer.key, key),
                   vnode->index, ring_json_format_id(vnode->id, id));
}

void ring_json_put_answer(const struct transport_question *question, const struct transport_answer *answer,
                          struct buf *out) {
    char id[RING_JSON_ID_SIZE];
    buf_put_format(out, "{\"version\":1,\"key\":\"%s\",\"hops\":%u,\"places\":[",
                   ring_json_format_id(question->key, id), answer->hops_count);
    for (uint8_t i = 0; i < answer->vnodes_count; i++) {
        buf_put_string(out, i > 0 ? ",{" : "{");
        ring_json_put_vnode(&answer->vnodes[i], out);
        buf_put_byte(out, '}');
    }
    buf_put_string(out, "]}");
}
