/* Those who keep everything: groups and their topologies. web/ring.js reads the section on the dashboard
 * again and again. */
#include "replay/admin/admin_pages_state.h"

enum { NAME_SIZE_MAX = 128, FORMAT_SIZE_MAX = 16, EDGES_SHOWN_MAX = 100, US_PER_MS = 1000 };

/* ---- for programs ---- */

static void answer_groups(struct http_request *request) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct err_detail detail = {0};
    struct buf name;
    struct buf text;
    buf_init(&name, NAME_SIZE_MAX);
    buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
    (void)form_get(http_request_query(request), "group", &name);
    enum err err =
        name.err == ERR_OK
            ? admin_pages->table->put_groups(admin_pages->context, buf_bytes(&name), &text, &detail)
            : err_set(&detail, ERR_NOT_FOUND, "no group has a name as long as that");
    buf_done(&name);
    if (err == ERR_OK) {
        http_answer_json(request, ADMIN_PAGES_OK, "no-store", &text);
    } else {
        buf_done(&text);
        admin_pages_answer_error(request, err, &detail);
    }
}

static void answer_picture(struct http_request *request) {
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
        err = err_set(&detail, ERR_INVALID, "of which group? /api/v1/groups/picture?group=NAME");
    }
    err = err == ERR_OK ? admin_pages->table->put_group_picture(admin_pages->context, buf_bytes(&name),
                                                                is_dot, &text, &detail)
                        : err;
    if (err == ERR_OK) {
        http_answer(request, ADMIN_PAGES_OK, is_dot ? "text/vnd.graphviz" : "image/svg+xml",
                    buf_bytes(&text));
    } else {
        admin_pages_answer_error(request, err, &detail);
    }
    buf_done(&name);
    buf_done(&format);
    buf_done(&text);
}

size_t admin_pages_groups_routes(struct replay *replay, struct http_route *out) {
    out[0] = (struct http_route){
        .method = "GET", .path = "/api/v1/groups", .context = replay, .answer = answer_groups};
    out[1] = (struct http_route){
        .method = "GET", .path = "/api/v1/groups/picture", .context = replay, .answer = answer_picture};
    return 2;
}

/* ---- on the dashboard ---- */

static void put_picture(struct sheet *sheet, const struct admin_pages *admin_pages, const char *name) {
    struct buf svg;
    buf_init(&svg, ADMIN_PAGES_TEXT_SIZE_MAX);
    enum err err =
        admin_pages->table->put_group_picture(admin_pages->context, bytes_of_string(name), false, &svg, NULL);
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
    sheet_text(sheet, bytes_of_string(admin_pages_string(json_array_get(members, (size_t)index), "address")));
}

static void put_edges(struct sheet *sheet, const json_t *group) {
    const json_t *members = admin_pages_member(group, "members");
    const json_t *edges = admin_pages_member(group, "edges");
    sheet_table_begin(sheet, "What it costs to bring an update of a megabyte from one member to the next");
    sheet_html(sheet, "<thead><tr><th>Member<th>Member<th class=number>Cost\n<tbody>");
    for (size_t i = 0; i < json_array_size(edges) && i < EDGES_SHOWN_MAX; i++) {
        const json_t *edge = json_array_get(edges, i);
        sheet_html(sheet, "<tr><td>");
        put_address(sheet, members, admin_pages_number(edge, "a"));
        sheet_html(sheet, "<td>");
        put_address(sheet, members, admin_pages_number(edge, "b"));
        sheet_html(sheet, "<td class=number>");
        put_time(sheet, admin_pages_member(edge, "cost_us"));
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
        sheet_text(sheet, bytes_of_string(admin_pages_string(neighbour, "address")));
        sheet_html(sheet, "<td class=number>");
        put_time(sheet, admin_pages_member(neighbour, "round_trip_us"));
        sheet_html(sheet, "<td class=number>");
        put_bandwidth(sheet, admin_pages_number(neighbour, "bandwidth"));
        if (admin_pages_member(neighbour, "heard_seconds_ago") != NULL) {
            sheet_format(sheet, "<td class=number>%ju s ago\n",
                         (uintmax_t)admin_pages_number(neighbour, "heard_seconds_ago"));
        } else {
            sheet_html(sheet, "<td class=number>not yet\n");
        }
    }
    sheet_table_end(sheet);
}

static void put_asked(struct sheet *sheet, const json_t *group) {
    const json_t *asked = admin_pages_member(group, "asked");
    for (size_t i = 0; i < json_array_size(asked); i++) {
        const json_t *peer = json_array_get(asked, i);
        sheet_html(sheet, "<p>");
        sheet_text(sheet, bytes_of_string(admin_pages_string(peer, "address")));
        sheet_format(sheet, " wants to join: <code>mnemon group approve %s %s</code>\n",
                     admin_pages_string(group, "name"), admin_pages_string(peer, "key"));
    }
}

static void put_group(struct sheet *sheet, const struct admin_pages *admin_pages, const json_t *group) {
    size_t members_count = json_array_size(admin_pages_member(group, "members"));
    const char *name = admin_pages_string(group, "name");
    sheet_format(sheet, "<h3>%s</h3>\n<p>", name); /* letters, digits, '.', '_' and '-' */
    sheet_format(
        sheet,
        "This node is <code>%s</code>. Admission: <code>%s</code>; generator: <code>%s</code>, k = %ju.",
        admin_pages_string(group, "state"), admin_pages_string(group, "admission"),
        admin_pages_string(group, "generator"), (uintmax_t)admin_pages_number(group, "k"));
    if (members_count > 0) {
        sheet_format(
            sheet, " Topology %ju.%ju: %zu members, at most %ju hops apart, %ju bridges; the master is %s%s.",
            (uintmax_t)admin_pages_number(group, "term"), (uintmax_t)admin_pages_number(group, "sequence"),
            members_count, (uintmax_t)admin_pages_number(group, "hops"),
            (uintmax_t)admin_pages_number(group, "bridges"), admin_pages_string(group, "master"),
            json_is_true(admin_pages_member(group, "is_master")) ? ", this node" : "");
    }
    sheet_html(sheet, "\n");
    put_asked(sheet, group);
    if (members_count > 1) {
        put_picture(sheet, admin_pages, name);
        put_edges(sheet, group);
    }
    if (json_array_size(admin_pages_member(group, "neighbours")) > 0) {
        put_neighbours(sheet, admin_pages_member(group, "neighbours"));
    }
}

void admin_pages_put_groups(struct sheet *sheet, const struct admin_pages *admin_pages) {
    struct buf text;
    buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
    enum err err = admin_pages->table->put_groups(admin_pages->context, bytes_of(NULL, 0), &text, NULL);
    json_t *answer = err == ERR_OK ? json_loadb((const char *)text.data, text.size, 0, NULL) : NULL;
    buf_done(&text);
    const json_t *groups = answer != NULL ? admin_pages_member(answer, "groups") : NULL;
    if (json_array_size(groups) > 0) {
        sheet_html(sheet,
                   "<h2 id=groups>Groups</h2>\n<section id=groups-live>\n<p>Members of a group keep whole "
                   "collections and hand updates on to each other over a topology that they measure and "
                   "compute.\n");
        for (size_t i = 0; i < json_array_size(groups); i++) {
            put_group(sheet, admin_pages, json_array_get(groups, i));
        }
        sheet_html(sheet, "</section>\n");
        sheet_script(sheet, "ring.js");
    }
    json_decref(answer);
}
