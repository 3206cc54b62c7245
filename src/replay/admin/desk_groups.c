/* Those who keep everything: groups and their topologies. web/ring.js reads the section on the dashboard
 * again and again. */
#include "replay/admin/desk_state.h"

enum { NAME_SIZE_MAX = 128, FORMAT_SIZE_MAX = 16, EDGES_SHOWN_MAX = 100, US_PER_MS = 1000 };

/* ---- for programs ---- */

static void answer_groups(struct http_request *request) {
    const struct desk *desk = desk_of(request);
    struct err_detail detail = {0};
    struct buf name;
    struct buf text;
    buf_init(&name, NAME_SIZE_MAX);
    buf_init(&text, DESK_TEXT_SIZE_MAX);
    (void)form_get(http_request_query(request), "group", &name);
    enum err err = name.err == ERR_OK
                       ? desk->table->put_groups(desk->context, buf_bytes(&name), &text, &detail)
                       : err_set(&detail, ERR_NOT_FOUND, "no group has a name as long as that");
    buf_done(&name);
    if (err == ERR_OK) {
        desk_answer_json(request, DESK_OK, &text);
    } else {
        buf_done(&text);
        desk_answer_error(request, err, &detail);
    }
}

static void answer_picture(struct http_request *request) {
    const struct desk *desk = desk_of(request);
    struct bytes query = http_request_query(request);
    struct err_detail detail = {0};
    struct buf name;
    struct buf format;
    struct buf text;
    buf_init(&name, NAME_SIZE_MAX);
    buf_init(&format, FORMAT_SIZE_MAX);
    buf_init(&text, DESK_TEXT_SIZE_MAX);
    bool is_svg = !form_get(query, "format", &format) || bytes_equal(buf_bytes(&format), BYTES("svg"));
    bool is_dot = bytes_equal(buf_bytes(&format), BYTES("dot"));
    enum err err = ERR_OK;
    if (!is_svg && !is_dot) {
        err = err_set(&detail, ERR_INVALID, "\"format\" is svg or dot");
    } else if (!form_get(query, "group", &name) || name.err != ERR_OK) {
        err = err_set(&detail, ERR_INVALID, "of which group? /api/v1/groups/picture?group=NAME");
    }
    err = err == ERR_OK
              ? desk->table->put_group_picture(desk->context, buf_bytes(&name), is_dot, &text, &detail)
              : err;
    if (err == ERR_OK) {
        http_answer(request, DESK_OK, is_dot ? "text/vnd.graphviz" : "image/svg+xml", buf_bytes(&text));
    } else {
        desk_answer_error(request, err, &detail);
    }
    buf_done(&name);
    buf_done(&format);
    buf_done(&text);
}

size_t desk_groups_routes(struct replay *replay, struct http_route *out) {
    out[0] = (struct http_route){
        .method = "GET", .path = "/api/v1/groups", .context = replay, .answer = answer_groups};
    out[1] = (struct http_route){
        .method = "GET", .path = "/api/v1/groups/picture", .context = replay, .answer = answer_picture};
    return 2;
}

/* ---- on the dashboard ---- */

static void put_picture(struct sheet *sheet, const struct desk *desk, const char *name) {
    struct buf svg;
    buf_init(&svg, DESK_TEXT_SIZE_MAX);
    enum err err = desk->table->put_group_picture(desk->context, bytes_of_string(name), false, &svg, NULL);
    const char *text = err == ERR_OK ? buf_string(&svg) : NULL;
    if (text != NULL) {
        sheet_format(
            sheet,
            "<figure class=topology role=img aria-label=\"The topology of %s: its edges are listed below\">",
            name);
        sheet_html(sheet, text);
        sheet_html(sheet, "</figure>\n");
    }
    buf_done(&svg);
}

/* Round trips of 0 are none. */
static void put_time(struct sheet *sheet, const json_t *cost) {
    if (json_number_value(cost) > 0) {
        sheet_format(sheet, "%.1f ms", json_number_value(cost) / US_PER_MS);
    } else {
        sheet_html(sheet, "not measured");
    }
}

static void put_bandwidth(struct sheet *sheet, uint64_t bandwidth) {
    if (bandwidth > 0) {
        sheet_size(sheet, bandwidth);
        sheet_html(sheet, "/s");
    } else {
        sheet_html(sheet, "not measured");
    }
}

static void put_address(struct sheet *sheet, const json_t *members, uint64_t index) {
    sheet_text(sheet, bytes_of_string(desk_string(json_array_get(members, (size_t)index), "address")));
}

static void put_edges(struct sheet *sheet, const json_t *group) {
    const json_t *members = desk_member(group, "members");
    const json_t *edges = desk_member(group, "edges");
    sheet_table_begin(sheet, "What it costs to bring an update of a megabyte from one member to the next");
    sheet_html(sheet, "<thead><tr><th>Member<th>Member<th class=number>Cost\n<tbody>");
    for (size_t i = 0; i < json_array_size(edges) && i < EDGES_SHOWN_MAX; i++) {
        const json_t *edge = json_array_get(edges, i);
        sheet_html(sheet, "<tr><td>");
        put_address(sheet, members, desk_number(edge, "a"));
        sheet_html(sheet, "<td>");
        put_address(sheet, members, desk_number(edge, "b"));
        sheet_html(sheet, "<td class=number>");
        put_time(sheet, desk_member(edge, "cost_us"));
        sheet_html(sheet, "\n");
    }
    sheet_table_end(sheet);
}

static void put_neighbours(struct sheet *sheet, const json_t *neighbours) {
    sheet_table_begin(sheet, "What this node has measured to its neighbours");
    sheet_html(sheet, "<thead><tr><th>Neighbour<th class=number>Round trip<th class=number>Bandwidth<th "
                      "class=number>Heard\n<tbody>");
    for (size_t i = 0; i < json_array_size(neighbours); i++) {
        const json_t *neighbour = json_array_get(neighbours, i);
        sheet_html(sheet, "<tr><td>");
        sheet_text(sheet, bytes_of_string(desk_string(neighbour, "address")));
        sheet_html(sheet, "<td class=number>");
        put_time(sheet, desk_member(neighbour, "round_trip_us"));
        sheet_html(sheet, "<td class=number>");
        put_bandwidth(sheet, desk_number(neighbour, "bandwidth"));
        if (desk_member(neighbour, "heard_seconds_ago") != NULL) {
            sheet_format(sheet, "<td class=number>%ju s ago\n",
                         (uintmax_t)desk_number(neighbour, "heard_seconds_ago"));
        } else {
            sheet_html(sheet, "<td class=number>not yet\n");
        }
    }
    sheet_table_end(sheet);
}

static void put_asked(struct sheet *sheet, const json_t *group) {
    const json_t *asked = desk_member(group, "asked");
    for (size_t i = 0; i < json_array_size(asked); i++) {
        const json_t *peer = json_array_get(asked, i);
        sheet_html(sheet, "<p>");
        sheet_text(sheet, bytes_of_string(desk_string(peer, "address")));
        sheet_format(sheet, " wants to join: <code>mnemon group approve %s %s</code>\n",
                     desk_string(group, "name"), desk_string(peer, "key"));
    }
}

static void put_group(struct sheet *sheet, const struct desk *desk, const json_t *group) {
    size_t members_count = json_array_size(desk_member(group, "members"));
    const char *name = desk_string(group, "name");
    sheet_format(sheet, "<h3>%s</h3>\n<p>", name); /* letters, digits, '.', '_' and '-' */
    sheet_format(
        sheet,
        "This node is <code>%s</code>. Admission: <code>%s</code>; generator: <code>%s</code>, k = %ju.",
        desk_string(group, "state"), desk_string(group, "admission"), desk_string(group, "generator"),
        (uintmax_t)desk_number(group, "k"));
    if (members_count > 0) {
        sheet_format(
            sheet, " Topology %ju.%ju: %zu members, at most %ju hops apart, %ju bridges; the master is %s%s.",
            (uintmax_t)desk_number(group, "term"), (uintmax_t)desk_number(group, "sequence"), members_count,
            (uintmax_t)desk_number(group, "hops"), (uintmax_t)desk_number(group, "bridges"),
            desk_string(group, "master"), json_is_true(desk_member(group, "is_master")) ? ", this node" : "");
    }
    sheet_html(sheet, "\n");
    put_asked(sheet, group);
    if (members_count > 1) {
        put_picture(sheet, desk, name);
        put_edges(sheet, group);
    }
    if (json_array_size(desk_member(group, "neighbours")) > 0) {
        put_neighbours(sheet, desk_member(group, "neighbours"));
    }
}

void desk_put_groups(struct sheet *sheet, const struct desk *desk) {
    struct buf text;
    buf_init(&text, DESK_TEXT_SIZE_MAX);
    enum err err = desk->table->put_groups(desk->context, bytes_of(NULL, 0), &text, NULL);
    json_t *answer = err == ERR_OK ? json_loadb((const char *)text.data, text.size, 0, NULL) : NULL;
    buf_done(&text);
    const json_t *groups = answer != NULL ? desk_member(answer, "groups") : NULL;
    if (json_array_size(groups) > 0) {
        sheet_html(sheet,
                   "<h2 id=groups>Groups</h2>\n<section id=groups-live>\n<p>Members of a group keep whole "
                   "collections and hand updates on to each other over a topology that they measure and "
                   "compute.\n");
        for (size_t i = 0; i < json_array_size(groups); i++) {
            put_group(sheet, desk, json_array_get(groups, i));
        }
        sheet_html(sheet, "</section>\n");
        sheet_script(sheet, "ring.js");
    }
    json_decref(answer);
}
