/* The collections that this node keeps whole. web/ring.js reads the section on the dashboard again and again.
 */
#include "replay/admin/admin_pages_state.h"

static void answer_mirrors(struct http_request *request) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct buf text;
    buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
    admin_pages->table->put_mirrors(admin_pages->context, &text);
    http_answer_json(request, ADMIN_PAGES_OK, "no-store", &text);
}

size_t admin_pages_mirrors_routes(struct replay *replay, struct http_route *out) {
    out[0] = (struct http_route){
        .method = "GET", .path = "/api/v1/mirrors", .context = replay, .answer = answer_mirrors};
    return 1;
}

/* ---- on the dashboard ---- */

static void put_number(struct sheet *sheet, uint64_t number) {
    sheet_html(sheet, "<td class=number>");
    if (number > 0) {
        sheet_count(sheet, number);
    }
}

static void put_mirror(struct sheet *sheet, const struct mirror_view *mirror) {
    sheet_html(sheet, "<tr><td>");
    sheet_text(sheet, bytes_of_string(mirror->name));
    sheet_format(sheet, "<td>%s<td>%s", mirror->role, mirror->state);
    put_number(sheet, mirror->held_number);
    put_number(sheet, mirror->newest_number);
    put_number(sheet, mirror->files_count);
    sheet_html(sheet, "<td class=number>");
    sheet_size(sheet, mirror->size);
    sheet_html(sheet, "<td>");
    sheet_text(sheet, bytes_of_string(mirror->sources));
    sheet_html(sheet, "\n");
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
            put_mirror(sheet, &mirrors[i]);
        }
        sheet_table_end(sheet);
        sheet_html(sheet, "</section>\n");
        sheet_script(sheet, "ring.js");
    }
}
