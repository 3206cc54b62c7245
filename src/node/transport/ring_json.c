#include "node/transport/ring_json.h"

#include <stdio.h>

#include "base/hex.h"
#include "net/identity.h"

enum { US_PER_S = 1000000 };

static void put_id(const struct charter *charter, struct json *json) {
    struct sha256 sha256;
    uint8_t id[CHARTER_ID_SIZE];
    char digits[2 * CHARTER_ID_SIZE + 1];
    if (sha256_init(&sha256) != ERR_OK) {
        json_none(json, "id");
        return;
    }
    charter_id(charter, &sha256, id);
    sha256_done(&sha256);
    json_text(json, "id", hex_encode(bytes_of(id, sizeof id), digits));
}

/* How often they have changed; 0: the founder acts alone, and is the one that is listed. */
static void ring_json_put_stewards(const struct charter *charter, struct json *json) {
    char key[IDENTITY_TEXT_SIZE];
    struct stewards stewards;
    charter_stewards(charter, charter_generation(charter), &stewards);
    json_count(json, "generation", charter_generation(charter));
    json_open_list(json, "stewards");
    for (size_t i = 0; i < stewards.count; i++) {
        json_text(json, NULL, identity_key_format(stewards.keys[i], key));
    }
    json_close(json);
    json_open(json, "needed");
    for (size_t i = 0; i < STEWARD_POWERS_COUNT; i++) {
        json_count(json, steward_powers[i], stewards.needed[i]);
    }
    json_close(json);
}

void ring_json_put_charter(const struct charter *charter, struct json *json) {
    char key[IDENTITY_TEXT_SIZE];
    if (charter == NULL) {
        json_none(json, "charter");
        return;
    }
    json_open(json, "charter");
    json_text(json, "name", charter->name);
    put_id(charter, json);
    json_text(json, "founder", identity_key_format(charter->founder, key));
    json_time(json, "created", (int64_t)charter->created_s * US_PER_S);
    json_count(json, "version", charter->version);
    json_time(json, "signed", (int64_t)charter->signed_s * US_PER_S);
    JSON_COUNTS(json, {"replicas", charter->replicas}, {"list_size", charter->list_size},
                {"witnesses", charter->witnesses});
    json_text(json, "mapping", charter_mappings[charter->mapping]);
    json_count(json, "period_seconds", charter->period_s);
    json_bool(json, "open", charter->is_open);
    json_bool(json, "members_may_add_jobs", charter->members_may_add_jobs);
    json_open_list(json, "scope");
    for (size_t i = 0; i < charter->scope_count; i++) {
        json_bytes(json, NULL, bytes_of(charter->scope[i].text, charter->scope[i].size));
    }
    json_close(json);
    ring_json_put_stewards(charter, json);
    json_open_list(json, "removed");
    for (size_t i = 0; i < charter->removed_count; i++) {
        json_text(json, NULL, identity_key_format(charter->removed[i], key));
    }
    json_close(json);
    json_close(json);
}

const char *ring_json_format_id(struct ring_id id, char out[RING_JSON_ID_SIZE]) {
    snprintf(out, RING_JSON_ID_SIZE, "%016jx%016jx", (uintmax_t)id.high, (uintmax_t)id.low);
    return out;
}

void ring_json_put_vnode(const struct vnode *vnode, struct json *json) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    char id[RING_JSON_ID_SIZE];
    json_text(json, "address", address_format(&vnode->peer.address, address));
    json_text(json, "key", identity_key_format(vnode->peer.key, key));
    json_count(json, "index", vnode->index);
    json_text(json, "id", ring_json_format_id(vnode->id, id));
}

static void ring_json_put_found(const struct transport_answer *answer, const char *name, struct json *json) {
    json_open_list(json, name);
    for (uint8_t i = 0; i < answer->vnodes_count; i++) {
        json_open(json, NULL);
        ring_json_put_vnode(&answer->vnodes[i], json);
        json_close(json);
    }
    json_close(json);
}

void ring_json_put_answer(const struct transport_question *question, const struct transport_answer *answer,
                          struct buf *out) {
    char id[RING_JSON_ID_SIZE];
    struct json json;
    json_begin(&json, out);
    json_count(&json, "version", 1);
    json_text(&json, "key", ring_json_format_id(question->key, id));
    json_count(&json, "hops", answer->hops_count);
    ring_json_put_found(answer, "vnodes", &json);
    ring_json_put_found(answer, "places", &json); /* in 0.1 */
    json_end(&json);
}
