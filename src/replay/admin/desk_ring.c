#include "replay/admin/desk_state.h"

/* ---- for programs ---- */

static void answer_ring(struct http_request *request) {
    const struct desk *desk = desk_of(request);
    struct buf text;
    buf_init(&text, DESK_TEXT_SIZE_MAX);
    desk->table->put_ring(desk->context, &text);
    desk_answer_json(request, DESK_OK, &text);
}

size_t desk_ring_routes(struct replay *replay, struct http_route *out) {
    out[0] = (struct http_route){
        .method = "GET", .path = "/api/v1/ring", .context = replay, .answer = answer_ring};
    return 1;
}

/* ---- on the dashboard ---- */

static void put_neighbours(struct sheet *sheet, const json_t *ring) {
    const json_t *neighbours = desk_member(ring, "neighbours");
    sheet_table_begin(sheet, "Neighbours of this node on the ring");
    sheet_html(sheet,
               "<thead><tr><th class=grow>Node<th>Place on the ring<th>Is our<th class=number>Round trip\n"
               "<tbody id=ring-neighbours>");
    for (size_t i = 0; i < json_array_size(neighbours); i++) {
        const json_t *neighbour = json_array_get(neighbours, i);
        sheet_html(sheet, "<tr><td>");
        sheet_text(sheet, bytes_of_string(desk_string(neighbour, "address")));
        sheet_format(sheet, "<td class=key>%.8s…<td>", desk_string(neighbour, "id"));
        sheet_text(sheet, bytes_of_string(desk_string(neighbour, "role")));
        sheet_format(sheet, "<td class=number>%.2f ms\n", desk_real(neighbour, "rtt_milliseconds"));
    }
    sheet_table_end(sheet);
}

static void put_complaints(struct sheet *sheet, const json_t *ring) {
    const json_t *complaints = desk_member(ring, "complaints");
    sheet_html(sheet, "<ul id=ring-complaints>\n");
    for (size_t i = 0; i < json_array_size(complaints); i++) {
        sheet_html(sheet, "<li>");
        sheet_text(sheet, bytes_of_string(desk_string(json_array_get(complaints, i), "text")));
        sheet_html(sheet, "\n");
    }
    sheet_html(sheet, "</ul>\n");
}

void desk_put_ring(struct sheet *sheet, const struct desk *desk) {
    struct buf text;
    buf_init(&text, DESK_TEXT_SIZE_MAX);
    desk->table->put_ring(desk->context, &text);
    json_t *ring = json_loadb((const char *)text.data, text.size, 0, NULL);
    buf_done(&text);
    if (strcmp(desk_string(ring, "state"), "none") != 0) {
        sheet_html(sheet, "<h2 id=ring>Ring</h2>\n<p id=ring-text>");
        sheet_text(sheet, bytes_of_string(desk_string(ring, "text")));
        sheet_html(sheet, "\n<figure id=ring-figure hidden></figure>\n");
        desk_put_together(sheet, ring);
        sheet_html(sheet, "<h3>Neighbours</h3>\n");
        put_neighbours(sheet, ring);
        put_complaints(sheet, ring);
        sheet_script(sheet, "ring.js");
    }
    json_decref(ring);
}
