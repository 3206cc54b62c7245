#include <stdlib.h>

#include "replay/desk_state.h"

/* ---- for programs ---- */

static void answer_ring(struct http_request *request) {
    const struct desk *desk = desk_of(request);
    struct buf text;
    buf_init(&text, DESK_TEXT_SIZE_MAX);
    desk->table->put_ring(desk->context, &text);
    desk_answer_json(request, DESK_OK, &text);
}

/* One request for /api/v1/ring/lookup; it waits suspended for the ring. */
struct asking {
    struct desk_find find;
    struct buf url;
    struct http_request *request;
};

static void on_done(struct desk_find *find) {
    const struct asking *asking = find->context;
    http_request_resume(asking->request);
}

static enum err read_query(struct asking *asking, struct bytes query) {
    struct desk_find *find = &asking->find;
    struct buf places;
    uint64_t wanted = 1;
    buf_init(&places, 8);
    bool is_sound = !form_get(query, "places", &places) ||
                    (bytes_to_u64(buf_bytes(&places), DESK_PLACES_MAX, &wanted) && wanted > 0);
    buf_done(&places);
    if (!is_sound) {
        return err_set(&find->detail, ERR_INVALID, "\"places\" is a number from 1 to %d", DESK_PLACES_MAX);
    }
    if (!form_get(query, "url", &asking->url) || asking->url.err != ERR_OK) {
        return err_set(&find->detail, ERR_INVALID, "which URL? /api/v1/ring/lookup?url=URL");
    }
    find->url = buf_bytes(&asking->url);
    find->places_wanted = (uint8_t)wanted;
    return ERR_OK;
}

static struct asking *asking_new(struct http_request *request) {
    struct asking *asking = calloc(1, sizeof *asking);
    if (asking != NULL) {
        asking->request = request;
        asking->find.done = on_done;
        asking->find.context = asking;
        buf_init(&asking->url, DESK_URL_SIZE_MAX);
        buf_init(&asking->find.text, DESK_TEXT_SIZE_MAX);
    }
    return asking;
}

/* Called again when the ring has answered. */
static void answer_lookup(struct http_request *request) {
    const struct desk *desk = desk_of(request);
    struct asking *asking = http_request_state(request);
    if (asking == NULL) {
        asking = asking_new(request);
        if (asking == NULL) {
            http_answer_error(request, ERR_MEMORY, NULL);
            return;
        }
        http_request_set_state(request, asking);
        asking->find.err = read_query(asking, http_request_query(request));
        if (asking->find.err == ERR_OK) {
            http_request_suspend(request); /* before the ring can resume it */
            desk->table->find(desk->context, &asking->find);
            return;
        }
    }
    if (asking->find.err != ERR_OK) {
        desk_answer_error(request, asking->find.err, &asking->find.detail);
    } else {
        desk_answer_json(request, DESK_OK, &asking->find.text);
    }
}

static void end_lookup(struct http_request *request) {
    struct asking *asking = http_request_state(request);
    if (asking != NULL) {
        buf_done(&asking->url);
        buf_done(&asking->find.text);
        free(asking);
    }
}

size_t desk_ring_routes(struct replay *replay, struct http_route *out) {
    out[0] = (struct http_route){
        .method = "GET", .path = "/api/v1/ring", .context = replay, .answer = answer_ring};
    out[1] = (struct http_route){.method = "GET",
                                 .path = "/api/v1/ring/lookup",
                                 .context = replay,
                                 .answer = answer_lookup,
                                 .end = end_lookup};
    return 2;
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
