#include <stdlib.h>

#include "base/json.h"
#include "net/identity.h"
#include "node/group/group_driver_state.h"
#include "node/group/topology_picture.h"
#include "replay/admin/metrics.h"
#include "replay/site/fill.h"

/* ---- what other threads see: copies, made by the loop ---- */

static const uint64_t COPY_US = 250000;

/* ---- the loop ---- */

/* The lock is held. */
static void view_put_member(struct group_driver *driver, const struct peer *peer) {
    if (map_reserve(&driver->members, driver->members.count + 1) == ERR_OK) {
        map_put(&driver->members, bytes_of(peer->key, PEER_KEY_SIZE));
    } /* else the member is refused, and asks again */
}

/* The lock is held. */
static void note_members(struct group_driver *driver) {
    map_clear(&driver->members);
    for (size_t i = 0; i < GROUP_DRIVER_GROUPS_MAX; i++) {
        const struct group_driver_slot *slot = &driver->slots[i];
        const struct group *group = slot->is_shown ? slot->group : NULL;
        const struct topology *topology = group != NULL ? group_topology(group) : NULL;
        for (uint32_t m = 0; topology != NULL && m < topology->members_count; m++) {
            view_put_member(driver, &topology->members[m]);
        }
        for (size_t n = 0; group != NULL && n < slot->wish.neighbours_count; n++) {
            view_put_member(driver, &slot->wish.neighbours[n]);
        }
    }
}

/* The lock is held. */
static void copy_topology(struct group_driver_slot *slot) {
    const struct topology *topology = group_topology(slot->group);
    slot->topology = slot->topology != NULL ? slot->topology : calloc(1, sizeof *slot->topology);
    if (slot->topology != NULL && topology != NULL) {
        *slot->topology = *topology;
    } else if (slot->topology != NULL) {
        slot->topology->members_count = 0;
    }
}

static bool has_changed(const struct group_driver_slot *slot) {
    const struct group_driver_view *view = &slot->view;
    const struct group *group = slot->group;
    const struct topology *topology = group_topology(group);
    return !slot->is_shown || view->mode != group_mode(group) || view->term != group_term(group) ||
           view->sequence != group_sequence(group) ||
           (slot->topology != NULL && topology == NULL && slot->topology->members_count > 0);
}

void group_driver_show(struct group_driver *driver, struct group_driver_slot *slot, bool is_now) {
    uint64_t now_us = group_driver_now_us(driver);
    struct group_driver_view view = {
        .rules = slot->rules, .is_refused = slot->is_refused, .is_leaving = slot->wish.is_leaving};
    if (!is_now && now_us < slot->copy_at_us) {
        return;
    }
    slot->copy_at_us = now_us + COPY_US;
    memcpy(view.name, slot->wish.name, sizeof view.name);
    view.asked_count = slot->asked_count;
    memcpy(view.asked, slot->asked, sizeof view.asked);
    view.mode = GROUP_JOINING;
    if (slot->group != NULL) {
        view.mode = group_mode(slot->group);
        view.is_master = group_is_master(slot->group);
        view.term = group_term(slot->group);
        view.sequence = group_sequence(slot->group);
        view.counters = *group_counters(slot->group);
        view.neighbours_count = group_neighbours(slot->group, view.neighbours, GROUP_DRIVER_NEIGHBOURS_MAX);
    }
    pthread_mutex_lock(&driver->lock);
    bool is_other = slot->group != NULL && has_changed(slot);
    slot->is_shown = true;
    slot->view = view;
    if (is_other) {
        copy_topology(slot);
        note_members(driver);
    }
    pthread_mutex_unlock(&driver->lock);
}

void group_driver_hide(struct group_driver *driver, struct group_driver_slot *slot) {
    pthread_mutex_lock(&driver->lock);
    slot->is_shown = false;
    note_members(driver);
    if (slot->topology != NULL) {
        slot->topology->members_count = 0;
    }
    pthread_mutex_unlock(&driver->lock);
}

/* ---- any thread ---- */

bool group_driver_is_member(struct group_driver *driver, const struct peer *peer) {
    pthread_mutex_lock(&driver->lock);
    bool is_member = map_get(&driver->members, bytes_of(peer->key, PEER_KEY_SIZE)) != NULL;
    pthread_mutex_unlock(&driver->lock);
    return is_member;
}

static bool is_there(const struct group_driver_neighbour *all, size_t count, const struct peer *peer) {
    for (size_t i = 0; i < count; i++) {
        if (memcmp(all[i].peer.key, peer->key, PEER_KEY_SIZE) == 0) {
            return true;
        }
    }
    return false;
}

size_t group_driver_neighbours(struct group_driver *driver,
                               struct group_driver_neighbour out[GROUP_DRIVER_NEIGHBOURS_MAX]) {
    size_t count = 0;
    pthread_mutex_lock(&driver->lock);
    for (size_t i = 0; i < GROUP_DRIVER_GROUPS_MAX; i++) {
        const struct group_driver_slot *slot = &driver->slots[i];
        size_t neighbours_count = slot->is_shown ? slot->view.neighbours_count : 0;
        for (size_t n = 0; n < neighbours_count && count < GROUP_DRIVER_NEIGHBOURS_MAX; n++) {
            const struct group_neighbour *neighbour = &slot->view.neighbours[n];
            if (!is_there(out, count, &neighbour->peer)) {
                out[count] = (struct group_driver_neighbour){.peer = neighbour->peer,
                                                             .bandwidth = neighbour->bandwidth,
                                                             .delay_us = neighbour->round_trip_us};
                memcpy(out[count++].group, slot->view.name, sizeof slot->view.name);
            }
        }
    }
    pthread_mutex_unlock(&driver->lock);
    return count;
}

/* A copy, so that the loop does not wait while it is written. */
struct picture {
    struct group_driver_view view;
    struct topology topology; /* members_count 0: none */
};

/* False: that slot is free. */
static bool view_take(struct group_driver *driver, size_t index, struct picture *picture) {
    const struct group_driver_slot *slot = &driver->slots[index];
    pthread_mutex_lock(&driver->lock);
    bool is_shown = slot->is_shown;
    if (is_shown) {
        picture->view = slot->view;
        picture->topology.members_count = 0;
        if (slot->topology != NULL && slot->topology->members_count > 0) {
            picture->topology = *slot->topology;
        }
    }
    pthread_mutex_unlock(&driver->lock);
    return is_shown;
}

static const char *view_state_of(const struct picture *picture) {
    static const char *const modes[] = {[GROUP_IDLE] = "idle",
                                        [GROUP_JOINING] = "joining",
                                        [GROUP_MEMBER] = "member",
                                        [GROUP_FIXED] = "fixed"};
    return picture->view.is_leaving   ? "leaving"
           : picture->view.is_refused ? "refused"
                                      : modes[picture->view.mode];
}

/* Writes the first members of an object, which stays open. */
static void put_peer(struct json *json, const struct peer *peer) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    json_open(json, NULL);
    json_text(json, "address", address_format(&peer->address, address));
    json_text(json, "key", identity_key_format(peer->key, key));
}

static void view_put_members(const struct group_driver *driver, const struct topology *topology,
                             struct json *json) {
    json_open_list(json, "members");
    for (uint32_t i = 0; i < topology->members_count; i++) {
        const struct peer *member = &topology->members[i];
        put_peer(json, member);
        json_bool(json, "self", peer_equal(member, &driver->self));
        json_close(json);
    }
    json_close(json);
    json_open_list(json, "edges");
    for (uint32_t i = 0; i < topology->edges_count && topology->members_count > 0; i++) {
        const struct topology_edge *edge = &topology->edges[i];
        json_open(json, NULL);
        JSON_COUNTS(json, {"a", edge->a}, {"b", edge->b});
        if (edge->cost_us == COSTS_UNKNOWN_US) {
            json_none(json, "cost_us");
        } else {
            json_count(json, "cost_us", edge->cost_us);
        }
        json_close(json);
    }
    json_close(json);
}

/* What it stands. */
struct judgement {
    uint32_t hops;
    struct graph_weakness weakness;
};

/* False: there is no topology, or no memory. */
static bool view_judge(const struct topology *topology, struct judgement *ret_judgement) {
    struct graph *graph = topology->members_count > 0 ? calloc(1, sizeof *graph) : NULL;
    if (graph == NULL) {
        return false;
    }
    topology_get_graph(topology, graph);
    *ret_judgement = (struct judgement){graph_diameter(graph), graph_weakness(graph)};
    free(graph);
    return true;
}

static void put_judgement(const struct topology *topology, struct json *json) {
    struct judgement judgement;
    if (view_judge(topology, &judgement)) {
        JSON_COUNTS(json, {"hops", judgement.hops}, {"bridges", judgement.weakness.bridges_count},
                    {"articulations", judgement.weakness.articulations_count});
    }
}

static uint64_t heard_seconds(const struct group_driver *driver, const struct group_neighbour *neighbour) {
    uint64_t now_us = group_driver_now_us(driver);
    return now_us > neighbour->heard_at_us ? (now_us - neighbour->heard_at_us) / 1000000 : 0;
}

static void view_put_neighbours(const struct group_driver *driver, const struct group_driver_view *view,
                                struct json *json) {
    json_open_list(json, "neighbours");
    for (size_t i = 0; i < view->neighbours_count; i++) {
        const struct group_neighbour *neighbour = &view->neighbours[i];
        put_peer(json, &neighbour->peer);
        JSON_COUNTS(json, {"round_trip_us", neighbour->round_trip_us}, {"bandwidth", neighbour->bandwidth});
        if (neighbour->cost_us != COSTS_UNKNOWN_US) {
            json_count(json, "cost_us", neighbour->cost_us);
        }
        if (neighbour->heard_at_us > 0) {
            json_count(json, "heard_seconds_ago", heard_seconds(driver, neighbour));
        }
        json_close(json);
    }
    json_close(json);
    json_open_list(json, "asked");
    for (size_t i = 0; i < view->asked_count; i++) {
        put_peer(json, &view->asked[i].peer);
        json_close(json);
    }
    json_close(json);
}

static void view_put_counters(const struct group_counters *counters, struct json *json) {
    json_open(json, "counters");
    JSON_COUNTS(json, {"received", counters->received_count}, {"malformed", counters->malformed_count},
                {"foreign", counters->foreign_count}, {"strange", counters->strange_count},
                {"unasked", counters->unasked_count}, {"flooded", counters->flooded_count},
                {"forged", counters->forged_count}, {"blamed", counters->blamed_count},
                {"echoes", counters->echoes_count}, {"echoed", counters->echoed_count},
                {"probes", counters->probes_count}, {"reports", counters->reports_count},
                {"reported", counters->reported_count}, {"requests", counters->requests_count},
                {"pieces", counters->pieces_count}, {"repeats", counters->repeats_count},
                {"committed", counters->committed_count}, {"computed", counters->computed_count},
                {"dropped", counters->dropped_count});
    json_close(json);
}

static void view_put_group(const struct group_driver *driver, const struct picture *picture,
                           struct json *json) {
    const struct group_driver_view *view = &picture->view;
    const struct topology *topology = &picture->topology;
    char text[IDENTITY_TEXT_SIZE + ADDRESS_TEXT_SIZE_MAX];
    json_open(json, NULL);
    json_text(json, "name", view->name);
    json_text(json, "state", view_state_of(picture));
    json_text(json, "founder", identity_key_format(view->rules.founder, text));
    json_text(json, "admission", group_files_admissions[view->rules.admission]);
    json_text(json, "generator", group_files_generators[view->rules.generator]);
    json_count(json, "k", view->rules.k);
    json_bool(json, "is_master", view->is_master);
    JSON_COUNTS(json, {"term", view->term}, {"sequence", view->sequence});
    if (topology->members_count > 0) {
        json_text(json, "master", address_format(&topology->members[0].address, text));
    }
    view_put_members(driver, topology, json);
    put_judgement(topology, json);
    view_put_neighbours(driver, view, json);
    view_put_counters(&view->counters, json);
    json_close(json);
}

enum err group_driver_put(struct group_driver *driver, struct bytes name, struct buf *out,
                          struct err_detail *detail) {
    struct picture *picture = calloc(1, sizeof *picture);
    bool is_found = name.size == 0;
    struct json json;
    json_begin(&json, out);
    json_count(&json, "version", 1);
    json_open_list(&json, "groups");
    for (size_t i = 0; picture != NULL && i < GROUP_DRIVER_GROUPS_MAX; i++) {
        bool is_wanted = view_take(driver, i, picture) &&
                         (name.size == 0 || bytes_equal(name, bytes_of_string(picture->view.name)));
        if (is_wanted) {
            view_put_group(driver, picture, &json);
            is_found = true;
        }
    }
    json_end(&json);
    free(picture);
    return is_found ? ERR_OK : err_set(detail, ERR_NOT_FOUND, "this node is in no such group");
}

void group_driver_put_metrics(struct group_driver *driver, struct buf *out) {
    static const struct metrics_column columns[] = {
        {"group_member", "1: this node is in the topology of the group."},
        {"group_members", "Members of the group, as its topology has them."},
        {"group_neighbours", "Neighbours of this node in the group."},
        {"group_master", "1: this node is the master of the group."},
        {"group_messages_received_total", "Messages of the group that were received."},
        {"group_messages_refused_total", "Of them, those that make no sense or may not be said."},
        {"group_echoes_total", "Echoes that this node asked for."},
        {"group_echoes_answered_total", "Echoes that came back."},
        {"group_topologies_total", "Topologies that came into force."},
        {"group_members_dropped_total", "Members that were dropped for their silence."},
    };
    struct metrics_row rows[GROUP_DRIVER_GROUPS_MAX];
    char names[GROUP_DRIVER_GROUPS_MAX][GROUP_FILES_NAME_SIZE_MAX];
    struct picture *picture = calloc(1, sizeof *picture);
    size_t count = 0;
    for (size_t i = 0; picture != NULL && i < GROUP_DRIVER_GROUPS_MAX; i++) {
        if (!view_take(driver, i, picture)) {
            continue;
        }
        const struct group_driver_view *view = &picture->view;
        const struct group_counters *counters = &view->counters;
        memcpy(names[count], view->name, sizeof names[count]);
        rows[count] = (struct metrics_row){.label = names[count],
                                           .values = {view->mode == GROUP_MEMBER || view->mode == GROUP_FIXED,
                                                      picture->topology.members_count, view->neighbours_count,
                                                      view->is_master, counters->received_count,
                                                      counters->malformed_count + counters->foreign_count +
                                                          counters->strange_count + counters->unasked_count +
                                                          counters->flooded_count + counters->forged_count,
                                                      counters->echoes_count, counters->echoed_count,
                                                      counters->committed_count, counters->dropped_count}};
        count++;
    }
    metrics_put_rows(out, "group", columns, sizeof columns / sizeof *columns, rows, count);
    free(picture);
}

enum err group_driver_put_picture(struct group_driver *driver, struct bytes name, bool is_dot,
                                  struct buf *out, struct err_detail *detail) {
    struct picture *picture = calloc(1, sizeof *picture);
    enum err err = picture == NULL ? ERR_MEMORY : ERR_NOT_FOUND;
    for (size_t i = 0; picture != NULL && i < GROUP_DRIVER_GROUPS_MAX; i++) {
        bool is_it = view_take(driver, i, picture) &&
                     bytes_equal(name, bytes_of_string(picture->view.name)) &&
                     picture->topology.members_count > 0;
        if (is_it) {
            err = is_dot ? topology_put_dot(&picture->topology, out)
                         : topology_put_svg(&picture->topology, out);
            break;
        }
    }
    free(picture);
    return err == ERR_NOT_FOUND ? err_set(detail, err, "no topology of such a group") : err;
}

/* ---- the section of the dashboard ---- */

enum { EDGES_SHOWN_MAX = 100 };

/* 0: not measured. */
static void show_time(struct sheet *sheet, uint32_t time_us) {
    if (time_us > 0) {
        sheet_format(sheet, "%.1f ms", (double)time_us / 1000);
    } else {
        sheet_html(sheet, "not measured");
    }
}

static void show_topology(const struct topology *topology, const char *name, struct sheet *sheet) {
    FILL(sheet,
         "<figure class=topology role=img aria-label=\"The topology of {html}: its edges are listed below\">",
         {.string = name});
    topology_put_svg(topology, &sheet->out);
    sheet_html(sheet, "</figure>\n");
    sheet_table_begin(sheet, "What it costs to bring an update of a megabyte from one member to the next");
    sheet_html(sheet, "<thead><tr><th>Member<th>Member<th class=number>Cost\n<tbody>");
    for (uint32_t i = 0; i < topology->edges_count && i < EDGES_SHOWN_MAX; i++) {
        const struct topology_edge *edge = &topology->edges[i];
        char from[ADDRESS_TEXT_SIZE_MAX];
        char to[ADDRESS_TEXT_SIZE_MAX];
        FILL(sheet, "<tr><td>{string}<td>{string}<td class=number>",
             {.string = address_format(&topology->members[edge->a].address, from)},
             {.string = address_format(&topology->members[edge->b].address, to)});
        show_time(sheet, edge->cost_us == COSTS_UNKNOWN_US ? 0 : edge->cost_us);
        sheet_html(sheet, "\n");
    }
    sheet_table_end(sheet);
}

static void show_neighbours(const struct group_driver *driver, const struct group_driver_view *view,
                            struct sheet *sheet) {
    sheet_table_begin(sheet, "What this node has measured to its neighbours");
    sheet_html(sheet, "<thead><tr><th>Neighbour<th class=number>Round trip<th class=number>Bandwidth<th "
                      "class=number>Heard\n<tbody>");
    for (size_t i = 0; i < view->neighbours_count; i++) {
        const struct group_neighbour *neighbour = &view->neighbours[i];
        char address[ADDRESS_TEXT_SIZE_MAX];
        FILL(sheet, "<tr><td>{string}<td class=number>",
             {.string = address_format(&neighbour->peer.address, address)});
        show_time(sheet, neighbour->round_trip_us);
        FILL(sheet, neighbour->bandwidth > 0 ? "<td class=number>{size}/s" : "<td class=number>{html}",
             {.number = neighbour->bandwidth, .string = "not measured"});
        FILL(sheet,
             neighbour->heard_at_us > 0 ? "<td class=number>{number} s ago\n" : "<td class=number>{html}\n",
             {.number = heard_seconds(driver, neighbour), .string = "not yet"});
    }
    sheet_table_end(sheet);
}

static void show_group(const struct group_driver *driver, const struct picture *picture,
                       struct sheet *sheet) {
    const struct group_driver_view *view = &picture->view;
    const struct topology *topology = &picture->topology;
    struct judgement judgement;
    char address[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    sheet_format(sheet,
                 "<h3>%s</h3>\n<p>This node is <code>%s</code>. Admission: <code>%s</code>; generator: "
                 "<code>%s</code>, k = %u.",
                 view->name, view_state_of(picture), group_files_admissions[view->rules.admission],
                 group_files_generators[view->rules.generator], view->rules.k);
    if (view_judge(topology, &judgement)) {
        sheet_format(sheet,
                     " Topology %u.%u: %u members, at most %u hops apart, %u bridges; the master is %s%s.",
                     view->term, view->sequence, topology->members_count, judgement.hops,
                     judgement.weakness.bridges_count, address_format(&topology->members[0].address, address),
                     view->is_master ? ", this node" : "");
    }
    sheet_html(sheet, "\n");
    for (size_t i = 0; i < view->asked_count; i++) {
        const struct peer *peer = &view->asked[i].peer;
        FILL(sheet, "<p>{string} wants to join: <code>mnemon group approve {html} {html}</code>\n",
             {.string = address_format(&peer->address, address)}, {.string = view->name},
             {.string = identity_key_format(peer->key, key)});
    }
    if (topology->members_count > 1) {
        show_topology(topology, view->name, sheet);
    }
    if (view->neighbours_count > 0) {
        show_neighbours(driver, view, sheet);
    }
}

void group_driver_show_section(struct group_driver *driver, struct sheet *sheet) {
    struct picture *picture = calloc(1, sizeof *picture);
    bool has_begun = false;
    for (size_t i = 0; picture != NULL && i < GROUP_DRIVER_GROUPS_MAX; i++) {
        if (view_take(driver, i, picture)) {
            sheet_html(sheet, has_begun
                                  ? ""
                                  : "<h2 id=groups>Groups</h2>\n<section id=groups-live>\n<p>Members of a "
                                    "group keep whole collections and hand updates on to each other over a "
                                    "topology that they measure and compute.\n");
            show_group(driver, picture, sheet);
            has_begun = true;
        }
    }
    if (has_begun) {
        sheet_html(sheet, "</section>\n");
        sheet_script(sheet, "ring.js"); /* reads the section again and again */
    }
    free(picture);
}
