#include "protocol/crowd/state.h"

enum { ROUNDS_MAX = 2 }; /* of choosing others */

static bool is_awaited(const struct locate_flight *flight, uint32_t peer_hash) {
    for (unsigned i = 0; i < flight->awaited_count; i++) {
        if (flight->awaited[i] == peer_hash) {
            return true;
        }
    }
    return false;
}

/* False: there is no room for one more. */
static bool send_copy(struct crowd *crowd, struct locate_flight *flight, struct locate_query *query,
                      const struct crowd_message *message, const struct peer *to, uint32_t peer_hash) {
    if (!crowd->config.takes_repeats && !locate_seen_add_copy(&crowd->locate.seen, query, peer_hash)) {
        return false;
    }
    crowd_send(crowd, to, message);
    flight->awaited[flight->awaited_count++] = peer_hash;
    return true;
}

/*
 * To `count` neighbours that have not been used for this query; where repeats are taken, only those of the
 * last round are known.
 */
static size_t send_round(struct crowd *crowd, struct locate_flight *flight, struct locate_query *query,
                         const struct crowd_message *message, const struct address *not_to, size_t count) {
    struct locate_flight last = *flight;
    uint8_t order[CROWD_VIEW_MAX];
    int without = not_to == NULL ? -1 : view_find(&crowd->view, not_to);
    bool is_first = query->copies_count == 0 && last.awaited_count == 0;
    size_t candidates =
        view_pick(&crowd->view, &crowd->prng, without, is_first ? count : CROWD_VIEW_MAX, order);
    flight->awaited_count = 0;
    for (size_t i = 0; i < candidates && flight->awaited_count < count; i++) {
        const struct peer *to = &crowd->view.neighbours[order[i]].peer;
        uint32_t peer_hash = locate_peer_hash(crowd, &to->address);
        bool is_used =
            is_awaited(&last, peer_hash) || locate_seen_copy(&crowd->locate.seen, query, peer_hash) != NULL;
        if (!is_used && !send_copy(crowd, flight, query, message, to, peer_hash)) {
            break;
        }
    }
    flight->due_us = flight->awaited_count == 0 ? STEP_NEVER_US : crowd->now_us + crowd->config.ack_us;
    return flight->awaited_count;
}

size_t locate_flight_start(struct crowd *crowd, struct locate_flight *flight, struct locate_query *query,
                           const struct crowd_message *message, const struct address *not_to, size_t count) {
    ASSERT(count <= CROWD_FANOUT_MAX);
    *flight = (struct locate_flight){0};
    return send_round(crowd, flight, query, message, not_to, count);
}

/* ---- silence ---- */

static void blame_silence(struct crowd *crowd, uint32_t peer_hash) {
    struct locate *locate = &crowd->locate;
    for (unsigned i = 0; i < LOCATE_SILENT_MAX; i++) {
        if (locate->silent[i] != peer_hash) {
            continue;
        }
        locate->silent[i] = 0;
        for (unsigned n = 0; n < crowd->view.count; n++) {
            struct address address = crowd->view.neighbours[n].peer.address;
            if (locate_peer_hash(crowd, &address) == peer_hash) {
                overlay_drop(crowd, &address);
                crowd->counters.silent_count++;
                return;
            }
        }
        return;
    }
    locate->silent[locate->silent_next] = peer_hash;
    locate->silent_next = (uint8_t)((locate->silent_next + 1) % LOCATE_SILENT_MAX);
}

void locate_flight_hear(struct crowd *crowd, uint32_t peer_hash) {
    for (unsigned i = 0; i < LOCATE_SILENT_MAX; i++) {
        if (crowd->locate.silent[i] == peer_hash) {
            crowd->locate.silent[i] = 0;
        }
    }
}

/* Who wakes this late was asleep himself: what came meanwhile has not been read yet. */
static bool is_own_fault(const struct crowd *crowd, const struct locate_flight *flight) {
    return crowd->now_us - flight->due_us > crowd->config.ack_us / 2;
}

size_t locate_flight_tick(struct crowd *crowd, struct locate_flight *flight, struct locate_query *query,
                          const struct crowd_message *message, const struct address *not_to) {
    if (crowd->now_us < flight->due_us) {
        return 0;
    }
    if (is_own_fault(crowd, flight)) {
        flight->due_us = crowd->now_us + crowd->config.ack_us / 2;
        return 0;
    }
    for (unsigned i = 0; i < flight->awaited_count && !crowd->config.keeps_silent; i++) {
        blame_silence(crowd, flight->awaited[i]);
    }
    if (flight->rounds_count == ROUNDS_MAX) {
        *flight = (struct locate_flight){.due_us = STEP_NEVER_US};
        return 0;
    }
    flight->rounds_count++;
    size_t sent = send_round(crowd, flight, query, message, not_to, flight->awaited_count);
    crowd->counters.reselected_count += sent;
    return sent;
}

bool locate_flight_acknowledge(struct locate_flight *flight, uint32_t peer_hash) {
    for (unsigned i = 0; i < flight->awaited_count; i++) {
        if (flight->awaited[i] == peer_hash) {
            flight->awaited[i] = flight->awaited[--flight->awaited_count];
            flight->due_us = flight->awaited_count == 0 ? STEP_NEVER_US : flight->due_us;
            return true;
        }
    }
    return false;
}
