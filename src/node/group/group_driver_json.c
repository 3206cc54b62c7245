/* What people want to know of the groups. */
#include <inttypes.h>
#include <stdlib.h>

#include "net/identity.h"
#include "node/group/group_driver_state.h"
#include "node/group/topology_picture.h"

/* A copy, so that the loop does not wait while it is written. */
struct picture {
    struct group_driver_view view;
    struct topology topology; /* members_count 0: none */
};

struct number {
    const char *name;
    uint64_t value;
};

/* False: that slot is free. */
static bool take(struct group_driver *group_driver, size_t index, struct picture *picture) {
    const struct group_driver_slot *slot = &group_driver->slots[index];
    pthread_mutex_lock(&group_driver->lock);
    bool is_shown = slot->is_shown;
    if (is_shown) {
        picture->view = slot->view;
        picture->topology.members_count = 0;
        if (slot->topology != NULL && slot->topology->members_count > 0) {
            picture->topology = *slot->topology;
        }
    }
    pthread_mutex_unlock(&group_driver->lock);
    return is_shown;
}

static const char *state_of(const struct picture *picture) {
    static const char *const modes[] = {[GROUP_IDLE] = "idle",
                                        [GROUP_JOINING] = "joining",
                                        [GROUP_MEMBER] = "member",
                                        [GROUP_FIXED] = "fixed"};
    return picture->view.is_leaving   ? "leaving"
           : picture->view.is_refused ? "refused"
                                      : modes[picture->view.mode];
}

static void put_peer(struct buf *out, const struct peer *peer) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    buf_put_format(out, "{\"address\":\"%s\",\"key\":\"%s\"", address_format(&peer->address, address),
                   identity_key_format(peer->key, key));
}

static void put_members(const struct group_driver *group_driver, const struct topology *topology,
                        struct buf *out) {
    buf_put_string(out, ",\"members\":[");
    for (uint32_t i = 0; i < topology->members_count; i++) {
        const struct peer *member = &topology->members[i];
        buf_put_string(out, i > 0 ? "," : "");
        put_peer(out, member);
        buf_put_format(out, ",\"self\":%s}", peer_equal(member, &group_driver->self) ? "true" : "false");
    }
    buf_put_string(out, "],\"edges\":[");
    for (uint32_t i = 0; i < topology->edges_count && topology->members_count > 0; i++) {
        const struct topology_edge *edge = &topology->edges[i];
        buf_put_format(out, "%s{\"a\":%u,\"b\":%u,\"cost_us\":", i > 0 ? "," : "", edge->a, edge->b);
        if (edge->cost_us == COSTS_UNKNOWN_US) {
            buf_put_string(out, "null}");
        } else {
            buf_put_format(out, "%" PRIu32 "}", edge->cost_us);
        }
    }
    buf_put_byte(out, ']');
}

/* What it stands. */
static void put_judgement(const struct topology *topology, struct buf *out) {
    struct graph *graph = calloc(1, sizeof *graph);
    if (graph != NULL && topology->members_count > 0) {
        topology_get_graph(topology, graph);
        struct graph_weakness weakness = graph_weakness(graph);
        buf_put_format(out, ",\"hops\":%" PRIu32 ",\"bridges\":%" PRIu32 ",\"articulations\":%" PRIu32,
                       graph_diameter(graph), weakness.bridges_count, weakness.articulations_count);
    }
    free(graph);
}

static void put_neighbours(const struct group_driver *group_driver, const struct group_driver_view *view,
                           struct buf *out) {
    uint64_t now_us = group_driver_now_us(group_driver);
    buf_put_string(out, ",\"neighbours\":[");
    for (size_t i = 0; i < view->neighbours_count; i++) {
        const struct group_neighbour *neighbour = &view->neighbours[i];
        buf_put_string(out, i > 0 ? "," : "");
        put_peer(out, &neighbour->peer);
        buf_put_format(out, ",\"round_trip_us\":%" PRIu32 ",\"bandwidth\":%" PRIu64, neighbour->round_trip_us,
                       neighbour->bandwidth);
        if (neighbour->cost_us != COSTS_UNKNOWN_US) {
            buf_put_format(out, ",\"cost_us\":%" PRIu32, neighbour->cost_us);
        }
        if (neighbour->heard_at_us > 0) {
            uint64_t ago_us = now_us > neighbour->heard_at_us ? now_us - neighbour->heard_at_us : 0;
            buf_put_format(out, ",\"heard_seconds_ago\":%" PRIu64, ago_us / 1000000);
        }
        buf_put_byte(out, '}');
    }
    buf_put_string(out, "],\"asked\":[");
    for (size_t i = 0; i < view->asked_count; i++) {
        buf_put_string(out, i > 0 ? "," : "");
        put_peer(out, &view->asked[i].peer);
        buf_put_byte(out, '}');
    }
    buf_put_byte(out, ']');
}

static void put_counters(const struct group_counters *counters, struct buf *out) {
    const struct number numbers[] = {
        {"received", counters->received_count},   {"malformed", counters->malformed_count},
        {"foreign", counters->foreign_count},     {"strange", counters->strange_count},
        {"unasked", counters->unasked_count},     {"flooded", counters->flooded_count},
        {"forged", counters->forged_count},       {"blamed", counters->blamed_count},
        {"echoes", counters->echoes_count},       {"echoed", counters->echoed_count},
        {"probes", counters->probes_count},       {"reports", counters->reports_count},
        {"reported", counters->reported_count},   {"requests", counters->requests_count},
        {"pieces", counters->pieces_count},       {"repeats", counters->repeats_count},
        {"committed", counters->committed_count}, {"computed", counters->computed_count},
        {"dropped", counters->dropped_count},
    };
    buf_put_string(out, ",\"counters\":{");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        buf_put_format(out, "%s\"%s\":%" PRIu64, i > 0 ? "," : "", numbers[i].name, numbers[i].value);
    }
    buf_put_byte(out, '}');
}

static void put_group(const struct group_driver *group_driver, const struct picture *picture,
                      struct buf *out) {
    const struct group_driver_view *view = &picture->view;
    const struct topology *topology = &picture->topology;
    char text[IDENTITY_TEXT_SIZE + ADDRESS_TEXT_SIZE_MAX];
    buf_put_format(
        out,
        "{\"name\":\"%s\",\"state\":\"%s\",\"founder\":\"%s\",\"admission\":\"%s\","
        "\"generator\":\"%s\",\"k\":%u,\"is_master\":%s,\"term\":%" PRIu32 ",\"sequence\":%" PRIu32,
        view->name, state_of(picture), identity_key_format(view->rules.founder, text),
        group_files_admissions[view->rules.admission], group_files_generators[view->rules.generator],
        view->rules.k, view->is_master ? "true" : "false", view->term, view->sequence);
    if (topology->members_count > 0) {
        buf_put_format(out, ",\"master\":\"%s\"", address_format(&topology->members[0].address, text));
    }
    put_members(group_driver, topology, out);
    put_judgement(topology, out);
    put_neighbours(group_driver, view, out);
    put_counters(&view->counters, out);
    buf_put_byte(out, '}');
}

enum err group_driver_put(struct group_driver *group_driver, struct bytes name, struct buf *out,
                          struct err_detail *detail) {
    struct picture *picture = calloc(1, sizeof *picture);
    const char *between = "";
    bool is_found = name.size == 0;
    buf_put_string(out, "{\"version\":1,\"groups\":[");
    for (size_t i = 0; picture != NULL && i < GROUP_DRIVER_GROUPS_MAX; i++) {
        bool is_wanted = take(group_driver, i, picture) &&
                         (name.size == 0 || bytes_equal(name, bytes_of_string(picture->view.name)));
        if (is_wanted) {
            buf_put_string(out, between);
            put_group(group_driver, picture, out);
            between = ",";
            is_found = true;
        }
    }
    buf_put_string(out, "]}");
    free(picture);
    return is_found ? ERR_OK : err_set(detail, ERR_NOT_FOUND, "this node is in no such group");
}

enum err group_driver_put_picture(struct group_driver *group_driver, struct bytes name, bool is_dot,
                                  struct buf *out, struct err_detail *detail) {
    struct picture *picture = calloc(1, sizeof *picture);
    enum err err = picture == NULL ? ERR_MEMORY : ERR_NOT_FOUND;
    for (size_t i = 0; picture != NULL && i < GROUP_DRIVER_GROUPS_MAX; i++) {
        bool is_it = take(group_driver, i, picture) &&
                     bytes_equal(name, bytes_of_string(picture->view.name)) &&
                     picture->topology.members_count > 0;
        if (is_it) {
            err = is_dot ? topology_put_dot(&picture->topology, NULL, out)
                         : topology_put_svg(&picture->topology, NULL, out);
            break;
        }
    }
    free(picture);
    return err == ERR_NOT_FOUND ? err_set(detail, err, "no topology of such a group") : err;
}
