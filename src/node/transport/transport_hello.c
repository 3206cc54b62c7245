/* Which version is spoken with whom: hellos by datagram (docs/protocol/versions.md). */
#include "net/datagram.h"
#include "node/transport/transport_state.h"

enum {
    MEET_MAX = 32,  /* virtual nodes that are looked at in one tick */
    NODES_MAX = 512 /* that are shown */
};

static void hello_say(struct transport *transport, const struct peer *to, bool wants_answer) {
    uint8_t memory[DIALECT_HELLO_SIZE_MAX];
    const struct dialect *own = dialects_own(transport->config.dialects);
    (void)datagram_send(transport->datagram, to, DATAGRAM_HELLO,
                        dialect_write_hello(own, wants_answer, memory)); /* may be lost, as any */
}

static void hello_refuse(struct transport *transport, const struct peer *peer) {
    char reason[DIALECTS_TEXT_SIZE_MAX];
    gate_refuse_version(transport->gate, peer, dialects_explain(transport->config.dialects, peer, reason));
}

void transport_receive_hello(void *context, const struct datagram_message *message) {
    struct transport *transport = context;
    struct dialects *dialects = transport->config.dialects;
    struct dialect dialect;
    bool wants_answer;
    if (dialect_read_hello(message->bytes, &dialect, &wants_answer, NULL) != ERR_OK) {
        transport_blame_noise(transport, &message->from.address, "no hello");
        return;
    }
    if (dialects_hear(dialects, &message->from, &dialect) == 0) {
        hello_refuse(transport, &message->from);
    }
    struct peer at_main;
    (void)transport_find_main(transport, &message->from, &at_main);
    if (wants_answer && dialects_may_answer(dialects, &message->from)) {
        hello_say(transport, &message->from, false);
    }
}

bool transport_speaks(void *context, const struct peer *to) {
    struct transport *transport = context;
    struct dialects *dialects = transport->config.dialects;
    if (dialects == NULL) {
        return true;
    }
    enum dialects_verdict verdict = dialects_judge(dialects, to);
    /* An address without a key is told only if nothing else can be said: its key will be known soon. */
    bool is_told = peer_has_key(to) || verdict == DIALECTS_WAIT;
    if (verdict != DIALECTS_REFUSE && is_told && dialects_take_turn(dialects, to)) {
        hello_say(transport, to, true);
    }
    return verdict == DIALECTS_SPEAK;
}

bool transport_find_main(struct transport *transport, const struct peer *from, struct peer *ret_main) {
    struct dialects *dialects = transport->config.dialects;
    *ret_main = *from;
    if (dialects == NULL || dialects_find_main(dialects, from, &ret_main->address)) {
        return true;
    }
    if (dialects_take_turn(dialects, ret_main)) {
        hello_say(transport, ret_main, true);
    }
    return false;
}

bool transport_is_recognized(struct transport *transport, const struct peer *to) {
    struct dialects *dialects = transport->config.dialects;
    if (dialects == NULL || !dialects_own(dialects)->has_two) {
        return true;
    }
    bool is_from_main = address_is_ipv4(&to->address) == address_is_ipv4(&transport->self.address);
    return is_from_main || dialects_has(dialects, to, DIALECT_TWO_ADDRESSES);
}

struct address transport_route(void *context, const struct peer *to) {
    const struct transport *transport = context;
    return dialects_route(transport->config.dialects, to);
}

bool transport_hears(struct transport *transport, const struct peer *from) {
    struct dialects *dialects = transport->config.dialects;
    if (dialects == NULL) {
        return true;
    }
    dialects_hear_other(dialects, from);
    enum dialects_verdict verdict = dialects_judge(dialects, from);
    if (verdict == DIALECTS_REFUSE) {
        hello_refuse(transport, from);
    } else if (verdict == DIALECTS_WAIT) {
        (void)transport_speaks(transport, from);
    }
    return verdict == DIALECTS_SPEAK;
}

/* A node that has not been sent anything yet has not been told either. */
void transport_meet_others(struct transport *transport) {
    uint32_t count = transport->config.dialects != NULL ? ring_known_count(transport->ring) : 0;
    for (uint32_t i = 0; i < count && i < MEET_MAX; i++) {
        struct ring_known known = ring_known_at(transport->ring, transport->met_index++ % count);
        bool is_other = memcmp(known.vnode.peer.key, transport->identity.key, PEER_KEY_SIZE) != 0;
        if (is_other && known.misses_count == 0 && peer_is_possible(&known.vnode.peer)) {
            (void)transport_speaks(transport, &known.vnode.peer);
        }
    }
}

/* ---- for people ---- */

/* Of this node itself, too. */
static struct dialects_known hello_know(struct transport *transport, const struct peer *peer) {
    struct dialects *dialects = transport->config.dialects;
    const struct dialect *own = dialects_own(dialects);
    bool is_self = memcmp(peer->key, transport->identity.key, PEER_KEY_SIZE) == 0;
    return is_self ? (struct dialects_known){.is_known = true,
                                             .is_said = true,
                                             .dialect = *own,
                                             .version = own->highest}
                   : dialects_find(dialects, peer);
}

const char *transport_describe(struct transport *transport, const struct peer *peer,
                               char out[DIALECTS_TEXT_SIZE_MAX]) {
    struct dialects_known known = {.is_known = false};
    if (transport->config.dialects != NULL) {
        known = hello_know(transport, peer);
    }
    return dialects_describe(&known, out);
}

static void hello_put_features(uint64_t features, const char *name, struct json *json) {
    json_open_list(json, name);
    for (unsigned i = 0; i < DIALECT_FEATURES_COUNT; i++) {
        if ((features >> i & 1) != 0 && dialect_feature_name(i) != NULL) {
            json_text(json, NULL, dialect_feature_name(i));
        }
    }
    json_close(json);
}

static void hello_put_node(struct dialects *dialects, const struct peer *peer, bool is_self, bool is_light,
                           const struct dialects_known *known, struct json *json) {
    char site[DIALECTS_SITE_SIZE_MAX];
    char address[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    char text[DIALECTS_TEXT_SIZE_MAX];
    json_open(json, NULL);
    bool is_reached = !is_self || !is_light;
    json_text(json, "address", is_reached ? address_format(&peer->address, address) : NULL);
    json_text(json, "key", identity_key_format(peer->key, key));
    json_bool(json, "self", is_self);
    json_text(json, "text", dialects_describe(known, text));
    if (known->dialect.has_two) {
        json_text(json, "second_address", address_format(&known->dialect.second, address));
    }
    json_text(json, "site", is_reached ? dialects_site(dialects, peer, is_self, site) : NULL);
    if (known->is_known) {
        json_text(json, "program", known->is_said ? known->dialect.program : NULL);
        JSON_COUNTS(json, {"protocol_lowest", known->dialect.lowest},
                    {"protocol_highest", known->dialect.highest}, {"protocol_spoken", known->version});
        hello_put_features(known->dialect.features, "features", json);
    }
    json_close(json);
}

/* Another virtual node of one that was shown? They are few, or not all are shown. */
static bool hello_is_shown(const struct peer *shown, size_t count, const struct peer *peer) {
    for (size_t i = 0; i < count; i++) {
        if (peer_same_key(&shown[i], peer)) {
            return true;
        }
    }
    return false;
}

void transport_put_nodes(struct transport *transport, struct json *json) {
    struct dialects *dialects = transport->config.dialects;
    struct peer shown[NODES_MAX];
    size_t count = 0;
    if (dialects == NULL) {
        return;
    }
    struct dialects_known self = hello_know(transport, &transport->self);
    uint64_t features = self.dialect.features;
    json_open_list(json, "nodes");
    shown[count++] = transport->self;
    hello_put_node(dialects, &transport->self, true, transport->config.is_light, &self, json);
    uint32_t known_count = transport->ring != NULL ? ring_known_count(transport->ring) : 0;
    for (uint32_t i = 0; i < known_count && count < NODES_MAX; i++) {
        struct ring_known known = ring_known_at(transport->ring, i);
        const struct peer *peer = &known.vnode.peer;
        if (known.misses_count > 0 || peer->address.port == 0 || hello_is_shown(shown, count, peer)) {
            continue;
        }
        struct dialects_known spoken = dialects_find(dialects, peer);
        features &= spoken.version > 0 ? spoken.dialect.features : 0;
        shown[count++] = *peer;
        hello_put_node(dialects, peer, false, false, &spoken, json);
    }
    json_close(json);
    hello_put_features(features, "understood_by_all", json);
}
