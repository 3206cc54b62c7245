#include <stdio.h>

#include "node/transport/ring_json.h"
#include "node/transport/transport_state.h"

enum { NEIGHBOURS_MAX = 256, FINGERS_MAX = 256, OTHERS_MAX = 128 };

static const char *const state_names[TRANSPORT_STATES_COUNT] = {
    [TRANSPORT_NONE] = "none",       [TRANSPORT_LOOKING] = "looking", [TRANSPORT_ASKING] = "asking",
    [TRANSPORT_JOINING] = "joining", [TRANSPORT_MEMBER] = "member",   [TRANSPORT_REMOVED] = "removed",
};

static const char *const mode_names[] = {
    [RING_IDLE] = "idle", [RING_JOINING] = "joining", [RING_SMALL] = "small", [RING_CHORD] = "chord"};

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

size_t transport_peers(const struct transport *transport, struct peer out[RING_FILES_PEERS_MAX]) {
    const struct ring *ring = transport->ring;
    size_t count = 0;
    if (ring == NULL) {
        return 0;
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

/* Of the whole ring, 0 to 1; from a to a: all. */
static double share_of(struct ring_id from, struct ring_id to) {
    struct ring_id way = ring_id_distance(from, to);
    bool is_all = way.high == 0 && way.low == 0;
    return is_all ? 1.0 : (double)way.high / 18446744073709551616.0;
}

static void put_vnode(const struct transport *transport, const struct ring_known *known, const char *role,
                      struct buf *out) {
    buf_put_byte(out, '{');
    ring_json_put_vnode(&known->vnode, out);
    buf_put_format(out, ",\"role\":\"%s\"", role);
    if (known->round_trip_us > 0) {
        buf_put_format(out, ",\"rtt_milliseconds\":%.3f", known->round_trip_us / 1000.0);
    } else {
        buf_put_string(out, ",\"rtt_milliseconds\":null");
    }
    uint64_t now_us = clock_monotonic_us(transport->config.clock);
    if (known->heard_at_us > 0 && known->heard_at_us <= now_us) {
        buf_put_format(out, ",\"heard_seconds_ago\":%.1f", (double)(now_us - known->heard_at_us) / 1e6);
    } else {
        buf_put_string(out, ",\"heard_seconds_ago\":null");
    }
    buf_put_format(out, ",\"misses\":%u}", known->misses_count);
}

/* A list of places without repetitions. */
struct listing {
    const struct transport *transport;
    struct buf *out;
    struct ring_id ids[NEIGHBOURS_MAX];
    size_t count;
};

static void list_vnode(struct listing *listing, const struct vnode *vnode, const char *role) {
    struct ring_known known = {.vnode = *vnode};
    for (size_t i = 0; i < listing->count; i++) {
        if (ring_id_equal(listing->ids[i], vnode->id)) {
            return;
        }
    }
    if (listing->count == NEIGHBOURS_MAX) {
        return;
    }
    (void)ring_know(listing->transport->ring, vnode->id, &known);
    known.vnode = *vnode;
    buf_put_string(listing->out, listing->count > 0 ? "," : "");
    put_vnode(listing->transport, &known, role, listing->out);
    listing->ids[listing->count++] = vnode->id;
}

static void put_neighbours(const struct transport *transport, struct buf *out) {
    const struct ring *ring = transport->ring;
    struct listing listing = {.transport = transport, .out = out};
    for (uint8_t vnode = 0; vnode < ring_vnodes_count(ring); vnode++) {
        for (uint8_t i = 0; i < ring_list_size(ring); i++) {
            char role[32];
            const struct vnode *successor = ring_successor(ring, vnode, i);
            snprintf(role, sizeof role, "successor %u", i + 1u);
            if (is_real(transport, successor)) {
                list_vnode(&listing, successor, role);
            }
        }
        const struct vnode *predecessor = ring_predecessor(ring, vnode);
        if (is_real(transport, predecessor)) {
            list_vnode(&listing, predecessor, "predecessor");
        }
    }
}

static void put_fingers(const struct transport *transport, struct buf *out) {
    const struct ring *ring = transport->ring;
    size_t count = 0;
    for (uint8_t vnode = 0; vnode < ring_vnodes_count(ring); vnode++) {
        struct ring_known finger;
        uint32_t cursor = 0;
        while (count < FINGERS_MAX && ring_next_finger(ring, vnode, &cursor, &finger)) {
            if (is_real(transport, &finger.vnode)) {
                buf_put_string(out, count++ > 0 ? "," : "");
                put_vnode(transport, &finger, "finger", out);
            }
        }
    }
}

/* All that are known to live, for a picture: neighbours and fingers among them. */
static void put_others(const struct transport *transport, struct buf *out) {
    const struct ring *ring = transport->ring;
    size_t count = 0;
    for (uint32_t i = 0; i < ring_known_count(ring) && count < OTHERS_MAX; i++) {
        char address[ADDRESS_TEXT_SIZE_MAX];
        char id[RING_JSON_ID_SIZE];
        struct ring_known known = ring_known_at(ring, i);
        if (is_real(transport, &known.vnode) && known.misses_count == 0) {
            buf_put_format(out, "%s{\"address\":\"%s\",\"id\":\"%s\"}", count++ > 0 ? "," : "",
                           address_format(&known.vnode.peer.address, address),
                           ring_json_format_id(known.vnode.id, id));
        }
    }
}

/* "list 7 of 8": so many entries are places that have not failed to answer. A small ring has no more. */
static void put_health(const struct ring *ring, uint8_t vnode, struct buf *out) {
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
    buf_put_format(out, "\"list %u of %u\"", healthy, is_small ? there : ring_list_size(ring));
}

static void put_vnodes(const struct transport *transport, struct buf *out) {
    const struct ring *ring = transport->ring;
    for (uint8_t vnode = 0; vnode < ring_vnodes_count(ring); vnode++) {
        char id[RING_JSON_ID_SIZE];
        const struct vnode *own = ring_vnode_at(ring, vnode);
        const struct vnode *predecessor = ring_predecessor(ring, vnode);
        bool is_member = ring_is_member(ring, vnode) && predecessor != NULL;
        buf_put_format(out, "%s{\"index\":%u,\"id\":\"%s\",\"member\":%s", vnode > 0 ? "," : "", own->index,
                       ring_json_format_id(own->id, id), is_member ? "true" : "false");
        if (is_member) {
            buf_put_format(out, ",\"from\":\"%s\",\"share\":%.6f,\"health\":",
                           ring_json_format_id(predecessor->id, id), share_of(predecessor->id, own->id));
            put_health(ring, vnode, out);
            buf_put_byte(out, '}');
        } else {
            buf_put_string(out, ",\"from\":null,\"share\":0,\"health\":\"not placed yet\"}");
        }
    }
}

static void put_counters(const struct transport *transport, struct buf *out) {
    const struct ring_counters *ring = ring_counters(transport->ring);
    buf_put_format(out,
                   ",\"counters\":{\"received\":%ju,\"malformed\":%ju,\"foreign\":%ju,\"unasked\":%ju,"
                   "\"challenged\":%ju,\"silent\":%ju,\"lookups\":%ju,\"from_table\":%ju,\"lost\":%ju,"
                   "\"hops\":%ju,\"blamed\":%ju}",
                   (uintmax_t)ring->received_count, (uintmax_t)ring->malformed_count,
                   (uintmax_t)ring->foreign_count, (uintmax_t)ring->unasked_count,
                   (uintmax_t)ring->challenged_count, (uintmax_t)ring->silent_count,
                   (uintmax_t)ring->lookups_count, (uintmax_t)ring->from_table_count,
                   (uintmax_t)ring->lost_count, (uintmax_t)ring->hops_count, (uintmax_t)ring->blamed_count);
}

static void put_dropped(const struct datagram_stats *stats, struct buf *out) {
    static const struct {
        const char *name;
        enum seal_verdict verdict;
    } verdicts[] = {
        {"short", SEAL_SHORT},         {"other_version", SEAL_OTHER}, {"strange", SEAL_STRANGE},
        {"forged", SEAL_FORGED},       {"other_clock", SEAL_CLOCK},   {"replayed", SEAL_REPLAYED},
        {"unproved_life", SEAL_STALE}, {"flooding", SEAL_FLOOD},
    };
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++) {
        buf_put_format(out, ",\"%s\":%ju", verdicts[i].name, (uintmax_t)stats->verdicts[verdicts[i].verdict]);
    }
}

static void put_traffic(const struct transport *transport, struct buf *out) {
    const struct datagram_stats *stats = datagram_stats(transport->datagram);
    const struct gate_stat *gate = gate_stat(transport->gate);
    buf_put_format(out,
                   ",\"datagrams\":{\"received\":%ju,\"received_bytes\":%ju,\"sent\":%ju,\"sent_bytes\":%ju,"
                   "\"dropped\":%ju,\"unproved\":%ju,\"refused_by_us\":%ju,\"refused_by_others\":%ju,"
                   "\"limited\":%ju,\"malformed\":%ju",
                   (uintmax_t)stats->received, (uintmax_t)stats->received_bytes, (uintmax_t)stats->sent,
                   (uintmax_t)stats->sent_bytes, (uintmax_t)stats->dropped, (uintmax_t)stats->unproved,
                   (uintmax_t)stats->refused_by_us, (uintmax_t)stats->refused_by_others,
                   (uintmax_t)stats->limited, (uintmax_t)stats->malformed);
    put_dropped(stats, out);
    buf_put_byte(out, '}');
    buf_put_format(out,
                   ",\"members\":{\"hellos\":%ju,\"refused\":%ju,\"refused_by_others\":%ju,"
                   "\"turned_away\":%ju,\"malformed\":%ju}",
                   (uintmax_t)gate->hellos_count, (uintmax_t)gate->refused_count,
                   (uintmax_t)gate->refusals_count, (uintmax_t)gate->turned_away_count,
                   (uintmax_t)gate->malformed_count);
}

static void put_blamed(const struct transport *transport, struct buf *out) {
    uint32_t count;
    const struct ring_blame *blames = ring_blames(transport->ring, &count);
    for (uint32_t i = 0; i < count; i++) {
        char address[ADDRESS_TEXT_SIZE_MAX];
        buf_put_format(out, "%s{\"address\":\"%s\",\"count\":%u,\"text\":", i > 0 ? "," : "",
                       address_format(&blames[i].who.peer.address, address), blames[i].count);
        buf_put_json(out, bytes_of_string(blames[i].text));
        buf_put_byte(out, '}');
    }
}

static void put_sentence(const struct transport *transport, struct buf *out) {
    char text[TRANSPORT_SENTENCE_SIZE_MAX];
    const char *name = transport->charter.name;
    const char *host = transport->contact.host;
    switch (transport->state) {
    case TRANSPORT_NONE:
        snprintf(text, sizeof text, "in no ring");
        break;
    case TRANSPORT_LOOKING:
        snprintf(text, sizeof text, "looking for %s", host);
        break;
    case TRANSPORT_ASKING:
        snprintf(text, sizeof text, "asking %s for the charter of its ring", host);
        break;
    case TRANSPORT_MEMBER:
        snprintf(text, sizeof text, "member of \"%s\"", name);
        break;
    case TRANSPORT_REMOVED:
        snprintf(text, sizeof text, "the founder of \"%s\" has removed this node", name);
        break;
    default:
        snprintf(text, sizeof text,
                 transport->remembered_count == 0 && host[0] == '\0'
                     ? "knows nobody of \"%s\": start it with --join"
                     : "joining \"%s\"",
                 name);
    }
    buf_put_json(out, bytes_of_string(text));
}

static void put_ring(const struct transport *transport, struct buf *out) {
    const struct ring *ring = transport->ring;
    buf_put_format(out, ",\"mode\":\"%s\",\"estimated_size\":%ju,\"known\":%u,\"places\":[",
                   mode_names[ring_mode(ring)], (uintmax_t)ring_estimated_size(ring), ring_known_count(ring));
    put_vnodes(transport, out);
    buf_put_string(out, "],\"neighbours\":[");
    put_neighbours(transport, out);
    buf_put_string(out, "],\"fingers\":[");
    put_fingers(transport, out);
    buf_put_string(out, "],\"others\":[");
    put_others(transport, out);
    buf_put_string(out, "],\"blamed\":[");
    put_blamed(transport, out);
    buf_put_byte(out, ']');
    put_counters(transport, out);
}

void transport_copy(struct transport *transport) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    struct buf *out = &transport->text;
    pthread_mutex_lock(&transport->lock);
    buf_clear(out);
    buf_put_format(
        out, "{\"version\":1,\"running\":true,\"state\":\"%s\",\"text\":", state_names[transport->state]);
    put_sentence(transport, out);
    buf_put_format(out, ",\"key\":\"%s\",\"address\":", identity_key_format(transport->identity.key, key));
    if (transport->datagram != NULL) {
        buf_put_format(out, "\"%s\"", address_format(&transport->self.address, address));
    } else {
        buf_put_string(out, "null");
    }
    buf_put_string(out, ",\"charter\":");
    if (transport->has_charter) {
        ring_json_put_charter(&transport->charter, out);
    } else {
        buf_put_string(out, "null");
    }
    if (transport->ring != NULL) {
        put_ring(transport, out);
    }
    if (transport->datagram != NULL) {
        put_traffic(transport, out);
    }
    buf_put_string(out, ",\"complaints\":");
    complaints_put(&transport->complaints, out);
    buf_put_byte(out, '}');
    pthread_mutex_unlock(&transport->lock);
}
