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

static void put_number_of(struct sheet *sheet, const json_t *mirror, const char *path) {
    sheet_html(sheet, "<td class=number>");
    if (admin_pages_number(mirror, path) > 0) {
        sheet_count(sheet, admin_pages_number(mirror, path));
    }
}

/* From whom it comes just now, or how many could give it. */
static void put_sources(struct sheet *sheet, const json_t *sources) {
    bool has_one = false;
    for (size_t i = 0; i < json_array_size(sources); i++) {
        const json_t *source = json_array_get(sources, i);
        if (json_is_true(admin_pages_member(source, "fetching"))) {
            sheet_html(sheet, has_one ? ", " : "from ");
            sheet_text(sheet, bytes_of_string(admin_pages_string(source, "address")));
            has_one = true;
        }
    }
    if (!has_one) {
        sheet_format(sheet, "%zu known", json_array_size(sources));
    }
}

/* What it does, or until when it may not. */
static void put_state(struct sheet *sheet, const json_t *mirror, const json_t *answer) {
    const json_t *limit = admin_pages_member(answer, "download.limit");
    const char *until = admin_pages_string(answer, "download.until");
    bool waits = json_is_integer(limit) && json_integer_value(limit) == 0 &&
                 json_is_object(admin_pages_member(mirror, "target"));
    if (waits && until[0] != '\0') {
        sheet_format(sheet, "<td>waits until %s", until);
    } else {
        sheet_format(sheet, "<td>%s", waits ? "waits" : admin_pages_string(mirror, "state"));
    }
}

static void put_mirror(struct sheet *sheet, const json_t *mirror, const json_t *answer) {
    sheet_html(sheet, "<tr><td>");
    sheet_text(sheet, bytes_of_string(admin_pages_string(mirror, "name")));
    sheet_format(sheet, "<td>%s", admin_pages_string(mirror, "role"));
    put_state(sheet, mirror, answer);
    put_number_of(sheet, mirror, "held.number");
    put_number_of(sheet, mirror, "newest.number");
    put_number_of(sheet, mirror, "held.files");
    sheet_html(sheet, "<td class=number>");
    sheet_size(sheet, admin_pages_number(mirror, "held.size"));
    sheet_html(sheet, "<td>");
    put_sources(sheet, admin_pages_member(mirror, "sources"));
    sheet_html(sheet, "\n");
}

void admin_pages_put_mirrors(struct sheet *sheet, const struct admin_pages *admin_pages) {
    struct buf text;
    buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
    admin_pages->table->put_mirrors(admin_pages->context, &text);
    json_t *answer = json_loadb((const char *)text.data, text.size, 0, NULL);
    buf_done(&text);
    const json_t *mirrors = answer != NULL ? admin_pages_member(answer, "mirrors") : NULL;
    if (json_array_size(mirrors) > 0) {
        sheet_html(sheet, "<h2 id=mirrors>Collections</h2>\n<section id=mirrors-live>\n");
        sheet_table_begin(sheet, "Collections that this node publishes or keeps a copy of");
        sheet_html(sheet,
                   "<thead><tr><th class=grow>Name<th>Part<th>State<th class=number>Version here<th "
                   "class=number>Newest<th class=number>Files<th class=number>Size<th>Sources\n<tbody>");
        for (size_t i = 0; i < json_array_size(mirrors); i++) {
            put_mirror(sheet, json_array_get(mirrors, i), answer);
        }
        sheet_table_end(sheet);
        sheet_html(sheet, "</section>\n");
        sheet_script(sheet, "ring.js");
    }
    json_decref(answer);
}
