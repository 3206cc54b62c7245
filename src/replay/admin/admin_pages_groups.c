/* Groups and their topologies for programs, and the section of the dashboard on collections, which
 * web/ring.js reads again and again. */
#include "replay/admin/admin_pages_state.h"

enum { NAME_SIZE_MAX = 128, FORMAT_SIZE_MAX = 16 };

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
