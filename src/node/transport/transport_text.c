#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "node/transport/ring_json.h"
#include "node/transport/transport_state.h"
#include "replay/site/sheet.h"

enum { FINGERS_MAX = 256, OTHERS_MAX = 128 };

static const char *const state_names[TRANSPORT_STATES_COUNT] = {
    [TRANSPORT_NONE] = "none",       [TRANSPORT_LOOKING] = "looking", [TRANSPORT_ASKING] = "asking",
    [TRANSPORT_JOINING] = "joining", [TRANSPORT_MEMBER] = "member",   [TRANSPORT_REMOVED] = "removed",
};

static const char *const mode_names[] = {[RING_IDLE] = "idle",
                                         [RING_JOINING] = "joining",
                                         [RING_SMALL] = "small",
                                         [RING_CHORD] = "chord",
                                         [RING_LIGHT] = "light"};

/* ---- peers ---- */

static bool is_own(const struct transport *transport, const struct vnode *vnode) {
    return memcmp(vnode->peer.key, transport->identity.key, PEER_KEY_SIZE) == 0;
}

static bool is_real(const struct transport *transport, const struct vnode *vnode) {
    return vnode != NULL && vnode->peer.address.port != 0 && !is_own(transport, vnode);
}

static size_t add_peer(struct peer out[RING_FILES_PEERS_MAX], size_t count, const struct peer *peer) {
    for (size_t i = 0; i < count; i++) {
        if (peer_equal(&out[i], peer)) {
            return count;
        }
    }
    if (count < RING_FILES_PEERS_MAX) {
        out[count++] = *peer;
    }
    return count;
}

/* A light node has no neighbours: those that have answered it. */
static size_t peers_that_answer(const struct ring *ring, struct peer out[RING_FILES_PEERS_MAX]) {
    size_t count = 0;
    for (uint32_t i = 0; i < ring_known_count(ring) && count < RING_FILES_PEERS_MAX; i++) {
        struct ring_known known = ring_known_at(ring, i);
        if (known.heard_at_us > 0 && known.misses_count == 0) {
            count = add_peer(out, count, &known.vnode.peer);
        }
    }
    return count;
}

size_t transport_peers(const struct transport *transport, struct peer out[RING_FILES_PEERS_MAX]) {
    const struct ring *ring = transport->ring;
    size_t count = 0;
    if (ring == NULL) {
        return 0;
    }
    if (transport->config.is_light) {
        return peers_that_answer(ring, out);
    }
    for (uint8_t vnode = 0; vnode < ring_vnodes_count(ring); vnode++) {
        const struct vnode *predecessor = ring_predecessor(ring, vnode);
        count = is_real(transport, predecessor) ? add_peer(out, count, &predecessor->peer) : count;
        for (uint8_t i = 0; i < ring_list_size(ring); i++) {
            const struct vnode *successor = ring_successor(ring, vnode, i);
            count = is_real(transport, successor) ? add_peer(out, count, &successor->peer) : count;
        }
    }
    for (uint8_t vnode = 0; vnode < ring_vnodes_count(ring); vnode++) {
        struct ring_known finger;
        uint32_t cursor = 0;
        while (ring_next_finger(ring, vnode, &cursor, &finger)) {
            count = is_real(transport, &finger.vnode) ? add_peer(out, count, &finger.vnode.peer) : count;
        }
    }
    return count;
}

/* ---- JSON ---- */

/* The part of the ring between them, 0 to 1; from a to a: all. */
static double share_of(struct ring_id from, struct ring_id to) {
    struct ring_id way = ring_id_distance(from, to);
    bool is_all = way.high == 0 && way.low == 0;
    return is_all ? 1.0 : (double)way.high / 18446744073709551616.0;
}

static void put_vnode(struct transport *transport, const struct ring_known *known, const char *role,
                      struct json *json) {
    char version[DIALECTS_TEXT_SIZE_MAX];
    uint64_t now_us = clock_monotonic_us(transport->config.clock);
    json_open(json, NULL);
    ring_json_put_vnode(&known->vnode, json);
    json_text(json, "role", role);
    json_text(json, "version", transport_describe(transport, &known->vnode.peer, version));
    json_decimal(json, "rtt_milliseconds", known->round_trip_us > 0 ? known->round_trip_us / 1000.0 : NAN, 3);
    bool is_heard = known->heard_at_us > 0 && known->heard_at_us <= now_us;
    json_decimal(json, "heard_seconds_ago", is_heard ? (double)(now_us - known->heard_at_us) / 1e6 : NAN, 1);
    json_count(json, "misses", known->misses_count);
    json_close(json);
}

/* Unless it is listed already. */
static void list_vnode(struct transport *transport, const struct vnode *vnode, const char *role,
                       struct json *json) {
    struct transport_shown *shown = &transport->shown;
    struct ring_known known = {.vnode = *vnode};
    for (size_t i = 0; i < shown->neighbours_count; i++) {
        if (ring_id_equal(shown->neighbours[i].vnode.id, vnode->id)) {
            return;
        }
    }
    if (shown->neighbours_count == TRANSPORT_NEIGHBOURS_MAX) {
        return;
    }
    (void)ring_know(transport->ring, vnode->id, &known);
    known.vnode = *vnode;
    put_vnode(transport, &known, role, json);
    struct transport_neighbour *neighbour = &shown->neighbours[shown->neighbours_count++];
    *neighbour = (struct transport_neighbour){.vnode = *vnode, .round_trip_us = known.round_trip_us};
    snprintf(neighbour->role, sizeof neighbour->role, "%s", role);
}

static void text_put_neighbours(struct transport *transport, struct json *json) {
    const struct ring *ring = transport->ring;
    transport->shown.neighbours_count = 0;
    for (uint8_t vnode = 0; vnode < ring_vnodes_count(ring); vnode++) {
        for (uint8_t i = 0; i < ring_list_size(ring); i++) {
            char role[TRANSPORT_ROLE_SIZE_MAX];
            const struct vnode *successor = ring_successor(ring, vnode, i);
            snprintf(role, sizeof role, "successor %u", i + 1u);
            if (is_real(transport, successor)) {
                list_vnode(transport, successor, role, json);
            }
        }
        const struct vnode *predecessor = ring_predecessor(ring, vnode);
        if (is_real(transport, predecessor)) {
            list_vnode(transport, predecessor, "predecessor", json);
        }
    }
}

static void put_fingers(struct transport *transport, struct json *json) {
    const struct ring *ring = transport->ring;
    size_t count = 0;
    for (uint8_t vnode = 0; vnode < ring_vnodes_count(ring); vnode++) {
        struct ring_known finger;
        uint32_t cursor = 0;
        while (count < FINGERS_MAX && ring_next_finger(ring, vnode, &cursor, &finger)) {
            if (is_real(transport, &finger.vnode)) {
                count++;
                put_vnode(transport, &finger, "finger", json);
            }
        }
    }
}

/* All that are known to live, for a picture: neighbours and fingers among them. */
static void put_others(struct transport *transport, struct json *json) {
    const struct ring *ring = transport->ring;
    size_t count = 0;
    for (uint32_t i = 0; i < ring_known_count(ring) && count < OTHERS_MAX; i++) {
        char address[ADDRESS_TEXT_SIZE_MAX];
        char id[RING_JSON_ID_SIZE];
        struct ring_known known = ring_known_at(ring, i);
        if (is_real(transport, &known.vnode) && known.misses_count == 0) {
            count++;
            json_open(json, NULL);
            json_text(json, "address", address_format(&known.vnode.peer.address, address));
            json_text(json, "id", ring_json_format_id(known.vnode.id, id));
            json_close(json);
        }
    }
}

/* "list 7 of 8": so many entries are places that have not failed to answer. A small ring has no more. */
static void put_health(const struct ring *ring, uint8_t vnode, struct json *json) {
    unsigned there = 0;
    unsigned healthy = 0;
    for (uint8_t i = 0; i < ring_list_size(ring); i++) {
        struct ring_known known = {0};
        const struct vnode *successor = ring_successor(ring, vnode, i);
        if (successor != NULL && successor->peer.address.port != 0) {
            there++;
            healthy += ring_know(ring, successor->id, &known) && known.misses_count > 0 ? 0 : 1;
        }
    }
    bool is_small = ring_mode(ring) == RING_SMALL;
    json_format(json, "health", "list %u of %u", healthy, is_small ? there : ring_list_size(ring));
}

static void put_vnodes(struct transport *transport, struct json *json) {
    const struct ring *ring = transport->ring;
    transport->shown.share = 0; /* this list is written under two names */
    for (uint8_t vnode = 0; vnode < ring_vnodes_count(ring); vnode++) {
        char id[RING_JSON_ID_SIZE];
        const struct vnode *own = ring_vnode_at(ring, vnode);
        const struct vnode *predecessor = ring_predecessor(ring, vnode);
        bool is_member = ring_is_member(ring, vnode) && predecessor != NULL;
        json_open(json, NULL);
        json_count(json, "index", own->index);
        json_text(json, "id", ring_json_format_id(own->id, id));
        json_bool(json, "member", is_member);
        if (is_member) {
            json_text(json, "from", ring_json_format_id(predecessor->id, id));
            json_decimal(json, "share", share_of(predecessor->id, own->id), 6);
            transport->shown.share += share_of(predecessor->id, own->id);
            put_health(ring, vnode, json);
        } else {
            json_none(json, "from");
            json_count(json, "share", 0);
            json_text(json, "health", "not placed yet");
        }
        json_close(json);
    }
}

static void text_put_counters(const struct ring_counters *ring, struct json *json) {
    json_open(json, "counters");
    JSON_COUNTS(json, {"received", ring->received_count}, {"malformed", ring->malformed_count},
                {"foreign", ring->foreign_count}, {"unasked", ring->unasked_count},
                {"challenged", ring->challenged_count}, {"silent", ring->silent_count},
                {"lookups", ring->lookups_count}, {"from_table", ring->from_table_count},
                {"lost", ring->lost_count}, {"hops", ring->hops_count}, {"blamed", ring->blamed_count});
    json_close(json);
}

static void put_traffic(const struct transport *transport, struct json *json) {
    const struct datagram_stats *stats = datagram_stats(transport->datagram);
    const struct gate_stat *gate = gate_stat(transport->gate);
    const uint64_t *verdicts = stats->verdicts;
    json_open(json, "datagrams");
    JSON_COUNTS(json, {"received", stats->received}, {"received_bytes", stats->received_bytes},
                {"sent", stats->sent}, {"sent_bytes", stats->sent_bytes}, {"dropped", stats->dropped},
                {"unproved", stats->unproved}, {"refused_by_us", stats->refused_by_us},
                {"refused_by_others", stats->refused_by_others}, {"limited", stats->limited},
                {"malformed", stats->malformed}, {"short", verdicts[SEAL_SHORT]},
                {"other_version", verdicts[SEAL_OTHER]}, {"strange", verdicts[SEAL_STRANGE]},
                {"forged", verdicts[SEAL_FORGED]}, {"other_clock", verdicts[SEAL_CLOCK]},
                {"replayed", verdicts[SEAL_REPLAYED]}, {"unproved_life", verdicts[SEAL_STALE]},
                {"flooding", verdicts[SEAL_FLOOD]});
    json_close(json);
    json_open(json, "members");
    JSON_COUNTS(json, {"hellos", gate->hellos_count}, {"refused", gate->refused_count},
                {"refused_by_others", gate->refusals_count}, {"turned_away", gate->turned_away_count},
                {"malformed", gate->malformed_count});
    json_close(json);
}

static void put_blamed(struct transport *transport, struct json *json) {
    uint32_t count;
    const struct ring_blame *blames = ring_blames(transport->ring, &count);
    for (uint32_t i = 0; i < count; i++) {
        char address[ADDRESS_TEXT_SIZE_MAX];
        json_open(json, NULL);
        json_text(json, "address", address_format(&blames[i].who.peer.address, address));
        json_count(json, "count", blames[i].count);
        json_text(json, "text", blames[i].text);
        json_close(json);
    }
}

static void put_sentence(struct transport *transport, struct json *json) {
    char *text = transport->shown.text;
    const char *name = transport->charter.name;
    const char *host = transport->contact.host;
    switch (transport->state) {
    case TRANSPORT_NONE:
        snprintf(text, TRANSPORT_SENTENCE_SIZE_MAX, "in no ring");
        break;
    case TRANSPORT_LOOKING:
        snprintf(text, TRANSPORT_SENTENCE_SIZE_MAX, "looking for %s", host);
        break;
    case TRANSPORT_ASKING:
        snprintf(text, TRANSPORT_SENTENCE_SIZE_MAX, "asking %s for the charter of its ring", host);
        break;
    case TRANSPORT_MEMBER:
        snprintf(text, TRANSPORT_SENTENCE_SIZE_MAX,
                 transport->config.is_light
                     ? "light member of \"%s\": reads from it, holds nothing for it, crawls nothing for it"
                     : "member of \"%s\"",
                 name);
        break;
    case TRANSPORT_REMOVED:
        snprintf(text, TRANSPORT_SENTENCE_SIZE_MAX, "this node has been removed from \"%s\"", name);
        break;
    default:
        snprintf(text, TRANSPORT_SENTENCE_SIZE_MAX,
                 transport->remembered_count == 0 && host[0] == '\0'
                     ? "knows nobody of \"%s\": start it with --join"
                     : "joining \"%s\"",
                 name);
    }
    json_text(json, "text", text);
}

static void put_ring(struct transport *transport, struct json *json) {
    static const struct {
        const char *name;
        void (*put)(struct transport *transport, struct json *json);
    } lists[] = {{"vnodes", put_vnodes},
                 {"places", put_vnodes}, /* in 0.1 */
                 {"neighbours", text_put_neighbours},
                 {"fingers", put_fingers},
                 {"others", put_others},
                 {"blamed", put_blamed}};
    const struct ring *ring = transport->ring;
    bool is_light = transport->config.is_light;
    json_text(json, "mode", mode_names[ring_mode(ring)]);
    if (is_light) { /* it has no part from which to estimate the whole, and no places */
        json_none(json, "estimated_size");
    } else {
        json_count(json, "estimated_size", ring_estimated_size(ring));
    }
    json_count(json, "known", ring_known_count(ring));
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        json_open_list(json, lists[i].name);
        if (!is_light || lists[i].put == put_others || lists[i].put == put_blamed) {
            lists[i].put(transport, json);
        }
        json_close(json);
    }
    text_put_counters(ring_counters(ring), json);
}

/* All that was thrown away before anybody read it. */
static uint64_t text_discarded(const struct datagram_stats *stats) {
    uint64_t count = stats->limited + stats->malformed;
    for (int i = 0; i < SEAL_VERDICTS_COUNT; i++) {
        count += i != SEAL_FRESH ? stats->verdicts[i] : 0;
    }
    return count;
}

static void text_copy_traffic(struct transport *transport) {
    struct ring_view_traffic traffic = {.is_member = transport->state == TRANSPORT_MEMBER};
    if (transport->datagram != NULL) {
        const struct datagram_stats *stats = datagram_stats(transport->datagram);
        const struct gate_stat *gate = gate_stat(transport->gate);
        traffic.received_count = stats->received;
        traffic.received_size = stats->received_bytes;
        traffic.sent_count = stats->sent;
        traffic.sent_size = stats->sent_bytes;
        traffic.unsent_count = stats->dropped + stats->unproved + stats->unknown;
        traffic.discarded_count = text_discarded(stats);
        traffic.refused_count = gate->refused_count;
        traffic.refusals_count = gate->refusals_count;
    }
    if (transport->ring != NULL) {
        const struct ring_counters *counters = ring_counters(transport->ring);
        traffic.vnodes_count = ring_vnodes_count(transport->ring);
        traffic.known_vnodes_count = ring_known_count(transport->ring);
        traffic.estimated_vnodes_count = ring_estimated_size(transport->ring);
        traffic.lookups_count = counters->lookups_count;
        traffic.lost_count = counters->lost_count;
        traffic.hops_count = counters->hops_count;
        traffic.silent_count = counters->silent_count;
        traffic.malformed_count = counters->malformed_count;
        traffic.blamed_count = counters->blamed_count;
    }
    transport->shown.traffic = traffic;
}

void transport_copy(struct transport *transport) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    struct json writer;
    struct json *json = &writer;
    pthread_mutex_lock(&transport->lock);
    transport->shown.is_there = transport->state != TRANSPORT_NONE;
    transport->shown.share = 0;
    transport->shown.replicas = transport->has_charter ? transport->charter.replicas : 0;
    transport->shown.complaints = transport->complaints;
    text_copy_traffic(transport);
    buf_clear(&transport->text);
    json_begin(json, &transport->text);
    json_count(json, "version", 1);
    json_bool(json, "running", true);
    json_text(json, "state", state_names[transport->state]);
    json_bool(json, "light", transport->config.is_light);
    put_sentence(transport, json);
    json_text(json, "key", identity_key_format(transport->identity.key, key));
    bool is_bound = transport->datagram != NULL;
    bool is_reached = is_bound && !transport->config.is_light; /* by others */
    json_text(json, "address", is_reached ? address_format(&transport->self.address, address) : NULL);
    bool has_second = is_reached && transport->second.port > 0;
    json_text(json, "second_address", has_second ? address_format(&transport->second, address) : NULL);
    json_text(json, "listening", is_reached ? address_format(&transport->listening, address) : NULL);
    ring_json_put_charter(transport->has_charter ? &transport->charter : NULL, json);
    if (transport->ring != NULL) {
        put_ring(transport, json);
    }
    if (is_bound) {
        put_traffic(transport, json);
        transport_put_nodes(transport, json);
    }
    complaints_put(&transport->complaints, json, "complaints");
    json_end(json);
    pthread_mutex_unlock(&transport->lock);
}

void transport_view(struct transport *transport, struct arena *arena, struct ring_view *view) {
    const struct transport_shown *shown = &transport->shown;
    pthread_mutex_lock(&transport->lock);
    view->text = shown->is_there ? arena_text(arena, shown->text) : NULL;
    view->replicas = shown->replicas;
    view->share = shown->share;
    view->traffic = shown->traffic;
    pthread_mutex_unlock(&transport->lock);
}

void transport_show(struct transport *transport, struct sheet *sheet) {
    const struct transport_shown *shown = &transport->shown;
    char version[DIALECTS_TEXT_SIZE_MAX];
    sheet_html(sheet, "<h3>Neighbours</h3>\n");
    sheet_format(sheet, "<p>This node runs %s.\n", transport_describe(transport, &transport->self, version));
    sheet_table_begin(sheet, "Neighbours of this node on the ring");
    sheet_html(sheet, "<thead><tr><th class=grow>Node<th>Version<th>Position on the ring<th>Relation"
                      "<th class=number>Round trip\n<tbody id=ring-neighbours>");
    pthread_mutex_lock(&transport->lock);
    for (size_t i = 0; i < shown->neighbours_count; i++) {
        const struct transport_neighbour *neighbour = &shown->neighbours[i];
        char address[ADDRESS_TEXT_SIZE_MAX];
        char id[RING_JSON_ID_SIZE];
        sheet_format(sheet, "<tr><td>%s<td>%s<td class=key>%.8s…<td>%s<td class=number>%.2f ms\n",
                     address_format(&neighbour->vnode.peer.address, address),
                     transport_describe(transport, &neighbour->vnode.peer, version),
                     ring_json_format_id(neighbour->vnode.id, id), neighbour->role,
                     neighbour->round_trip_us / 1000.0);
    }
    sheet_table_end(sheet);
    complaints_show(&shown->complaints, sheet);
    pthread_mutex_unlock(&transport->lock);
}
