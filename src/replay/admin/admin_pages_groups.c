/* Nodes that keep whole collections: groups and their topologies. web/ring.js reads the section on the
 * dashboard again and again. */
#include "replay/admin/admin_pages_state.h"

enum { NAME_SIZE_MAX = 128, FORMAT_SIZE_MAX = 16, EDGES_SHOWN_MAX = 100, US_PER_MS = 1000 };

/* ---- for programs ---- */

void admin_pages_groups(struct http_request *request) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct err_detail detail = {0};
    struct buf name;
    struct buf text;
    buf_init(&name, NAME_SIZE_MAX);
    buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
    (void)form_get(http_request_query(request), "group", &name);
    enum err err = name.err == ERR_OK ? admin_pages->table->put_groups(admin_pages->context, buf_bytes(&name),
                                                                       &text, &detail)
                                      : err_set(&detail, ERR_NOT_FOUND, "no group has so long a name");
    buf_done(&name);
    if (err == ERR_OK) {
        http_answer_json(request, STATUS_OK, "no-store", &text);
    } else {
        buf_done(&text);
        admin_pages_answer_error(request, err, &detail);
    }
}

void admin_pages_group_picture(struct http_request *request) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct bytes query = http_request_query(request);
    struct err_detail detail = {0};
    struct buf name;
    struct buf format;
    struct buf text;
    buf_init(&name, NAME_SIZE_MAX);
    buf_init(&format, FORMAT_SIZE_MAX);
    buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
    bool is_svg = !form_get(query, "format", &format) || bytes_equal(buf_bytes(&format), BYTES("svg"));
    bool is_dot = bytes_equal(buf_bytes(&format), BYTES("dot"));
    enum err err = ERR_OK;
    if (!is_svg && !is_dot) {
        err = err_set(&detail, ERR_INVALID, "\"format\" is svg or dot");
    } else if (!form_get(query, "group", &name) || name.err != ERR_OK) {
        err = err_set(&detail, ERR_INVALID, "which group? /api/v1/groups/picture?group=NAME");
    }
    err = err == ERR_OK ? admin_pages->table->put_group_picture(admin_pages->context, buf_bytes(&name),
                                                                is_dot, &text, &detail)
                        : err;
    if (err == ERR_OK) {
        http_answer(request, STATUS_OK, is_dot ? "text/vnd.graphviz" : "image/svg+xml", buf_bytes(&text));
    } else {
        admin_pages_answer_error(request, err, &detail);
    }
    buf_done(&name);
    buf_done(&format);
    buf_done(&text);
}

/* ---- on the dashboard ---- */

static void put_picture(struct sheet *sheet, const struct admin_pages *admin_pages, const char *name) {
    struct buf svg;
    buf_init(&svg, ADMIN_PAGES_TEXT_SIZE_MAX);
    enum err err =
        admin_pages->table->put_group_picture(admin_pages->context, bytes_of_string(name), false, &svg, NULL);
    const char *text = err == ERR_OK ? buf_string(&svg) : NULL;
    if (text != NULL) {
        FILL(sheet,
             "<figure class=topology role=img aria-label=\"The topology of {html}: its edges are listed "
             "below\">{html}</figure>\n",
             {.string = name}, {.string = text});
    }
    buf_done(&svg);
}

/* 0: there is none. */
static void put_group_time(struct sheet *sheet, uint32_t time_us) {
    if (time_us > 0) {
        sheet_format(sheet, "%.1f ms", (double)time_us / US_PER_MS);
    } else {
        sheet_html(sheet, "not measured");
    }
}

static void groups_put_bandwidth(struct sheet *sheet, uint64_t bandwidth) {
    if (bandwidth > 0) {
        sheet_size(sheet, bandwidth);
        sheet_html(sheet, "/s");
    } else {
        sheet_html(sheet, "not measured");
    }
}

static void put_edges(struct sheet *sheet, const struct group_view *group) {
    sheet_table_begin(sheet, "What it costs to bring an update of a megabyte from one member to the next");
    sheet_html(sheet, "<thead><tr><th>Member<th>Member<th class=number>Cost\n<tbody>");
    for (size_t i = 0; i < group->edges_count && i < EDGES_SHOWN_MAX; i++) {
        FILL(sheet, "<tr><td>{string}<td>{string}<td class=number>", {.string = group->edges[i].from},
             {.string = group->edges[i].to});
        put_group_time(sheet, group->edges[i].cost_us);
        sheet_html(sheet, "\n");
    }
    sheet_table_end(sheet);
}

static void put_group_neighbours(struct sheet *sheet, const struct group_view *group) {
    sheet_table_begin(sheet, "What this node has measured to its neighbours");
    sheet_html(sheet, "<thead><tr><th>Neighbour<th class=number>Round trip<th class=number>Bandwidth<th "
                      "class=number>Heard\n<tbody>");
    for (size_t i = 0; i < group->neighbours_count; i++) {
        const struct group_view_neighbour *neighbour = &group->neighbours[i];
        FILL(sheet, "<tr><td>{string}<td class=number>", {.string = neighbour->address});
        put_group_time(sheet, neighbour->round_trip_us);
        sheet_html(sheet, "<td class=number>");
        groups_put_bandwidth(sheet, neighbour->bandwidth);
        if (neighbour->is_heard) {
            sheet_format(sheet, "<td class=number>%ju s ago\n", (uintmax_t)neighbour->heard_s);
        } else {
            sheet_html(sheet, "<td class=number>not yet\n");
        }
    }
    sheet_table_end(sheet);
}

static void put_asked(struct sheet *sheet, const struct group_view *group) {
    for (size_t i = 0; i < group->asked_count; i++) {
        FILL(sheet, "<p>{string} wants to join: <code>mnemon group approve {html} {html}</code>\n",
             {.string = group->asked[i].address}, {.string = group->name}, {.string = group->asked[i].key});
    }
}

static void groups_put_group(struct sheet *sheet, const struct admin_pages *admin_pages,
                             const struct group_view *group) {
    sheet_format(sheet, "<h3>%s</h3>\n<p>", group->name);
    sheet_format(
        sheet,
        "This node is <code>%s</code>. Admission: <code>%s</code>; generator: <code>%s</code>, k = %u.",
        group->state, group->admission, group->generator, group->k);
    if (group->members_count > 0) {
        sheet_format(sheet,
                     " Topology %u.%u: %zu members, at most %u hops apart, %u bridges; the master is %s%s.",
                     group->term, group->sequence, group->members_count, group->hops, group->bridges,
                     group->master, group->is_master ? ", this node" : "");
    }
    sheet_html(sheet, "\n");
    put_asked(sheet, group);
    if (group->members_count > 1) {
        put_picture(sheet, admin_pages, group->name);
        put_edges(sheet, group);
    }
    if (group->neighbours_count > 0) {
        put_group_neighbours(sheet, group);
    }
}

void admin_pages_put_groups(struct sheet *sheet, const struct admin_pages *admin_pages, struct arena *arena) {
    struct group_view *groups;
    size_t count = admin_pages->table->list_groups(admin_pages->context, arena, &groups);
    if (count > 0) {
        sheet_html(sheet,
                   "<h2 id=groups>Groups</h2>\n<section id=groups-live>\n<p>Members of a group keep whole "
                   "collections and hand updates on to each other over a topology that they measure and "
                   "compute.\n");
        for (size_t i = 0; i < count; i++) {
            groups_put_group(sheet, admin_pages, &groups[i]);
        }
        sheet_html(sheet, "</section>\n");
        sheet_script(sheet, "ring.js");
    }
}

/* The collections that this node keeps whole. web/ring.js reads the section on the dashboard again and again.
 */
static void put_mirror_number(struct sheet *sheet, uint64_t number) {
    sheet_html(sheet, "<td class=number>");
    if (number > 0) {
        sheet_count(sheet, number);
    }
}

static void groups_put_mirror(struct sheet *sheet, const struct mirror_view *mirror) {
    FILL(sheet, "<tr><td>{string}<td>{html}<td>{html}", {.string = mirror->name}, {.string = mirror->role},
         {.string = mirror->state});
    put_mirror_number(sheet, mirror->held_number);
    put_mirror_number(sheet, mirror->newest_number);
    put_mirror_number(sheet, mirror->files_count);
    FILL(sheet, "<td class=number>{size}<td>{string}\n", {.number = mirror->size},
         {.string = mirror->sources});
}

void admin_pages_put_mirrors(struct sheet *sheet, const struct admin_pages *admin_pages,
                             struct arena *arena) {
    struct mirror_view *mirrors;
    size_t count = admin_pages->table->list_mirrors(admin_pages->context, arena, &mirrors);
    if (count > 0) {
        sheet_html(sheet, "<h2 id=mirrors>Collections</h2>\n<section id=mirrors-live>\n");
        sheet_table_begin(sheet, "Collections that this node publishes or keeps a copy of");
        sheet_html(sheet,
                   "<thead><tr><th class=grow>Name<th>Part<th>State<th class=number>Version here<th "
                   "class=number>Newest<th class=number>Files<th class=number>Size<th>Sources\n<tbody>");
        for (size_t i = 0; i < count; i++) {
            groups_put_mirror(sheet, &mirrors[i]);
        }
        sheet_table_end(sheet);
        sheet_html(sheet, "</section>\n");
        sheet_script(sheet, "ring.js");
    }
}
