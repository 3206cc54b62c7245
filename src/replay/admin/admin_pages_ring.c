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

static void put_neighbours(struct sheet *sheet, const json_t *ring) {
    const json_t *neighbours = admin_pages_member(ring, "neighbours");
    sheet_table_begin(sheet, "Neighbours of this node on the ring");
    sheet_html(sheet,
               "<thead><tr><th class=grow>Node<th>Place on the ring<th>Is our<th class=number>Round trip\n"
               "<tbody id=ring-neighbours>");
    for (size_t i = 0; i < json_array_size(neighbours); i++) {
        const json_t *neighbour = json_array_get(neighbours, i);
        sheet_html(sheet, "<tr><td>");
        sheet_text(sheet, bytes_of_string(admin_pages_string(neighbour, "address")));
        sheet_format(sheet, "<td class=key>%.8s…<td>", admin_pages_string(neighbour, "id"));
        sheet_text(sheet, bytes_of_string(admin_pages_string(neighbour, "role")));
        sheet_format(sheet, "<td class=number>%.2f ms\n", admin_pages_real(neighbour, "rtt_milliseconds"));
    }
    sheet_table_end(sheet);
}

static void put_complaints(struct sheet *sheet, const json_t *ring) {
    const json_t *complaints = admin_pages_member(ring, "complaints");
    sheet_html(sheet, "<ul id=ring-complaints>\n");
    for (size_t i = 0; i < json_array_size(complaints); i++) {
        sheet_html(sheet, "<li>");
        sheet_text(sheet, bytes_of_string(admin_pages_string(json_array_get(complaints, i), "text")));
        sheet_html(sheet, "\n");
    }
    sheet_html(sheet, "</ul>\n");
}

void admin_pages_put_ring(struct sheet *sheet, const struct admin_pages *admin_pages) {
    struct buf text;
    buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
    admin_pages->table->put_ring(admin_pages->context, &text);
    json_t *ring = json_loadb((const char *)text.data, text.size, 0, NULL);
    buf_done(&text);
    if (strcmp(admin_pages_string(ring, "state"), "none") != 0) {
        sheet_html(sheet, "<h2 id=ring>Ring</h2>\n<p id=ring-text>");
        sheet_text(sheet, bytes_of_string(admin_pages_string(ring, "text")));
        sheet_html(sheet, "\n<figure id=ring-figure hidden></figure>\n");
        admin_pages_put_ring_services(sheet, ring);
        sheet_html(sheet, "<h3>Neighbours</h3>\n");
        put_neighbours(sheet, ring);
        put_complaints(sheet, ring);
        sheet_script(sheet, "ring.js");
    }
    json_decref(ring);
}
