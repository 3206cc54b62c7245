#include "replay/admin/admin_pages_state.h"

/* ---- for programs ---- */

static void answer_ring(struct http_request *request) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct buf text;
    buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
    admin_pages->table->put_ring(admin_pages->context, &text);
    http_answer_json(request, ADMIN_PAGES_OK, "no-store", &text);
}

size_t admin_pages_ring_routes(struct replay *replay, struct http_route *out) {
    out[0] = (struct http_route){
        .method = "GET", .path = "/api/v1/ring", .context = replay, .answer = answer_ring};
    return 1;
}

/* ---- on the dashboard ---- */

static void put_neighbours(struct sheet *sheet, const struct ring_view *ring) {
    sheet_table_begin(sheet, "Neighbours of this node on the ring");
    sheet_html(sheet,
               "<thead><tr><th class=grow>Node<th>Place on the ring<th>Is our<th class=number>Round trip\n"
               "<tbody id=ring-neighbours>");
    for (size_t i = 0; i < ring->neighbours_count; i++) {
        const struct ring_view_neighbour *neighbour = &ring->neighbours[i];
        sheet_html(sheet, "<tr><td>");
        sheet_text(sheet, bytes_of_string(neighbour->address));
        sheet_format(sheet, "<td class=key>%.8s…<td>%s<td class=number>%.2f ms\n", neighbour->id,
                     neighbour->role, neighbour->round_trip_ms);
    }
    sheet_table_end(sheet);
}

static void put_complaints(struct sheet *sheet, const struct ring_view *ring) {
    sheet_html(sheet, "<ul id=ring-complaints>\n");
    for (size_t i = 0; i < ring->complaints_count; i++) {
        sheet_html(sheet, "<li>");
        sheet_text(sheet, bytes_of_string(ring->complaints[i]));
        sheet_html(sheet, "\n");
    }
    sheet_html(sheet, "</ul>\n");
}

void admin_pages_put_ring(struct sheet *sheet, const struct admin_pages *admin_pages, struct arena *arena) {
    struct ring_view ring = {0};
    admin_pages->table->get_ring(admin_pages->context, arena, &ring);
    if (ring.text != NULL) {
        sheet_html(sheet, "<h2 id=ring>Ring</h2>\n<p id=ring-text>");
        sheet_text(sheet, bytes_of_string(ring.text));
        sheet_html(sheet, "\n<figure id=ring-figure hidden></figure>\n");
        admin_pages_put_ring_services(sheet, &ring);
        sheet_html(sheet, "<h3>Neighbours</h3>\n");
        put_neighbours(sheet, &ring);
        put_complaints(sheet, &ring);
        sheet_script(sheet, "ring.js");
    }
}
